//! A PE exposes a buffer to another, which copies it and detaches it. When the job fails, the owner
//! leaves without waiting for that, and reuses the buffer, but never while the other copies.

#![expect(unsafe_code, reason = "shares a buffer like a call, so that loom checks it")]

use std::sync::{
    Arc,
    atomic::Ordering::{Acquire, Relaxed, Release, SeqCst},
};

use consort_native::{AccessFlag, Poison, PoisonFlag, line::Line};
use loom::{
    cell::UnsafeCell,
    sync::atomic::{AtomicBool, fence},
    thread::{spawn, yield_now},
};

/// The operations of [`AccessFlag`], so that a model can also run with a worse version.
trait Flag: Default + Send + Sync + 'static {
    /// Runs `copy` unless the job has failed, and returns whether it did.
    fn access(&self, poison: &PoisonFlag, copy: impl FnOnce()) -> bool;
    fn drain(&self);
}

impl Flag for AccessFlag {
    fn access(&self, poison: &PoisonFlag, copy: impl FnOnce()) -> bool {
        let access = self.enter(poison);
        if access.is_ok() {
            copy();
        }
        access.is_ok()
    }

    fn drain(&self) {
        self.drain();
    }
}

/// A flag that is raised with a fence on either side, or without.
#[derive(Default)]
struct Fencing<const ENTER: bool, const DRAIN: bool>(AtomicBool);

impl<const ENTER: bool, const DRAIN: bool> Flag for Fencing<ENTER, DRAIN> {
    fn access(&self, poison: &PoisonFlag, copy: impl FnOnce()) -> bool {
        self.0.store(true, Relaxed);
        if ENTER {
            fence(SeqCst);
        }
        let sound = !poison.is_raised();
        if sound {
            copy();
        }
        self.0.store(false, Release);
        sound
    }

    fn drain(&self) {
        if DRAIN {
            fence(SeqCst);
        }
        while self.0.load(Acquire) {
            yield_now();
        }
    }
}

/// An owner that does not drain.
#[derive(Default)]
struct Careless(AccessFlag);

impl Flag for Careless {
    fn access(&self, poison: &PoisonFlag, copy: impl FnOnce()) -> bool {
        self.0.access(poison, copy)
    }

    fn drain(&self) {}
}

#[derive(Default)]
struct Shared<F> {
    exposure: Line,
    /// Word 0: the number of detached exposures.
    detached: Line,
    accessing: F,
    poison: Poison<0>,
    buffer: UnsafeCell<()>,
}

// SAFETY: loom fails the model when two threads access the buffer at the same time, as intended.
unsafe impl<F: Sync> Sync for Shared<F> {}

impl<F: Flag> Shared<F> {
    /// Exposes, and if `fails`, also fails the job: a PE that panics in a call.
    fn expose(&self, fails: bool) {
        self.buffer.with_mut(|_| ());
        self.exposure.publish(1);
        if fails {
            self.poison.claim(&[]);
        }
        while self.detached.counter(0).load(Acquire) == 0 {
            if self.poison.flag().is_raised() {
                self.accessing.drain();
                break;
            }
            yield_now();
        }
        self.buffer.with_mut(|_| ());
    }

    fn attach(&self) {
        while self.exposure.word() == 0 {
            if self.poison.flag().is_raised() {
                return;
            }
            yield_now();
        }
        if self.accessing.access(self.poison.flag(), || self.buffer.with(|_| ())) {
            self.detached.counter(0).fetch_add(1, Release);
        }
    }
}

/// Runs a job that nobody fails.
fn in_peace<F: Flag>() {
    loom::model(|| {
        let shared = Arc::new(Shared::<F>::default());
        let of_peer = Arc::clone(&shared);
        let peer = spawn(move || of_peer.attach());
        shared.expose(false);
        peer.join().expect("it ends well");
    });
}

/// Runs a job that the owner fails and leaves.
fn owner_fails<F: Flag>() {
    loom::model(|| {
        let shared = Arc::new(Shared::<F>::default());
        let of_peer = Arc::clone(&shared);
        let peer = spawn(move || of_peer.attach());
        shared.expose(true);
        peer.join().expect("it ends well");
    });
}

/// Runs a job that a third PE fails.
fn another_fails<F: Flag>() {
    loom::model(|| {
        let shared = Arc::new(Shared::<F>::default());
        let (of_peer, of_other) = (Arc::clone(&shared), Arc::clone(&shared));
        let peer = spawn(move || of_peer.attach());
        let other = spawn(move || of_other.poison.claim(&[]));
        shared.expose(false);
        peer.join().expect("it ends well");
        other.join().expect("it ends well");
    });
}

#[test]
fn the_owner_waits_for_the_peer() {
    in_peace::<AccessFlag>();
}

#[test]
fn failing_owner_never_leaves_during_a_copy() {
    owner_fails::<AccessFlag>();
    owner_fails::<Fencing<true, true>>();
}

#[test]
fn owner_that_sees_poison_never_leaves_during_a_copy() {
    another_fails::<AccessFlag>();
}

#[test]
#[should_panic(expected = "Causality violation")]
fn without_peer_fence_freed_data_is_copied() {
    owner_fails::<Fencing<false, true>>();
}

#[test]
#[should_panic(expected = "Causality violation")]
fn without_owner_fence_owner_leaves_during_a_copy() {
    owner_fails::<Fencing<true, false>>();
}

#[test]
#[should_panic(expected = "Causality violation")]
fn owner_that_drains_nothing_leaves_during_a_copy() {
    another_fails::<Careless>();
}
