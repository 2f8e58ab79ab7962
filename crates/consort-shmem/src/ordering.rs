//! Order and completion. Operations on near PEs are complete when they return; stores of one thread
//! become visible in their order with a fence. What a far PE is told is done there in the order of
//! the calls, but for long puts, and is asked for when it is to be complete.

use std::sync::atomic::{Ordering::Release, fence as order};

use libc::c_int;

use crate::{contexts::Context, world::world};

/// `shmem_fence`.
#[inline]
pub fn fence(context: Context) {
    let world = world("shmem_fence");
    if context != Context::DEFAULT && context != Context::INVALID {
        context.team("shmem_fence");
    }
    world.one_sided().fence_in_order();
}

/// `shmem_quiet`.
#[inline]
pub fn quiet(context: Context) {
    let world = world("shmem_quiet");
    if context != Context::DEFAULT && context != Context::INVALID {
        context.team("shmem_quiet");
    }
    world.one_sided().quiet();
}

/// `shmem_pe_quiet`: completes what went to these PEs.
///
/// # Safety
/// `target_pes` is readable for `npes` numbers.
pub unsafe fn pe_quiet(context: Context, target_pes: *const c_int, npes: usize) {
    let world = world("shmem_pe_quiet");
    if context == Context::INVALID {
        return;
    }
    for index in 0..npes {
        // SAFETY: the caller's promise.
        let pe = unsafe { target_pes.add(index).read() };
        context.pe(world, "shmem_pe_quiet", pe);
    }
    world.one_sided().quiet();
}

/// Lets a PE that waits for this one, as in a barrier, see all that this one has stored. What far
/// PEs were told is complete when a call begins.
pub(crate) fn publish() {
    order(Release);
}
