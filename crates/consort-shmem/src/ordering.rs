//! Order and completion. Operations are complete when they return; stores of one thread become
//! visible in their order with a fence.

use std::sync::atomic::{
    Ordering::{Release, SeqCst},
    fence as order,
};

use libc::c_int;

use crate::{contexts::Context, world::world};

/// `shmem_fence`.
#[inline]
pub fn fence(context: Context) {
    world("shmem_fence");
    if context != Context::DEFAULT && context != Context::INVALID {
        context.team("shmem_fence");
    }
    order(Release);
}

/// `shmem_quiet`.
#[inline]
pub fn quiet(context: Context) {
    world("shmem_quiet");
    if context != Context::DEFAULT && context != Context::INVALID {
        context.team("shmem_quiet");
    }
    order(SeqCst);
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
    order(SeqCst);
}

/// Lets a PE that waits for this one, as in a barrier, see all that this one has stored.
pub(crate) fn publish() {
    order(Release);
}

/// Completes all operations of this PE.
pub(crate) fn quiet_all() {
    order(SeqCst);
}
