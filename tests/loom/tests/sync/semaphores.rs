//! Threads that take permits, with and without a time limit, and threads that give them.

#![expect(unsafe_code, reason = "uses data under a permit")]

use std::sync::{Arc, atomic::Ordering::Relaxed};

use consort_sync::locks::QueuedSemaphore;
use loom::{cell::UnsafeCell, sync::atomic::AtomicU64};

use crate::{
    changes,
    machine::{LoomMachine, block_on},
    shared::{Change, Changes, Shared},
};

/// A step of a thread.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    /// Waits until there are this many permits, and takes them.
    Take(u64),
    /// The same, but may give up.
    TakeInTime(u64),
    /// Takes this many permits if it can at once, and gives them back.
    Try(u64),
    /// Gives this many permits.
    Give(u64),
    /// Waits for the only permit, uses the data, and gives the permit back.
    Use,
}
use Step::{Give, Take, TakeInTime, Try, Use};

#[derive(Clone, Copy)]
struct Script {
    threads: &'static [&'static [Step]],
    preemptions: usize,
}

#[derive(Default)]
struct Permits {
    semaphore: QueuedSemaphore,
    /// The permits given that are not taken.
    left: AtomicU64,
    data: UnsafeCell<u64>,
}

impl Permits {
    fn take(&self, m: &LoomMachine, count: u64, at_ns: Option<u64>) {
        let Ok(has_taken) = block_on(self.semaphore.acquire(m, count, at_ns));
        assert!(has_taken || at_ns.is_some());
        if has_taken {
            self.taken(count);
        }
    }

    fn taken(&self, count: u64) {
        let before = self.left.fetch_sub(count, Relaxed);
        assert!(before >= count, "more permits are taken than were given");
    }

    fn give(&self, m: &LoomMachine, count: u64) {
        self.left.fetch_add(count, Relaxed);
        block_on(self.semaphore.release(m, count));
    }

    fn play(&self, m: &LoomMachine, steps: &[Step]) {
        for step in steps {
            match *step {
                Take(count) => self.take(m, count, None),
                TakeInTime(count) => self.take(m, count, Some(0)),
                Try(count) => {
                    if block_on(self.semaphore.try_acquire(m, count)) {
                        self.taken(count);
                        self.give(m, count);
                    }
                }
                Give(count) => self.give(m, count),
                Use => {
                    self.take(m, 1, None);
                    // SAFETY: the thread has the only permit, as the model checks.
                    self.data.with_mut(|data| unsafe { *data += 1 });
                    self.give(m, 1);
                }
            }
        }
    }
}

/// Runs one interleaving. At its end no thread waits, the permits that nobody took are left, and
/// each line has one owner.
fn interleaving(script: &'static [&'static [Step]], shared: Shared) {
    let shared = Arc::new(shared);
    let permits = Arc::new(Permits::default());
    let m = LoomMachine::new(0, &shared);
    let others: Vec<_> = (1..script.len())
        .map(|thread| {
            let (permits, m) = (Arc::clone(&permits), LoomMachine::new(thread, &shared));
            loom::thread::spawn(move || {
                permits.play(&m, script[thread]);
                m.into_lines()
            })
        })
        .collect();
    permits.play(&m, script[0]);
    let others: Vec<_> =
        others.into_iter().map(|other| other.join().expect("it ends well")).collect();
    let left = permits.left.load(Relaxed);
    assert_eq!(block_on(permits.semaphore.permits(&m)), left, "each permit has one taker");
    assert!(block_on(permits.semaphore.try_acquire(&m, left)), "no thread waits");
    LoomMachine::check_lines(others.into_iter().chain([m.into_lines()]));
}

fn model(script: Script, change: Option<Change>, possible: &Changes) {
    let memory = (script.threads.len(), true);
    let play = move |shared| interleaving(script.threads, shared);
    changes::explore(script.preemptions, memory, change, possible, play);
}

const fn script(threads: &'static [&'static [Step]]) -> Script {
    Script { threads, preemptions: 2 }
}

/// The cheap ones come first.
const SCRIPTS: &[Script] = &[
    script(&[&[Take(1)], &[Give(1)]]),
    script(&[&[Try(1), Take(2)], &[Give(1), Give(1)]]),
    script(&[&[TakeInTime(1)], &[Give(1)]]),
    script(&[&[Give(1), Use], &[Use]]),
    script(&[&[Give(2)], &[Take(1)], &[Take(1)]]),
    script(&[&[Give(1), Give(2)], &[Take(2)], &[TakeInTime(1)]]),
    script(&[&[Give(1)], &[Take(1)], &[TakeInTime(9)]]),
    script(&[&[Give(1), Use], &[Use], &[TakeInTime(2)]]),
];

/// The exchange after the lock's wait has the ordering that the lock needs. The stores are those of
/// the queue, whose own model needs them; all threads here have one tag.
#[test]
fn queued_semaphore() {
    let not_needed = [
        "Acquire: m.wait_until(&self.held, Until::Equals(0)).await?;",
        "Whole: m.store(&mine[NOTIFIED], 0, Relaxed).await;",
        "Whole: m.store(&self.tag, tag, Relaxed).await;",
        "Whole: m.store(&self.last, before, Relaxed).await;",
    ];
    changes::check(SCRIPTS, model, &not_needed);
}
