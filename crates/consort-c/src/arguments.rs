//! Checks of the arguments of C programs.

use std::{
    ffi::{c_int, c_void},
    ptr, slice,
    time::Duration,
};

use consort::{Job, JobBuilder, Rank, Waiting, bindings::JobBuilderExt as _, launch::MOST_PES};

use crate::status::Fault;

#[cold]
fn null(name: &str) -> Fault {
    Fault::argument(format_args!("argument {name} is null"))
}

/// Returns the object behind a handle.
///
/// # Safety
/// The handle is null or valid.
#[inline(always)]
pub(crate) unsafe fn object<'o, T>(handle: *const T, name: &str) -> Result<&'o T, Fault> {
    // SAFETY: guaranteed by the caller.
    unsafe { handle.as_ref() }.ok_or_else(|| null(name))
}

/// Moves a new object to the program, which gets a handle; null if it cannot be made.
///
/// # Safety
/// `to` is null or writable.
pub(crate) unsafe fn give<T>(
    to: *mut *mut T,
    name: &str,
    make: impl FnOnce() -> Result<Option<T>, Fault>,
) -> Result<(), Fault> {
    if to.is_null() {
        return Err(null(name));
    }
    // SAFETY: guaranteed by the caller.
    unsafe { to.write(ptr::null_mut()) };
    if let Some(made) = make()? {
        // SAFETY: as above.
        unsafe { to.write(Box::into_raw(Box::new(made))) };
    }
    Ok(())
}

/// Destroys the object behind a handle, which may be null.
///
/// # Safety
/// The handle is null, or from [`give`] and not used any more.
pub(crate) unsafe fn destroy<T>(handle: *mut T) {
    if !handle.is_null() {
        // SAFETY: guaranteed by the caller.
        drop(unsafe { Box::from_raw(handle) });
    }
}

/// Returns a number from 1 to `most`.
pub(crate) fn count(name: &str, value: c_int, most: usize) -> Result<usize, Fault> {
    let wrong = || {
        Fault::argument(format_args!("argument {name} is {value}: use a number from 1 to {most}"))
    };
    usize::try_from(value).ok().filter(|count| (1..=most).contains(count)).ok_or_else(wrong)
}

/// Returns the rank of a PE among `pes`.
pub(crate) fn rank(name: &str, value: c_int, pes: usize) -> Result<Rank, Fault> {
    let wrong = || {
        let last = pes - 1;
        Fault::argument(format_args!("argument {name} is {value}: the ranks are 0 to {last}"))
    };
    usize::try_from(value).ok().filter(|rank| *rank < pes).map(Rank::new).ok_or_else(wrong)
}

/// A buffer of a program: its name, its address, and its length in elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buffer {
    pub(crate) name: &'static str,
    pub(crate) at: *mut c_void,
    pub(crate) len: usize,
}

impl Buffer {
    /// Creates a buffer that is only read.
    pub(crate) fn read(name: &'static str, at: *const c_void, len: usize) -> Self {
        Self { name, at: at.cast_mut(), len }
    }

    /// Returns its address, if it can be a slice of `T`.
    fn checked<T>(self) -> Result<*mut T, Fault> {
        let Self { name, at, len } = self;
        let fits = len.checked_mul(size_of::<T>()).is_some_and(|all| isize::try_from(all).is_ok());
        if !fits {
            return Err(Fault::argument(format_args!(
                "argument {name} would have {len} elements, more than any memory has: check the \
                 counts"
            )));
        }
        if len == 0 {
            return Ok(ptr::dangling_mut());
        }
        if at.is_null() {
            return Err(null(name));
        }
        if !at.addr().is_multiple_of(align_of::<T>()) {
            return Err(Fault::argument(format_args!(
                "argument {name} is not aligned to the {} bytes of an element",
                align_of::<T>()
            )));
        }
        Ok(at.cast())
    }

    /// Returns the elements.
    ///
    /// # Safety
    /// There are as many as it states, and nobody writes them meanwhile.
    pub(crate) unsafe fn slice<'b, T>(self) -> Result<&'b [T], Fault> {
        let at = self.checked::<T>()?;
        // SAFETY: guaranteed by the caller; the address is aligned and not null.
        Ok(unsafe { slice::from_raw_parts(at, self.len) })
    }

    /// Returns the elements, to be written.
    ///
    /// # Safety
    /// There are as many as it states, and nobody else accesses them meanwhile.
    pub(crate) unsafe fn slice_mut<'b, T>(self) -> Result<&'b mut [T], Fault> {
        let at = self.checked::<T>()?;
        // SAFETY: guaranteed by the caller; the address is aligned and not null.
        Ok(unsafe { slice::from_raw_parts_mut(at, self.len) })
    }
}

/// Returns the elements of a buffer to read and of one to write. Fails if they overlap.
///
/// # Safety
/// As [`Buffer::slice`] and [`Buffer::slice_mut`].
pub(crate) unsafe fn slices<'b, T>(
    source: Buffer,
    target: Buffer,
) -> Result<(&'b [T], &'b mut [T]), Fault> {
    let range = |of: Buffer| {
        let at = of.checked::<T>()?.addr();
        Ok::<_, Fault>(at..at + of.len * size_of::<T>())
    };
    let (read, written) = (range(source)?, range(target)?);
    if read.start < written.end && written.start < read.end {
        return Err(Fault::argument(format_args!(
            "arguments {} and {} overlap: use separate buffers",
            source.name, target.name
        )));
    }
    // SAFETY: guaranteed by the caller.
    let source = unsafe { source.slice() }?;
    // SAFETY: guaranteed by the caller; they do not overlap.
    Ok((source, unsafe { target.slice_mut() }?))
}

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
