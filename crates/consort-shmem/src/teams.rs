//! Teams of PEs, including those that programs split off.

mod members;

use std::ffi::c_long;

use consort::{
    Error, Rank, bindings,
    error::{CallError, TeamError},
};
use libc::c_int;

use crate::{collectives::TeamCall, failure::fail, world::world};

pub use members::{Config, Team};
pub(crate) use members::{Members, forget_all, form_shared, handle};

/// `SHMEM_TEAM_NUM_CONTEXTS`.
pub const NUM_CONTEXTS: c_long = 1;

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
/// `config` points to a writable variable, or is null if the mask is 0.
pub unsafe fn get_config(team: Team, config_mask: c_long, config: *mut Config) -> c_int {
    let routine = "shmem_team_get_config";
    world(routine);
    if team == Team::INVALID {
        return -1;
    }
    check_mask(routine, config_mask);
    let of = team.config(routine);
    if config_mask & NUM_CONTEXTS != 0 {
        if config.is_null() {
            fail(
                routine,
                "argument config is null, expected a configuration with the fields that the mask \
                 names",
            );
        }
        // SAFETY: guaranteed by the caller.
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

/// Returns the requested part of a configuration.
///
/// # Safety
/// `config` is readable, unless nothing is requested.
unsafe fn requested_config(routine: &str, config: *const Config, mask: c_long) -> Config {
    check_mask(routine, mask);
    if mask & NUM_CONTEXTS == 0 || config.is_null() {
        return Config::default();
    }
    // SAFETY: guaranteed by the caller.
    unsafe { *config }
}

/// `shmem_team_split_strided`. Returns 0, or -1 if there is no such team.
///
/// # Safety
/// `config` is null or readable, and `new_team` points to a writable variable.
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
    // SAFETY: guaranteed by the caller.
    unsafe { new_team.write(Team::INVALID) };
    let (Ok(first), Ok(count)) = (u32::try_from(start), u32::try_from(size)) else { return -1 };
    if parent_team == Team::INVALID || count == 0 {
        return -1;
    }
    // SAFETY: guaranteed by the caller.
    let config = unsafe { requested_config(routine, config, config_mask) };
    let Some(call) = TeamCall::new(routine, parent_team) else { return -1 };
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
    // SAFETY: guaranteed by the caller.
    unsafe { new_team.write(team) };
    0
}

/// `shmem_team_split_2d`. Returns 0, or -1 if there are no such teams.
///
/// # Safety
/// The configurations are null or readable, and `xaxis_team` and `yaxis_team` point to writable
/// variables.
#[expect(clippy::too_many_arguments, reason = "the parameters of the C routine")]
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
    // SAFETY: guaranteed by the caller.
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
    // SAFETY: guaranteed by the caller.
    let [x_config, y_config] = unsafe {
        [
            requested_config(routine, xaxis_config, xaxis_mask),
            requested_config(routine, yaxis_config, yaxis_mask),
        ]
    };
    let Some(call) = TeamCall::new(routine, parent_team) else { return -1 };
    let (pes, own) = (call.members.size(), call.members.own());
    let (row, column) = (own / columns, own % columns);
    let of = |is_in: &dyn Fn(u32) -> bool| (0..pes).filter(|&pe| is_in(pe)).map(Rank).collect();
    let x_members: Vec<Rank> = of(&|pe| pe / columns == row);
    let y_members: Vec<Rank> = of(&|pe| pe % columns == column);
    let parts = [(row, &*x_members, x_config), (column, &*y_members, y_config)];
    let Some([x_team, y_team]) = form(&call, parts) else { return -1 };
    // SAFETY: guaranteed by the caller.
    unsafe {
        xaxis_team.write(x_team);
        yaxis_team.write(y_team);
    }
    0
}

/// Forms one team for each colour. All PEs of a colour pass the same members. `None` if no memory
/// is left for a team.
fn form<const N: usize>(call: &TeamCall, parts: [(u32, &[Rank], Config); N]) -> Option<[Team; N]> {
    call.barrier();
    let driver = call.world.driver();
    let parent = call.team.calls(call.routine, &driver);
    let mut is_full = false;
    let teams =
        parts.map(|(color, members, config)| match bindings::form(parent, color, members) {
            Ok(calls) => handle(calls, config),
            Err(Error::Call(CallError::Team(TeamError::Memory { .. }))) => {
                is_full = true;
                Team::INVALID
            }
            Err(error) => fail(call.routine, error),
        });
    (!is_full).then_some(teams)
}

/// `shmem_team_destroy`.
pub fn destroy(team: Team) {
    let routine = "shmem_team_destroy";
    let world = world(routine);
    if team == Team::INVALID {
        return;
    }
    if !team.is_of_split(routine) {
        fail(routine, "argument team is SHMEM_TEAM_WORLD or SHMEM_TEAM_SHARED");
    }
    world.one_sided().quiet();
    let Some(call) = TeamCall::new(routine, team) else { return };
    call.barrier();
    let driver = call.world.driver();
    let freed = bindings::free_by_agreement(team.calls(routine, &driver));
    freed.unwrap_or_else(|error| fail(routine, error));
    // SAFETY: it is the result of a split, and a program does not use it any more.
    unsafe { team.forget(&driver) };
}
