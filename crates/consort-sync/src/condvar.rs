//! Condition variables for every mutex, based on the crate `lock_api`.

#![expect(unsafe_code, reason = "releases a mutex and takes it again")]

use std::{
    fmt,
    marker::PhantomData,
    time::{Duration, Instant},
};

use consort_machine::{at_once, block_on};
use lock_api::RawCondvarTimed;

use crate::{
    locks::{Handoff, Place, RawLock, WaitQueue},
    machine::MACHINE,
    mutex::{Held, Raw},
    timed::{clock_at, deadline_after},
};

/// A condition variable. A thread that waits releases its [`Mutex`](crate::Mutex) until another
/// thread notifies it.
///
/// Threads are notified in the order in which they began to wait, and no wait ends without a
/// notification. `notify_one` returns whether it notified a thread, and `notify_all` returns how
/// many.
///
/// ```
/// use consort_sync::{Condvar, Mutex};
///
/// static QUEUE: Mutex<Vec<u32>> = Mutex::new(Vec::new());
/// static FILLED: Condvar = Condvar::new();
///
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         let mut queue = QUEUE.lock();
///         FILLED.wait_while(&mut queue, |queue| queue.is_empty());
///         assert_eq!(queue.pop(), Some(5));
///     });
///     QUEUE.lock().push(5);
///     FILLED.notify_one();
/// });
/// ```
///
/// For mutexes with another lock than the default one, name the lock: `Condvar<Clh>`.
///
/// # Panics
/// A wait panics if other threads wait at the same time with another mutex. The mutex of the wait
/// that panics is then still locked.
pub type Condvar<R = Handoff> = lock_api::Condvar<RawCondvar<R>>;

/// The condition variable of a [`Raw`] lock. No wait ends without a notification, and notifications
/// return how many threads they notified.
pub struct RawCondvar<R: RawLock> {
    queue: WaitQueue,
    /// No lock is stored: each wait borrows its mutex.
    _lock: PhantomData<fn(R)>,
}

impl<R: RawLock> RawCondvar<R> {
    /// Appends the calling thread to those that wait with this mutex.
    fn append(&self, mutex: &Raw<R>) -> Place {
        let tag = std::ptr::from_ref(mutex).addr() as u64;
        let Ok(place) = block_on(self.queue.append(&MACHINE, tag));
        place.expect("threads wait for this condition with another mutex: use one mutex at a time")
    }

    #[inline(always)]
    fn notify(&self, most: usize) -> usize {
        if at_once(self.queue.is_empty(&MACHINE)) { 0 } else { self.notify_waiting(most) }
    }

    #[cold]
    fn notify_waiting(&self, most: usize) -> usize {
        let Ok(notified) = block_on(self.queue.notify(&MACHINE, most));
        notified
    }
}

// SAFETY: the thread is in the queue before it releases the mutex, so each later notification finds
// it. Nothing unwinds between the release and the end of the next acquisition.
unsafe impl<R: RawLock> lock_api::RawCondvar for RawCondvar<R> {
    const INIT: Self = Self { queue: WaitQueue::new(), _lock: PhantomData };

    type RawMutex = Raw<R>;

    unsafe fn wait(&self, mutex: &Raw<R>, held: &mut Held<R>) {
        let place = self.append(mutex);
        let wait = || {
            let Ok(()) = block_on(self.queue.wait(&MACHINE, place));
        };
        // SAFETY: the caller holds the mutex, and `wait` does not unwind.
        unsafe { mutex.unlocked(held, wait) }
    }

    #[inline]
    fn notify_one(&self) -> bool {
        self.notify(1) > 0
    }

    #[inline]
    fn notify_all(&self) -> usize {
        self.notify(usize::MAX)
    }
}

// SAFETY: as above. A thread whose deadline has passed leaves the queue, so no notification is lost
// on it.
unsafe impl<R: RawLock> RawCondvarTimed for RawCondvar<R> {
    fn checked_duration_to_instant(limit: &Duration) -> Option<Instant> {
        deadline_after(*limit)
    }

    unsafe fn wait_until(&self, mutex: &Raw<R>, held: &mut Held<R>, deadline: &Instant) -> bool {
        let place = self.append(mutex);
        let at_ns = clock_at(*deadline);
        let wait = || {
            let Ok(is_notified) = block_on(self.queue.wait_until_time(&MACHINE, place, at_ns));
            !is_notified
        };
        // SAFETY: the caller holds the mutex, and `wait` does not unwind.
        unsafe { mutex.unlocked(held, wait) }
    }
}

impl<R: RawLock> fmt::Debug for RawCondvar<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawCondvar").field("lock", &R::NAME).finish_non_exhaustive()
    }
}
