//! The launcher's part: it creates the memory that its processes share, and reacts to the end of a
//! process.

use std::{io, process, sync::atomic::Ordering::SeqCst};

use consort_fabric::Rank;

use super::{
    binding::Binding, control::VARIABLE, control_file::ControlFile, process_end::ProcessEnd,
};
use crate::{launch::failure::Failure, system::process as system};

/// The memory that the processes of a launcher share.
pub struct Launcher(ControlFile);

impl Launcher {
    /// Allocates memory for `pes` processes, which may use this many processors.
    ///
    /// # Errors
    /// When there are no processes or too many, or the system provides no memory.
    pub fn new(pes: u32, processors: u32, binding: Binding) -> io::Result<Self> {
        ControlFile::create(pes, processors, binding).map(Self)
    }

    /// Returns the descriptor number under which the processes inherit the memory. It must be open
    /// in them.
    #[must_use]
    pub fn descriptor(&self) -> i32 {
        system::number_of(&self.0.file)
    }

    /// Returns the name and value of the environment variable for the process that runs PE `rank`.
    #[must_use]
    pub fn variable(&self, rank: Rank) -> (&'static str, String) {
        let (number, pes, own) = (self.descriptor(), self.0.pes, process::id());
        (VARIABLE, format!("{number}:{rank}:{pes}:{own}"))
    }

    /// Returns the process that has joined as this PE: the process that was started, or one that it
    /// started.
    #[must_use]
    pub fn process(&self, rank: Rank) -> Option<u32> {
        let pid = self.0.processes().get(rank.index())?.pid.load(SeqCst);
        (pid != 0).then_some(pid)
    }

    /// Records how the process of a PE has ended. Fails the launches that need it, and wakes all
    /// that wait in them. Returns whether there are any.
    pub fn lose(&self, rank: Rank, end: ProcessEnd) -> bool {
        self.0.lose(rank, end)
    }

    /// Returns how the process of a PE has ended, if it has.
    #[must_use]
    pub fn end(&self, rank: Rank) -> Option<ProcessEnd> {
        self.0.processes().get(rank.index())?.lost()
    }

    /// Returns the reasons that processes have reported why they could not start: each text with
    /// its PEs.
    #[must_use]
    pub fn reports(&self) -> Vec<(String, Vec<Rank>)> {
        let of = |number: u32| {
            let processes = (0..).map(Rank).zip(self.0.processes());
            // Pairs with `PeProcess::report`, in processes that have ended.
            let said = processes.filter(move |(_, one)| one.report.load(SeqCst) == number + 1);
            said.map(|(rank, _)| rank).collect()
        };
        self.0.reports.all().map(|(number, text)| (text, of(number))).collect()
    }

    /// Returns how many processes have run their own PEs, if no process has joined as a PE of this
    /// job.
    #[must_use]
    pub fn copies(&self) -> usize {
        let processes = self.0.processes();
        // Pairs with `PeProcess::of_text` and `PeProcess::is_alone`, in processes that have ended.
        if processes.iter().any(|one| one.pid.load(SeqCst) != 0) {
            return 0;
        }
        processes.iter().filter(|one| one.is_alone.load(SeqCst) != 0).count()
    }

    /// Returns why a launch has failed, if one has.
    #[must_use]
    pub fn failure(&self) -> Option<Failure> {
        self.0.failure().or_else(|| self.never_came())
    }

    /// Returns the failure of a PE for which others wait or have waited, and whose process ended
    /// before it called Consort.
    fn never_came(&self) -> Option<Failure> {
        let processes = self.0.processes();
        let last = processes.iter().map(|process| process.begun.load(SeqCst)).max()?;
        let number = last.checked_sub(1)?;
        (0..).map(Rank).zip(processes).find_map(|(rank, process)| {
            let never_came = process.begun.load(SeqCst) < last;
            let reason = process.is_missed(number).filter(|_| never_came)?;
            Some(Failure::Pe { rank, reason })
        })
    }
}
