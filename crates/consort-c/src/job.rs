//! A job of the program's threads.

use std::{
    ffi::{CStr, c_char, c_int},
    fmt, ptr,
};

use consort::{Error, Job, JoinedPe};

use crate::{
    arguments::{Options, configured, destroy, give, object, rank},
    status::{Fault, status_of},
    team::TeamHandle,
};

/// `CONSORT_ANY_RANK`.
const ANY_RANK: c_int = -1;

/// A PE that the program's thread has joined as.
pub struct PeHandle {
    world: TeamHandle,
    pe: JoinedPe,
}

/// Creates a job.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn consort_job_create(
    threads: c_int,
    options: *const Options,
    job: *mut *mut Job,
) -> c_int {
    // SAFETY: guaranteed by the caller.
    let make = || Ok(Some(unsafe { configured(threads, options) }?.build()?));
    // SAFETY: guaranteed by the caller.
    status_of("consort_job_create", || unsafe { give(job, "job", make) })
}

/// Destroys a job.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn consort_job_destroy(job: *mut Job) {
    status_of("consort_job_destroy", || {
        // SAFETY: guaranteed by the caller.
        unsafe { destroy(job) };
        Ok(())
    });
}

/// Joins a job.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn consort_join(
    job: *const Job,
    rank_in_job: c_int,
    pe: *mut *mut PeHandle,
) -> c_int {
    let make = || {
        // SAFETY: guaranteed by the caller.
        let job = unsafe { object(job, "job") }?;
        let joined = match rank_in_job {
            ANY_RANK => job.join()?,
            wanted => job.join_as(rank("rank", wanted, job.size())?)?,
        };
        Ok(Some(PeHandle { world: TeamHandle::new(joined.world().clone()), pe: joined }))
    };
    // SAFETY: guaranteed by the caller.
    status_of("consort_join", || unsafe { give(pe, "pe", make) })
}

/// Takes a PE from the program, on the PE's thread.
///
/// # Safety
/// The handle is null or valid. It is not used after a success.
unsafe fn taken(pe: *mut PeHandle) -> Result<JoinedPe, Fault> {
    // SAFETY: guaranteed by the caller.
    unsafe { object(pe, "pe") }?.world.team()?;
    // SAFETY: guaranteed by the caller: it is from `give`.
    let handle = unsafe { Box::from_raw(pe) };
    let PeHandle { world, pe } = *handle;
    drop(world); // so that another thread may join at once
    Ok(pe)
}

/// Leaves a job.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn consort_leave(pe: *mut PeHandle) -> c_int {
    // SAFETY: guaranteed by the caller.
    status_of("consort_leave", || Ok(unsafe { taken(pe) }?.leave()?))
}

/// The reason for which the program fails its job.
struct Abort(String);

impl fmt::Display for Abort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Error> for Abort {
    fn from(error: Error) -> Self {
        Self(error.to_string())
    }
}

/// Fails a job, and leaves it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn consort_abort(pe: *mut PeHandle, reason: *const c_char) -> c_int {
    status_of("consort_abort", || {
        // SAFETY: guaranteed by the caller: a string of C.
        let reason = (!reason.is_null()).then(|| unsafe { CStr::from_ptr(reason) });
        let reason = reason.map_or("it called consort_abort".into(), CStr::to_string_lossy);
        // SAFETY: guaranteed by the caller.
        let pe = unsafe { taken(pe) }?;
        // The only error is the reason.
        let _ = pe.try_run(|_| Err::<(), _>(Abort(reason.into_owned())));
        Ok(())
    })
}

/// Returns the team of all PEs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn consort_world(pe: *mut PeHandle) -> *mut TeamHandle {
    if pe.is_null() {
        return ptr::null_mut();
    }
    // SAFETY: guaranteed by the caller.
    unsafe { &raw mut (*pe).world }
}
