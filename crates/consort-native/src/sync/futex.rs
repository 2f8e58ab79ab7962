//! A futex: a word at which threads sleep until it changes.
//!
//! | where | how |
//! | --- | --- |
//! | Linux | the system's futex |
//! | elsewhere, and in Miri | threads park; a table of the process lists them with their words |
//! | under loom | a mutex and a condition variable, which loom models |
//!
//! A sleep compares the word with the expected value and falls asleep in one atomic step.

use std::time::Duration;

use super::AtomicU32;

/// The scope of a futex: which threads may sleep at its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Threads of one process.
    Process,
    /// Threads of all processes that share the memory.
    Machine,
}

/// The futex.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Futex {
    word: AtomicU32,
    #[cfg(loom)]
    sleepers: (loom::sync::Mutex<()>, loom::sync::Condvar),
}

impl Futex {
    /// The word itself.
    #[inline(always)]
    pub(crate) fn word(&self) -> &AtomicU32 {
        &self.word
    }
}

#[cfg(loom)]
impl Futex {
    /// Sleeps while the word is `expected`. A loom model has no clock: only a wake-up ends the
    /// sleep, so a lost wake-up is a deadlock. Returns whether the time is up: always `false`.
    pub(crate) fn sleep(&self, expected: u32, _: Duration, _: Scope) -> bool {
        let (mutex, condition) = &self.sleepers;
        let guard = mutex.lock().expect("no panic");
        if self.word.load(std::sync::atomic::Ordering::Relaxed) == expected {
            drop(condition.wait(guard).expect("no panic"));
        }
        false
    }

    /// Wakes all sleepers.
    pub(crate) fn wake_all(&self, _: Scope) {
        let (mutex, condition) = &self.sleepers;
        let guard = mutex.lock().expect("no panic");
        condition.notify_all();
        drop(guard);
    }
}

#[cfg(all(target_os = "linux", not(miri), not(loom)))]
impl Futex {
    /// Sleeps while the word is `expected`, until woken, or for `limit`. It may wake early. Returns
    /// whether the time is up.
    pub(crate) fn sleep(&self, expected: u32, limit: Duration, scope: Scope) -> bool {
        use rustix::{io::Errno, thread::futex};
        let limit = futex::Timespec::try_from(limit).ok();
        let slept = futex::wait(&self.word, Self::flags(scope), expected, limit.as_ref());
        slept == Err(Errno::TIMEDOUT)
    }

    /// Wakes all sleepers.
    pub(crate) fn wake_all(&self, scope: Scope) {
        // It can only fail for a word that is not mapped or not aligned.
        let _ =
            rustix::thread::futex::wake(&self.word, Self::flags(scope), i32::MAX.unsigned_abs());
    }

    fn flags(scope: Scope) -> rustix::thread::futex::Flags {
        use rustix::thread::futex::Flags;
        match scope {
            Scope::Process => Flags::PRIVATE,
            Scope::Machine => Flags::empty(),
        }
    }
}

#[cfg(all(any(not(target_os = "linux"), miri), not(loom)))]
impl Futex {
    /// As on Linux, for threads of this process.
    pub(crate) fn sleep(&self, expected: u32, limit: Duration, _: Scope) -> bool {
        parked::sleep(&self.word, expected, limit)
    }

    /// Wakes all sleepers.
    pub(crate) fn wake_all(&self, _: Scope) {
        parked::wake_all(&self.word);
    }
}

/// Threads that park, by the address of the word.
#[cfg(all(any(test, not(target_os = "linux"), miri), not(loom)))]
mod parked {
    use std::{
        sync::{
            Mutex, MutexGuard, PoisonError,
            atomic::{AtomicU32, Ordering::Relaxed},
        },
        thread::{self, Thread},
        time::{Duration, Instant},
    };

    /// The sleepers, with the addresses of their words. There are few at a time.
    static SLEEPERS: Mutex<Vec<(usize, Thread)>> = Mutex::new(Vec::new());

    fn sleepers() -> MutexGuard<'static, Vec<(usize, Thread)>> {
        SLEEPERS.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn address(word: &AtomicU32) -> usize {
        std::ptr::from_ref(word).addr()
    }

    /// Sleeps while the word is `expected`; returns whether the time is up.
    pub(super) fn sleep(word: &AtomicU32, expected: u32, limit: Duration) -> bool {
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
    pub(super) fn wake_all(word: &AtomicU32) {
        let at = address(word);
        for (_, thread) in sleepers().iter().filter(|(place, _)| *place == at) {
            thread.unpark();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::{
        sync::atomic::{AtomicU32 as Word, Ordering::Relaxed},
        thread,
    };

    const LONG: Duration = Duration::from_secs(60);

    /// Two threads sleep at one word, and are woken once the word has changed.
    fn all_wake(word: &Word, sleep: impl Fn() + Sync, wake_all: impl Fn()) {
        word.store(0, Relaxed);
        let sleeps = || {
            while word.load(Relaxed) == 0 {
                sleep();
            }
        };
        thread::scope(|scope| {
            let _both = [(); 2].map(|()| scope.spawn(sleeps));
            thread::sleep(Duration::from_millis(20));
            word.store(1, Relaxed);
            wake_all();
        });
    }

    #[test]
    fn all_that_sleep_at_a_word_wake() {
        let futex = Futex::default();
        let word = futex.word();
        all_wake(word, || assert!(!parked::sleep(word, 0, LONG)), || parked::wake_all(word));
        for scope in [Scope::Process, Scope::Machine] {
            all_wake(word, || assert!(!futex.sleep(0, LONG, scope)), || futex.wake_all(scope));
        }
    }

    #[test]
    fn nobody_sleeps_at_another_word_or_for_longer_than_the_limit() {
        let (futex, short) = (Futex::default(), Duration::from_millis(1));
        assert!(!futex.sleep(1, LONG, Scope::Process));
        assert!(!parked::sleep(futex.word(), 1, LONG));
        for scope in [Scope::Process, Scope::Machine] {
            assert!(futex.sleep(0, short, scope));
        }
        assert!(parked::sleep(futex.word(), 0, short));
    }
}
