//! Contexts: streams of operations. Operations are complete when they return, so a context only has
//! a team, which numbers its PEs.

use std::{
    ffi::c_long,
    sync::atomic::{
        AtomicUsize,
        Ordering::{AcqRel, Acquire},
    },
};

use consort::Rank;
use libc::c_int;

use crate::{
    failure::fail,
    handles::Handles,
    teams::{Members, Team},
    world::{World, no_pe, world},
};

/// A context, as C programs hold it: `shmem_ctx_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Context(pub(crate) usize);

static CONTEXTS: Handles<ContextEntry> = Handles::new();

struct ContextEntry {
    /// The team, or 0 once it is destroyed.
    team: AtomicUsize,
}

/// The options that contexts may have.
const OPTIONS: c_long = 1 | 2 | 4;

impl Context {
    /// `SHMEM_CTX_INVALID`.
    pub const INVALID: Self = Self(0);
    /// `SHMEM_CTX_DEFAULT`.
    pub const DEFAULT: Self = Self(1);

    pub(crate) fn team(self, routine: &str) -> Team {
        match self {
            Self::DEFAULT => Team::WORLD,
            Self::INVALID => fail(routine, "argument ctx is SHMEM_CTX_INVALID"),
            Self(at) => {
                // SAFETY: the handle was returned by `create`.
                match unsafe { CONTEXTS.get(at) }.team.load(Acquire) {
                    0 => fail(routine, "argument ctx is a context that was destroyed"),
                    team => Team(team),
                }
            }
        }
    }

    /// Returns the PE of this number in the context's team.
    #[inline(always)]
    pub(crate) fn pe(self, world: &World, routine: &str, pe: c_int) -> Rank {
        if self == Self::DEFAULT { world.pe(routine, pe) } else { self.pe_of_team(routine, pe) }
    }

    #[inline(never)]
    fn pe_of_team(self, routine: &str, pe: c_int) -> Rank {
        let members = Members::of(routine, self.team(routine));
        members.world_rank(pe).unwrap_or_else(|| no_pe(routine, pe, members.size()))
    }
}

/// `shmem_ctx_create`. Returns 0.
///
/// # Safety
/// `ctx` points to a writable variable.
pub unsafe fn create(options: c_long, ctx: *mut Context) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { create_of("shmem_ctx_create", Team::WORLD, options, ctx) }
}

/// `shmem_team_create_ctx`. Returns 0, or -1 for `SHMEM_TEAM_INVALID`.
///
/// # Safety
/// As [`create`].
pub unsafe fn team_create_ctx(team: Team, options: c_long, ctx: *mut Context) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { create_of("shmem_team_create_ctx", team, options, ctx) }
}

unsafe fn create_of(routine: &str, team: Team, options: c_long, ctx: *mut Context) -> c_int {
    world(routine);
    if team == Team::INVALID {
        // SAFETY: guaranteed by the caller.
        unsafe { ctx.write(Context::INVALID) };
        return -1;
    }
    if options & !OPTIONS != 0 {
        fail(
            routine,
            format_args!("argument options is {options:#x}, expected bits of {OPTIONS:#x}"),
        );
    }
    Members::of(routine, team);
    let made = Context(CONTEXTS.make(ContextEntry { team: AtomicUsize::new(team.0) }));
    // SAFETY: guaranteed by the caller.
    unsafe { ctx.write(made) };
    0
}

/// `shmem_ctx_destroy`.
pub fn destroy(ctx: Context) {
    world("shmem_ctx_destroy").one_sided().quiet();
    match ctx {
        Context::INVALID => {}
        Context::DEFAULT => fail("shmem_ctx_destroy", "argument ctx is SHMEM_CTX_DEFAULT"),
        ctx @ Context(at) => {
            ctx.team("shmem_ctx_destroy");
            // SAFETY: the handle was returned by `create`.
            let was = unsafe { CONTEXTS.get(at) }.team.swap(0, AcqRel);
            if was != 0 {
                // SAFETY: only this call has destroyed it, and a program does not use it any more.
                unsafe { CONTEXTS.reuse(at) };
            }
        }
    }
}

/// `shmem_ctx_get_team`. Returns 0, or -1 for `SHMEM_CTX_INVALID`.
///
/// # Safety
/// `team` points to a writable variable.
pub unsafe fn get_team(ctx: Context, team: *mut Team) -> c_int {
    world("shmem_ctx_get_team");
    let is_valid = ctx != Context::INVALID;
    let of = if is_valid { ctx.team("shmem_ctx_get_team") } else { Team::INVALID };
    // SAFETY: guaranteed by the caller.
    unsafe { team.write(of) };
    if is_valid { 0 } else { -1 }
}

/// `shmem_ctx_session_start`: a hint, which changes nothing.
pub fn session_start<C>(ctx: Context, _options: c_long, _config: *const C, _mask: c_long) {
    world("shmem_ctx_session_start");
    if ctx != Context::INVALID {
        ctx.team("shmem_ctx_session_start");
    }
}

/// `shmem_ctx_session_stop`.
pub fn session_stop(ctx: Context) {
    world("shmem_ctx_session_stop");
    if ctx != Context::INVALID {
        ctx.team("shmem_ctx_session_stop");
    }
}
