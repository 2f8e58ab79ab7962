//! Mutexes that their holder may lock again, based on the crate `lock_api`.

#![expect(unsafe_code, reason = "promises that running threads have different numbers")]

use std::{num::NonZeroUsize, ptr::NonNull};

use lock_api::GetThreadId;

use crate::{locks::Handoff, mutex::Raw};

/// A mutex that its holder may lock again. It is free once all guards of the holder are dropped.
///
/// Guards share the data, because a thread may have several. So data that changes is in a `Cell` or
/// a `RefCell`.
///
/// ```
/// use consort_sync::ReentrantMutex;
/// use std::cell::Cell;
///
/// static COUNTER: ReentrantMutex<Cell<u64>> = ReentrantMutex::new(Cell::new(0));
///
/// fn add_one() {
///     let count = COUNTER.lock();
///     count.set(count.get() + 1);
/// }
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| {
///             let count = COUNTER.lock();
///             let before = count.get();
///             add_one();
///             add_one();
///             assert_eq!(count.get(), before + 2);
///         });
///     }
/// });
/// assert_eq!(COUNTER.lock().get(), 8);
/// ```
///
/// With another lock it is a `lock_api::ReentrantMutex<Raw<Clh>, RawThreadId, T>`.
pub type ReentrantMutex<T> = lock_api::ReentrantMutex<Raw<Handoff>, RawThreadId, T>;

/// Shared access to the data of a [`ReentrantMutex`], until the guard is dropped. It stays on its
/// thread.
pub type ReentrantMutexGuard<'m, T> =
    lock_api::ReentrantMutexGuard<'m, Raw<Handoff>, RawThreadId, T>;

/// A [`ReentrantMutexGuard`] for a part of the data.
pub type MappedReentrantMutexGuard<'m, T> =
    lock_api::MappedReentrantMutexGuard<'m, Raw<Handoff>, RawThreadId, T>;

/// Numbers threads for [`lock_api::ReentrantMutex`]. It takes none of the numbers that messages and
/// delegation use.
#[derive(Debug)]
pub struct RawThreadId;

// SAFETY: a thread-local variable of nonzero size has an address that is not null, and that no
// other thread's variable has while the thread runs. A forked child keeps the address of the thread
// that called `fork`.
unsafe impl GetThreadId for RawThreadId {
    const INIT: Self = Self;

    #[inline]
    fn nonzero_thread_id(&self) -> NonZeroUsize {
        thread_local! {
            static PLACE: u8 = const { 0 };
        }
        PLACE.with(|place| NonNull::from(place).addr())
    }
}
