//! Ways to interrupt a PE, and their cost for the thread that interrupts.
//!
//! If the cores of a machine support interrupts, asynchronous broadcasts interrupt their receivers
//! (Petrović 2015, section 3.2). An operating system has two ways to make a computing thread do
//! something: a signal, and a memory barrier on all cores of the process. A thread that waits needs
//! neither: it can poll, as the library's waits do.

use std::{
    hint::spin_loop,
    sync::{
        Arc,
        atomic::{
            AtomicBool, AtomicU64,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
    thread,
    time::{Duration, Instant},
};

use consort_fabric::statistics::median;

/// The median times of each way, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interrupts {
    /// From a signal to a computing thread until its handler has run.
    pub(super) signal_ns: f64,
    /// A memory barrier on the cores of all threads of the process; `None` if the system has none.
    pub(super) membarrier_ns: Option<f64>,
    /// Until a thread that polls a word has seen it change.
    pub(super) poll_ns: f64,
}

/// Times each way between two threads, several thousand times.
///
/// # Errors
/// If the system refuses a signal handler.
pub(super) fn measure() -> std::io::Result<Interrupts> {
    let is_over = Arc::new(AtomicBool::new(false));
    // This thread polls nothing that a signal handler sets.
    let computing = thread::spawn({
        let is_over = Arc::clone(&is_over);
        // Relaxed: the flag publishes no other data.
        move || {
            while !is_over.load(Relaxed) {
                spin_loop();
            }
        }
    });
    let signalled = linux::with_handler(|kick| {
        times(|| {
            let before = linux::handled();
            kick(&computing);
            while linux::handled() == before {
                spin_loop();
            }
        })
    });
    let membarrier_ns = linux::membarrier().then(|| times(|| _ = linux::membarrier()));
    is_over.store(true, Relaxed);
    let _ = computing.join();
    Ok(Interrupts { signal_ns: signalled?, membarrier_ns, poll_ns: poll_ns() })
}

/// Returns half of the time until a thread that polls a word has replied in another word.
fn poll_ns() -> f64 {
    let (asked, seen) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut last = 0;
            while last != u64::MAX {
                let now = asked.load(Acquire);
                if now != last {
                    seen.store(now, Release);
                    last = now;
                }
                spin_loop();
            }
        });
        let mut number = 0;
        let both_ns = times(|| {
            number += 1;
            asked.store(number, Release);
            while seen.load(Acquire) != number {
                spin_loop();
            }
        });
        asked.store(u64::MAX, Release);
        both_ns / 2.0
    })
}

/// Returns the median of several thousand times, after a pause so that the other thread runs.
fn times(mut once: impl FnMut()) -> f64 {
    thread::sleep(Duration::from_millis(2));
    let mut all: Vec<f64> = (0..2000)
        .map(|_| {
            let begun = Instant::now();
            once();
            begun.elapsed().as_secs_f64() * 1e9
        })
        .collect();
    median(&mut all)
}

#[expect(
    unsafe_code,
    reason = "uses signals, and a system call for which the libraries have no \
                                function"
)]
mod linux {
    use std::{
        io, mem,
        os::unix::thread::JoinHandleExt as _,
        ptr,
        sync::atomic::{AtomicU64, Ordering::Relaxed},
        thread::JoinHandle,
    };

    /// How often the handler has run.
    static HANDLED: AtomicU64 = AtomicU64::new(0);
    /// A signal that does nothing if it is not handled.
    const SIGNAL: i32 = libc::SIGURG;

    extern "C" fn handler(_: i32) {
        // Relaxed: it publishes no other data.
        HANDLED.fetch_add(1, Relaxed);
    }

    pub(super) fn handled() -> u64 {
        HANDLED.load(Relaxed)
    }

    /// Calls `run` with a function that signals a thread; the signal is handled during the call.
    pub(super) fn with_handler<T>(
        run: impl FnOnce(&dyn Fn(&JoinHandle<()>)) -> T,
    ) -> io::Result<T> {
        // SAFETY: an all-zero `sigaction` is a valid one, of the default action and no flags.
        let mut action: libc::sigaction = unsafe { mem::zeroed() };
        action.sa_sigaction = handler as extern "C" fn(i32) as usize;
        action.sa_flags = libc::SA_RESTART;
        // SAFETY: as above.
        let mut before: libc::sigaction = unsafe { mem::zeroed() };
        // SAFETY: both point to valid actions; the handler only adds to an atomic, which a handler
        // may do at any time.
        if unsafe { libc::sigaction(SIGNAL, &raw const action, &raw mut before) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let result = run(&|thread: &JoinHandle<()>| {
            // SAFETY: the handle is borrowed, so the thread has not been joined.
            let status = unsafe { libc::pthread_kill(thread.as_pthread_t(), SIGNAL) };
            debug_assert_eq!(status, 0);
        });
        // SAFETY: the system returned `before`.
        unsafe { libc::sigaction(SIGNAL, &raw const before, ptr::null_mut()) };
        Ok(result)
    }

    /// Runs a memory barrier on the cores of all threads of this process; returns whether the
    /// system has one.
    pub(super) fn membarrier() -> bool {
        const PRIVATE_EXPEDITED: i32 = 1 << 3;
        const REGISTER_PRIVATE_EXPEDITED: i32 = 1 << 4;
        // SAFETY: the system call takes numbers only, and accesses no memory of the program.
        let call = |command: i32| unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) };
        call(PRIVATE_EXPEDITED) == 0
            || call(REGISTER_PRIVATE_EXPEDITED) == 0 && call(PRIVATE_EXPEDITED) == 0
    }
}
