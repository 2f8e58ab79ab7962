//! Threads that lock and try to lock: exclusion, visibility for the holder, and owners of lines.

#![expect(unsafe_code, reason = "releases raw locks by hand")]

use std::sync::Arc;

use consort_sync::locks::{Clh, Cna, Handoff, Hapax, HybLock, Mcs, RawLock, TestAndSet, Ticket};
use loom::cell::UnsafeCell;

use crate::{
    changes,
    machine::{LoomMachine, block_on},
    shared::{Change, Changes, Shared},
};

/// A step of a thread.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    /// Locks a lock, and unlocks it.
    Lock(usize),
    /// The same if nobody holds it.
    Try(usize),
    /// Locks both locks, and unlocks them in the same order.
    Both,
    /// Checks whether a lock is held.
    Look(usize),
    /// Unlocks the first lock, which this thread locks before the others start.
    Hold,
}
use Step::{Both, Hold, Lock, Look, Try};

/// The steps of each thread, and loom's limit on preemptions.
#[derive(Clone, Copy)]
struct Script {
    threads: &'static [&'static [Step]],
    preemptions: usize,
}

/// A lock and its data, for which only the order of accesses matters.
#[derive(Default)]
struct Guarded<R> {
    lock: R,
    data: UnsafeCell<()>,
}

impl<R: RawLock> Guarded<R> {
    fn use_data(&self) {
        self.data.with_mut(|_| ());
    }

    fn unlock(&self, m: &LoomMachine, token: R::Token) {
        // SAFETY: the caller holds the lock with this token.
        let Ok(()) = block_on(unsafe { self.lock.release(m, token) });
    }

    fn lock(&self, m: &LoomMachine) -> R::Token {
        let Ok(token) = block_on(self.lock.acquire(m));
        self.use_data();
        token
    }
}

fn play<R: RawLock>(
    locks: &[Guarded<R>; 2],
    m: &LoomMachine,
    steps: &[Step],
    mut held: Option<R::Token>,
) {
    for step in steps {
        match *step {
            Hold => {
                if let Some(token) = held.take() {
                    locks[0].unlock(m, token);
                }
            }
            Lock(lock) => {
                let token = locks[lock].lock(m);
                locks[lock].unlock(m, token);
            }
            Try(lock) => {
                if let Some(token) = block_on(locks[lock].lock.try_acquire(m)) {
                    locks[lock].use_data();
                    locks[lock].unlock(m, token);
                }
            }
            Look(lock) => {
                block_on(locks[lock].lock.is_held(m));
            }
            Both => {
                let tokens = [&locks[0], &locks[1]].map(|lock| lock.lock(m));
                locks.iter().zip(tokens).for_each(|(lock, token)| {
                    lock.use_data();
                    lock.unlock(m, token);
                });
            }
        }
    }
}

/// Runs one interleaving. At its end the locks are free, and each line has one owner.
fn interleaving<R: RawLock + 'static>(script: &'static [&'static [Step]], shared: Shared) {
    let shared = Arc::new(shared);
    let locks = Arc::new([Guarded::<R>::default(), Guarded::default()]);
    let m = LoomMachine::new(0, &shared);
    let held = script[0].contains(&Hold).then(|| locks[0].lock(&m));
    let others: Vec<_> = (1..script.len())
        .map(|thread| {
            let (locks, m) = (Arc::clone(&locks), LoomMachine::new(thread, &shared));
            loom::thread::spawn(move || {
                play(&locks, &m, script[thread], None);
                m.into_lines()
            })
        })
        .collect();
    play(&locks, &m, script[0], held);
    let others: Vec<_> =
        others.into_iter().map(|other| other.join().expect("it ends well")).collect();
    let mut locks = Arc::into_inner(locks).expect("the threads have ended");
    for guarded in &mut locks {
        assert!(!block_on(guarded.lock.is_held(&m)), "nobody holds it");
        let token = block_on(guarded.lock.try_acquire(&m)).expect("it is free");
        guarded.use_data();
        guarded.unlock(&m, token);
        guarded.lock.retire(&m);
    }
    LoomMachine::check_lines(others.into_iter().chain([m.into_lines()]));
}

fn model<R: RawLock + 'static>(script: Script, change: Option<Change>, possible: &Changes) {
    let memory = (script.threads.len(), R::NAME == TestAndSet::NAME);
    let play = move |shared| interleaving::<R>(script.threads, shared);
    changes::explore(script.preemptions, memory, change, possible, play);
}

fn check<R: RawLock + 'static>(of_this_lock: &[Script], not_needed: &[&str]) {
    changes::check(&[SCRIPTS, of_this_lock].concat(), model::<R>, not_needed);
}

const fn script(threads: &'static [&'static [Step]]) -> Script {
    Script { threads, preemptions: 2 }
}

/// The cheap ones come first.
const SCRIPTS: &[Script] = &[
    script(&[&[Lock(0)], &[Look(0)]]),
    script(&[&[Lock(0)], &[Try(0), Lock(0)]]),
    script(&[&[Lock(0), Try(0)], &[Lock(0)]]),
    script(&[&[Both], &[Both]]),
    script(&[&[Lock(0), Lock(1)], &[Lock(1), Lock(0)]]),
    script(&[&[Lock(0), Lock(0)], &[Lock(0), Lock(0)]]),
    script(&[&[Lock(0)], &[Try(0)], &[Lock(0)]]),
    script(&[&[Lock(0)], &[Lock(0)], &[Lock(0)]]),
];

/// Two threads meet in the queue, and the first one leaves it quickly. The number of releases, and
/// the time at which a thread is overdue, only determine when the lock is handed over. The queue
/// itself need not order anything, because a thread that leaves it has the lock. Two preemptions
/// suffice for each change to fail.
#[test]
fn handoff() {
    let threads: &[&[_]] = &[&[Hold], &[Lock(0)], &[Lock(0)]];
    let not_needed = [
        "Whole: m.store(&first[OVERDUE], m.now_ns() + LONGEST_TURN_NS, Relaxed).await;",
        "Whole: m.store(&self.releases, releases.wrapping_add(1), Relaxed).await;",
        "Acquire: m.wait_until(&mine[WAITS], Until::Equals(0)).await?;",
        "Release: m.store(waits, 0, Release).await; // pairs with the acquire of the next holder's wait",
    ];
    check::<Handoff>(&[Script { threads, preemptions: 2 }], &not_needed);
}

/// The exchange after the wait has the ordering that the lock needs, but waits always acquire.
#[test]
fn test_and_set() {
    check::<TestAndSet>(&[], &["Acquire: m.wait_until(&self.held, Until::Equals(0)).await?;"]);
}

#[test]
fn ticket() {
    check::<Ticket>(&[], &[]);
}

#[test]
fn mcs() {
    check::<Mcs>(&[], &[]);
}

/// An attempt finds a free node that its thread then reuses. The attempt is abandoned, and the next
/// thread continues at that node.
#[test]
fn clh() {
    let attempt = script(&[&[Lock(0), Lock(0), Lock(0)], &[Try(0), Lock(0)]]);
    let another = script(&[&[Lock(0), Lock(0), Lock(0)], &[Try(0)], &[Lock(0)]]);
    check::<Clh>(&[attempt, another], &[]);
}

/// The threads 0 and 2 are on one NUMA node. Thread 1 moves to the remote queue, from which it
/// returns when the main queue is empty, or when the lock has been handed over often enough. With
/// thread 3 the remote queue gets longer.
///
/// When the remote queue becomes the main one, a release orders the two stores to the link of its
/// last node: 0, and the next thread to arrive. Loom gives them this order anyway.
#[test]
fn cna() {
    let remote = script(&[&[Hold, Lock(0)], &[Lock(0)], &[Lock(0)]]);
    let longer = Script { threads: &[&[Hold], &[Lock(0)], &[Lock(0)], &[Lock(0)]], preemptions: 1 };
    let becomes_main =
        "Release: if m.compare_exchange(&self.last, mine.address(), last, Release).await.is_ok() {";
    check::<Cna>(&[remote, longer], &[becomes_main]);
}

/// The exchange that clears a word may fail. Then no thread waits there.
#[test]
fn hapax() {
    let cleared = "Whole: let _ = m.compare_exchange(shared, hapax, NOBODY, Relaxed).await;";
    check::<Hapax>(&[], &[cleared]);
}

#[test]
fn hyblock() {
    check::<HybLock>(&[], &[]);
}
