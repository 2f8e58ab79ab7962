//! Threads that wait for a condition, with and without a time limit, and threads that notify them.

#![expect(unsafe_code, reason = "releases raw locks by hand")]

use std::sync::{Arc, atomic::Ordering::Relaxed};

use consort_machine::{Machine, Word};
use consort_sync::locks::{Mcs, RawLock, WaitQueue};
use loom::sync::atomic::AtomicU64;

use crate::{
    changes,
    machine::{LoomMachine, block_on},
    shared::{Change, Changes, Shared},
};

/// A step of a thread.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    /// Waits until there is a token, and takes it.
    Take,
    /// The same, but gives up if there is none after one wait with a time limit.
    TakeInTime,
    /// Gives this many tokens, and notifies one thread for each.
    Give(u64),
    /// The same, but notifies all threads.
    GiveAll(u64),
}
use Step::{Give, GiveAll, Take, TakeInTime};

/// All threads use one mutex.
const TAG: u64 = 1;

#[derive(Clone, Copy)]
struct Script {
    threads: &'static [&'static [Step]],
    preemptions: usize,
}

#[derive(Default)]
struct Tokens {
    mutex: Mcs,
    queue: WaitQueue,
    tokens: Word,
    /// The number of threads whose time was over.
    late: AtomicU64,
}

impl Tokens {
    fn lock(&self, m: &LoomMachine) -> <Mcs as RawLock>::Token {
        let Ok(token) = block_on(self.mutex.acquire(m));
        token
    }

    fn unlock(&self, m: &LoomMachine, token: <Mcs as RawLock>::Token) {
        // SAFETY: the callers hold the mutex, with this token.
        let Ok(()) = block_on(unsafe { self.mutex.release(m, token) });
    }

    fn count(&self, m: &LoomMachine) -> u64 {
        block_on(m.load(&self.tokens, Relaxed))
    }

    fn take(&self, m: &LoomMachine, gives_up: bool) {
        let mut token = self.lock(m);
        let mut is_late = false;
        while self.count(m) == 0 && !is_late {
            let Ok(place) = block_on(self.queue.append(m, TAG));
            let place = place.expect("all have this tag");
            self.unlock(m, token);
            if gives_up {
                let Ok(is_notified) = block_on(self.queue.wait_until_time(m, place, 0));
                is_late = !is_notified;
            } else {
                let Ok(()) = block_on(self.queue.wait(m, place));
            }
            token = self.lock(m);
        }
        if is_late {
            self.late.fetch_add(1, Relaxed);
        } else {
            block_on(m.store(&self.tokens, self.count(m) - 1, Relaxed));
        }
        self.unlock(m, token);
    }

    fn give(&self, m: &LoomMachine, tokens: u64, all: bool) {
        let token = self.lock(m);
        block_on(m.store(&self.tokens, self.count(m) + tokens, Relaxed));
        self.unlock(m, token);
        if all {
            let Ok(_) = block_on(self.queue.notify(m, usize::MAX));
        } else {
            for _ in 0..tokens {
                let Ok(notified) = block_on(self.queue.notify(m, 1));
                assert!(notified <= 1);
            }
        }
    }

    fn play(&self, m: &LoomMachine, steps: &[Step]) {
        for step in steps {
            match *step {
                Take => self.take(m, false),
                TakeInTime => self.take(m, true),
                Give(tokens) => self.give(m, tokens, false),
                GiveAll(tokens) => self.give(m, tokens, true),
            }
        }
    }
}

/// Runs one interleaving. At its end the tokens that nobody took are left, and each line has one
/// owner.
fn interleaving(script: &'static [&'static [Step]], shared: Shared) {
    let shared = Arc::new(shared);
    let tokens = Arc::new(Tokens::default());
    let m = LoomMachine::new(0, &shared);
    let others: Vec<_> = (1..script.len())
        .map(|thread| {
            let (tokens, m) = (Arc::clone(&tokens), LoomMachine::new(thread, &shared));
            loom::thread::spawn(move || {
                tokens.play(&m, script[thread]);
                m.into_lines()
            })
        })
        .collect();
    tokens.play(&m, script[0]);
    let others: Vec<_> =
        others.into_iter().map(|other| other.join().expect("it ends well")).collect();
    let Ok(notified) = block_on(tokens.queue.notify(&m, usize::MAX));
    assert_eq!(notified, 0, "no thread is left in the queue");
    assert_eq!(tokens.count(&m), tokens.late.load(Relaxed), "each token has one taker");
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

/// The cheap ones come first. There are as many tokens as takers.
const SCRIPTS: &[Script] = &[
    script(&[&[Take], &[Give(1)]]),
    script(&[&[TakeInTime], &[Give(1)]]),
    script(&[&[Take, Take], &[Give(1), GiveAll(1)]]),
    script(&[&[TakeInTime, TakeInTime], &[Give(1), Give(1)]]),
    script(&[&[GiveAll(2)], &[Take], &[Take]]),
    script(&[&[Give(2)], &[Take], &[TakeInTime]]),
    script(&[&[Give(1), Give(1)], &[TakeInTime], &[TakeInTime]]),
    script(&[&[GiveAll(3)], &[Take], &[TakeInTime, Take]]),
];

/// A notification reads the next node before it sets the word that lets the thread reuse the node;
/// loom does not let that read see a later store. The exchange after the lock's wait has the
/// ordering that the lock needs.
#[test]
fn wait_queue() {
    let not_needed = [
        "Acquire: m.wait_until(&self.held, Until::Equals(0)).await?;",
        "Acquire: m.wait_until(&mine[NOTIFIED], Until::Equals(1)).await?;",
        "Release: m.store(&first[NOTIFIED], 1, Release).await;",
    ];
    changes::check(SCRIPTS, model, &not_needed);
}
