//! Configuration for libraries that provide Consort to programs in other languages.

use std::sync::Arc;

use consort_mpi::MpiProcess;
use consort_native::SharedFile;

use super::JobBuilder;
use crate::{Job, Result, launch::ProcessShape};

impl JobBuilder {
    /// Aligns the symmetric memory of each PE to `bytes`, a power of two. An alignment above a huge
    /// page (2 MiB) needs a process with one PE and enough free address space, and holds only for
    /// the PE's own memory. For languages in which programs choose the alignment.
    #[doc(hidden)]
    #[must_use]
    pub fn heap_align(mut self, bytes: usize) -> Self {
        self.heap_align = bytes;
        self
    }

    /// Lets peers access this many bytes behind each heap, for the static variables of the program.
    /// For languages in which static variables are symmetric.
    #[doc(hidden)]
    #[must_use]
    pub fn statics_bytes(mut self, bytes: usize) -> Self {
        self.statics_bytes = bytes;
        self
    }

    /// Declares that a file holds the static variables of this process, from its start: other
    /// processes of the machine, which something else than `consort run` has started, find them
    /// there.
    #[doc(hidden)]
    #[must_use]
    pub fn statics_in(mut self, file: Arc<SharedFile>) -> Self {
        self.statics = Some(file);
        self
    }

    /// Returns how many processes an MPI has started, including this one, and how many of them on
    /// this machine, if known; `None` if no MPI has started this one.
    #[doc(hidden)]
    #[must_use]
    pub fn processes_of_mpi() -> Option<(u32, Option<u32>)> {
        MpiProcess::here().map(|started| (started.processes, started.here))
    }

    /// Returns the job of the processes that an MPI has started, with one PE each; `None` if no MPI
    /// has started this one. If some PEs are far, each PE has a helper thread, so that it replies
    /// to them while it computes.
    ///
    /// # Errors
    /// As [`JobBuilder::run`].
    #[doc(hidden)]
    pub fn job_of_mpi(self) -> Result<Option<Job>> {
        let Some(started) = self.started()? else { return Ok(None) };
        let mut pes = self.on_processes(ProcessShape { pes_each: 1, in_turn: false });
        let processes = pes.begin_by_mpi(&started)?;
        pes.helpers |= processes.has_far();
        Ok(Some(Job::new(pes.start_on(processes)?)))
    }

    /// Omits the file and line of a call from errors. For a library that makes calls for its users,
    /// who do not know its source.
    #[doc(hidden)]
    #[must_use]
    pub fn without_places(mut self) -> Self {
        self.names_places = false;
        self
    }
}
