//! Implementations for any system that the standard library supports.

/// Every processor counts as allowed, and binding is not supported.
pub mod affinity {
    use std::io;

    /// A set of processors; nothing is known about it.
    pub type Mask = ();

    fn unsupported() -> io::Error {
        io::Error::new(io::ErrorKind::Unsupported, "this system does not bind threads")
    }

    /// Returns `None`: the processor of the calling thread is not known.
    pub fn current() -> Option<u32> {
        None
    }

    /// Fails: the mask of the calling thread is not known.
    pub fn mask() -> io::Result<Mask> {
        Err(unsupported())
    }

    /// Fails: the mask of the process is not known.
    pub fn mask_of_process() -> io::Result<Mask> {
        Err(unsupported())
    }

    /// Fails: the mask of the parent process is not known.
    pub fn mask_of_parent() -> io::Result<Mask> {
        Err(unsupported())
    }

    /// Fails: this system does not bind threads.
    pub fn set_mask((): &Mask) -> io::Result<()> {
        Err(unsupported())
    }

    /// Returns no processors.
    pub fn allowed(_: io::Result<Mask>) -> impl Iterator<Item = u32> {
        std::iter::empty()
    }

    /// Refuses to bind the calling thread.
    pub fn pin(_: u32) -> io::Result<()> {
        Err(unsupported())
    }
}

/// A clock private to the process.
pub mod clock {
    use std::{sync::OnceLock, time::Instant};

    /// Returns nanoseconds since the first call in this process.
    pub fn now_ns() -> u64 {
        static FIRST: OnceLock<Instant> = OnceLock::new();
        let elapsed = FIRST.get_or_init(Instant::now).elapsed();
        u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Stands in for fences on other threads, which the system lacks.
#[cfg(not(loom))]
pub mod fence {
    /// Returns `false`: the system has no such fence.
    pub fn on_all_threads() -> bool {
        false
    }

    /// Returns `false`: the system has no such fence.
    pub fn on_all_processes() -> bool {
        false
    }

    /// Does nothing, because the system has no such fence.
    pub fn register_early() {}

    /// Returns `false`: the system has no such fence.
    pub fn take_part() -> bool {
        false
    }
}

/// Forked children, recognized by their process id.
pub mod fork {
    use std::{process, sync::Once};

    /// Does nothing: no memory is shared.
    pub fn in_children(_: fn()) {}

    /// Does nothing, like [`in_children`].
    pub fn in_children_once(_: &Once, _: fn()) {}

    /// A hold without effect.
    #[derive(Debug)]
    pub struct ForkHold(());

    /// Does nothing: only a system with a known C library supports children.
    #[must_use]
    pub fn hold_forks() -> ForkHold {
        ForkHold(())
    }

    /// Does nothing: a program must not unload a library that uses Consort.
    pub fn stay_loaded() {}

    /// Returns the id of this process.
    pub fn forks() -> u32 {
        process::id()
    }

    /// Returns the id of this process, like [`forks`].
    pub fn forks_so_far() -> u32 {
        process::id()
    }

    /// Never called: children do no work.
    pub fn end_child(line: &str) -> ! {
        panic!("{line}")
    }
}

/// Threads that park, identified by the address of the word at which they sleep.
#[cfg(not(loom))]
pub mod futex {
    use std::{
        sync::{
            Mutex, MutexGuard, PoisonError,
            atomic::{AtomicU32, Ordering::Relaxed},
        },
        thread::{self, Thread},
        time::{Duration, Instant},
    };

    /// The sleepers and the addresses of their words. There are few at a time.
    static SLEEPERS: Mutex<Vec<(usize, Thread)>> = Mutex::new(Vec::new());

    fn sleepers() -> MutexGuard<'static, Vec<(usize, Thread)>> {
        SLEEPERS.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn address(word: &AtomicU32) -> usize {
        std::ptr::from_ref(word).addr()
    }

    /// Sleeps while the word is `expected`; returns whether the time is up.
    pub fn sleep(word: &AtomicU32, expected: u32, limit: Duration, _: bool) -> bool {
        let (at, me) = (address(word), thread::current());
        let begun = Instant::now();
        {
            let mut all = sleepers();
            if word.load(Relaxed) != expected {
                return false;
            }
            all.push((at, me.clone()));
        }
        thread::park_timeout(limit);
        sleepers().retain(|(place, thread)| *place != at || thread.id() != me.id());
        begun.elapsed() >= limit
    }

    /// Wakes all threads that sleep at the word.
    pub fn wake_all(word: &AtomicU32, _: bool) {
        let at = address(word);
        for (_, thread) in sleepers().iter().filter(|(place, _)| *place == at) {
            thread.unpark();
        }
    }
}

/// The slices of threads stay as they are.
#[cfg(not(loom))]
pub mod slice {
    /// Does nothing.
    #[derive(Debug)]
    pub struct ShortSlice;

    impl ShortSlice {
        /// Changes nothing.
        #[must_use]
        pub fn begin() -> Self {
            Self
        }
    }
}

/// Work at the end of a thread, among the destructors of its thread-local variables.
#[cfg(not(loom))]
pub mod thread_exit {
    use std::cell::Cell;

    struct ExitGuard(Cell<Option<fn()>>);

    impl Drop for ExitGuard {
        fn drop(&mut self) {
            if let Some(work) = self.0.get() {
                work();
            }
        }
    }

    thread_local! {
        static END: ExitGuard = const { ExitGuard(Cell::new(None)) };
    }

    /// Runs `work` when the calling thread ends. Destructors that run later find it done.
    pub fn at_thread_exit(work: fn()) {
        let _ = END.try_with(|end| end.0.set(Some(work)));
    }
}

/// Nothing is known about threads or memory.
pub mod usage {
    use std::time::Duration;

    /// Returns `None`: unknown.
    #[must_use]
    pub fn involuntary_switches() -> Option<u64> {
        None
    }

    /// Returns `None`: unknown.
    #[must_use]
    pub fn suspended() -> Option<Duration> {
        None
    }

    /// Returns `None`: unknown.
    #[must_use]
    pub fn processor_time() -> Option<Duration> {
        None
    }

    /// Returns `None`: unknown.
    #[must_use]
    pub fn memory_bytes() -> Option<usize> {
        None
    }
}
