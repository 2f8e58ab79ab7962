//! The places in the program where the PEs of this process made their recent calls, for errors.
//!
//! They are in private memory and not in the segment, because a process must not follow a pointer
//! that another process may have written. The places of other processes' PEs are not known.

#![expect(unsafe_code, reason = "reads pointers to locations")]

use std::{
    panic::Location,
    ptr::{from_ref, null_mut},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{
            AtomicPtr,
            Ordering::{Acquire, Release},
        },
    },
};

use consort_fabric::Rank;

use crate::inbox::geometry::{RECENT_CALLS, recent};

/// A place in the program: the file and line of a call.
pub type Site = &'static Location<'static>;

/// The sites of a member's recent calls, by their indices in the member's log. Only the member
/// writes them, on cache lines that nothing else writes.
#[repr(align(128))]
pub(crate) struct RecentSites([AtomicPtr<Location<'static>>; RECENT_CALLS]);

impl Default for RecentSites {
    fn default() -> Self {
        Self([const { AtomicPtr::new(null_mut()) }; RECENT_CALLS])
    }
}

impl RecentSites {
    /// Records the site of a call, before the call is in the log.
    #[inline(always)]
    pub(crate) fn note(&self, call: u64, site: Site) {
        // Release: a reader of the site finds the earlier calls in the log.
        self.0[recent(call)].store(from_ref(site).cast_mut(), Release);
    }

    fn site(&self, index: usize) -> Option<Site> {
        let site = self.0.get(index)?.load(Acquire);
        // SAFETY: null, or it comes from a `Site`: the field is private, and only `note` stores to
        // it.
        unsafe { site.as_ref() }
    }
}

/// The sites of the calls of a group's members in this process.
struct GroupSites {
    group: u64,
    members: Vec<(Rank, Arc<RecentSites>)>,
    left: usize,
}

/// The sites of the calls of all groups.
#[derive(Default)]
pub(crate) struct Sites(Mutex<Vec<GroupSites>>);

impl Sites {
    fn groups(&self) -> MutexGuard<'_, Vec<GroupSites>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a member that joins a group, and returns its sites.
    pub(crate) fn join(&self, group: u64, member: Rank) -> Arc<RecentSites> {
        let sites = Arc::<RecentSites>::default();
        let joined = (member, Arc::clone(&sites));
        let mut groups = self.groups();
        match groups.iter_mut().find(|known| known.group == group) {
            Some(known) => known.members.push(joined),
            None => groups.push(GroupSites { group, members: vec![joined], left: 0 }),
        }
        sites
    }

    /// Records that a member leaves a group. The sites stay until all members in this process have
    /// left.
    pub(crate) fn leave(&self, group: u64) {
        let mut groups = self.groups();
        if let Some(at) = groups.iter().position(|known| known.group == group) {
            groups[at].left += 1;
            if groups[at].left == groups[at].members.len() {
                groups.swap_remove(at);
            }
        }
    }

    /// Returns the site at an index of a member's log.
    pub(crate) fn site(&self, group: u64, member: Rank, index: usize) -> Option<Site> {
        let groups = self.groups();
        let group = groups.iter().find(|known| known.group == group)?;
        let (_, sites) = group.members.iter().find(|(rank, _)| *rank == member)?;
        sites.site(index)
    }
}
