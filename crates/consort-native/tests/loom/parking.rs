//! A PE sleeps until a message, or poison, wakes it. A wake-up that is lost is a deadlock here.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::Ordering::{Acquire, Relaxed, Release, SeqCst},
    },
    time::Duration,
};

use consort_native::{Parker, line::Line};
use loom::{
    sync::atomic::{AtomicBool, fence},
    thread::{Thread, current, park, spawn},
};

/// What a [`Parker`] does, so that a model can also run with a worse one.
trait Parking: Default + Send + Sync + 'static {
    fn settle(&self);
    fn prepare(&self);
    fn cancel(&self);
    fn sleep(&self);
    fn wake(&self);
}

impl Parking for Parker {
    fn settle(&self) {
        self.settle();
    }

    fn prepare(&self) {
        self.prepare();
    }

    fn cancel(&self) {
        self.cancel();
    }

    fn sleep(&self) {
        self.sleep(Duration::MAX);
    }

    fn wake(&self) {
        self.wake();
    }
}

/// A parker that fences where it is told to.
#[derive(Default)]
struct Fencing<const PREPARE: bool, const WAKE: bool> {
    asleep: AtomicBool,
    thread: OnceLock<Thread>,
}

impl<const PREPARE: bool, const WAKE: bool> Parking for Fencing<PREPARE, WAKE> {
    fn settle(&self) {
        self.thread.set(current()).expect("once");
    }

    fn prepare(&self) {
        self.asleep.store(true, Release);
        if PREPARE {
            fence(SeqCst);
        }
    }

    fn cancel(&self) {
        self.asleep.store(false, Relaxed);
    }

    fn sleep(&self) {
        park();
        self.cancel();
    }

    fn wake(&self) {
        if WAKE {
            fence(SeqCst);
        }
        if self.asleep.load(Relaxed)
            && self.asleep.swap(false, Acquire)
            && let Some(thread) = self.thread.get()
        {
            thread.unpark();
        }
    }
}

#[derive(Default)]
struct Pe<P> {
    parker: P,
    inbox: [Line; 2],
    poisoned: AtomicBool,
}

impl<P: Parking> Pe<P> {
    fn send(&self, line: usize) {
        self.inbox[line].publish(1);
        self.parker.wake();
    }

    fn poison(&self) {
        self.poisoned.store(true, Release);
        self.parker.wake();
    }

    /// Looks, prepares to sleep, looks again, sleeps.
    fn sleep_until(&self, arrived: impl Fn(&Self) -> bool, looks_again: bool) {
        self.parker.settle();
        while !arrived(self) {
            self.parker.prepare();
            if looks_again && arrived(self) {
                self.parker.cancel();
                return;
            }
            self.parker.sleep();
        }
    }
}

fn one_message<P: Parking>(looks_again: bool) {
    loom::model(move || {
        let pe = Arc::new(Pe::<P>::default());
        let of_sender = Arc::clone(&pe);
        let sender = spawn(move || of_sender.send(0));
        pe.sleep_until(|pe| pe.inbox[0].word() == 1, looks_again);
        sender.join().expect("it ends well");
    });
}

#[test]
fn a_message_wakes_the_sleeper() {
    one_message::<Parker>(true);
    one_message::<Fencing<true, true>>(true);
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_the_sleepers_fence_a_wake_up_is_lost() {
    one_message::<Fencing<false, true>>(true);
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_the_senders_fence_a_wake_up_is_lost() {
    one_message::<Fencing<true, false>>(true);
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_a_second_look_a_wake_up_is_lost() {
    one_message::<Parker>(false);
}

#[test]
fn two_senders_wake_one_sleeper() {
    loom::model(|| {
        let pe = Arc::new(Pe::<Parker>::default());
        let senders = [0, 1].map(|line| {
            let pe = Arc::clone(&pe);
            spawn(move || pe.send(line))
        });
        pe.sleep_until(|pe| pe.inbox.iter().all(|line| line.word() == 1), true);
        for sender in senders {
            sender.join().expect("it ends well");
        }
    });
}

fn poison_instead_of_a_message(pe: Pe<impl Parking>) {
    let pe = Arc::new(pe);
    let (of_sender, of_poisoner) = (Arc::clone(&pe), Arc::clone(&pe));
    let sender = spawn(move || of_sender.send(0));
    let poisoner = spawn(move || of_poisoner.poison());
    pe.sleep_until(|pe| pe.inbox[1].word() == 1 || pe.poisoned.load(Relaxed), true);
    sender.join().expect("it ends well");
    poisoner.join().expect("it ends well");
}

#[test]
fn poison_wakes_a_sleeper() {
    loom::model(|| poison_instead_of_a_message(Pe::<Parker>::default()));
}

#[test]
#[should_panic(expected = "deadlock")]
fn poison_without_a_fence_leaves_a_sleeper() {
    loom::model(|| poison_instead_of_a_message(Pe::<Fencing<true, false>>::default()));
}
