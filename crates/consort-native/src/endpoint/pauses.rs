//! What a PE does between polls of what it waits for, once polling has not helped: it moves its
//! nonblocking calls on, looks what its peers do, yields, sleeps.

use std::{
    rc::Weak,
    time::{Duration, Instant},
};

use super::{
    LOOK_AROUND, POLLS_PER_PROGRESS,
    identity::{Endpoint, Pe},
};
use crate::{
    progress::{deadlock, executor::Idle, policy::Waiting},
    state::parker::Epoch,
};

/// Polls between yields.
const POLLS_PER_YIELD: u32 = 100;

/// Yields before a PE sleeps, where it may.
const YIELDS_BEFORE_SLEEP: u32 = 2_000;

/// How long a PE sleeps before it looks around, in case a peer has left without a word.
const SLEEP: Duration = Duration::from_millis(20);

/// The pauses of one wait.
pub(super) struct Pauses<'e> {
    endpoint: &'e Endpoint,
    since: Option<Instant>,
    looked: u32,
    /// When calls were last compared while the helper polled.
    compared: Option<Instant>,
    yields: u32,
    /// Where it has announced that it is about to sleep.
    announced: Option<Epoch>,
    /// Whether a message would wake it.
    sleeps: bool,
    /// At the last look nobody was left to send anything.
    alone: bool,
    /// The call that it waits in, or for all to have left.
    call: Option<u64>,
    /// Whether the others know.
    told: bool,
    /// Polls so far, in pauses that were for operations alone.
    spun: u32,
    /// Polls between those of operations; one, where they are what is waited for.
    polls: u32,
}

impl<'e> Pauses<'e> {
    /// Those of a wait for what the PE's own nonblocking calls bring about.
    pub(super) fn for_own_calls(endpoint: &'e Endpoint, call: u64) -> Self {
        Self { polls: 1, ..Self::new(endpoint, true, Some(call)) }
    }

    pub(super) fn new(endpoint: &'e Endpoint, sleeps: bool, call: Option<u64>) -> Self {
        Self {
            endpoint,
            since: None,
            looked: 0,
            compared: None,
            yields: 0,
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
    /// Compares calls with the peers, every few milliseconds, where that is all that may be done.
    fn compare_calls(&mut self) {
        let now = Instant::now();
        let compared = *self.compared.get_or_insert(now);
        if now - compared >= LOOK_AROUND && !self.endpoint.job.is_poisoned() {
            self.compared = Some(now);
            self.endpoint.check_peers();
        }
    }

    /// Compares calls with the peers, and looks for those that wait or have finished, every few
    /// milliseconds.
    #[cold]
    fn look_around(&mut self) {
        let waited = self.since.get_or_insert_with(Instant::now).elapsed();
        if waited < LOOK_AROUND * (self.looked + 1) {
            return;
        }
        self.looked += 1;
        let Endpoint { job, calls, .. } = self.endpoint;
        let group = self.endpoint.group();
        if job.is_poisoned() {
            return;
        }
        // The second look: what a peer sent before it finished has been polled for since the first.
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
    /// Pauses, there being no operations to poll.
    fn pause_alone(&mut self) -> u32 {
        for callback in self.endpoint.pe.callbacks.borrow().iter().filter_map(Weak::upgrade) {
            callback();
        }
        self.look_around();
        let job = &self.endpoint.job;
        let parker = &self.endpoint.state().parker;
        match job.config().waiting {
            Waiting::Spin => POLLS_PER_YIELD,
            Waiting::SpinYieldPark if self.sleeps && self.yields >= YIELDS_BEFORE_SLEEP => {
                match self.announced.take() {
                    Some(epoch) => parker.sleep(epoch, SLEEP, job.scope()),
                    None => self.announced = Some(parker.prepare()),
                }
                0
            }
            Waiting::SpinYield | Waiting::SpinYieldPark => {
                self.yields += 1;
                std::thread::yield_now();
                let config = job.config();
                if config.pes <= config.cores { POLLS_PER_YIELD } else { 0 }
            }
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
            // The helper polls them, perhaps for long. That peers wait, or have finished, is only
            // looked at by who has looked for what they may have sent.
            self.compare_calls();
            std::thread::yield_now();
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
        if let Some(epoch) = self.announced {
            self.endpoint.state().parker.cancel(epoch);
        }
        if self.told {
            deadlock::clear(&self.endpoint.job, self.endpoint.pe.rank);
        }
    }
}
