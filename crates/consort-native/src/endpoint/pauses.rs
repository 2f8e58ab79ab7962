//! Pauses of a wait, after polling alone has not helped: the PE polls its nonblocking calls, checks
//! its peers, yields and sleeps.

use std::{
    rc::Weak,
    thread,
    time::{Duration, Instant},
};

use super::{
    LOOK_AROUND, POLLS_PER_PROGRESS,
    identity::{Endpoint, Pe},
};
use crate::{
    progress::{deadlock, executor::Idle, policy::Waiting},
    state::sleepers::Sleeper,
};

/// Polls between yields.
const POLLS_PER_YIELD: u32 = 100;

/// Yields before a PE sleeps where PEs outnumber the cores: a yield lets another PE go on.
const YIELDS_BEFORE_SLEEP: u32 = 2_000;

/// How long a PE with a core of its own yields before it sleeps, at least and at most.
const PATIENCE: [Duration; 2] = [Duration::from_micros(64), Duration::from_millis(1)];

/// A yield of this length has let another thread run.
const CONTENDED: Duration = Duration::from_micros(3);

/// Yields to other threads before a PE with a core of its own sleeps: it does not have the core.
const CONTENDED_YIELDS: u32 = 4;

/// The shortest and the longest sleep of a wait that nothing ends but the clock. In between it is a
/// given part of the time waited so far.
const NAPS: [Duration; 2] = [Duration::from_micros(60), Duration::from_millis(1)];
const NAP_PART: u32 = 64;

/// The longest sleep before a PE checks its peers, since a peer may die without a message.
const SLEEP: Duration = Duration::from_millis(20);

/// The pauses of one wait.
pub(super) struct Pauses<'e> {
    endpoint: &'e Endpoint,
    since: Option<Instant>,
    looked: u32,
    /// When calls were last compared while the helper thread polled the operations.
    compared: Option<Instant>,
    yields: u32,
    contended: u32,
    /// Whether it has slept.
    slept: bool,
    /// The sleep that the PE has announced.
    announced: Option<Sleeper<'e>>,
    /// Whether a message would wake the PE.
    sleeps: bool,
    /// Whether no peer was left at the last check that could send anything.
    alone: bool,
    /// The call that it waits in, or waits for all PEs to leave; `None` outside of calls.
    call: Option<u64>,
    /// Whether this PE has published its wait, for deadlock detection.
    told: bool,
    /// Polls so far in pauses that only polled operations.
    spun: u32,
    /// Polls of the wait between polls of operations; 1 if the wait is for an operation.
    polls: u32,
}

impl<'e> Pauses<'e> {
    /// The pauses of a wait for the PE's own nonblocking calls.
    pub(super) fn for_own_calls(endpoint: &'e Endpoint, call: u64) -> Self {
        let mut pauses = Self::new(endpoint, true, Some(call));
        pauses.polls = 1;
        pauses
    }

    pub(super) fn new(endpoint: &'e Endpoint, sleeps: bool, call: Option<u64>) -> Self {
        Self {
            endpoint,
            since: None,
            looked: 0,
            compared: None,
            yields: 0,
            contended: 0,
            slept: false,
            announced: None,
            sleeps,
            alone: false,
            call,
            told: false,
            spun: 0,
            polls: POLLS_PER_PROGRESS,
        }
    }
}

impl Pauses<'_> {
    /// Compares calls with the peers, every few milliseconds; for when no other check is allowed.
    fn compare_calls(&mut self) {
        let now = Instant::now();
        let compared = *self.compared.get_or_insert(now);
        if now - compared >= LOOK_AROUND && !self.endpoint.job.is_poisoned() {
            self.compared = Some(now);
            self.endpoint.check_peers();
        }
    }

    /// Every few milliseconds, compares calls with the peers, and looks for peers that wait or have
    /// finished.
    #[cold]
    fn look_around(&mut self, waited: Duration) {
        if waited < LOOK_AROUND * (self.looked + 1) {
            return;
        }
        self.looked += 1;
        let Endpoint { job, calls, .. } = self.endpoint;
        let group = self.endpoint.group();
        if job.is_poisoned() {
            return;
        }
        // The second check: since the first, this PE has polled for all that a peer sent before it
        // finished.
        if self.alone {
            return group.abandon();
        }
        self.alone = group.is_alone();
        if calls.get() > 0 {
            self.endpoint.check_peers();
        }
        if let Some(call) = self.call.filter(|_| job.has_made_teams()) {
            self.told = true;
            let Pe { rank: me, deadlocks, .. } = &*self.endpoint.pe;
            deadlocks.borrow_mut().beat(job, *me, group, call);
        }
    }
}

impl Pauses<'_> {
    /// A pause without operations to poll.
    fn pause_alone(&mut self) -> u32 {
        for callback in self.endpoint.pe.callbacks.borrow().iter().filter_map(Weak::upgrade) {
            callback();
        }
        let waited = self.since.get_or_insert_with(Instant::now).elapsed();
        self.look_around(waited);
        let config = self.endpoint.job.config();
        match config.waiting {
            Waiting::Spin => POLLS_PER_YIELD,
            Waiting::SpinYieldPark if self.is_patience_over(waited) => {
                self.rest(waited);
                0
            }
            Waiting::SpinYield | Waiting::SpinYieldPark => {
                self.yield_core();
                if config.fits() { POLLS_PER_YIELD } else { 0 }
            }
        }
    }

    /// Whether the PE has yielded for long enough.
    fn is_patience_over(&self, waited: Duration) -> bool {
        if self.endpoint.job.config().fits() {
            self.contended >= CONTENDED_YIELDS || waited >= self.endpoint.pe.patience.get()
        } else {
            self.yields >= YIELDS_BEFORE_SLEEP
        }
    }

    fn yield_core(&mut self) {
        let begun = Instant::now();
        thread::yield_now();
        self.contended += u32::from(begun.elapsed() >= CONTENDED);
        self.yields += 1;
    }

    /// Announces a sleep, or sleeps once it is announced.
    fn rest(&mut self, waited: Duration) {
        self.slept = true;
        let Endpoint { job, pe, .. } = self.endpoint;
        let [shortest, longest] = NAPS;
        match self.announced.take() {
            _ if !self.sleeps => thread::sleep((waited / NAP_PART).clamp(shortest, longest)),
            Some(sleeper) => sleeper.sleep(SLEEP, job.scope()),
            None => self.announced = Some(job.announce_sleep(pe.rank)),
        }
    }
}

impl Idle for Pauses<'_> {
    #[cold]
    #[inline(never)]
    fn pause(&mut self) -> u32 {
        let Pe { engine, spins, .. } = &*self.endpoint.pe;
        if engine.is_idle() {
            return self.pause_alone();
        }
        if !self.endpoint.poll_operations() {
            // The helper thread polls the operations, perhaps for long. Only a PE that has itself
            // polled for messages may conclude from waiting or finished peers that none will come;
            // so this one only compares calls.
            self.compare_calls();
            thread::yield_now();
            return POLLS_PER_PROGRESS;
        }
        self.spun = self.spun.saturating_add(self.polls);
        if self.spun < *spins {
            return self.polls;
        }
        self.pause_alone().min(self.polls)
    }
}

impl Drop for Pauses<'_> {
    fn drop(&mut self) {
        // A PE that has slept may as well have slept sooner, and a PE that has not, later.
        if self.since.is_some() {
            let [least, most] = PATIENCE;
            let patience = &self.endpoint.pe.patience;
            let next = if self.slept { patience.get() / 2 } else { patience.get() * 2 };
            patience.set(next.clamp(least, most));
        }
        if self.told {
            deadlock::clear(&self.endpoint.job, self.endpoint.pe.rank);
        }
    }
}
