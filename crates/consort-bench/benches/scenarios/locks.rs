//! Mutexes and reader-writer locks of several libraries under one interface.

#![expect(unsafe_code, reason = "calls the C library's mutex")]

use std::cell::UnsafeCell;

use consort_sync::locks::{Clh, Cna, Hapax, Mcs, TestAndSet, Ticket};

/// The data of a lock: two numbers on two cache lines.
#[derive(Debug, Default)]
pub(crate) struct Data {
    pub(crate) first: Apart,
    pub(crate) second: Apart,
}

/// A number on its own pair of lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Apart(pub(crate) u64);

/// Data that one thread at a time uses.
pub(crate) trait Lock: Default + Sync {
    fn with<R: Send>(&self, section: impl FnOnce(&mut Data) -> R + Send) -> R;
}

/// Data that one thread changes, or many read.
pub(crate) trait ReadWriteLock: Default + Sync {
    fn read<R>(&self, section: impl FnOnce(&Data) -> R) -> R;
    fn write<R>(&self, section: impl FnOnce(&mut Data) -> R) -> R;
}

const POISONED: &str = "no thread panics";

macro_rules! locks {
    ($($lock:ty: |$it:ident| $guard:expr;)*) => {
        $(impl Lock for $lock {
            #[inline(always)]
            fn with<R: Send>(&self, section: impl FnOnce(&mut Data) -> R + Send) -> R {
                let $it = self;
                section(&mut $guard)
            }
        })*
    };
}

/// One of this crate's mutexes.
#[derive(Default)]
pub(crate) struct Ours<R: consort_sync::locks::RawLock>(
    lock_api::Mutex<consort_sync::Raw<R>, Data>,
);

locks! {
    consort_sync::Mutex<Data>: |it| it.lock();
    Ours<TestAndSet>: |it| it.0.lock();
    Ours<Ticket>: |it| it.0.lock();
    Ours<Mcs>: |it| it.0.lock();
    Ours<Clh>: |it| it.0.lock();
    Ours<Cna>: |it| it.0.lock();
    Ours<Hapax>: |it| it.0.lock();
    parking_lot::Mutex<Data>: |it| it.lock();
    parking_lot::FairMutex<Data>: |it| it.lock();
    std::sync::Mutex<Data>: |it| it.lock().expect(POISONED);
    usync::Mutex<Data>: |it| it.lock();
    spin::Mutex<Data>: |it| it.lock();
}

/// The server of this crate that falls back to a lock.
pub(crate) struct Served(consort_sync::Server<Data>);

impl Default for Served {
    fn default() -> Self {
        Self(consort_sync::Server::start(Data::default()).expect("the system starts a thread"))
    }
}

impl Lock for Served {
    #[inline(always)]
    fn with<R: Send>(&self, section: impl FnOnce(&mut Data) -> R + Send) -> R {
        self.0.apply(section)
    }
}

impl Lock for mcslock::raw::yields::Mutex<Data> {
    #[inline(always)]
    fn with<R: Send>(&self, section: impl FnOnce(&mut Data) -> R + Send) -> R {
        self.lock_then(section)
    }
}

/// The mutex of the C library, with default attributes.
pub(crate) struct Pthread(Box<UnsafeCell<libc::pthread_mutex_t>>, UnsafeCell<Data>);

// SAFETY: the mutex may be used by any thread, and the data only by its holder.
unsafe impl Sync for Pthread {}

impl Default for Pthread {
    fn default() -> Self {
        Self(Box::new(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER)), UnsafeCell::default())
    }
}

impl Lock for Pthread {
    #[inline(always)]
    fn with<R: Send>(&self, section: impl FnOnce(&mut Data) -> R + Send) -> R {
        // SAFETY: the mutex is initialized, and boxed, so it does not move.
        let error = unsafe { libc::pthread_mutex_lock(self.0.get()) };
        assert_eq!(error, 0, "the thread does not hold the mutex yet");
        // SAFETY: this thread holds the mutex.
        let result = section(unsafe { &mut *self.1.get() });
        // SAFETY: this thread has locked the mutex.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) };
        result
    }
}

macro_rules! read_write_locks {
    ($($lock:ty: |$it:ident| $read:expr, $write:expr;)*) => {
        $(impl ReadWriteLock for $lock {
            #[inline(always)]
            fn read<R>(&self, section: impl FnOnce(&Data) -> R) -> R {
                let $it = self;
                section(&$read)
            }

            #[inline(always)]
            fn write<R>(&self, section: impl FnOnce(&mut Data) -> R) -> R {
                let $it = self;
                section(&mut $write)
            }
        })*
    };
}

read_write_locks! {
    consort_sync::RwLock<Data>: |it| it.read(), it.write();
    parking_lot::RwLock<Data>: |it| it.read(), it.write();
    std::sync::RwLock<Data>: |it| it.read().expect(POISONED), it.write().expect(POISONED);
    usync::RwLock<Data>: |it| it.read(), it.write();
    spin::RwLock<Data>: |it| it.read(), it.write();
}
