//! Threads that park, identified by the address of the word at which they sleep.

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
