//! The processors that the calling thread may run on: `sched_getaffinity`, `sched_setaffinity`.

#![expect(unsafe_code, reason = "makes system calls that read or fill a mask")]

use std::{fmt, io};

use crate::advice::of_call;

/// A set of processors.
#[derive(Clone, Copy)]
pub struct Mask(libc::cpu_set_t);

/// The largest number of processors in a mask: one per bit.
const MOST: usize = 8 * size_of::<libc::cpu_set_t>();

impl Mask {
    fn empty() -> Self {
        // SAFETY: it consists of integers, for which 0 is valid: the empty set.
        Self(unsafe { std::mem::zeroed() })
    }

    fn has(&self, cpu: usize) -> bool {
        // SAFETY: the processor is within the mask, so its bit is in the array.
        cpu < MOST && unsafe { libc::CPU_ISSET(cpu, &self.0) }
    }
}

impl fmt::Debug for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries((0..MOST).filter(|&cpu| self.has(cpu))).finish()
    }
}

impl PartialEq for Mask {
    fn eq(&self, other: &Self) -> bool {
        // SAFETY: it compares two local structures.
        unsafe { libc::CPU_EQUAL(&self.0, &other.0) }
    }
}

/// Returns the processor that the calling thread runs on.
pub fn current() -> Option<u32> {
    // SAFETY: the call reads no memory of this process.
    u32::try_from(unsafe { libc::sched_getcpu() }).ok()
}

/// Returns the mask of a process's first thread, or of the calling thread for 0.
fn mask_of(process: libc::pid_t) -> io::Result<Mask> {
    let mut mask = Mask::empty();
    // SAFETY: the pointer is to a local variable, and the size is its size.
    let result = unsafe { libc::sched_getaffinity(process, size_of::<Mask>(), &raw mut mask.0) };
    match result {
        0 => Ok(mask),
        _ => Err(of_call("sched_getaffinity", &io::Error::last_os_error())),
    }
}

/// Returns the mask of the calling thread.
pub fn mask() -> io::Result<Mask> {
    mask_of(0)
}

/// Returns the mask of the process: that of its first thread.
pub fn mask_of_process() -> io::Result<Mask> {
    // SAFETY: the call cannot fail, and reads no memory of this process.
    mask_of(unsafe { libc::getpid() })
}

/// Returns the mask of the parent process.
pub fn mask_of_parent() -> io::Result<Mask> {
    // SAFETY: as above.
    mask_of(unsafe { libc::getppid() })
}

/// Restricts the calling thread to the processors of a mask.
pub fn set_mask(mask: &Mask) -> io::Result<()> {
    // SAFETY: the pointer is to a mask of this size.
    let result = unsafe { libc::sched_setaffinity(0, size_of::<Mask>(), &raw const mask.0) };
    match result {
        0 => Ok(()),
        _ => Err(of_call("sched_setaffinity", &io::Error::last_os_error())),
    }
}

/// Returns the processors in a mask; none if the mask could not be read.
pub fn allowed(mask: io::Result<Mask>) -> impl Iterator<Item = u32> {
    let of_mask = |mask: Mask| (0..MOST).filter(move |&cpu| mask.has(cpu));
    mask.into_iter().flat_map(of_mask).filter_map(|cpu| u32::try_from(cpu).ok())
}

/// Restricts the calling thread to one processor.
pub fn pin(cpu: u32) -> io::Result<()> {
    let index = cpu as usize;
    if index >= MOST {
        let message = format!("cpu {cpu} is too large for a processor mask");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let mut mask = Mask::empty();
    // SAFETY: the bit of the processor is in the array, as was just checked.
    unsafe { libc::CPU_SET(index, &mut mask.0) };
    set_mask(&mask).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput => {
            let why = "it is offline, or `taskset` or a control group excludes it: see \
                       `Cpus_allowed_list` in /proc/self/status";
            io::Error::new(error.kind(), format!("cpu {cpu}: {error}: {why}"))
        }
        kind => io::Error::new(kind, format!("cpu {cpu}: {error}")),
    })
}
