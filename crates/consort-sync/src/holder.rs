//! The thread that holds a mutex, and where it locked the mutex, in debug builds. If that thread
//! locks the mutex again, this is an error that names the place, and not an endless wait.
//!
//! Nothing here needs a destructor, so a library that locks mutexes can be unloaded.

#![cfg_attr(debug_assertions, expect(unsafe_code, reason = "stores a reference in an atomic"))]

use std::panic::Location;
#[cfg(debug_assertions)]
use std::{
    cell::Cell,
    ptr,
    sync::atomic::{AtomicPtr, AtomicU64, Ordering::Relaxed},
};

/// Where a thread locks a mutex.
pub(crate) type LockPlace = &'static Location<'static>;

/// The thread that holds a mutex, and where it locked the mutex. Empty in release builds.
pub(crate) struct Holder {
    /// 0 if no thread holds it.
    #[cfg(debug_assertions)]
    thread: AtomicU64,
    /// Points to a place while a thread holds it.
    #[cfg(debug_assertions)]
    place: AtomicPtr<Location<'static>>,
}

#[cfg(not(debug_assertions))]
impl Holder {
    pub(crate) const NONE: Self = Self {};

    #[inline(always)]
    pub(crate) fn refuse_second_lock(&self) {}

    #[inline(always)]
    pub(crate) fn set(&self, _: LockPlace) {}

    #[inline(always)]
    pub(crate) fn clear(&self) -> Option<LockPlace> {
        None
    }
}

/// Returns the number of the calling thread, which no other thread ever has.
#[cfg(debug_assertions)]
fn this_thread() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static NUMBER: Cell<u64> = const { Cell::new(0) };
    }
    if NUMBER.get() == 0 {
        NUMBER.set(LAST.fetch_add(1, Relaxed) + 1);
    }
    NUMBER.get()
}

#[cfg(debug_assertions)]
impl Holder {
    #[expect(clippy::declare_interior_mutable_const, reason = "the initial value of a mutex")]
    pub(crate) const NONE: Self =
        Self { thread: AtomicU64::new(0), place: AtomicPtr::new(ptr::null_mut()) };

    /// Refuses to lock a mutex that this thread holds.
    ///
    /// # Panics
    /// When this thread holds the mutex.
    #[track_caller]
    pub(crate) fn refuse_second_lock(&self) {
        // Only this thread stores its number, and it has seen the number that it stored last.
        if self.thread.load(Relaxed) == this_thread()
            && let Some(place) = self.place()
        {
            panic!(
                "this thread waits for itself: it already holds this mutex, which it locked at \
                 {place}; drop that guard first"
            );
        }
    }

    /// Notes that this thread has locked the mutex.
    pub(crate) fn set(&self, place: LockPlace) {
        self.place.store(ptr::from_ref(place).cast_mut(), Relaxed);
        self.thread.store(this_thread(), Relaxed);
    }

    /// Notes that this thread is about to release the mutex. Returns where it had locked the mutex.
    pub(crate) fn clear(&self) -> Option<LockPlace> {
        self.thread.store(0, Relaxed);
        self.place()
    }

    fn place(&self) -> Option<LockPlace> {
        // SAFETY: `set` stored a reference that is valid for ever, or the pointer is null.
        unsafe { self.place.load(Relaxed).as_ref() }
    }
}
