//! The launcher's part: the memory that its processes share, and the reaction to the end of a
//! process.

use std::{
    fs::File,
    io, process,
    sync::{
        Arc,
        atomic::Ordering::{Relaxed, SeqCst},
    },
};

use consort_fabric::Rank;

use super::{
    binding::Binding,
    control::{self, ControlBlock, LaunchSlot, MOST_PROCESSES, VARIABLE},
    process_end::ProcessEnd,
};
use crate::{
    launch::{failure::Failure, layout, reason},
    segment::{
        memory_error::MemoryError,
        reservation::Segment,
        slice::{SegmentRef, SegmentSlice},
    },
    state::header::{Header, PeState},
    system::process as system,
};
use consort_machine::sync::futex::Scope;

/// The memory that the processes of a launcher share.
pub struct Launcher {
    file: Arc<File>,
    control: SegmentRef<ControlBlock>,
    pes: u32,
}

impl Launcher {
    /// Allocates memory for `pes` processes, which may use `cores` cores.
    ///
    /// # Errors
    /// When there are no processes or too many, or the system provides no memory.
    pub fn new(pes: u32, cores: u32, binding: Binding) -> io::Result<Self> {
        if pes == 0 || pes as usize > MOST_PROCESSES {
            let text = format!("a job has from 1 to {MOST_PROCESSES} processes, not {pes}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let refused = |call, bytes| {
            move |error: io::Error| {
                let reason = MemoryError::of(call, control::OBJECT, bytes, &error);
                io::Error::new(error.kind(), reason)
            }
        };
        let file = Arc::new(system::memory_file().map_err(refused("memfd_create", 0))?);
        let bytes = control::BYTES;
        system::extend(&file, bytes as u64).map_err(refused("ftruncate", bytes))?;
        let segment = Segment::map(&file, 0, bytes, control::OBJECT, None);
        let segment = segment.map_err(io::Error::other)?;
        let control = SegmentRef::<ControlBlock>::new(&Arc::new(segment), 0);
        control.pes.store(pes, Relaxed);
        control.cores.store(cores, Relaxed);
        control.binding.store(binding.word(), Relaxed);
        control.end.store(control::BYTES as u64, Relaxed);
        control.seal();
        Ok(Self { file, control, pes })
    }

    /// Returns the descriptor number under which the processes inherit the memory. It must be open
    /// in them.
    #[must_use]
    pub fn descriptor(&self) -> i32 {
        system::number_of(&self.file)
    }

    /// Returns the name and value of the environment variable for the process that runs PE `rank`.
    #[must_use]
    pub fn variable(&self, rank: Rank) -> (&'static str, String) {
        let (number, pes, own) = (self.descriptor(), self.pes, process::id());
        (VARIABLE, format!("{number}:{rank}:{pes}:{own}"))
    }

    /// Returns the process that has joined as this PE: the process that was started, or one that it
    /// started.
    #[must_use]
    pub fn process(&self, rank: Rank) -> Option<u32> {
        let pid = self.control.processes.get(rank.index())?.pid.load(SeqCst);
        (pid != 0).then_some(pid)
    }

    /// Records how the process of a PE has ended. Fails the launches that need it, and wakes all
    /// that wait in them. Returns whether there are any.
    pub fn lose(&self, rank: Rank, end: ProcessEnd) -> bool {
        let Some(process) = self.control.processes.get(rank.index()) else { return false };
        process.lose(end);
        let mut is_missed = false;
        for (number, launch) in self.control.present() {
            if let Some(reason) = process.is_missed(number) {
                is_missed = true;
                self.fail(launch, &Failure::Pe { rank, reason });
            }
        }
        is_missed
    }

    /// Returns how the process of a PE has ended, if it has.
    #[must_use]
    pub fn end(&self, rank: Rank) -> Option<ProcessEnd> {
        self.control.processes.get(rank.index())?.lost()
    }

    /// Returns the reasons that processes have reported why they could not start: each text with
    /// its PEs.
    #[must_use]
    pub fn reports(&self) -> Vec<(String, Vec<Rank>)> {
        let of = |number: u32| {
            let processes = (0..self.pes).map(Rank).zip(&self.control.processes);
            // Pairs with `Member::report`, in processes that have ended.
            let said = processes.filter(move |(_, one)| one.report.load(SeqCst) == number + 1);
            said.map(|(rank, _)| rank).collect()
        };
        self.control.reports.all().map(|(number, text)| (text, of(number))).collect()
    }

    /// Returns how many processes have run their own PEs, if no process has joined as a PE of this
    /// job.
    #[must_use]
    pub fn copies(&self) -> usize {
        let processes = &self.control.processes[..self.pes as usize];
        // Pairs with `Member::of_text` and `Member::is_alone`, in processes that have ended.
        if processes.iter().any(|one| one.pid.load(SeqCst) != 0) {
            return 0;
        }
        processes.iter().filter(|one| one.is_alone.load(SeqCst) != 0).count()
    }

    /// Returns why a launch has failed, if one has.
    #[must_use]
    pub fn failure(&self) -> Option<Failure> {
        let said = self.control.present().find_map(|(_, launch)| {
            let segment = self.beginning(launch)?;
            let words = SegmentRef::<Header>::new(&segment, 0).poison.reason()?;
            reason::decode(&words)
        });
        said.or_else(|| self.never_came())
    }

    /// Returns the failure of a PE for which others wait or have waited, and whose process ended
    /// before it called Consort.
    fn never_came(&self) -> Option<Failure> {
        let processes = &self.control.processes[..self.pes as usize];
        let last = processes.iter().map(|process| process.begun.load(SeqCst)).max()?;
        let number = last.checked_sub(1)?;
        (0..).map(Rank).zip(processes).find_map(|(rank, process)| {
            let never_came = process.begun.load(SeqCst) < last;
            let reason = process.is_missed(number).filter(|_| never_came)?;
            Some(Failure::Pe { rank, reason })
        })
    }

    /// Fails a launch, and wakes its PEs.
    fn fail(&self, launch: &LaunchSlot, failure: &Failure) {
        let Some(segment) = self.beginning(launch) else { return };
        let header = SegmentRef::<Header>::new(&segment, 0);
        if header.poison.claim(&reason::encode(failure)) {
            let (states, _) = layout::states(self.pes as usize);
            let states = SegmentSlice::<PeState>::new(&segment, states, self.pes as usize);
            states.iter().for_each(|state| state.parker.wake(Scope::Machine));
        }
    }

    /// Returns the beginning of a launch's segment, with the states of the job and of its PEs.
    fn beginning(&self, launch: &LaunchSlot) -> Option<Arc<Segment>> {
        let at = usize::try_from(launch.at.load(Relaxed)).ok()?;
        let (_, bytes) = layout::states(self.pes as usize);
        Segment::map(&self.file, at, bytes, control::OBJECT, None).ok().map(Arc::new)
    }
}
