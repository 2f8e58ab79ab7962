//! The options of a job and a pool.

use std::{ffi::c_int, time::Duration};

use consort::{Job, JobBuilder, Waiting, launch::MOST_PES};

use crate::{arguments::count, status::Fault};

/// `consort_options`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Options {
    size: usize,
    join_timeout_s: f64,
    waiting: c_int,
}

/// Returns the configuration of a job of `threads` PEs.
///
/// # Safety
/// `options` is null, or points to options of the size that they state.
pub(crate) unsafe fn configured(
    threads: c_int,
    options: *const Options,
) -> Result<JobBuilder, Fault> {
    // C programs have no symmetric memory.
    let job = Job::threads(count("threads", threads, MOST_PES)?).heap_bytes(0).without_places();
    if options.is_null() {
        return Ok(job);
    }
    // SAFETY: guaranteed by the caller: the first field is there.
    let size = unsafe { options.cast::<usize>().read() };
    if size != size_of::<Options>() {
        return Err(Fault::argument(format_args!(
            "the options have a size of {size} bytes instead of {}: start with CONSORT_OPTIONS, \
             of the header of this library",
            size_of::<Options>()
        )));
    }
    // SAFETY: guaranteed by the caller.
    let Options { join_timeout_s, waiting, .. } = unsafe { options.read() };
    let job = if join_timeout_s == 0.0 { job } else { job.join_timeout(limit(join_timeout_s)?) };
    let waiting = usize::try_from(waiting).ok().filter(|of| *of <= Waiting::EVERY.len());
    match waiting {
        Some(0) => Ok(job),
        Some(policy) => Ok(job.waiting(Waiting::EVERY[policy - 1])),
        None => Err(Fault::argument("unknown waiting policy: use one of CONSORT_WAITING_...")),
    }
}

/// Returns a limit of this many seconds.
pub(crate) fn limit(seconds: f64) -> Result<Duration, Fault> {
    let limit = Duration::try_from_secs_f64(seconds);
    limit.map_err(|_| {
        Fault::argument(format_args!("the limit of {seconds} s is not a time: use 0 or more"))
    })
}
