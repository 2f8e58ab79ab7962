//! Locks and values of the process that also work in a forked child.
//!
//! A child has only the thread that forked. A lock that another thread held would stay locked in
//! the child, and a value that another thread was about to store would never come. So a fork waits
//! while another thread holds such a lock or stores such a value.

use std::{
    ops::{Deref, DerefMut},
    sync::{self, MutexGuard, PoisonError},
};

use crate::system::fork::{ForkHold, hold_forks};

/// A mutex that is never found locked by a thread of the parent process. Forks wait for it, so hold
/// it for short work that calls no code of the program. It is never poisoned.
#[derive(Debug, Default)]
pub struct Mutex<T>(sync::Mutex<T>);

impl<T> Mutex<T> {
    /// Returns an unlocked mutex.
    pub const fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }

    /// Locks the mutex, and keeps other threads from forking until the result is dropped.
    ///
    /// # Panics
    /// When the system has no memory.
    pub fn lock(&self) -> Guard<'_, T> {
        let hold = hold_forks();
        let guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Guard { guard, _hold: hold }
    }
}

/// Access to the value of a [`Mutex`].
#[derive(Debug)]
pub struct Guard<'a, T> {
    guard: MutexGuard<'a, T>,
    /// Dropped last, when the mutex is unlocked.
    _hold: ForkHold,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

/// A value that is found when it is first needed.
#[derive(Debug, Default)]
pub struct Found<T>(sync::OnceLock<T>);

impl<T> Found<T> {
    /// Returns a place without a value.
    pub const fn new() -> Self {
        Self(sync::OnceLock::new())
    }

    /// Returns the value. Several threads may look for it at the same time, and may fork meanwhile.
    /// All get the value that was stored first.
    ///
    /// # Panics
    /// When the system has no memory.
    #[inline]
    pub fn get_or_find(&self, find: impl FnOnce() -> T) -> &T {
        match self.0.get() {
            Some(value) => value,
            None => self.store(find()),
        }
    }

    #[cold]
    fn store(&self, value: T) -> &T {
        let _hold = hold_forks();
        self.0.get_or_init(|| value)
    }
}
