//! Decides whether PEs are near, in memory of this process, or far. No other module does.
//!
//! Other folders do not see the link to far PEs. They ask for the way to a PE ([`Job::far_to`]), or
//! call a function of this folder that does nothing in a job without far PEs.
//!
//! This folder is not a crate, because a packet changes directories, groups and heaps. If this
//! folder were a crate above the runtime, it would need access to the internals of directories,
//! groups and heaps, and the runtime would call it through a trait that repeats each of its
//! functions. If it were a crate below the runtime, it would need such a trait for the effects of
//! packets.

use consort_fabric::Rank;

use super::{link::Far, pe::FarPe};
use crate::launch::job::Job;

impl Job {
    /// Returns this process's end of a transport, if there is one. A forked child has none.
    #[inline]
    pub(super) fn link(&self) -> Option<&Far> {
        self.net.link().filter(|_| self.is_current())
    }

    /// Returns the link to far PEs, if there are any.
    #[inline]
    pub(super) fn far(&self) -> Option<&Far> {
        self.link().filter(|link| link.has_far())
    }

    /// Calls `act` with the link to far PEs, if there are any.
    #[inline(always)]
    pub(super) fn with_far<'j, R: Default>(&'j self, act: impl FnOnce(&'j Far) -> R) -> R {
        self.far().map_or_else(R::default, act)
    }

    /// Returns whether some PE of the job may be far.
    #[inline]
    pub(crate) fn has_far(&self) -> bool {
        self.far().is_some()
    }

    /// Returns whether a PE, by its rank in the world, shares no memory with this process.
    ///
    /// # Panics
    /// If the job has no PE of this rank.
    #[inline(always)]
    pub(crate) fn is_far(&self, pe: Rank) -> bool {
        !self.net.is_certainly_near(pe) && self.is_on_other_node(pe)
    }

    #[cold]
    #[inline(never)]
    fn is_on_other_node(&self, pe: Rank) -> bool {
        assert!(pe.0 < self.config().pes, "a heap is that of a PE of the job");
        self.with_far(|far| far.is_far(pe))
    }

    /// Panics if a PE shares no memory with this process.
    #[inline(always)]
    pub(crate) fn assert_near(&self, pe: Rank) {
        if !self.net.is_certainly_near(pe) {
            self.assert_on_own_node(pe);
        }
    }

    #[cold]
    #[inline(never)]
    fn assert_on_own_node(&self, pe: Rank) {
        let is_far = self.is_on_other_node(pe);
        assert!(!is_far, "the heap of PE {pe} is not in the memory of this process");
    }

    /// Returns the way to a PE, if the PE is far.
    ///
    /// # Panics
    /// If the job has no PE of this rank.
    #[inline(always)]
    pub(crate) fn far_to(&self, pe: Rank) -> Option<FarPe<'_>> {
        self.is_far(pe).then_some(FarPe { job: self, pe })
    }

    /// Returns whether a thread of this process runs a PE.
    pub(crate) fn is_here(&self, pe: Rank) -> bool {
        let is_own = || self.own().map_or_else(|| self.net.is_own(pe), |own| own == pe);
        pe.0 < self.config().pes && is_own()
    }

    /// Returns whether one PE looks for deadlocks on behalf of this process and of a PE. If some PE
    /// is far, one PE of each process does so, otherwise one PE of the job.
    pub(crate) fn is_watched_here(&self, pe: Rank) -> bool {
        self.far().is_none_or(|far| far.is_own(pe))
    }

    /// Returns whether a near PE belongs to another process, which cannot access this process's
    /// private memory.
    #[cold]
    pub(crate) fn is_apart(&self, pe: Rank) -> bool {
        self.link().is_none_or(|link| !link.is_own(pe) && !link.is_far(pe))
    }
}
