//! Mutexes: a lock, its data, and guards, based on the crate `lock_api`.
//!
//! [`Mutex`] is a type, not an alias of that crate's mutex, because an expression ignores the
//! default type parameters of an alias.

#![expect(unsafe_code, reason = "relies on a lock for exclusive access")]

#[cfg(feature = "arc_lock")]
use std::sync::Arc;
use std::{
    fmt,
    mem::ManuallyDrop,
    ops::Deref,
    panic::Location,
    time::{Duration, Instant},
};

use consort_machine::{at_once, block_on};
use lock_api::{GuardNoSend, RawMutex, RawMutexTimed};

use crate::{
    holder::{Holder, LockPlace},
    locks::{Handoff, RawLock},
    machine::MACHINE,
    timed::{deadline_after, try_until},
};

/// A mutex: data that one thread at a time accesses, by a [`MutexGuard`].
///
/// [`Mutex::new`] uses the default lock, and [`Mutex::with`] any other, which is the second type
/// parameter. Both may be used for a `static`. A mutex does not poison: if a thread panics while it
/// holds a guard, the mutex is released.
///
/// ```
/// use consort_sync::{Mutex, locks::Mcs};
///
/// static COUNTER: Mutex<u64> = Mutex::new(0);
/// let first_come = Mutex::with(Mcs::new(), Vec::new());
///
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| *COUNTER.lock() += 1);
///         scope.spawn(|| first_come.lock().push(1));
///     }
/// });
/// assert_eq!((*COUNTER.lock(), first_come.into_inner().len()), (4, 4));
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
#[repr(transparent)] // so that an `Arc` of one is also an `Arc` of the other
pub struct Mutex<T: ?Sized, R: RawLock = Handoff>(lock_api::Mutex<Raw<R>, T>);

impl<T> Mutex<T> {
    /// Creates a mutex with the default lock.
    #[must_use]
    pub const fn new(data: T) -> Self {
        Self::with(Handoff::new(), data)
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> From<T> for Mutex<T> {
    fn from(data: T) -> Self {
        Self::new(data)
    }
}

impl<T, R: RawLock> Mutex<T, R> {
    /// Creates a mutex with a lock of this type, such as `Clh::new()`. Only the type of `lock`
    /// matters: the mutex gets a new, free lock.
    #[must_use]
    pub const fn with(lock: R, data: T) -> Self {
        // The lock is not dropped: if it was used in a simulation, its lines ended with the
        // simulation.
        let _ = ManuallyDrop::new(lock);
        Self(lock_api::Mutex::from_raw(Raw::INIT, data))
    }

    /// Returns the data.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T: ?Sized, R: RawLock> Mutex<T, R> {
    /// Waits until no other thread has a guard, and returns a guard. A thread that already has one
    /// waits forever.
    ///
    /// # Panics
    /// In debug builds, when the thread already has a guard. The message names the place where the
    /// thread locked the mutex.
    #[inline]
    #[track_caller]
    pub fn lock(&self) -> MutexGuard<'_, T, R> {
        self.0.lock()
    }

    /// Returns a guard if no thread has one or waits for one; otherwise `None`. It may also fail
    /// while another thread tries.
    #[inline]
    #[track_caller]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T, R>> {
        self.0.try_lock()
    }

    /// Returns whether a thread has a guard at present.
    pub fn is_locked(&self) -> bool {
        self.0.is_locked()
    }

    /// Returns the data, which no other thread uses.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}

/// The other methods of a mutex, such as [`try_lock_for`](lock_api::Mutex::try_lock_for) and
/// [`force_unlock`](lock_api::Mutex::force_unlock).
impl<T: ?Sized, R: RawLock> Deref for Mutex<T, R> {
    type Target = lock_api::Mutex<Raw<R>, T>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// With the feature `arc_lock`: guards that own their mutex.
#[cfg(feature = "arc_lock")]
impl<T: ?Sized, R: RawLock> Mutex<T, R> {
    /// Like [`Mutex::lock`], with a guard that keeps the mutex alive.
    #[track_caller]
    pub fn lock_arc(self: &Arc<Self>) -> lock_api::ArcMutexGuard<Raw<R>, T> {
        self.inner_arc().lock_arc()
    }

    /// Like [`Mutex::try_lock`], with a guard that keeps the mutex alive.
    #[track_caller]
    pub fn try_lock_arc(self: &Arc<Self>) -> Option<lock_api::ArcMutexGuard<Raw<R>, T>> {
        self.inner_arc().try_lock_arc()
    }

    /// Like [`lock_api::Mutex::try_lock_for`], with a guard that keeps the mutex alive.
    #[track_caller]
    pub fn try_lock_arc_for(
        self: &Arc<Self>,
        limit: Duration,
    ) -> Option<lock_api::ArcMutexGuard<Raw<R>, T>> {
        self.inner_arc().try_lock_arc_for(limit)
    }

    /// Like [`lock_api::Mutex::try_lock_until`], with a guard that keeps the mutex alive.
    #[track_caller]
    pub fn try_lock_arc_until(
        self: &Arc<Self>,
        deadline: Instant,
    ) -> Option<lock_api::ArcMutexGuard<Raw<R>, T>> {
        self.inner_arc().try_lock_arc_until(deadline)
    }

    fn inner_arc(self: &Arc<Self>) -> Arc<lock_api::Mutex<Raw<R>, T>> {
        let inner = Arc::into_raw(Arc::clone(self)) as *const lock_api::Mutex<Raw<R>, T>;
        // SAFETY: `into_raw` returned the pointer. The two types have the same layout, because the
        // outer one is transparent, and the same destructor.
        unsafe { Arc::from_raw(inner) }
    }
}

#[cfg(feature = "serde")]
impl<T: ?Sized + serde::Serialize, R: RawLock> serde::Serialize for Mutex<T, R> {
    /// Locks the mutex, and serializes the data.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

#[cfg(feature = "serde")]
impl<'de, T: serde::Deserialize<'de>, R: RawLock> serde::Deserialize<'de> for Mutex<T, R> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(|data| Self::with(R::NEW, data))
    }
}

impl<T: ?Sized + fmt::Debug, R: RawLock> fmt::Debug for Mutex<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Access to the data of a [`Mutex`], until the guard is dropped. It stays on its thread;
/// references to the data may go to others.
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
/// A guard does not outlive its mutex.
///
/// ```
/// # use consort_sync::Mutex;
/// let mutex = Mutex::new(7);
/// let guard = mutex.lock();
/// drop(guard);
/// drop(mutex);
/// ```
/// ```compile_fail,E0505
/// # use consort_sync::Mutex;
/// let mutex = Mutex::new(7);
/// let guard = mutex.lock();
/// drop(mutex);
/// drop(guard);
/// ```
pub type MutexGuard<'m, T, R = Handoff> = lock_api::MutexGuard<'m, Raw<R>, T>;

/// A [`MutexGuard`] for a part of the data.
pub type MappedMutexGuard<'m, T, R = Handoff> = lock_api::MappedMutexGuard<'m, Raw<R>, T>;

/// A [`RawLock`] on the native machine, for code that is generic over [`lock_api`] locks.
///
/// ```
/// use consort_sync::{Raw, lock_api, locks::Clh};
///
/// fn add<R: lock_api::RawMutex>(count: &lock_api::Mutex<R, u64>) {
///     *count.lock() += 1;
/// }
/// let count = lock_api::Mutex::<Raw<Clh>, _>::new(0);
/// add(&count);
/// assert_eq!(count.into_inner(), 1);
/// ```
pub struct Raw<R: RawLock> {
    lock: R,
    holder: Holder,
}

/// The state that the holder of a [`Raw`] keeps. It stays on its thread.
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
fn wait<R: RawLock>(lock: &R, place: R::WaitState) -> R::Token {
    let Ok(token) = block_on(lock.wait(&MACHINE, place));
    token
}

/// Releases a lock.
///
/// # Safety
/// The calling thread holds the lock, and got `token` when it took the lock.
#[inline(always)]
pub(crate) unsafe fn release<R: RawLock>(lock: &R, token: R::Token) {
    // SAFETY: guaranteed by the caller.
    if let Err(token) = at_once(unsafe { lock.leave(&MACHINE, token) }) {
        // SAFETY: the thread still holds the lock, and this is what `leave` returned.
        unsafe { pass_on(lock, token) };
    }
}

/// # Safety
/// The calling thread holds the lock, and got `token` from `leave`.
#[cold]
unsafe fn pass_on<R: RawLock>(lock: &R, token: R::Token) {
    // SAFETY: guaranteed by the caller.
    let Ok(()) = block_on(unsafe { lock.pass_on(&MACHINE, token) });
}

// SAFETY: `RawLock` promises exclusion. A lock that was forgotten while held, and then moved, stays
// held forever. Nothing here unwinds, except before the lock is taken: an allocation may fail, a
// thread may get no number, or it holds the lock already.
unsafe impl<R: RawLock> RawMutex for Raw<R> {
    const INIT: Self = Self { lock: R::NEW, holder: Holder::NONE };

    type Guard = Held<R>;

    #[inline]
    #[track_caller]
    fn lock(&self) -> Held<R> {
        self.holder.refuse_second_lock();
        let token = acquire(&self.lock);
        self.holder.set(Location::caller());
        Held { token, _stays: GuardNoSend::new() }
    }

    #[inline]
    #[track_caller]
    fn try_lock(&self) -> Option<Held<R>> {
        self.try_lock_at(Location::caller())
    }

    #[inline]
    unsafe fn unlock(&self, held: Held<R>) {
        self.holder.clear();
        // SAFETY: the caller holds the lock, with this token.
        unsafe { release(&self.lock, held.token) };
    }

    fn is_locked(&self) -> bool {
        at_once(self.lock.is_held(&MACHINE))
    }
}

// SAFETY: as above. Each attempt takes the lock as `try_lock` does.
unsafe impl<R: RawLock> RawMutexTimed for Raw<R> {
    type Duration = Duration;
    type Instant = Instant;

    #[track_caller]
    fn try_lock_for(&self, limit: Duration) -> Option<Held<R>> {
        let place = Location::caller();
        try_until(deadline_after(limit), || self.try_lock_at(place))
    }

    #[track_caller]
    fn try_lock_until(&self, deadline: Instant) -> Option<Held<R>> {
        let place = Location::caller();
        try_until(Some(deadline), || self.try_lock_at(place))
    }
}

impl<R: RawLock> Raw<R> {
    #[inline(always)]
    fn try_lock_at(&self, place: LockPlace) -> Option<Held<R>> {
        let token = at_once(self.lock.try_acquire(&MACHINE))?;
        self.holder.set(place);
        Some(Held { token, _stays: GuardNoSend::new() })
    }

    /// Releases the lock, executes `wait`, and takes the lock again.
    ///
    /// # Safety
    /// The calling thread holds the lock, with `held`, and `wait` does not unwind.
    pub(crate) unsafe fn unlocked<W>(&self, held: &mut Held<R>, wait: impl FnOnce() -> W) -> W {
        let place = self.holder.clear();
        // SAFETY: guaranteed by the caller.
        unsafe { release(&self.lock, held.token) };
        let result = wait();
        held.token = acquire(&self.lock);
        if let Some(place) = place {
            self.holder.set(place);
        }
        result
    }
}

impl<R: RawLock> Drop for Raw<R> {
    fn drop(&mut self) {
        self.lock.retire(&MACHINE);
    }
}

impl<R: RawLock> fmt::Debug for Raw<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Raw").field("lock", &R::NAME).finish_non_exhaustive()
    }
}
