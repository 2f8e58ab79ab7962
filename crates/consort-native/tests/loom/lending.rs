//! A PE lends a buffer to another, which copies it and gives it back. When the job fails the lender
//! leaves without waiting for that, and uses the buffer again: never while the other copies.

#![expect(unsafe_code, reason = "shares a buffer as lending does, for loom to check")]

use std::sync::{
    Arc,
    atomic::Ordering::{Acquire, Relaxed, Release, SeqCst},
};

use consort_native::{Accessing, line::Line};
use loom::{
    cell::UnsafeCell,
    sync::atomic::{AtomicBool, fence},
    thread::{spawn, yield_now},
};

/// What [`Accessing`] does, so that a model can also run with a worse one.
trait Flag: Default + Send + Sync + 'static {
    /// Runs `copy` unless the job has failed, and says whether it did.
    fn access(&self, poisoned: &AtomicBool, copy: impl FnOnce()) -> bool;
    fn drain(&self);
}

impl Flag for Accessing {
    fn access(&self, poisoned: &AtomicBool, copy: impl FnOnce()) -> bool {
        let access = self.enter(poisoned);
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
    fn access(&self, poisoned: &AtomicBool, copy: impl FnOnce()) -> bool {
        self.0.store(true, Relaxed);
        if ENTER {
            fence(SeqCst);
        }
        let sound = !poisoned.load(Relaxed);
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

/// A lender that drains nothing.
#[derive(Default)]
struct Careless(Accessing);

impl Flag for Careless {
    fn access(&self, poisoned: &AtomicBool, copy: impl FnOnce()) -> bool {
        self.0.access(poisoned, copy)
    }

    fn drain(&self) {}
}

#[derive(Default)]
struct Shared<F> {
    loan: Line,
    /// Word 0: leases given back.
    leases: Line,
    accessing: F,
    poisoned: AtomicBool,
    buffer: UnsafeCell<()>,
}

// SAFETY: loom fails the model when two threads access the buffer at once, which is the point.
unsafe impl<F: Sync> Sync for Shared<F> {}

impl<F: Flag> Shared<F> {
    /// Lends, and fails the job itself where `fails` says so: a PE that panics in a call.
    fn lend(&self, fails: bool) {
        self.buffer.with_mut(|_| ());
        self.loan.publish(1);
        if fails {
            self.poisoned.store(true, Release);
        }
        while self.leases.counter(0).load(Acquire) == 0 {
            if self.poisoned.load(Relaxed) {
                self.accessing.drain();
                break;
            }
            yield_now();
        }
        self.buffer.with_mut(|_| ());
    }

    fn borrow(&self) {
        while self.loan.word() == 0 {
            if self.poisoned.load(Relaxed) {
                return;
            }
            yield_now();
        }
        if self.accessing.access(&self.poisoned, || self.buffer.with(|_| ())) {
            self.leases.counter(0).fetch_add(1, Release);
        }
    }
}

/// A job that nobody fails.
fn in_peace<F: Flag>() {
    loom::model(|| {
        let shared = Arc::new(Shared::<F>::default());
        let of_borrower = Arc::clone(&shared);
        let borrower = spawn(move || of_borrower.borrow());
        shared.lend(false);
        borrower.join().expect("it ends well");
    });
}

/// The lender fails the job and leaves.
fn lender_fails<F: Flag>() {
    loom::model(|| {
        let shared = Arc::new(Shared::<F>::default());
        let of_borrower = Arc::clone(&shared);
        let borrower = spawn(move || of_borrower.borrow());
        shared.lend(true);
        borrower.join().expect("it ends well");
    });
}

/// A third PE fails the job.
fn another_fails<F: Flag>() {
    loom::model(|| {
        let shared = Arc::new(Shared::<F>::default());
        let (of_borrower, of_other) = (Arc::clone(&shared), Arc::clone(&shared));
        let borrower = spawn(move || of_borrower.borrow());
        let other = spawn(move || of_other.poisoned.store(true, Release));
        shared.lend(false);
        borrower.join().expect("it ends well");
        other.join().expect("it ends well");
    });
}

#[test]
fn the_lender_waits_for_the_borrower() {
    in_peace::<Accessing>();
}

#[test]
fn a_lender_that_fails_never_leaves_during_a_copy() {
    lender_fails::<Accessing>();
    lender_fails::<Fencing<true, true>>();
}

#[test]
fn a_lender_that_sees_poison_never_leaves_during_a_copy() {
    another_fails::<Accessing>();
}

#[test]
#[should_panic(expected = "Causality violation")]
fn without_the_borrowers_fence_it_copies_what_is_gone() {
    lender_fails::<Fencing<false, true>>();
}

#[test]
#[should_panic(expected = "Causality violation")]
fn without_the_lenders_fence_it_leaves_during_a_copy() {
    lender_fails::<Fencing<true, false>>();
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_lender_that_drains_nothing_leaves_during_a_copy() {
    another_fails::<Careless>();
}
