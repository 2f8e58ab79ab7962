//! A futex: a word at which threads sleep until it changes.
//!
//! The system provides it (`system`). Under loom it is a mutex and a condition variable.
//!
//! A sleep compares the word with the expected value and falls asleep in one atomic step.

use std::time::Duration;

use super::AtomicU32;
#[cfg(not(loom))]
use crate::system::futex;

/// The scope of a futex: which threads may sleep at its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Threads of one process.
    Process,
    /// Threads of all processes that share the memory.
    Machine,
}

/// A futex.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Futex {
    word: AtomicU32,
    #[cfg(loom)]
    sleepers: (loom::sync::Mutex<()>, loom::sync::Condvar),
}

impl Futex {
    /// Returns the word itself.
    #[inline(always)]
    pub fn word(&self) -> &AtomicU32 {
        &self.word
    }
}

#[cfg(loom)]
impl Futex {
    /// Sleeps while the word is `expected`. A loom model has no clock: only a wake-up ends the
    /// sleep, so a lost wake-up is a deadlock. Returns whether the time is up: always `false`.
    pub fn sleep(&self, expected: u32, _: Duration, _: Scope) -> bool {
        let (mutex, condition) = &self.sleepers;
        let guard = mutex.lock().expect("no panic");
        if self.word.load(std::sync::atomic::Ordering::Relaxed) == expected {
            drop(condition.wait(guard).expect("no panic"));
        }
        false
    }

    /// Wakes all sleepers.
    pub fn wake_all(&self, _: Scope) {
        let (mutex, condition) = &self.sleepers;
        let guard = mutex.lock().expect("no panic");
        condition.notify_all();
        drop(guard);
    }
}

#[cfg(not(loom))]
impl Futex {
    /// Creates a futex whose word is 0.
    pub const fn new() -> Self {
        Self { word: AtomicU32::new(0) }
    }

    /// Sleeps while the word is `expected`, until woken or for `limit`. It may wake early. Returns
    /// whether the time is up.
    pub fn sleep(&self, expected: u32, limit: Duration, scope: Scope) -> bool {
        futex::sleep(&self.word, expected, limit, scope == Scope::Process)
    }

    /// Wakes all sleepers.
    pub fn wake_all(&self, scope: Scope) {
        futex::wake_all(&self.word, scope == Scope::Process);
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

    /// Two threads sleep at one word. They are woken after the word has changed.
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
    fn all_sleepers_of_a_word_wake() {
        let futex = Futex::default();
        let word = futex.word();
        for scope in [Scope::Process, Scope::Machine] {
            all_wake(word, || assert!(!futex.sleep(0, LONG, scope)), || futex.wake_all(scope));
        }
    }

    #[test]
    fn sleep_ends_on_another_value_or_at_the_limit() {
        let (futex, short) = (Futex::default(), Duration::from_millis(1));
        assert!(!futex.sleep(1, LONG, Scope::Process));
        for scope in [Scope::Process, Scope::Machine] {
            assert!(futex.sleep(0, short, scope));
        }
    }
}
