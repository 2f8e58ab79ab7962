//! Wakes tasks that await requests: one thread of the process sleeps for all of them.
//!
//! A task polls its request again after a fraction of the time that it has waited, within limits.
//! So a long wait takes hardly any processor time, and ends late by only a small fraction of its
//! length.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    task::Waker,
    thread,
    time::{Duration, Instant},
};

use consort_machine::{ProcessToken, discard, nap_after};

/// How long a task polls again immediately.
const BUSY: Duration = Duration::from_micros(200);

/// The wait of one request.
#[derive(Debug)]
pub(super) struct Alarm {
    since: Instant,
    /// The time at which a task is woken, and the task.
    set: Option<(Instant, Waker)>,
}

impl Alarm {
    /// Creates the alarm of a wait that begins.
    pub(super) fn new() -> Self {
        Self { since: Instant::now(), set: None }
    }

    /// Wakes the task after a delay, unless that is already scheduled.
    pub(super) fn set(&mut self, waker: &Waker) {
        let now = Instant::now();
        let waited = now - self.since;
        if waited < BUSY {
            return waker.wake_by_ref();
        }
        let is_set = |(at, set): &(Instant, Waker)| *at > now && set.will_wake(waker);
        if self.set.as_ref().is_some_and(is_set) {
            return;
        }
        let at = now + nap_after(waited);
        match Alarms::of_process() {
            Some(alarms) => {
                self.set = Some((at, waker.clone()));
                alarms.add(at, waker.clone());
            }
            // There is no alarm, so the task polls again immediately.
            None => {
                self.set = None;
                waker.wake_by_ref();
            }
        }
    }
}

/// A task to be woken.
struct Due {
    at: Instant,
    waker: Waker,
}

/// All alarms of the process. A forked child, which does not have the thread, gets new ones.
#[derive(Default)]
struct Alarms {
    /// By time, the earliest on top.
    due: Mutex<BinaryHeap<Reverse<Due>>>,
    changed: Condvar,
}

impl Alarms {
    /// Returns the alarms of this process; `None` if no thread can be started, or if another thread
    /// holds the lock: after a fork, that may be a thread of the parent.
    fn of_process() -> Option<&'static Self> {
        static ALARMS: Mutex<Option<(ProcessToken, Option<&'static Alarms>)>> = Mutex::new(None);
        let mut known = ALARMS.try_lock().ok()?;
        if let Some((process, alarms)) = *known
            && process.is_current()
        {
            return alarms;
        }
        let alarms: &'static Self = Box::leak(Box::default());
        let named = thread::Builder::new().name("consort wakes tasks".to_owned());
        let alarms = named.spawn(|| alarms.run()).ok().map(|_| alarms);
        *known = Some((ProcessToken::current(), alarms));
        alarms
    }

    fn due(&self) -> MutexGuard<'_, BinaryHeap<Reverse<Due>>> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, at: Instant, waker: Waker) {
        let mut due = self.due();
        let is_next = due.peek().is_none_or(|Reverse(next)| at < next.at);
        due.push(Reverse(Due { at, waker }));
        drop(due);
        if is_next {
            self.changed.notify_one();
        }
    }

    /// Wakes tasks when they are due, forever.
    fn run(&self) {
        let mut due = self.due();
        loop {
            let now = Instant::now();
            match due.peek() {
                None => due = self.changed.wait(due).unwrap_or_else(PoisonError::into_inner),
                Some(Reverse(next)) if next.at > now => {
                    let left = next.at - now;
                    let waited = self.changed.wait_timeout(due, left);
                    due = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
                Some(_) => {
                    let next = due.pop();
                    drop(due);
                    if let Some(Reverse(Due { waker, .. })) = next {
                        // An executor's panic must not end this thread.
                        let woken = catch_unwind(AssertUnwindSafe(|| waker.wake()));
                        discard(woken.err());
                    }
                    due = self.due();
                }
            }
        }
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}
