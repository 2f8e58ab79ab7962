//! Teams of PEs, and their barrier.

use std::ffi::{c_int, c_long};

use consort::Team;
use consort_machine::ThreadToken;

use crate::{
    arguments::{count, give, object, rank},
    status::{Code, Fault, status_of},
};

/// A team, from the view of the PE that this thread runs.
pub struct TeamHandle {
    thread: ThreadToken,
    /// Whether the program frees it.
    is_owned: bool,
    team: Team,
}

impl TeamHandle {
    /// Creates the handle of a team that the program does not free: for a program in Rust, which
    /// passes a reference to C functions on this thread.
    #[must_use]
    pub fn new(team: Team) -> Self {
        Self { thread: ThreadToken::current(), is_owned: false, team }
    }

    /// Returns the team, on its thread.
    #[inline(always)]
    pub(crate) fn team(&self) -> Result<&Team, Fault> {
        if self.thread == ThreadToken::current() { Ok(&self.team) } else { Err(foreign()) }
    }
}

#[cold]
fn foreign() -> Fault {
    Fault::new(
        Code::Thread,
        "the handle belongs to another thread: only the thread that runs the PE may use it",
    )
}

/// Returns the team behind a handle.
///
/// # Safety
/// The handle is null or valid.
#[inline(always)]
pub(crate) unsafe fn team_of<'t>(team: *const TeamHandle) -> Result<&'t Team, Fault> {
    // SAFETY: guaranteed by the caller.
    unsafe { object(team, "team") }?.team()
}

/// Returns the rank of the calling PE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn consort_team_rank(team: *const TeamHandle) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { team_of(team) }.map_or(-1, |team| team.rank().0.cast_signed())
}

/// Returns the number of PEs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn consort_team_size(team: *const TeamHandle) -> c_int {
    // SAFETY: guaranteed by the caller.
    let size = unsafe { team_of(team) }.map(Team::size);
    size.ok().and_then(|size| c_int::try_from(size).ok()).unwrap_or(-1)
}

/// Gives the program a team that `team` forms, or null.
///
/// # Safety
/// Both pointers are null or valid.
unsafe fn formed(
    team: *const TeamHandle,
    made: *mut *mut TeamHandle,
    form: impl FnOnce(&Team) -> Result<Option<Team>, Fault>,
) -> Result<(), Fault> {
    let make = || {
        // SAFETY: guaranteed by the caller.
        let formed = form(unsafe { team_of(team) }?)?;
        Ok(formed.map(|team| TeamHandle { is_owned: true, ..TeamHandle::new(team) }))
    };
    // SAFETY: guaranteed by the caller.
    unsafe { give(made, "made", make) }
}

/// Splits a team.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn consort_team_split(
    team: *const TeamHandle,
    color: c_int,
    key: c_long,
    made: *mut *mut TeamHandle,
) -> c_int {
    let form = |team: &Team| Ok(team.split(u32::try_from(color).ok(), key)?);
    // SAFETY: guaranteed by the caller.
    status_of("consort_team_split", || unsafe { formed(team, made, form) })
}

/// Forms a team of every `stride`-th PE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn consort_team_strided(
    team: *const TeamHandle,
    start: c_int,
    stride: c_int,
    size: c_int,
    made: *mut *mut TeamHandle,
) -> c_int {
    let form = |team: &Team| {
        let start = rank("start", start, team.size())?;
        let size = count("size", size, team.size())?;
        Ok(team.strided(start, stride as isize, size)?)
    };
    // SAFETY: guaranteed by the caller.
    status_of("consort_team_strided", || unsafe { formed(team, made, form) })
}

/// Frees a team.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn consort_team_free(team: *mut TeamHandle) -> c_int {
    status_of("consort_team_free", || {
        // SAFETY: guaranteed by the caller.
        let handle = unsafe { object(team, "team") }?;
        handle.team()?;
        if !handle.is_owned {
            return Err(Fault::argument(
                "a team of all PEs lasts as long as its PE: do not free it",
            ));
        }
        // SAFETY: guaranteed by the caller: it is from `give`.
        let handle = unsafe { Box::from_raw(team) };
        Ok(handle.team.free()?)
    })
}

/// Waits for all PEs of a team.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn consort_team_barrier(team: *const TeamHandle) -> c_int {
    // SAFETY: guaranteed by the caller.
    status_of("consort_team_barrier", || Ok(unsafe { team_of(team) }?.barrier()?))
}
