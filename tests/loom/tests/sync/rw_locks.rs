//! Threads that read, write and upgrade: exclusion, visibility, and owners of lines.

#![expect(unsafe_code, reason = "releases raw locks by hand")]

use std::sync::Arc;

use consort_sync::locks::{Access, QueuedRwLock};
use loom::cell::UnsafeCell;

use crate::{
    changes,
    machine::{LoomMachine, block_on},
    shared::{Change, Changes, Shared},
};

/// A step of a thread.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    /// Enters and leaves.
    Use(Access),
    /// The same if that is possible at once.
    Try(Access),
    /// Writes, then goes on with this access.
    Downgrade(Access),
    /// Reads, becomes the writer, and reads again.
    Upgrade,
    /// The same if there are no readers.
    TryUpgrade,
    /// Checks whether there is a thread inside.
    Look,
    /// Leaves the lock, which this thread enters before the others start.
    Hold(Access),
    /// As the writer: becomes an upgradable reader, writes again, and leaves.
    HoldAgain,
}
use Access::{Read, UpgradableRead, Write};
use Step::{Downgrade, Hold, HoldAgain, Look, Try, TryUpgrade, Upgrade, Use};

/// The steps of each thread, and loom's limit on preemptions.
#[derive(Clone, Copy)]
struct Script {
    threads: &'static [&'static [Step]],
    preemptions: usize,
}

/// A lock and its data, for which only the order of accesses matters.
#[derive(Default)]
struct Guarded {
    lock: QueuedRwLock,
    data: UnsafeCell<()>,
}

impl Guarded {
    fn use_data(&self, access: Access) {
        if access == Write { self.data.with_mut(|_| ()) } else { self.data.with(|_| ()) }
    }

    fn enter(&self, m: &LoomMachine, access: Access) {
        if !block_on(self.lock.enter(m, access)) {
            let Ok(()) = block_on(self.lock.wait(m, access));
        }
        self.use_data(access);
    }

    fn leave(&self, m: &LoomMachine, access: Access) {
        self.use_data(access);
        // SAFETY: the callers are inside, with this access.
        block_on(unsafe { self.lock.change(m, access, None) });
    }

    fn downgrade(&self, m: &LoomMachine, to: Access) {
        // SAFETY: the callers write, which excludes all others.
        block_on(unsafe { self.lock.change(m, Write, Some(to)) });
        self.use_data(to);
    }

    fn upgrade(&self, m: &LoomMachine) {
        // SAFETY: the callers are inside, with this access.
        let Ok(()) = block_on(unsafe { self.lock.upgrade(m) });
        self.use_data(Write);
    }

    fn play(&self, m: &LoomMachine, steps: &[Step]) {
        for step in steps {
            match *step {
                Use(access) => {
                    self.enter(m, access);
                    self.leave(m, access);
                }
                Try(access) => {
                    if block_on(self.lock.try_enter(m, access)) {
                        self.use_data(access);
                        self.leave(m, access);
                    }
                }
                Downgrade(to) => {
                    self.enter(m, Write);
                    self.downgrade(m, to);
                    self.leave(m, to);
                }
                Upgrade => {
                    self.enter(m, UpgradableRead);
                    self.upgrade(m);
                    self.leave(m, Write);
                }
                TryUpgrade => {
                    self.enter(m, UpgradableRead);
                    // SAFETY: as above.
                    let is_upgraded = block_on(unsafe { self.lock.try_upgrade(m) });
                    self.leave(m, if is_upgraded { Write } else { UpgradableRead });
                }
                Look => {
                    block_on(self.lock.is_held(m));
                }
                Hold(access) => self.leave(m, access),
                HoldAgain => {
                    self.downgrade(m, UpgradableRead);
                    self.upgrade(m);
                    self.downgrade(m, UpgradableRead);
                    self.leave(m, UpgradableRead);
                }
            }
        }
    }
}

/// Runs one interleaving. At its end the lock is free, and each line has one owner.
fn interleaving(script: &'static [&'static [Step]], shared: Shared) {
    let shared = Arc::new(shared);
    let guarded = Arc::new(Guarded::default());
    let m = LoomMachine::new(0, &shared);
    match script[0].first() {
        Some(Hold(access)) => guarded.enter(&m, *access),
        Some(HoldAgain) => guarded.enter(&m, Write),
        _ => {}
    }
    let others: Vec<_> = (1..script.len())
        .map(|thread| {
            let (guarded, m) = (Arc::clone(&guarded), LoomMachine::new(thread, &shared));
            loom::thread::spawn(move || {
                guarded.play(&m, script[thread]);
                m.into_lines()
            })
        })
        .collect();
    guarded.play(&m, script[0]);
    let others: Vec<_> =
        others.into_iter().map(|other| other.join().expect("it ends well")).collect();
    assert!(!block_on(guarded.lock.is_held(&m)), "nobody is inside");
    assert!(block_on(guarded.lock.try_enter(&m, Write)), "it is free");
    guarded.leave(&m, Write);
    LoomMachine::check_lines(others.into_iter().chain([m.into_lines()]));
}

fn model(script: Script, change: Option<Change>, possible: &Changes) {
    let memory = (script.threads.len(), false);
    let play = move |shared| interleaving(script.threads, shared);
    changes::explore(script.preemptions, memory, change, possible, play);
}

const fn script(threads: &'static [&'static [Step]]) -> Script {
    Script { threads, preemptions: 2 }
}

/// The cheap ones come first.
const SCRIPTS: &[Script] = &[
    script(&[&[Use(Write)], &[Look]]),
    script(&[&[Use(Write)], &[Use(Write)]]),
    script(&[&[Use(Write)], &[Use(Read)]]),
    script(&[&[Use(Write)], &[Try(Read), Try(Write)]]),
    script(&[&[Use(Read)], &[Upgrade]]),
    script(&[&[Use(Read)], &[TryUpgrade, Use(Read)]]),
    script(&[&[Downgrade(Read)], &[Use(Write)]]),
    script(&[&[Downgrade(UpgradableRead)], &[Use(Read), Use(UpgradableRead)]]),
    script(&[&[Hold(Read)], &[Use(Write)], &[Use(Read)]]),
    script(&[&[Hold(Write)], &[Use(UpgradableRead)], &[Use(Read)]]),
    script(&[&[Hold(Read)], &[Upgrade], &[Use(Write)]]),
    script(&[&[HoldAgain], &[Use(Read)]]),
];

/// The queue only decides which thread asks, so its orderings are not needed. The exchange after
/// the wait has the ordering that the lock needs, but waits always acquire.
#[test]
fn queued_rw_lock() {
    let of_the_queue = [
        "Acquire: m.wait_until(&mine[WAITS], Until::Equals(0)).await?;",
        "Release: let emptied = m.compare_exchange(&self.last, mine.address(), 0, Release).await;",
        "Release: m.store(waits, 0, Release).await; // pairs with the acquire of the next holder's \
         wait",
    ];
    let wait =
        "Acquire: let state = m.wait_until(&self.state, Until::AtMost(access.limit())).await?;";
    changes::check(SCRIPTS, model, &[of_the_queue.as_slice(), &[wait]].concat());
}
