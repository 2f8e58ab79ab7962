//! Mutexes: a lock, its data, and guards, by the crate `lock_api`.

#![expect(unsafe_code, reason = "a lock is trusted to exclude")]

use std::fmt;

use consort_native::{at_once, block_on};
use lock_api::{GuardNoSend, RawMutex};

use crate::{
    locks::{Handoff, RawLock},
    machine::MACHINE,
};

/// A mutex: data of which one thread at a time has a [`MutexGuard`].
///
/// The lock is the second parameter. It can be a constant, and so stand in a `static`. It does not
/// poison: if a thread panics while it holds a guard, the mutex is released.
///
/// ```
/// use consort_sync::{Mutex, locks::Mcs};
///
/// static COUNTER: Mutex<u64> = Mutex::new(0);
/// static FIRST_COME: Mutex<Vec<u64>, Mcs> = Mutex::new(Vec::new());
///
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| *COUNTER.lock() += 1);
///         scope.spawn(|| FIRST_COME.lock().push(1));
///     }
/// });
/// assert_eq!((*COUNTER.lock(), FIRST_COME.lock().len()), (4, 4));
/// ```
///
/// Threads may share it if its data may move between threads: a `Cell` may, an `Rc` may not.
///
/// ```
/// # use consort_sync::Mutex;
/// # use std::cell::Cell;
/// static SHARED: Mutex<Option<Cell<u64>>> = Mutex::new(None);
/// ```
/// ```compile_fail,E0277
/// # use consort_sync::Mutex;
/// # use std::rc::Rc;
/// static SHARED: Mutex<Option<Rc<u64>>> = Mutex::new(None);
/// ```
/// ```compile_fail,E0277
/// # use consort_sync::Mutex;
/// # use std::{cell::Cell, rc::Rc};
/// static SHARED: Mutex<Option<Cell<Rc<u64>>>> = Mutex::new(None);
/// ```
pub type Mutex<T, R = Handoff> = lock_api::Mutex<Raw<R>, T>;

/// Access to the data of a [`Mutex`], until it is dropped. It stays on its thread; references to
/// the data may go to others.
///
/// ```
/// # use consort_sync::Mutex;
/// static MUTEX: Mutex<u64> = Mutex::new(7);
/// let guard = MUTEX.lock();
/// std::thread::scope(|scope| {
///     let data: &u64 = &guard;
///     scope.spawn(move || assert_eq!(*data, 7));
/// });
/// ```
/// ```compile_fail,E0277
/// # use consort_sync::Mutex;
/// static MUTEX: Mutex<u64> = Mutex::new(7);
/// let guard = MUTEX.lock();
/// std::thread::scope(|scope| {
///     let data = guard;
///     scope.spawn(move || assert_eq!(*data, 7));
/// });
/// ```
///
/// It does not outlive the mutex.
///
/// ```
/// # use consort_sync::Mutex;
/// let mutex: Mutex<u64> = Mutex::new(7);
/// let guard = mutex.lock();
/// drop(guard);
/// drop(mutex);
/// ```
/// ```compile_fail,E0505
/// # use consort_sync::Mutex;
/// let mutex: Mutex<u64> = Mutex::new(7);
/// let guard = mutex.lock();
/// drop(mutex);
/// drop(guard);
/// ```
pub type MutexGuard<'m, T, R = Handoff> = lock_api::MutexGuard<'m, Raw<R>, T>;

/// A [`RawLock`] on the native machine, for [`lock_api::Mutex`].
pub struct Raw<R: RawLock>(R);

/// What the holder of a [`Raw`] keeps. It stays on its thread.
pub struct Held<R: RawLock> {
    token: R::Token,
    _stays: GuardNoSend,
}

/// Waits until the calling thread holds a lock.
#[inline(always)]
pub(crate) fn acquire<R: RawLock>(lock: &R) -> R::Token {
    match at_once(lock.enter(&MACHINE)) {
        Ok(token) => token,
        Err(place) => wait(lock, place),
    }
}

#[cold]
fn wait<R: RawLock>(lock: &R, place: R::Place) -> R::Token {
    let Ok(token) = block_on(lock.wait(&MACHINE, place));
    token
}

/// Releases a lock.
///
/// # Safety
/// The calling thread holds the lock, and got `token` when it took it.
#[inline(always)]
pub(crate) unsafe fn release<R: RawLock>(lock: &R, token: R::Token) {
    // SAFETY: the caller's promise.
    if let Err(token) = at_once(unsafe { lock.leave(&MACHINE, token) }) {
        // SAFETY: the thread still holds the lock, and this is what `leave` returned.
        unsafe { pass_on(lock, token) };
    }
}

/// # Safety
/// The calling thread holds the lock, and got `token` from `leave`.
#[cold]
unsafe fn pass_on<R: RawLock>(lock: &R, token: R::Token) {
    // SAFETY: the caller's promise.
    let Ok(()) = block_on(unsafe { lock.pass_on(&MACHINE, token) });
}

// SAFETY: `RawLock` promises exclusion. A lock that was forgotten while it was held, and moved, is
// held for ever. Nothing here unwinds but an allocation that fails, or a thread that gets no
// number, before the lock is taken.
unsafe impl<R: RawLock> RawMutex for Raw<R> {
    const INIT: Self = Self(R::NEW);

    type Guard = Held<R>;

    #[inline]
    fn lock(&self) -> Held<R> {
        Held { token: acquire(&self.0), _stays: GuardNoSend::new() }
    }

    #[inline]
    fn try_lock(&self) -> Option<Held<R>> {
        let token = at_once(self.0.try_acquire(&MACHINE))?;
        Some(Held { token, _stays: GuardNoSend::new() })
    }

    #[inline]
    unsafe fn unlock(&self, held: Held<R>) {
        // SAFETY: the caller holds the lock, with this token.
        unsafe { release(&self.0, held.token) };
    }

    fn is_locked(&self) -> bool {
        at_once(self.0.is_held(&MACHINE))
    }
}

impl<R: RawLock> Drop for Raw<R> {
    fn drop(&mut self) {
        self.0.retire(&MACHINE);
    }
}

impl<R: RawLock> fmt::Debug for Raw<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Raw").field("lock", &R::NAME).finish_non_exhaustive()
    }
}
