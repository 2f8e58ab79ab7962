//! A PE sleeps until a message or poison wakes it. A lost wake-up is a deadlock here.

use std::{
    sync::{
        Arc,
        atomic::Ordering::{Acquire, Relaxed, Release, SeqCst},
    },
    time::Duration,
};

use consort_machine::{Epoch, Parker, Scope, Sleeper, Sleepers};
use consort_native::line::Line;
use loom::{
    sync::{
        Condvar, Mutex,
        atomic::{AtomicBool, AtomicU32, fence},
    },
    thread::spawn,
};

/// The operations of a [`Parker`], so that a model can also run with a worse version.
trait Parking: Default + Send + Sync + 'static {
    type Epoch<'p>
    where
        Self: 'p;
    fn prepare(&self) -> Self::Epoch<'_>;
    fn cancel<'p>(&'p self, epoch: Self::Epoch<'p>);
    fn sleep<'p>(&'p self, epoch: Self::Epoch<'p>);
    fn wake(&self);
}

impl Parking for Parker {
    type Epoch<'p> = Epoch;

    fn prepare(&self) -> Epoch {
        self.prepare()
    }

    fn cancel(&self, epoch: Epoch) {
        self.cancel(epoch);
    }

    fn sleep(&self, epoch: Epoch) {
        self.sleep(epoch, Duration::MAX, Scope::Process);
    }

    fn wake(&self) {
        self.wake(Scope::Process);
    }
}

/// A parker and the job's count of sleepers, which senders check instead. With `FENCES`, they find
/// a sleeper each time, and fence at the parker.
struct Counted<const FENCES: bool> {
    parker: Parker,
    sleepers: Sleepers,
}

impl<const FENCES: bool> Default for Counted<FENCES> {
    fn default() -> Self {
        let sleepers = Sleepers::default();
        if FENCES {
            sleepers.let_senders_fence();
        }
        Self { parker: Parker::default(), sleepers }
    }
}

impl<const FENCES: bool> Parking for Counted<FENCES> {
    type Epoch<'p> = Sleeper<'p>;

    fn prepare(&self) -> Sleeper<'_> {
        self.sleepers.announce(&self.parker, FENCES, Scope::Process)
    }

    fn cancel<'p>(&'p self, sleeper: Sleeper<'p>) {
        drop(sleeper);
    }

    fn sleep<'p>(&'p self, sleeper: Sleeper<'p>) {
        sleeper.sleep(Duration::MAX);
    }

    fn wake(&self) {
        if self.sleepers.any() {
            self.parker.wake(Scope::Process);
        }
    }
}

/// A parker with optional fences, which wakes all sleepers or one of them. Its word is the number
/// of wake-ups and, in the lowest bit, whether there may be sleepers.
#[derive(Default)]
struct Fencing<const PREPARE: bool, const WAKE: bool, const ALL: bool = true> {
    word: AtomicU32,
    futex: (Mutex<()>, Condvar),
}

impl<const PREPARE: bool, const WAKE: bool, const ALL: bool> Parking
    for Fencing<PREPARE, WAKE, ALL>
{
    type Epoch<'p> = u32;

    fn prepare(&self) -> u32 {
        let word = self.word.fetch_or(1, Relaxed) | 1;
        if PREPARE {
            fence(SeqCst);
        }
        word
    }

    fn cancel(&self, _: u32) {}

    fn sleep(&self, word: u32) {
        let (mutex, condition) = &self.futex;
        let guard = mutex.lock().expect("no panic");
        if self.word.load(Acquire) == word {
            drop(condition.wait(guard).expect("no panic"));
        }
    }

    fn wake(&self) {
        if WAKE {
            fence(SeqCst);
        }
        let word = self.word.load(Relaxed);
        if word & 1 == 1 && self.word.compare_exchange(word, word + 1, Release, Relaxed).is_ok() {
            let (mutex, condition) = &self.futex;
            let guard = mutex.lock().expect("no panic");
            if ALL {
                condition.notify_all();
            } else {
                condition.notify_one();
            }
            drop(guard);
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

    /// Checks, prepares to sleep, checks again, sleeps.
    fn sleep_until(&self, arrived: impl Fn(&Self) -> bool, looks_again: bool) {
        while !arrived(self) {
            let epoch = self.parker.prepare();
            if looks_again && arrived(self) {
                self.parker.cancel(epoch);
                return;
            }
            self.parker.sleep(epoch);
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
    one_message::<Counted<false>>(true);
    one_message::<Counted<true>>(true);
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

/// The PE sleeps until the last of `messages` arrives, and its helper thread until the first one
/// does. If there are two, the helper may withdraw its announcement after the first wake-up, when
/// the PE has announced its next sleep.
fn two_sleepers<P: Parking>(messages: usize) {
    loom::model(move || {
        let pe = Arc::new(Pe::<P>::default());
        let of_helper = Arc::clone(&pe);
        let helper = spawn(move || {
            of_helper.sleep_until(|pe| pe.inbox[0].word() == 1, true);
        });
        let of_sender = Arc::clone(&pe);
        let sender = spawn(move || (0..messages).for_each(|line| of_sender.send(line)));
        pe.sleep_until(|pe| pe.inbox[messages - 1].word() == 1, true);
        helper.join().expect("it ends well");
        sender.join().expect("it ends well");
    });
}

#[test]
fn a_message_wakes_all_sleepers() {
    two_sleepers::<Parker>(1);
    two_sleepers::<Counted<false>>(1);
    two_sleepers::<Counted<true>>(1);
    two_sleepers::<Fencing<true, true>>(1);
}

#[test]
fn sleeper_that_goes_on_leaves_the_other_counted() {
    two_sleepers::<Parker>(2);
    two_sleepers::<Counted<false>>(2);
    two_sleepers::<Counted<true>>(2);
}

#[test]
#[should_panic(expected = "deadlock")]
fn waking_one_sleeper_leaves_the_other() {
    two_sleepers::<Fencing<true, true, false>>(1);
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
    loom::model(|| poison_instead_of_a_message(Pe::<Counted<false>>::default()));
    loom::model(|| poison_instead_of_a_message(Pe::<Counted<true>>::default()));
}

#[test]
#[should_panic(expected = "deadlock")]
fn poison_without_a_fence_leaves_a_sleeper() {
    loom::model(|| poison_instead_of_a_message(Pe::<Fencing<true, false>>::default()));
}
