//! Files in memory that processes share.

#![expect(unsafe_code, reason = "takes descriptors by their numbers")]

use std::{
    fs::{self, File},
    hash::{DefaultHasher, Hash, Hasher},
    io,
    os::fd::{AsRawFd, FromRawFd},
};

use consort_machine::{advice::of_call, limits, permissions::effective_user};

/// Creates an unnamed file in memory that only this process and its heirs know. It can never become
/// shorter, because a process that accesses mapped memory beyond the end of its file is killed.
pub(crate) fn memory_file() -> io::Result<File> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: the name ends with a zero byte.
    let file = unsafe { libc::memfd_create(c"consort".as_ptr(), flags) };
    if file < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it has just been opened, and nothing else knows it.
    let file = unsafe { File::from_raw_fd(file) };
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_SEAL;
    // SAFETY: changes what may be done with the file.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(file)
}

/// Returns the descriptor number under which other processes inherit a file.
pub(crate) fn number_of(file: &File) -> i32 {
    file.as_raw_fd()
}

/// Returns the file that this process has inherited under a descriptor number. If that has been
/// closed, returns the file that process `from` has under this number.
pub(crate) fn inherited(number: i32, from: u32) -> io::Result<File> {
    // SAFETY: duplicates the descriptor of an open file, or fails if the number is not open.
    let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) };
    if copy >= 0 {
        // SAFETY: the descriptor has just been opened, and nothing else uses it.
        return Ok(unsafe { File::from_raw_fd(copy) });
    }
    file_of(from, number.unsigned_abs())
}

/// Returns the file that a process has under a descriptor number.
pub(crate) fn file_of(process: u32, number: u32) -> io::Result<File> {
    let path = format!("/proc/{process}/fd/{number}");
    let opened = File::options().read(true).write(true).open(&path);
    opened.map_err(|error| {
        let error = of_call(&format!("open {path}"), &error);
        match error.kind() {
            io::ErrorKind::PermissionDenied => {
                let why = "the processes must belong to one user with permission to trace them: \
                           see /proc/sys/kernel/yama/ptrace_scope, and `hidepid` of /proc";
                io::Error::new(error.kind(), format!("{error}: {why}"))
            }
            _ => error,
        }
    })
}

/// Returns a hash of everything that must be equal in processes that find each other's files. It
/// differs between machines, as far as the process can tell.
pub(crate) fn host_key() -> Option<u64> {
    place().ok().map(|place| hash(&place))
}

/// Returns hashes of the user, the machine, the PID namespace and the user namespace of this
/// process. They are equal in processes that find each other's files.
pub(crate) fn place() -> io::Result<[u64; 4]> {
    let machine =
        (fs::read("/proc/sys/kernel/random/boot_id")?, fs::read("/proc/sys/kernel/hostname")?);
    let processes = fs::read_link("/proc/self/ns/pid")?;
    // A kernel without namespaces of users has one set of users.
    let users = fs::read_link("/proc/self/ns/user").ok();
    Ok([effective_user().into(), hash(&machine), hash(&processes), hash(&users)])
}

/// Returns a hash of the time namespace of this process.
pub(crate) fn time_namespace() -> u64 {
    // A kernel without such namespaces has one time.
    hash(&fs::read_link("/proc/self/ns/time").ok())
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Makes a file at least `bytes` long. Fails above the process's limit for file sizes, because a
/// signal would end the process.
pub(crate) fn extend(file: &File, bytes: u64) -> io::Result<()> {
    if file.metadata()?.len() >= bytes {
        return Ok(());
    }
    if limits::longest_file().is_some_and(|most| bytes > most) {
        return Err(io::Error::from_raw_os_error(libc::EFBIG));
    }
    let done = file.set_len(bytes);
    // Another process may have made the file longer, and it cannot be made shorter.
    if file.metadata()?.len() >= bytes { Ok(()) } else { done }
}

/// Gives the memory of a part of a file back to the system.
pub(crate) fn clear_part(file: &File, at: u64, bytes: u64) {
    // After a failure, the memory is held until the file is closed.
    let how = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    let (at, bytes) = (at.cast_signed(), bytes.cast_signed());
    // SAFETY: changes the file alone.
    let _ = unsafe { libc::fallocate(file.as_raw_fd(), how, at, bytes) };
}

#[cfg(all(test, not(any(miri, loom))))]
mod tests {
    use super::*;

    #[test]
    fn error_of_opening_a_file_of_a_process_names_it() {
        let own = std::process::id();
        let error = file_of(own, 1 << 30).expect_err("this many files are never open").to_string();
        assert!(error.starts_with(&format!("open /proc/{own}/fd/1073741824: No such")), "{error}");
    }
}
