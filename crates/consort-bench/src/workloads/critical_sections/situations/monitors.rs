//! Data with two condition variables, of several libraries under one interface.

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Instant,
};

use crate::peers::native_locks::{Abseil, NativeCondvar, NativeMutex, Nsync, Pthread};

type NativeShared<L> = lock_api::Mutex<NativeMutex<L>, Shared>;

/// The data that two sides share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// The number of items, or the side whose turn it is.
    pub(super) items: usize,
    /// When an item was added.
    pub(super) added: Option<Instant>,
}

/// A mutex with a condition variable for each of two sides.
pub(super) trait Monitor: Default + Sync {
    /// Waits until the data is `ready` or `is_over`, passes it to `change`, and notifies a thread
    /// of the other side.
    fn act(
        &self,
        side: usize,
        is_over: &AtomicBool,
        ready: impl Fn(&Shared) -> bool,
        change: impl FnOnce(&mut Shared),
    );
    /// Sets `is_over` and wakes all threads.
    fn end(&self, is_over: &AtomicBool);
}

const POISONED: &str = "no thread panics";

macro_rules! monitors {
    ($($name:ident: $mutex:ty, $condvar:ty, |$it:ident| $lock:expr,
       |$wakes:ident, $data:ident| $wait:expr;)*) => {
        $(#[derive(Default)]
        pub(super) struct $name($mutex, [$condvar; 2]);

        impl Monitor for $name {
            fn act(
                &self,
                side: usize,
                is_over: &AtomicBool,
                ready: impl Fn(&Shared) -> bool,
                change: impl FnOnce(&mut Shared),
            ) {
                let $it = &self.0;
                let mut $data = $lock;
                while !ready(&$data) && !is_over.load(Relaxed) {
                    let $wakes = &self.1[side];
                    $wait
                }
                change(&mut $data);
                drop($data);
                self.1[1 - side].notify_one();
            }

            fn end(&self, is_over: &AtomicBool) {
                let $it = &self.0;
                let data = $lock; // so that no thread is between its check and its wait
                is_over.store(true, Relaxed);
                drop(data);
                for wakes in &self.1 {
                    let _ = wakes.notify_all();
                }
            }
        })*
    };
}

monitors! {
    Std: std::sync::Mutex<Shared>, std::sync::Condvar, |it| it.lock().expect(POISONED),
        |wakes, data| data = wakes.wait(data).expect(POISONED);
    ParkingLot: parking_lot::Mutex<Shared>, parking_lot::Condvar, |it| it.lock(),
        |wakes, data| wakes.wait(&mut data);
    Usync: usync::Mutex<Shared>, usync::Condvar, |it| it.lock(),
        |wakes, data| wakes.wait(&mut data);
    Ours: consort_sync::Mutex<Shared>, consort_sync::Condvar, |it| it.lock(),
        |wakes, data| wakes.wait(&mut data);
    OfPthread: NativeShared<Pthread>, NativeCondvar<Pthread>, |it| it.lock(),
        |wakes, data| wakes.wait(&mut data);
    OfNsync: NativeShared<Nsync>, NativeCondvar<Nsync>, |it| it.lock(),
        |wakes, data| wakes.wait(&mut data);
    OfAbseil: NativeShared<Abseil>, NativeCondvar<Abseil>, |it| it.lock(),
        |wakes, data| wakes.wait(&mut data);
}
