//! Mutexes and reader-writer locks of several libraries under one interface.

use consort_sync::locks::{Clh, Cna, Hapax, Mcs, TestAndSet, Ticket};

use crate::peers::native_locks::{Abseil, NativeMutex, NativeRwLock, Nsync, Pthread};

/// The data of a lock: two numbers on two cache lines.
#[derive(Debug, Default)]
pub(super) struct Data {
    pub(super) first: Apart,
    pub(super) second: Apart,
}

/// A number on its own pair of lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Apart(pub(super) u64);

/// Data that one thread at a time uses.
pub(super) trait Lock: Default + Sync {
    fn with<R: Send>(&self, section: impl FnOnce(&mut Data) -> R + Send) -> R;
}

/// Data that one thread changes, or many read.
pub(super) trait ReadWriteLock: Default + Sync {
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

/// A mutex of `consort_sync`.
pub(super) type Ours<R> = lock_api::Mutex<consort_sync::Raw<R>, Data>;
/// A mutex of a library in C or C++.
pub(super) type Native<L> = lock_api::Mutex<NativeMutex<L>, Data>;
/// A reader-writer lock of a library in C or C++.
pub(super) type NativeReadWrite<L> = lock_api::RwLock<NativeRwLock<L>, Data>;

locks! {
    consort_sync::Mutex<Data>: |it| it.lock();
    Ours<TestAndSet>: |it| it.lock();
    Ours<Ticket>: |it| it.lock();
    Ours<Mcs>: |it| it.lock();
    Ours<Clh>: |it| it.lock();
    Ours<Cna>: |it| it.lock();
    Ours<Hapax>: |it| it.lock();
    parking_lot::Mutex<Data>: |it| it.lock();
    parking_lot::FairMutex<Data>: |it| it.lock();
    std::sync::Mutex<Data>: |it| it.lock().expect(POISONED);
    usync::Mutex<Data>: |it| it.lock();
    spin::Mutex<Data>: |it| it.lock();
    Native<Pthread>: |it| it.lock();
    Native<Nsync>: |it| it.lock();
    Native<Abseil>: |it| it.lock();
}

/// The default server of `consort_sync`, which falls back to a lock.
pub(super) struct Served(consort_sync::Server<Data>);

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
    NativeReadWrite<Pthread>: |it| it.read(), it.write();
    NativeReadWrite<Nsync>: |it| it.read(), it.write();
    NativeReadWrite<Abseil>: |it| it.read(), it.write();
}
