//! Signals, and the preparation of a process before its program.

#![expect(unsafe_code, reason = "uses signals and fork, and runs code between fork and exec")]

use std::{
    cell::Cell,
    fs::{self, File},
    io::{self, PipeReader, PipeWriter, Read},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, BorrowedFd, FromRawFd},
        unix::process::CommandExt,
    },
    process::Command,
    ptr::{null, null_mut},
    sync::atomic::{
        AtomicBool,
        Ordering::{Acquire, Release},
    },
    thread,
};

use consort_machine::{advice::of_call, system::signals::without_signals};
use libc::{c_int, signalfd_siginfo};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, getppid, set_parent_process_death_signal, setrlimit,
};

/// The signals that are passed on to the processes.
pub(crate) const PASSED_ON: [c_int; 6] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2];

/// A signal that has arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceivedSignal {
    pub(crate) number: c_int,
    /// Whether the terminal sent it, to all processes in the foreground.
    pub(crate) from_terminal: bool,
    /// The process that sent it.
    pub(crate) sender: c_int,
}

/// The signals of this process. They are read, and do not interrupt it.
pub(crate) struct Signals {
    file: File,
    /// The previously blocked signals.
    before: libc::sigset_t,
}

/// Settings of this process that the processes of the job get back.
pub(crate) struct OriginalSettings<'s> {
    pub(crate) signals: &'s Signals,
    /// The limit on open files of a process.
    pub(crate) files: Rlimit,
}

impl Signals {
    /// Blocks the signals and opens a descriptor for them. Call it before any thread is started.
    /// Ignored signals stay ignored, as `nohup` wants.
    pub(crate) fn take() -> io::Result<Self> {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: it initializes the set.
        unsafe { libc::sigemptyset(set.as_mut_ptr()) };
        // SAFETY: it changes no signal handler. Ends of children must be reported.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
        let heard = PASSED_ON.into_iter().filter(|&signal| !is_ignored(signal));
        for signal in heard.chain([libc::SIGCHLD]) {
            // SAFETY: the set is initialized.
            unsafe { libc::sigaddset(set.as_mut_ptr(), signal) };
        }
        let mut before = MaybeUninit::<libc::sigset_t>::zeroed();
        // SAFETY: the set is initialized, and there is room for the old one.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), before.as_mut_ptr()) };
        // SAFETY: an all-zero set is valid too.
        let before = unsafe { before.assume_init() };
        let flags = libc::SFD_NONBLOCK | libc::SFD_CLOEXEC;
        // SAFETY: the set is initialized.
        let number = unsafe { libc::signalfd(-1, set.as_ptr(), flags) };
        if number < 0 {
            return Err(of_call("signalfd4", &io::Error::last_os_error()));
        }
        // SAFETY: it has just been opened, and nothing else uses it.
        let file = unsafe { File::from_raw_fd(number) };
        Ok(Self { file, before })
    }

    /// Returns the next signal that has arrived, if there is one.
    pub(crate) fn next(&mut self) -> Option<ReceivedSignal> {
        let mut bytes = [0_u8; size_of::<signalfd_siginfo>()];
        if self.file.read(&mut bytes).ok()? < bytes.len() {
            return None;
        }
        // SAFETY: the system has written the whole structure, and any bytes are valid integers.
        let info: signalfd_siginfo =
            unsafe { bytes.as_ptr().cast::<signalfd_siginfo>().read_unaligned() };
        let from_terminal = info.ssi_code == libc::SI_KERNEL;
        let sender = info.ssi_pid.cast_signed();
        Some(ReceivedSignal {
            number: c_int::try_from(info.ssi_signo).ok()?,
            from_terminal,
            sender,
        })
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Returns whether a signal is ignored.
fn is_ignored(signal: c_int) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: it changes nothing, and initializes the action if the signal exists.
    let found = unsafe { libc::sigaction(signal, null(), action.as_mut_ptr()) };
    // SAFETY: as above.
    found == 0 && unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
}

/// Sends a signal to a process, if it still exists.
pub(crate) fn send(process: Pid, signal: c_int) {
    // SAFETY: a signal to another process changes nothing here.
    unsafe { libc::kill(process.as_raw_nonzero().get(), signal) };
}

/// Prepares a child before its program: it ends when this process does, inherits a descriptor, and
/// gets the signals and limits with which this process was started.
pub(crate) fn prepare(command: &mut Command, descriptor: c_int, before: &OriginalSettings<'_>) {
    let own = rustix::process::getpid();
    let (signals, files) = (before.signals.before, before.files);
    let prepare = move || {
        // SAFETY: the set is initialized, and the old one is not requested.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const signals, null_mut()) };
        setrlimit(Resource::Nofile, files)?;
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // This process may have ended earlier.
        if getppid() != Some(own) {
            return Err(io::ErrorKind::NotConnected.into());
        }
        // SAFETY: it changes a flag of a descriptor, which each process has separately.
        match unsafe { libc::fcntl(descriptor, libc::F_SETFD, 0) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    // SAFETY: it only makes system calls, and allocates nothing.
    unsafe { command.pre_exec(prepare) };
}

/// The two processes after a fork.
pub(crate) enum Fork {
    /// The original process. When it ends, the launcher's pipe reaches its end.
    Front { launcher: Pid, held: PipeWriter },
    /// The new process.
    Launcher { front: PipeReader },
}

/// Forks this process; both processes continue.
///
/// # Errors
/// When the system cannot fork, or this process has other threads.
pub(crate) fn fork() -> io::Result<Fork> {
    ensure_alone()?;
    let (front, held) = io::pipe().map_err(|error| of_call("pipe", &error))?;
    // SAFETY: this process has no other threads, as was just checked, and none can begin: only this
    // thread could start one. A thread that only waits for this one, in `wait_for`, holds no lock.
    // So the new process may do anything.
    match unsafe { libc::fork() } {
        -1 => Err(of_call("fork", &io::Error::last_os_error())),
        0 => {
            // If the front is killed while this process is stopped, this one continues, and ends
            // all.
            set_parent_process_death_signal(Some(Signal::CONT))
                .map_err(|error| of_call("prctl(PR_SET_PDEATHSIG)", &error.into()))?;
            Ok(Fork::Launcher { front }) // the other end is closed here
        }
        process => {
            let launcher = Pid::from_raw(process).ok_or(io::ErrorKind::InvalidData)?;
            Ok(Fork::Front { launcher, held })
        }
    }
}

thread_local! {
    /// Whether another thread does nothing but wait for this one. That thread holds no lock, and
    /// takes none before this one has ended.
    static IS_WAITED_FOR: Cell<bool> = const { Cell::new(false) };
}

/// Waits until the thread that started this one announces, by `waits`, that it only waits.
pub(crate) fn await_waiter(waits: &AtomicBool) {
    // Acquire: pairs with the release in `wait_for`.
    while !waits.load(Acquire) {
        thread::yield_now();
    }
    IS_WAITED_FOR.set(true);
}

/// Waits, by `join`, for the end of a thread that replaces this one: it receives the signals
/// meanwhile. Announces the wait by `waits`.
pub(crate) fn wait_for<R>(join: impl FnOnce() -> R, waits: &AtomicBool) -> R {
    without_signals(|| {
        // Release: pairs with the acquire in `await_waiter`. After this, the thread only waits.
        waits.store(true, Release);
        join()
    })
}

/// Fails if this process has other threads, except those that only wait for this one.
fn ensure_alone() -> io::Result<()> {
    let threads = fs::read_dir("/proc/self/task")
        .map_err(|error| io::Error::new(error.kind(), format!("cannot read /proc: {error}")))?;
    match threads.count() - usize::from(IS_WAITED_FOR.get()) {
        1 => Ok(()),
        count => {
            let text =
                format!("a process that runs a job must have one thread, but this one has {count}");
            Err(io::Error::other(text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_threads_is_not_forked() {
        // A test is a thread in addition to the one that runs the tests.
        let (ends, waits) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || waits.recv());
        assert!(fork().is_err_and(|error| error.to_string().contains("must have one thread")));
        drop(ends);
        other.join().expect("it ends").expect_err("nothing was sent");
    }
}
