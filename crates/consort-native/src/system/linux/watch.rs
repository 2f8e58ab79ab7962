//! Notices the ends of processes that are not children of this one, and waits for descriptors.

#![expect(unsafe_code, reason = "makes system calls")]

use std::{
    fs, io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
    time::Duration,
};

/// Another process, whose end this one notices.
pub(crate) struct WatchedProcess {
    process: u32,
    started: u64,
    /// A descriptor that reports the end. `None` if the process has ended already, or if the
    /// system has no descriptor: then the end must be polled for.
    descriptor: Option<OwnedFd>,
}

impl WatchedProcess {
    /// Watches a process by its number and the time at which it started, because the system
    /// reuses numbers.
    pub(crate) fn new(process: u32, started: u64) -> Self {
        let descriptor = open(process).ok();
        // Another process may have got the number since, and then the descriptor is that process's.
        let descriptor = descriptor.filter(|_| !is_gone(process, started));
        Self { process, started, descriptor }
    }

    /// Returns the descriptor that becomes readable when the process ends, if there is one.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.descriptor.as_ref().map(AsFd::as_fd)
    }

    /// Returns whether the process has ended.
    pub(crate) fn has_ended(&self) -> bool {
        let ready = self.descriptor().map(|one| wait_readable(&[one], Some(Duration::ZERO)));
        match ready {
            Some(Ok(ready)) => ready[0],
            // A program may have closed the descriptor.
            Some(Err(_)) | None => is_gone(self.process, self.started),
        }
    }
}

/// Opens a descriptor of a process.
fn open(process: u32) -> io::Result<OwnedFd> {
    // SAFETY: takes two numbers, and opens a descriptor.
    let opened = unsafe { libc::syscall(libc::SYS_pidfd_open, process, 0) };
    let number = i32::try_from(opened).ok().filter(|&number| number >= 0);
    let number = number.ok_or_else(io::Error::last_os_error)?;
    // SAFETY: it has just been opened, and nothing else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Returns whether the process that started at this time has ended. A process that cannot be read
/// has not.
fn is_gone(process: u32, started: u64) -> bool {
    match start_of(process) {
        Ok(found) => found != Some(started),
        Err(error) => {
            error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
        }
    }
}

/// Returns the time at which this process started, as [`WatchedProcess::new`] needs it.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn own_start() -> io::Result<u64> {
    Ok(start_in(&fs::read_to_string("/proc/self/stat")?)?.unwrap_or(0))
}

/// Returns the time at which a process started; `None` if it has ended, and nobody has waited for
/// it yet.
fn start_of(process: u32) -> io::Result<Option<u64>> {
    start_in(&fs::read_to_string(format!("/proc/{process}/stat"))?)
}

/// Returns the time in ticks since the system started, from the system's text about a process.
fn start_in(stat: &str) -> io::Result<Option<u64>> {
    // The name is in parentheses and may contain anything. The third field, the state, follows it.
    // The 20th is the number of threads, and the 22nd the start.
    let (_, rest) = stat.rsplit_once(')').unwrap_or_default();
    let mut fields = rest.split_whitespace();
    let is_dead = matches!(fields.next(), Some("Z" | "X"));
    let mut number = |ahead| fields.nth(ahead).and_then(|field| field.parse::<u64>().ok());
    let (threads, started) = (number(16), number(1));
    let started = started.ok_or(io::ErrorKind::InvalidData)?;
    // The state is that of the first thread, which may end before the others.
    let has_ended = is_dead && threads.is_none_or(|threads| threads <= 1);
    Ok((!has_ended).then_some(started))
}

/// Waits until some of the descriptors can be read, or report an end, for at most `limit`. Returns
/// which.
///
/// # Errors
/// When a descriptor is closed.
pub(crate) fn wait_readable(
    all: &[BorrowedFd<'_>],
    limit: Option<Duration>,
) -> io::Result<Vec<bool>> {
    let polled = |one: &BorrowedFd<'_>| libc::pollfd {
        fd: one.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    let mut polled: Vec<libc::pollfd> = all.iter().map(polled).collect();
    // Rounded up, so that the limit is over afterwards.
    let limit = limit.map_or(-1, |limit| {
        i32::try_from(limit.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX)
    });
    // SAFETY: the array is a local variable, and has this length.
    let ready = unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, limit) };
    if ready < 0 {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    if polled.iter().any(|one| one.revents & libc::POLLNVAL != 0) {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    Ok(polled.iter().map(|one| ready > 0 && one.revents != 0).collect())
}

#[cfg(all(test, not(any(miri, loom))))]
mod tests {
    use std::process::{Command, Stdio, id};

    use super::*;

    #[test]
    fn end_of_a_process_is_noticed() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().expect("a process");
        let started = start_of(child.id()).expect("a process").expect("it runs");
        let watched = WatchedProcess::new(child.id(), started);
        let unpolled = WatchedProcess { descriptor: None, process: child.id(), started };
        let reused = WatchedProcess::new(id(), started + 1);
        assert!(reused.has_ended(), "another process has this number now");
        let descriptor = watched.descriptor().expect("a descriptor");
        let ready = |limit| wait_readable(&[descriptor], limit).expect("a poll");
        assert_eq!(ready(Some(Duration::from_millis(1))), [false]);
        assert!(!watched.has_ended() && !unpolled.has_ended());
        drop(child.stdin.take());
        assert_eq!(ready(None), [true]);
        assert!(watched.has_ended() && unpolled.has_ended(), "nobody has waited for it yet");
        child.wait().expect("it ends");
        assert!(watched.has_ended() && unpolled.has_ended());
        assert!(WatchedProcess::new(child.id(), started).has_ended());
    }

    #[test]
    fn process_lives_while_any_of_its_threads_does() {
        let stat = |state, threads| format!("7 (a) b) {state} {}{threads} 0 99 0", "1 ".repeat(16));
        let start = |state, threads| start_in(&stat(state, threads)).expect("a start");
        assert_eq!([start("R", 1), start("S", 2), start("Z", 2)], [Some(99); 3]);
        assert_eq!([start("Z", 1), start("X", 0)], [None; 2]);
    }
}
