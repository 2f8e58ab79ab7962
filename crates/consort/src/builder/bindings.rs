//! The settings of [`bindings`](crate::bindings).

use std::sync::Arc;

use consort_fabric::Nodes;
use consort_native::{Origin, SharedFile};

use super::JobBuilder;
use crate::{Job, Result, launch::ProcessShape};

/// Settings of a launch that programs need not change.
pub trait JobBuilderExt: Sized {
    /// Aligns the symmetric memory of each PE to `bytes`, a power of two. An alignment above a huge
    /// page (2 MiB) needs a process with one PE and enough free address space, and holds only for
    /// the PE's own memory. For languages in which programs choose the alignment.
    #[must_use]
    fn heap_align(self, bytes: usize) -> Self;

    /// Lets peers access this many bytes behind each heap, for the static variables of the program.
    /// For languages in which static variables are symmetric.
    #[must_use]
    fn statics_bytes(self, bytes: usize) -> Self;

    /// Declares that a file holds the static variables of this process, from its start: other
    /// processes of the machine, which something else than `consort run` has started, find them
    /// there.
    #[must_use]
    fn statics_in(self, file: Arc<SharedFile>) -> Self;

    /// Omits the file and line of a call from errors. For a library that makes calls for its users,
    /// who do not know its source.
    #[must_use]
    fn without_places(self) -> Self;

    /// Returns the job of the processes that an MPI has started, with one PE each; `None` if no MPI
    /// has started this one. If some PEs are far, each PE has a helper thread, so that it replies
    /// to them while it computes.
    ///
    /// # Errors
    /// As [`JobBuilder::run`].
    fn job_of_mpi(self) -> Result<Option<Job>>;

    /// Numbers the steps of calls from `step`, which must not be 0. For tests beyond 2^40 steps.
    #[must_use]
    fn first_step(self, step: u64) -> Self;

    /// Sets the origin of the memory that the PEs share. The default is the value of
    /// `CONSORT_SEGMENT`. If that is not set, memory is shared if `vm.overcommit_memory` is 2, and
    /// private otherwise. For tests of memory that other processes could map.
    #[must_use]
    fn memory(self, memory: Origin) -> Self;

    /// Treats the PEs as those of several processes on several nodes, with these placements. Only
    /// messages cross between nodes, with delays drawn from a seed. For tests of PEs that share no
    /// memory.
    #[must_use]
    fn loopback(self, placements: [Nodes; 2], seed: u64) -> Self;
}

impl JobBuilderExt for JobBuilder {
    fn heap_align(self, heap_align: usize) -> Self {
        Self { heap_align, ..self }
    }

    fn statics_bytes(self, statics_bytes: usize) -> Self {
        Self { statics_bytes, ..self }
    }

    fn statics_in(self, file: Arc<SharedFile>) -> Self {
        Self { statics: Some(file), ..self }
    }

    fn without_places(self) -> Self {
        Self { names_places: false, ..self }
    }

    fn job_of_mpi(self) -> Result<Option<Job>> {
        let Some(started) = self.started()? else { return Ok(None) };
        let mut pes = self.on_processes(ProcessShape { pes_each: 1, in_turn: false });
        let processes = pes.begin_by_mpi(&started)?;
        pes.helpers |= processes.has_far();
        Ok(Some(Job::new(pes.start_on(processes)?)))
    }

    fn first_step(self, first_step: u64) -> Self {
        Self { first_step, ..self }
    }

    fn memory(self, memory: Origin) -> Self {
        Self { memory: Some(memory), ..self }
    }

    fn loopback(self, placements: [Nodes; 2], seed: u64) -> Self {
        Self { loopback: Some((placements, seed)), ..self }
    }
}
