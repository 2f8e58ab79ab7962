//! Counting semaphores.

use std::{
    mem::ManuallyDrop,
    time::{Duration, Instant},
};

use consort_machine::{at_once, block_on};

use crate::{
    locks::QueuedSemaphore,
    machine::MACHINE,
    timed::{clock_at, deadline_after},
};

/// A counting semaphore: a number of permits, of which each thread takes one or several.
///
/// Threads are served in the order in which they began to wait, also those with a time limit. While
/// a thread waits for many permits, the threads behind it wait too, even if there are enough
/// permits for them. So a thread that already has a permit and asks for another one may wait
/// forever.
///
/// ```
/// use consort_sync::Semaphore;
///
/// static CONNECTIONS: Semaphore = Semaphore::new(2);
///
/// std::thread::scope(|scope| {
///     for _ in 0..8 {
///         scope.spawn(|| {
///             let _connection = CONNECTIONS.acquire();
///             // At most two threads are here at a time.
///         });
///     }
/// });
/// assert_eq!(CONNECTIONS.available_permits(), 2);
/// ```
///
/// # Panics
/// If a thread asks for more than [`Semaphore::MAX_PERMITS`], or if more become available.
#[derive(Debug)]
pub struct Semaphore(QueuedSemaphore);

impl Semaphore {
    /// The largest number of permits.
    pub const MAX_PERMITS: usize = usize::MAX >> 3;

    /// Creates a semaphore with this number of permits.
    #[must_use]
    pub const fn new(permits: usize) -> Self {
        Self(QueuedSemaphore::new(checked(permits)))
    }

    /// Waits for a permit, and returns it.
    #[inline]
    pub fn acquire(&self) -> SemaphoreGuard<'_> {
        self.acquire_many(1)
    }

    /// Waits for `count` permits, and takes them all at once.
    #[inline]
    pub fn acquire_many(&self, count: usize) -> SemaphoreGuard<'_> {
        let Ok(_) = block_on(self.0.acquire(&MACHINE, checked(count), None));
        SemaphoreGuard { semaphore: self, count }
    }

    /// Takes a permit if there is one and no thread waits; otherwise returns `None`.
    #[inline]
    pub fn try_acquire(&self) -> Option<SemaphoreGuard<'_>> {
        self.try_acquire_many(1)
    }

    /// Takes `count` permits if there are enough and no thread waits; otherwise returns `None`.
    #[inline]
    pub fn try_acquire_many(&self, count: usize) -> Option<SemaphoreGuard<'_>> {
        let has_taken = at_once(self.0.try_acquire(&MACHINE, checked(count)));
        has_taken.then(|| SemaphoreGuard { semaphore: self, count })
    }

    /// Waits for a permit. Returns `None` if it has none after `limit`.
    pub fn try_acquire_for(&self, limit: Duration) -> Option<SemaphoreGuard<'_>> {
        self.try_acquire_many_for(1, limit)
    }

    /// Waits for a permit. Returns `None` if it has none at the deadline.
    pub fn try_acquire_until(&self, deadline: Instant) -> Option<SemaphoreGuard<'_>> {
        self.try_acquire_many_until(1, deadline)
    }

    /// Waits for `count` permits. Returns `None` if it does not have them after `limit`.
    pub fn try_acquire_many_for(
        &self,
        count: usize,
        limit: Duration,
    ) -> Option<SemaphoreGuard<'_>> {
        match deadline_after(limit) {
            Some(deadline) => self.try_acquire_many_until(count, deadline),
            None => Some(self.acquire_many(count)),
        }
    }

    /// Waits for `count` permits. Returns `None` if it does not have them at the deadline.
    pub fn try_acquire_many_until(
        &self,
        count: usize,
        deadline: Instant,
    ) -> Option<SemaphoreGuard<'_>> {
        let at_ns = Some(clock_at(deadline));
        let Ok(has_taken) = block_on(self.0.acquire(&MACHINE, checked(count), at_ns));
        has_taken.then(|| SemaphoreGuard { semaphore: self, count })
    }

    /// Returns the number of permits that no thread has at present.
    pub fn available_permits(&self) -> usize {
        usize::try_from(at_once(self.0.permits(&MACHINE))).unwrap_or(usize::MAX)
    }

    /// Adds permits, for example one for each value that a thread has put into a queue.
    #[inline]
    pub fn add_permits(&self, count: usize) {
        let available = at_once(self.0.release(&MACHINE, checked(count)));
        if available > checked(Self::MAX_PERMITS) {
            self.take_back(count);
        }
    }

    /// Takes permits back that are too many, so that a program that catches the panic does not
    /// reach the end of the word.
    #[cold]
    fn take_back(&self, count: usize) {
        at_once(self.0.try_acquire(&MACHINE, checked(count)));
        panic!("{TOO_MANY}");
    }
}

const TOO_MANY: &str = "a semaphore has at most `Semaphore::MAX_PERMITS` permits";

/// Returns a number of permits that a semaphore can have.
const fn checked(permits: usize) -> u64 {
    assert!(permits <= Semaphore::MAX_PERMITS, "{}", TOO_MANY);
    permits as u64
}

/// Permits of a [`Semaphore`], until the guard is dropped. Another thread may drop it.
#[derive(Debug)]
#[must_use = "if unused, the permits are given back at once"]
pub struct SemaphoreGuard<'s> {
    semaphore: &'s Semaphore,
    count: usize,
}

impl SemaphoreGuard<'_> {
    /// Removes the permits: the semaphore does not get them back.
    pub fn forget(self) {
        let _ = ManuallyDrop::new(self);
    }
}

impl Drop for SemaphoreGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.semaphore.add_permits(self.count);
    }
}
