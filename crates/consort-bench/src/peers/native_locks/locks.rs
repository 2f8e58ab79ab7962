//! Locks and condition variables whose functions belong to a library.
//!
//! A lock is a block of zeros at first. It may be moved while no thread uses it: in each of these
//! libraries it then contains no address.
#![expect(unsafe_code, reason = "the functions of a library in C are unsafe to call")]

use std::{
    cell::UnsafeCell,
    ffi::c_void,
    marker::PhantomData,
    ptr,
    sync::atomic::{AtomicPtr, Ordering::Relaxed},
};

use lock_api::{GuardNoSend, MutexGuard, RawMutex, RawRwLock};

use super::functions::{BYTES, LockLibrary};

/// A lock or a condition variable.
#[repr(C, align(8))]
struct Memory(UnsafeCell<[u64; BYTES / 8]>);

// SAFETY: only the functions of a library use the memory, and any thread may call them.
unsafe impl Sync for Memory {}

impl Memory {
    const fn zeros() -> Self {
        Self(UnsafeCell::new([0; BYTES / 8]))
    }

    #[inline(always)]
    const fn address(&self) -> *mut c_void {
        self.0.get().cast()
    }
}

/// A mutex of a library.
pub(crate) struct NativeMutex<L>(Memory, PhantomData<fn() -> L>);

/// A reader-writer lock of a library.
pub(crate) struct NativeRwLock<L>(Memory, PhantomData<fn() -> L>);

/// Calls a function with a lock.
macro_rules! call {
    ($library:ident, $access:ident.$function:ident, $lock:expr) => {
        // SAFETY: by the contract of `LockLibrary`, this is a function for the memory of a lock. If
        // it unlocks, the caller has this kind of access.
        unsafe { ($library::functions().$access.$function)($lock.0.address()) }
    };
}

// SAFETY: the library's functions exclude each other.
unsafe impl<L: LockLibrary> RawMutex for NativeMutex<L> {
    const INIT: Self = Self(Memory::zeros(), PhantomData);
    type Guard = GuardNoSend;

    #[inline(always)]
    fn lock(&self) -> GuardNoSend {
        call!(L, mutex.lock, self);
        GuardNoSend::new()
    }

    fn try_lock(&self) -> Option<GuardNoSend> {
        (call!(L, mutex.try_lock, self) != 0).then(GuardNoSend::new)
    }

    #[inline(always)]
    unsafe fn unlock(&self, _: GuardNoSend) {
        call!(L, mutex.unlock, self);
    }

    fn is_locked(&self) -> bool {
        // SAFETY: this thread has just locked it.
        self.try_lock().map(|guard| unsafe { self.unlock(guard) }).is_none()
    }
}

// SAFETY: the library's functions exclude writers.
unsafe impl<L: LockLibrary> RawRwLock for NativeRwLock<L> {
    const INIT: Self = Self(Memory::zeros(), PhantomData);
    type SharedGuard = GuardNoSend;
    type ExclusiveGuard = GuardNoSend;

    #[inline(always)]
    fn lock_shared(&self) -> GuardNoSend {
        call!(L, reader.lock, self);
        GuardNoSend::new()
    }

    fn try_lock_shared(&self) -> Option<GuardNoSend> {
        (call!(L, reader.try_lock, self) != 0).then(GuardNoSend::new)
    }

    #[inline(always)]
    unsafe fn unlock_shared(&self, _: GuardNoSend) {
        call!(L, reader.unlock, self);
    }

    #[inline(always)]
    fn lock_exclusive(&self) -> GuardNoSend {
        call!(L, writer.lock, self);
        GuardNoSend::new()
    }

    fn try_lock_exclusive(&self) -> Option<GuardNoSend> {
        (call!(L, writer.try_lock, self) != 0).then(GuardNoSend::new)
    }

    #[inline(always)]
    unsafe fn unlock_exclusive(&self, _: GuardNoSend) {
        call!(L, writer.unlock, self);
    }

    fn is_locked(&self) -> bool {
        // SAFETY: this thread has just locked it.
        self.try_lock_exclusive().map(|guard| unsafe { self.unlock_exclusive(guard) }).is_none()
    }

    fn is_locked_exclusive(&self) -> bool {
        // SAFETY: as above.
        self.try_lock_shared().map(|guard| unsafe { self.unlock_shared(guard) }).is_none()
    }
}

/// A condition variable of a library.
pub(crate) struct NativeCondvar<L> {
    memory: Memory,
    /// The mutex of its waits.
    mutex: AtomicPtr<c_void>,
    library: PhantomData<fn() -> L>,
}

impl<L> Default for NativeCondvar<L> {
    fn default() -> Self {
        Self { memory: Memory::zeros(), mutex: AtomicPtr::default(), library: PhantomData }
    }
}

impl<L: LockLibrary> NativeCondvar<L> {
    /// Releases the mutex, waits for a notification, and locks the mutex again.
    ///
    /// # Panics
    /// If an earlier wait had another mutex.
    pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, NativeMutex<L>, T>) {
        // SAFETY: nothing unlocks the mutex before the guard does.
        let mutex = unsafe { MutexGuard::mutex(guard).raw() }.0.address();
        // Relaxed: the address publishes nothing; the mutex orders two waits.
        // Most waits only load.
        if self.mutex.load(Relaxed) != mutex {
            let first = self.mutex.compare_exchange(ptr::null_mut(), mutex, Relaxed, Relaxed);
            assert!(first.is_ok() || first == Err(mutex), "a wait with another mutex");
        }
        // SAFETY: this thread has locked the mutex, by its guard, and all waits have this mutex.
        unsafe { (L::functions().wait)(self.memory.address(), mutex) };
    }

    pub(crate) fn notify_one(&self) {
        // SAFETY: the memory is that of a condition variable.
        unsafe { (L::functions().notify_one)(self.memory.address()) };
    }

    pub(crate) fn notify_all(&self) {
        // SAFETY: as above.
        unsafe { (L::functions().notify_all)(self.memory.address()) };
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::atomic::AtomicBool, thread};

    use super::*;
    use crate::peers::native_locks::{Abseil, LoadedLocks, Nsync, Pthread};

    /// Checks the locks of a library with a few threads.
    fn check<L: LockLibrary>() {
        const TIMES: u64 = 10_000;
        let mutex = lock_api::Mutex::<NativeMutex<L>, u64>::new(0);
        let lock = lock_api::RwLock::<NativeRwLock<L>, [u64; 2]>::new([0; 2]);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..TIMES {
                        *mutex.lock() += 1;
                        let read = *lock.read();
                        assert_eq!(read[0], read[1]);
                        lock.write().iter_mut().for_each(|number| *number += 1);
                    }
                });
            }
        });
        assert_eq!((*mutex.lock(), *lock.read()), (3 * TIMES, [3 * TIMES; 2]));
        let (held, read) = (mutex.lock(), lock.read());
        assert!(mutex.try_lock().is_none() && lock.try_write().is_none());
        assert!(mutex.is_locked() && lock.is_locked() && !lock.is_locked_exclusive());
        drop((held, read));
        assert!(!mutex.is_locked() && !lock.is_locked());
        assert!(mutex.try_lock().is_some() && lock.try_write().is_some());
        assert!(lock.try_read().is_some());
        let (turn, wakes) = (&mutex, &NativeCondvar::<L>::default());
        thread::scope(|scope| {
            for me in 0..3 {
                scope.spawn(move || {
                    for round in 0..100 {
                        let mut turn = turn.lock();
                        while *turn != 3 * TIMES + 3 * round + me {
                            wakes.wait(&mut turn);
                        }
                        *turn += 1;
                        wakes.notify_all();
                    }
                });
            }
        });
        assert_eq!(*mutex.lock(), 3 * TIMES + 300);
        wakes.notify_one();
    }

    #[test]
    fn locks_of_the_c_library_exclude_each_other() {
        check::<Pthread>();
    }

    #[test]
    fn loaded_locks_exclude_each_other() {
        let never = AtomicBool::new(false);
        for (library, check) in
            [(LoadedLocks::Nsync, check::<Nsync> as fn()), (LoadedLocks::Abseil, check::<Abseil>)]
        {
            match library.load(&never).and_then(|()| library.load(&never)) {
                Ok(()) => check(),
                Err(why) => eprintln!("skipped: {why:#}"),
            }
        }
    }

    #[test]
    #[should_panic(expected = "a wait with another mutex")]
    fn a_condition_variable_keeps_to_its_mutex() {
        let [first, second] = [(), ()].map(lock_api::Mutex::<NativeMutex<Pthread>, ()>::new);
        let wakes = NativeCondvar::<Pthread>::default();
        let _ = wakes.mutex.compare_exchange(
            ptr::null_mut(),
            // SAFETY: the mutex is not locked.
            unsafe { first.raw() }.0.address(),
            Relaxed,
            Relaxed,
        );
        wakes.wait(&mut second.lock());
    }
}
