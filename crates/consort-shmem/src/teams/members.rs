//! A team's handle, its members and its collectives.

use std::{
    cell::UnsafeCell,
    sync::atomic::{
        AtomicBool, AtomicUsize,
        Ordering::{AcqRel, Acquire, Release},
    },
};

use consort::{Rank, Team as CollectiveTeam, bindings::form};
use libc::c_int;

use crate::{
    failure::fail,
    handles::Handles,
    world::{Driver, World, world},
};

/// A team, as C programs hold it: `shmem_team_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Team(pub(crate) usize);

/// `shmem_team_config_t`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Config {
    /// The number of contexts that the team will have.
    pub num_contexts: c_int,
}

static TEAMS: Handles<TeamEntry> = Handles::new();

/// The handle of the team of the PEs that share memory with this one, or 0 if these are all PEs.
static SHARED: AtomicUsize = AtomicUsize::new(0);

pub(crate) struct TeamEntry {
    calls: DriverGuarded,
    /// The members' ranks in the world.
    ranks: Box<[Rank]>,
    own: u32,
    config: Config,
    is_destroyed: AtomicBool,
}

/// Used only while the driver is locked, and by no thread after the job has ended. `None` once the
/// team is destroyed.
struct DriverGuarded(UnsafeCell<Option<CollectiveTeam>>);

// SAFETY: a PE is not tied to a thread, and every user holds the driver's lock.
unsafe impl Send for DriverGuarded {}
// SAFETY: as above.
unsafe impl Sync for DriverGuarded {}

impl Team {
    /// `SHMEM_TEAM_INVALID`.
    pub const INVALID: Self = Self(0);
    /// `SHMEM_TEAM_WORLD`.
    pub const WORLD: Self = Self(1);
    /// `SHMEM_TEAM_SHARED`: the PEs that share memory with this one.
    pub const SHARED: Self = Self(2);

    /// Returns its data; `None` for the predefined teams of all PEs.
    fn entry(self, routine: &str) -> Option<&'static TeamEntry> {
        let entry = if self == Self::SHARED { Self(SHARED.load(Acquire)) } else { self };
        match entry {
            Self::INVALID if self == Self::SHARED => None,
            Self::INVALID => fail(routine, "argument team is SHMEM_TEAM_INVALID"),
            Self::WORLD => None,
            Self(at) => {
                // SAFETY: a team from a split.
                let entry = unsafe { TEAMS.get(at) };
                if entry.is_destroyed.load(Acquire) {
                    fail(routine, "argument team is a team that was destroyed");
                }
                Some(entry)
            }
        }
    }

    pub(crate) fn config(self, routine: &str) -> Config {
        self.entry(routine).map_or_else(Config::default, |entry| entry.config)
    }

    /// Returns whether it comes from a split, so that a program may destroy it.
    pub(crate) fn is_of_split(self, routine: &str) -> bool {
        self != Self::SHARED && self.entry(routine).is_some()
    }

    /// Marks it as destroyed, unless it is already.
    ///
    /// # Safety
    /// It was created, and no routine uses it any more.
    pub(crate) unsafe fn forget(self, _: &Driver) {
        // SAFETY: guaranteed by the caller.
        let entry = unsafe { TEAMS.get(self.0) };
        if !entry.is_destroyed.swap(true, AcqRel) {
            // SAFETY: the driver is locked, and no routine uses the team any more.
            drop(unsafe { (*entry.calls.0.get()).take() });
            // SAFETY: only this call has marked it; the rest is guaranteed by the caller.
            unsafe { TEAMS.reuse(self.0) };
        }
    }

    /// Returns its collectives, while the driver is locked.
    pub(crate) fn calls<'d>(self, routine: &str, driver: &'d Driver) -> &'d CollectiveTeam {
        match self.entry(routine) {
            // SAFETY: the driver is locked, and only `forget` changes the entry, and it is called
            // last.
            Some(entry) => unsafe { &*entry.calls.0.get() }.as_ref().expect("it is not destroyed"),
            None if self == Self::SHARED => driver.shared(),
            None => driver.world(),
        }
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Members {
    world: &'static World,
    entry: Option<&'static TeamEntry>,
}

impl Members {
    pub(crate) fn of(routine: &str, team: Team) -> Self {
        Self { world: world(routine), entry: team.entry(routine) }
    }

    pub(crate) fn size(self) -> u32 {
        self.entry.map_or(self.world.pes, |entry| u32::try_from(entry.ranks.len()).unwrap_or(0))
    }

    pub(crate) fn own(self) -> u32 {
        self.entry.map_or(self.world.rank.0, |entry| entry.own)
    }

    /// Returns the world rank of the PE with this number in the team.
    #[inline]
    pub(crate) fn world_rank(self, pe: c_int) -> Option<Rank> {
        let pe = u32::try_from(pe).ok()?;
        match self.entry {
            Some(entry) => entry.ranks.get(pe as usize).copied(),
            None => (pe < self.world.pes).then_some(Rank(pe)),
        }
    }

    /// Returns the members' ranks in the world, in order.
    pub(crate) fn ranks(self) -> impl Iterator<Item = Rank> {
        (0..self.size())
            .map(move |pe| self.entry.map_or(Rank(pe), |entry| entry.ranks[pe as usize]))
    }

    pub(crate) fn number_of(self, rank: Rank) -> c_int {
        let at = self.ranks().position(|member| member == rank);
        at.and_then(|at| c_int::try_from(at).ok()).unwrap_or(-1)
    }
}

/// Returns the handle of a team; `INVALID` if this PE is in no team. The driver is locked.
pub(crate) fn handle(calls: Option<CollectiveTeam>, config: Config) -> Team {
    let Some(calls) = calls else { return Team::INVALID };
    let ranks = calls.ranks().map(|rank| calls.world_rank(rank));
    let entry = TeamEntry {
        ranks: ranks.collect::<Result<_, _>>().expect("each member is in the world team"),
        own: calls.rank().0,
        calls: DriverGuarded(UnsafeCell::new(Some(calls))),
        config,
        is_destroyed: AtomicBool::new(false),
    };
    Team(TEAMS.make(entry))
}

/// Forms the team of the PEs that share memory with this one, unless these are all. All PEs call
/// it.
pub(crate) fn form_shared(routine: &str, world: &World, driver: &Driver) {
    let is_near = |pe: &Rank| world.one_sided().address(*pe, 0, 0).is_some();
    let near: Vec<Rank> = (0..world.pes).map(Rank).filter(is_near).collect();
    let color = near.first().map_or(0, |first| first.0);
    if near.len() < world.pes as usize {
        let calls = form(driver.world(), color, &near).unwrap_or_else(|error| fail(routine, error));
        SHARED.store(handle(calls, Config::default()).0, Release);
    }
}

/// Marks all created teams as destroyed when the job is left.
pub(crate) fn forget_all(driver: &Driver) {
    SHARED.store(0, Release);
    for at in TEAMS.all() {
        // SAFETY: it was created, and no routine is called any more.
        unsafe { Team(at).forget(driver) };
    }
}
