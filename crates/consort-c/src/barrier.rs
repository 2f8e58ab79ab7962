//! A barrier for threads that are not PEs.

use std::ffi::c_int;

use consort::{Barrier, BarrierWaitResult};
use consort_machine::sync::asymmetric;

use crate::{
    arguments::{count, destroy, give, limit, object},
    status::{Code, Fault, status_of},
};

/// The most threads of a barrier.
const MOST_THREADS: usize = 65_535;

/// Creates a barrier.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn consort_barrier_create(
    threads: c_int,
    barrier: *mut *mut Barrier,
) -> c_int {
    let make = || {
        let threads = count("threads", threads, MOST_THREADS)?;
        // Otherwise the first thread that sleeps at the barrier registers, which takes milliseconds.
        asymmetric::prepare();
        Ok(Some(Barrier::new(threads)))
    };
    // SAFETY: guaranteed by the caller.
    status_of("consort_barrier_create", || unsafe { give(barrier, "barrier", make) })
}

/// Waits at a barrier, and tells the program whether the thread leads.
///
/// # Safety
/// Both pointers are null or valid.
unsafe fn waited(
    barrier: *const Barrier,
    is_leader: *mut c_int,
    wait: impl FnOnce(&Barrier) -> Result<BarrierWaitResult, Fault>,
) -> Result<(), Fault> {
    // SAFETY: guaranteed by the caller.
    let result = wait(unsafe { object(barrier, "barrier") }?)?;
    // SAFETY: guaranteed by the caller.
    if let Some(is_leader) = unsafe { is_leader.as_mut() } {
        *is_leader = c_int::from(result.is_leader());
    }
    Ok(())
}

/// Waits at a barrier.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn consort_barrier_wait(
    barrier: *const Barrier,
    is_leader: *mut c_int,
) -> c_int {
    let wait = |barrier: &Barrier| Ok(barrier.wait());
    // SAFETY: guaranteed by the caller.
    status_of("consort_barrier_wait", || unsafe { waited(barrier, is_leader, wait) })
}

/// Waits at a barrier for a limited time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn consort_barrier_wait_for(
    barrier: *const Barrier,
    limit_s: f64,
    is_leader: *mut c_int,
) -> c_int {
    let wait = |barrier: &Barrier| {
        let late = || {
            Fault::new(
                Code::TimedOut,
                format_args!(
                    "threads are missing after {limit_s} s: let as many wait as the barrier has"
                ),
            )
        };
        barrier.wait_timeout(limit(limit_s)?).ok_or_else(late)
    };
    // SAFETY: guaranteed by the caller.
    status_of("consort_barrier_wait_for", || unsafe { waited(barrier, is_leader, wait) })
}

/// Destroys a barrier.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn consort_barrier_destroy(barrier: *mut Barrier) {
    status_of("consort_barrier_destroy", || {
        // SAFETY: guaranteed by the caller.
        unsafe { destroy(barrier) };
        Ok(())
    });
}
