//! Processes that share a file in memory, and copies of another process's memory.

#![expect(unsafe_code, reason = "descriptors by number; memory by address")]

use std::{
    fs::File,
    io,
    os::fd::{AsRawFd, FromRawFd},
};

use libc::{c_ulong, iovec, pid_t};
use rustix::{
    fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create},
    process::{PTracer, Pid, Resource, getrlimit, set_ptracer},
};

/// A file in memory, without a name, which only this process and those that inherit it know.
pub(crate) fn memory_file() -> io::Result<File> {
    Ok(File::from(memfd_create("consort", MemfdFlags::CLOEXEC)?))
}

/// The number by which other processes inherit a file.
pub(crate) fn number_of(file: &File) -> i32 {
    file.as_raw_fd()
}

/// The file that this process has inherited under a number. If that has been closed, the file that
/// process `from` has under it.
pub(crate) fn inherited(number: i32, from: u32) -> io::Result<File> {
    // SAFETY: it makes another descriptor of the same file, or fails if none is open.
    let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) };
    if copy >= 0 {
        // SAFETY: it has just been opened, and nothing else knows it.
        return Ok(unsafe { File::from_raw_fd(copy) });
    }
    File::options().read(true).write(true).open(format!("/proc/{from}/fd/{number}"))
}

/// Makes a file as long as this. Not beyond the longest that the process may make one, since a
/// signal would end it.
pub(crate) fn extend(file: &File, bytes: u64) -> io::Result<()> {
    let most = getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX);
    if bytes > most {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    file.set_len(bytes)
}

/// Returns the memory of a part of a file.
pub(crate) fn clear_part(file: &File, at: u64, bytes: u64) {
    // A failure leaves the memory to the file's end.
    let _ = fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, at, bytes);
}

/// Lets process `other` and those that it has started copy this process's memory, where the system
/// asks for that.
pub(crate) fn let_copy(other: u32) {
    if let Some(other) = i32::try_from(other).ok().and_then(Pid::from_raw) {
        // A system that does not know the call does not ask for it.
        let _ = set_ptracer(PTracer::ProcessID(other));
    }
}

/// A copy between this process's memory and another's.
type Copy = unsafe extern "C" fn(
    pid_t,
    *const iovec,
    c_ulong,
    *const iovec,
    c_ulong,
    c_ulong,
) -> libc::ssize_t;

/// # Safety
/// `bytes` at `own` are this process's, and may be accessed as `copy` does.
unsafe fn transfer(
    copy: Copy,
    process: u32,
    own: *mut u8,
    theirs: *mut u8,
    bytes: usize,
) -> io::Result<()> {
    let process = pid_t::try_from(process).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut done = 0;
    while done < bytes {
        let part =
            |at: *mut u8| iovec { iov_base: at.wrapping_add(done).cast(), iov_len: bytes - done };
        let (own, theirs) = (part(own), part(theirs));
        // SAFETY: the caller's promise; the system checks the other's addresses.
        match unsafe { copy(process, &raw const own, 1, &raw const theirs, 1, 0) } {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            copied => {
                done += usize::try_from(copied).map_err(|_| io::Error::last_os_error())?;
            }
        }
    }
    Ok(())
}

/// Copies another process's memory.
///
/// # Safety
/// `bytes` at `own` may be written.
pub(crate) unsafe fn read_from(
    process: u32,
    theirs: *mut u8,
    own: *mut u8,
    bytes: usize,
) -> io::Result<()> {
    // SAFETY: the caller's promise.
    unsafe { transfer(libc::process_vm_readv, process, own, theirs, bytes) }
}

/// Copies to another process's memory.
///
/// # Safety
/// `bytes` at `own` may be read.
pub(crate) unsafe fn write_to(
    process: u32,
    theirs: *mut u8,
    own: *mut u8,
    bytes: usize,
) -> io::Result<()> {
    // SAFETY: the caller's promise.
    unsafe { transfer(libc::process_vm_writev, process, own, theirs, bytes) }
}
