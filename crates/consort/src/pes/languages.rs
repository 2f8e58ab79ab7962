//! What libraries configure that bring Consort to programs in other languages.

use std::sync::Arc;

use consort_mpi::Started;
use consort_native::SharedFile;

use super::Pes;
use crate::{Job, ProcessShape, Result};

impl Pes {
    /// Aligns the symmetric memory of each PE to so many bytes, a power of two. More than a large
    /// page (2 MiB) holds for the PE's own memory in a process that has one PE, if so much address
    /// space is free. For languages that allocate memory of any alignment there.
    #[doc(hidden)]
    #[must_use]
    pub fn heap_align(mut self, bytes: usize) -> Self {
        self.heap_align = bytes;
        self
    }

    /// Lets peers reach so many bytes behind each heap, for the static variables of the program.
    /// For languages in which those are symmetric.
    #[doc(hidden)]
    #[must_use]
    pub fn statics_bytes(mut self, bytes: usize) -> Self {
        self.statics_bytes = bytes;
        self
    }

    /// The static variables of this process lie in a file, from its beginning on: processes of the
    /// machine that an MPI has started find them there.
    #[doc(hidden)]
    #[must_use]
    pub fn statics_in(mut self, file: Arc<SharedFile>) -> Self {
        self.statics = Some(file);
        self
    }

    /// How many processes an MPI has started, of which this is one, and how many of them on this
    /// machine, if that is known; `None` if no MPI has started this one.
    #[doc(hidden)]
    #[must_use]
    pub fn processes_of_mpi() -> Option<(u32, Option<u32>)> {
        Started::here().map(|started| (started.processes, started.here))
    }

    /// The job of the processes that an MPI has started, each of which is one PE; `None` if none
    /// has started this one. Where PEs are far, each has a helper thread, so that it answers them
    /// while it computes.
    ///
    /// # Errors
    /// As [`Pes::run`].
    #[doc(hidden)]
    pub fn job_of_mpi(self) -> Result<Option<Job>> {
        let Some(started) = self.started()? else { return Ok(None) };
        let mut pes = self.on_processes(ProcessShape { pes_each: 1, in_turn: false });
        let processes = pes.begin_by_mpi(&started)?;
        pes.helpers |= processes.has_far();
        Ok(Some(Job::new(pes.start_on(processes)?)))
    }

    /// Errors name no file and line of a call: those of a library that makes calls for others say
    /// nothing to its users.
    #[doc(hidden)]
    #[must_use]
    pub fn without_places(mut self) -> Self {
        self.names_places = false;
        self
    }
}
