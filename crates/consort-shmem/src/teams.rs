//! Teams of PEs.

use std::{
    ffi::c_long,
    sync::atomic::{
        AtomicBool, AtomicUsize,
        Ordering::{AcqRel, Acquire, Release},
    },
};

use consort::{Error, Rank, Team as Calls, TeamError};
use libc::c_int;

use crate::{
    collectives::Call,
    failure::fail,
    handles::Handles,
    ordering,
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

/// `SHMEM_TEAM_NUM_CONTEXTS`.
pub const NUM_CONTEXTS: c_long = 1;

static TEAMS: Handles<Made> = Handles::new();

/// The team of the PEs that share memory with this one: its handle, or 0 if they are all.
static SHARED: AtomicUsize = AtomicUsize::new(0);

/// What a team is made of.
pub(crate) struct Made {
    calls: Guarded,
    /// The ranks in the world.
    ranks: Box<[Rank]>,
    own: u32,
    config: Config,
    is_destroyed: AtomicBool,
}

/// Used only while the driver is locked, and by no thread after the job has ended.
struct Guarded(Calls<'static>);

// SAFETY: a PE is not tied to a thread; who uses it has locked the driver.
unsafe impl Send for Guarded {}
// SAFETY: as above.
unsafe impl Sync for Guarded {}

impl Team {
    /// `SHMEM_TEAM_INVALID`.
    pub const INVALID: Self = Self(0);
    /// `SHMEM_TEAM_WORLD`.
    pub const WORLD: Self = Self(1);
    /// `SHMEM_TEAM_SHARED`: the PEs that share memory with this one.
    pub const SHARED: Self = Self(2);

    /// What it is made of; `None` for teams of all PEs that are there from the beginning.
    fn made(self, routine: &str) -> Option<&'static Made> {
        let made = if self == Self::SHARED { Self(SHARED.load(Acquire)) } else { self };
        match made {
            Self::INVALID if self == Self::SHARED => None,
            Self::INVALID => fail(routine, "argument team is SHMEM_TEAM_INVALID"),
            Self::WORLD => None,
            Self(at) => {
                // SAFETY: a team of a split.
                let made = unsafe { TEAMS.get(at) };
                if made.is_destroyed.load(Acquire) {
                    fail(routine, "argument team is a team that was destroyed");
                }
                Some(made)
            }
        }
    }

    /// Its collectives, while the driver is locked.
    pub(crate) fn calls(self, routine: &str, driver: &Driver) -> Calls<'static> {
        match self.made(routine) {
            Some(made) => made.calls.0,
            None if self == Self::SHARED => driver.shared,
            None => driver.world,
        }
    }
}

/// Who is in a team.
#[derive(Clone, Copy)]
pub(crate) struct Members {
    world: &'static World,
    made: Option<&'static Made>,
}

impl Members {
    pub(crate) fn of(routine: &str, team: Team) -> Self {
        Self { world: world(routine), made: team.made(routine) }
    }

    pub(crate) fn size(self) -> u32 {
        self.made.map_or(self.world.pes, |made| u32::try_from(made.ranks.len()).unwrap_or(0))
    }

    pub(crate) fn own(self) -> u32 {
        self.made.map_or(self.world.rank.0, |made| made.own)
    }

    /// The rank in the world of the PE of this number.
    #[inline]
    pub(crate) fn world_rank(self, pe: c_int) -> Option<Rank> {
        let pe = u32::try_from(pe).ok()?;
        match self.made {
            Some(made) => made.ranks.get(pe as usize).copied(),
            None => (pe < self.world.pes).then_some(Rank(pe)),
        }
    }

    /// The ranks in the world of all, in their order.
    pub(crate) fn ranks(self) -> impl Iterator<Item = Rank> {
        (0..self.size()).map(move |pe| self.made.map_or(Rank(pe), |made| made.ranks[pe as usize]))
    }

    fn number_of(self, rank: Rank) -> c_int {
        let at = self.ranks().position(|member| member == rank);
        at.and_then(|at| c_int::try_from(at).ok()).unwrap_or(-1)
    }
}

/// `shmem_team_my_pe`; -1 for `SHMEM_TEAM_INVALID`.
pub fn my_pe(team: Team) -> c_int {
    world("shmem_team_my_pe");
    if team == Team::INVALID {
        -1
    } else {
        Members::of("shmem_team_my_pe", team).own().cast_signed()
    }
}

/// `shmem_team_n_pes`; -1 for `SHMEM_TEAM_INVALID`.
pub fn n_pes(team: Team) -> c_int {
    world("shmem_team_n_pes");
    if team == Team::INVALID {
        -1
    } else {
        Members::of("shmem_team_n_pes", team).size().cast_signed()
    }
}

/// `shmem_team_translate_pe`; -1 if either team is `SHMEM_TEAM_INVALID`, or the PE is not in both.
pub fn translate_pe(src_team: Team, src_pe: c_int, dest_team: Team) -> c_int {
    let routine = "shmem_team_translate_pe";
    world(routine);
    if src_team == Team::INVALID || dest_team == Team::INVALID {
        return -1;
    }
    let rank = Members::of(routine, src_team).world_rank(src_pe);
    rank.map_or(-1, |rank| Members::of(routine, dest_team).number_of(rank))
}

/// `shmem_team_get_config`. Returns 0, or -1 for `SHMEM_TEAM_INVALID`.
///
/// # Safety
/// `config` is a variable, or null without a mask.
pub unsafe fn get_config(team: Team, config_mask: c_long, config: *mut Config) -> c_int {
    let routine = "shmem_team_get_config";
    world(routine);
    if team == Team::INVALID {
        return -1;
    }
    check_mask(routine, config_mask);
    let of = team.made(routine).map_or_else(Config::default, |made| made.config);
    if config_mask & NUM_CONTEXTS != 0 {
        if config.is_null() {
            fail(routine, "argument config is null, expected a variable for what the mask names");
        }
        // SAFETY: the caller's promise.
        unsafe { (*config).num_contexts = of.num_contexts };
    }
    0
}

fn check_mask(routine: &str, mask: c_long) {
    if mask & !NUM_CONTEXTS != 0 {
        let expected = "expected 0 or SHMEM_TEAM_NUM_CONTEXTS";
        fail(routine, format_args!("argument config_mask is {mask:#x}, {expected}"));
    }
}

/// What of a configuration is asked for.
///
/// # Safety
/// `config` is readable, unless nothing is.
unsafe fn asked(routine: &str, config: *const Config, mask: c_long) -> Config {
    check_mask(routine, mask);
    if mask & NUM_CONTEXTS == 0 || config.is_null() {
        return Config::default();
    }
    // SAFETY: the caller's promise.
    unsafe { *config }
}

/// The handle of a team; that of none if this PE is in none.
pub(crate) fn handle(calls: Option<Calls<'static>>, config: Config) -> Team {
    let Some(calls) = calls else { return Team::INVALID };
    let ranks = (0..calls.size()).map(|rank| calls.world_rank(Rank(rank)));
    let made = Made {
        ranks: ranks.collect::<Result<_, _>>().expect("each is of the world"),
        own: calls.rank().0,
        calls: Guarded(calls),
        config,
        is_destroyed: AtomicBool::new(false),
    };
    Team(TEAMS.make(made))
}

/// `shmem_team_split_strided`. Returns 0, or -1 if there is no such team.
///
/// # Safety
/// `config` is null or readable, and `new_team` a variable.
pub unsafe fn split_strided(
    parent_team: Team,
    start: c_int,
    stride: c_int,
    size: c_int,
    config: *const Config,
    config_mask: c_long,
    new_team: *mut Team,
) -> c_int {
    let routine = "shmem_team_split_strided";
    world(routine);
    // SAFETY: the caller's promise.
    unsafe { new_team.write(Team::INVALID) };
    let (Ok(first), Ok(count)) = (u32::try_from(start), u32::try_from(size)) else { return -1 };
    if parent_team == Team::INVALID || count == 0 {
        return -1;
    }
    // SAFETY: the caller's promise.
    let config = unsafe { asked(routine, config, config_mask) };
    let Some(call) = Call::new(routine, parent_team) else { return -1 };
    let pes = call.members.size();
    let pe = |index: u32| {
        let pe = i64::from(first) + i64::from(index) * i64::from(stride);
        u32::try_from(pe).ok().filter(|&pe| pe < pes).map(Rank)
    };
    let Some(members) = (0..count.min(pes + 1)).map(pe).collect::<Option<Vec<_>>>() else {
        return -1;
    };
    if count > 1 && stride == 0 {
        return -1;
    }
    let Some([team]) = form(&call, [(0, &members, config)]) else { return -1 };
    // SAFETY: the caller's promise.
    unsafe { new_team.write(team) };
    0
}

/// `shmem_team_split_2d`. Returns 0, or -1 if there are no such teams.
///
/// # Safety
/// The configurations are null or readable, and the teams variables.
#[expect(clippy::too_many_arguments, reason = "those of C")]
pub unsafe fn split_2d(
    parent_team: Team,
    xrange: c_int,
    xaxis_config: *const Config,
    xaxis_mask: c_long,
    xaxis_team: *mut Team,
    yaxis_config: *const Config,
    yaxis_mask: c_long,
    yaxis_team: *mut Team,
) -> c_int {
    let routine = "shmem_team_split_2d";
    world(routine);
    // SAFETY: the caller's promise.
    unsafe {
        xaxis_team.write(Team::INVALID);
        yaxis_team.write(Team::INVALID);
    }
    let Some(columns) = u32::try_from(xrange).ok().filter(|&columns| columns > 0) else {
        return -1;
    };
    if parent_team == Team::INVALID {
        return -1;
    }
    // SAFETY: the caller's promise.
    let [x_config, y_config] = unsafe {
        [asked(routine, xaxis_config, xaxis_mask), asked(routine, yaxis_config, yaxis_mask)]
    };
    let Some(call) = Call::new(routine, parent_team) else { return -1 };
    let (pes, own) = (call.members.size(), call.members.own());
    let (row, column) = (own / columns, own % columns);
    let of = |is_in: &dyn Fn(u32) -> bool| (0..pes).filter(|&pe| is_in(pe)).map(Rank).collect();
    let x_members: Vec<Rank> = of(&|pe| pe / columns == row);
    let y_members: Vec<Rank> = of(&|pe| pe % columns == column);
    let parts = [(row, &*x_members, x_config), (column, &*y_members, y_config)];
    let Some([x_team, y_team]) = form(&call, parts) else { return -1 };
    // SAFETY: the caller's promise.
    unsafe {
        xaxis_team.write(x_team);
        yaxis_team.write(y_team);
    }
    0
}

/// Forms teams, each of a color and of the members that all PEs of the color name. `None` where no
/// memory is left for a team.
fn form<const N: usize>(call: &Call, parts: [(u32, &[Rank], Config); N]) -> Option<[Team; N]> {
    call.barrier();
    let driver = call.world.driver();
    let parent = call.team.calls(call.routine, &driver);
    let mut is_full = false;
    let teams = parts.map(|(color, members, config)| match parent.form(color, members) {
        Ok(calls) => handle(calls, config),
        Err(Error::Team(TeamError::Memory { .. })) => {
            is_full = true;
            Team::INVALID
        }
        Err(error) => fail(call.routine, error),
    });
    (!is_full).then_some(teams)
}

/// Forms the team of the PEs that share memory with this one, unless they are all. All PEs do.
pub(crate) fn form_shared(routine: &str, world: &World, driver: &Driver) {
    let is_near = |pe: &Rank| world.one_sided().address(*pe, 0, 0).is_some();
    let near: Vec<Rank> = (0..world.pes).map(Rank).filter(is_near).collect();
    let color = near.first().map_or(0, |first| first.0);
    if near.len() < world.pes as usize {
        let calls = driver.world.form(color, &near).unwrap_or_else(|error| fail(routine, error));
        SHARED.store(handle(calls, Config::default()).0, Release);
    }
}

/// Takes all teams that were made as destroyed, when the job is left.
pub(crate) fn forget_all() {
    SHARED.store(0, Release);
    for at in TEAMS.all() {
        // SAFETY: a team of a split.
        let made = unsafe { TEAMS.get(at) };
        if !made.is_destroyed.swap(true, AcqRel) {
            // SAFETY: this call alone has destroyed it, and no routine is called any more.
            unsafe { TEAMS.reuse(at) };
        }
    }
}

/// `shmem_team_destroy`.
pub fn destroy(team: Team) {
    let routine = "shmem_team_destroy";
    world(routine);
    if team == Team::INVALID {
        return;
    }
    let made = team.made(routine).filter(|_| team != Team::SHARED);
    let Some(made) = made else {
        fail(routine, "argument team is SHMEM_TEAM_WORLD or SHMEM_TEAM_SHARED")
    };
    ordering::quiet_all();
    let Some(call) = Call::new(routine, team) else { return };
    call.barrier();
    let freed = team.calls(routine, &call.world.driver()).free_by_agreement();
    freed.unwrap_or_else(|error| fail(routine, error));
    if !made.is_destroyed.swap(true, AcqRel) {
        // SAFETY: this call alone has destroyed it, and a program does not use it any more.
        unsafe { TEAMS.reuse(team.0) };
    }
}
