//! Order and completion. Operations on near PEs are complete when they return; a fence orders the
//! stores of one thread. A far PE performs operations in call order, except for long puts;
//! completion is requested explicitly.

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

/// `shmem_pe_quiet`: completes the operations on these PEs.
///
/// # Safety
/// `target_pes` is readable for `npes` numbers.
pub unsafe fn pe_quiet(context: Context, target_pes: *const c_int, npes: usize) {
    let world = world("shmem_pe_quiet");
    if context == Context::INVALID {
        return;
    }
    for index in 0..npes {
        // SAFETY: guaranteed by the caller.
        let pe = unsafe { target_pes.add(index).read() };
        context.pe(world, "shmem_pe_quiet", pe);
    }
    world.one_sided().quiet();
}

/// Makes everything that this PE has stored visible to a PE that waits for it, for example in a
/// barrier. Operations on far PEs are complete when a call begins.
pub(crate) fn publish() {
    order(Release);
}
