//! Pauses of a wait that polling alone has not ended: the PE polls its nonblocking calls, checks
//! its peers, yields and sleeps.

use std::{
    cell::Cell,
    rc::Weak,
    thread,
    time::{Duration, Instant},
};

use super::{
    identity::{Endpoint, Pe},
    wait_counts::Waits,
};
use crate::{
    call::view::CallView, far::progress::Received, progress::deadlock, state::heartbeat::Awaited,
    team::notify::MemberFence,
};
use consort_machine::wait::{
    executor::Idle,
    policy::Waiting,
    sleepers::Sleeper,
    spin_budget::{POLLS_PER_YIELD, SLEEP, Yields, nap_after},
};

/// How long a wait in a job with far PEs yields without receiving anything before it sleeps.
const FAR_YIELDS: Duration = Duration::from_millis(1);

/// The number of polls of a wait between two polls of the operations, if there are any.
const POLLS_PER_PROGRESS: u32 = 32;

/// The number of polls between two looks for packets of far PEs. A packet most likely brings what
/// the wait is for.
const POLLS_PER_LOOK: u32 = 4;
/// After this many looks that found something, the wait also pauses once.
const LOOKS_PER_PAUSE: u32 = 16;

/// The consequence for a wait that reaches its limit.
enum Expiry<'e> {
    /// The job fails.
    FailsJob,
    /// The wait ends.
    EndsWait(&'e Cell<bool>),
}

/// The event that ends a wait, other than a failure.
enum AwaitedEvent<'e> {
    /// The event that a blocking call waits for.
    Call(&'e CallView<'e>),
    /// The completion of the PE's own operations.
    Operations,
    Credits,
    /// A change of a word that any PE may change.
    Word,
    /// Notifications of asynchronous broadcasts.
    Notifications,
}

pub(super) struct Backoff<'e> {
    endpoint: &'e Endpoint,
    /// The yields, after the wait has paused.
    paused: Option<Yields>,
    checks: u32,
    /// When calls were last compared while the helper thread was polling the operations.
    compared: Option<Instant>,
    /// The sleep that the PE has announced.
    announced: Option<Sleeper<'e>>,
    /// The requests to far peers. They are sent when a check finds that no peer can send anything
    /// any more.
    fence: Option<MemberFence<'e>>,
    /// The call in which the PE waits, or which it waits for all PEs to leave; `None` outside of
    /// calls.
    call: Option<u64>,
    awaited: AwaitedEvent<'e>,
    /// Whether this PE has published its wait, for deadlock detection.
    has_published: bool,
    /// The limit of the wait, and what happens when the wait reaches it.
    limit: Option<(Duration, Expiry<'e>)>,
    /// The number of polls so far in pauses that only polled operations.
    spun: u32,
    /// The number of polls of the wait between polls of operations; 1 if the wait is for an
    /// operation.
    polls: u32,
    /// The number of polls of the wait from its last pause, or its beginning, to the next pause.
    polls_to_pause: u32,
    waits: Waits,
}

impl<'e> Backoff<'e> {
    pub(super) fn new(endpoint: &'e Endpoint, call: Option<u64>) -> Self {
        Self {
            endpoint,
            paused: None,
            checks: 0,
            compared: None,
            announced: None,
            fence: None,
            call,
            awaited: AwaitedEvent::Notifications,
            has_published: false,
            limit: endpoint.pe.limit.get().map(|limit| (limit, Expiry::FailsJob)),
            spun: 0,
            polls: POLLS_PER_PROGRESS,
            polls_to_pause: 1 + endpoint.polls(),
            waits: Waits { paused: 1, ..Waits::default() },
        }
    }

    /// For a wait that ends after `limit`, if there is a limit. It then sets `is_over`, unless the
    /// wait fails before.
    pub(super) fn within(mut self, limit: Option<Duration>, is_over: &'e Cell<bool>) -> Self {
        if let Some(limit) = limit
            && self.limit.as_ref().is_none_or(|(fails, _)| limit <= *fails)
        {
            self.limit = Some((limit, Expiry::EndsWait(is_over)));
        }
        self
    }

    /// For a wait in a blocking call.
    pub(super) fn in_call(mut self, call: &'e CallView<'_>) -> Self {
        self.awaited = AwaitedEvent::Call(call);
        self
    }

    /// For a wait for credits.
    pub(super) fn for_credits(mut self) -> Self {
        self.awaited = AwaitedEvent::Credits;
        self
    }

    /// For a wait for a word that any PE may change.
    pub(super) fn for_word(mut self) -> Self {
        self.awaited = AwaitedEvent::Word;
        self
    }

    /// For a wait for the PE's own nonblocking calls: each pause polls them.
    pub(super) fn for_operations(mut self) -> Self {
        self.awaited = AwaitedEvent::Operations;
        self.polls = 1;
        self.polls_to_pause = 2;
        self
    }
}

impl Backoff<'_> {
    /// Compares this PE's calls with its peers' at each check interval. A pause makes only this
    /// check while another thread polls the operations or receives packets.
    fn compare_calls(&mut self) {
        let now = Instant::now();
        let compared = *self.compared.get_or_insert(now);
        if now - compared >= self.endpoint.job.config().check_interval()
            && !self.endpoint.job.is_poisoned()
        {
            self.compared = Some(now);
            self.endpoint.check_peers();
        }
    }

    /// Yields while another thread polls the operations or receives packets.
    fn yield_to_driver(&mut self) {
        self.compare_calls();
        let begun = Instant::now();
        thread::yield_now();
        self.waits.note_yield(begun.elapsed());
    }

    /// Returns whether a wait for a word may end without a peer: by a time-out, or by another
    /// thread with a handle to this PE's memory.
    fn may_end_without_peer(&self) -> bool {
        let has_clock = matches!(self.limit, Some((_, Expiry::EndsWait(_))));
        self.is_for_word() && (has_clock || !self.endpoint.pe.shared_handles.is_zero())
    }

    fn is_for_word(&self) -> bool {
        matches!(self.awaited, AwaitedEvent::Word)
    }

    /// Returns what ends the wait in its call, as far as deadlock detection may rely on it.
    fn awaited_change(&self) -> Awaited {
        match self.awaited {
            AwaitedEvent::Call(call) => call.awaited_word().map_or(Awaited::Unknown, Awaited::Word),
            AwaitedEvent::Operations => Awaited::Completion,
            AwaitedEvent::Credits => Awaited::Credits,
            AwaitedEvent::Word | AwaitedEvent::Notifications => Awaited::Unknown,
        }
    }

    /// Ends the wait if it has reached its limit.
    fn expire(&mut self, waited: Duration) {
        if let Some((limit, expiry)) = self.limit.take_if(|(limit, _)| waited >= *limit) {
            match expiry {
                Expiry::FailsJob => self.endpoint.group().time_out(self.call, limit),
                Expiry::EndsWait(is_over) => is_over.set(true),
            }
        }
    }

    /// At each check interval, compares calls with the peers', and looks for peers that wait or
    /// have finished.
    #[cold]
    fn run_checks(&mut self, waited: Duration) {
        let Endpoint { job, calls, .. } = self.endpoint;
        if waited < job.config().check_interval() * (self.checks + 1) {
            return;
        }
        self.checks += 1;
        let group = self.endpoint.group();
        if job.is_poisoned() {
            return;
        }
        // This is the last check. Since the first check, this PE has polled for everything that a
        // peer sent before it finished. Then it has polled its operations, which may have used what
        // arrived. The far peers had to reply first, because another process of this node may have
        // recorded that a far peer has finished.
        if self.fence.as_mut().is_some_and(MemberFence::is_over) {
            return group.abandon(self.call, self.awaited_change());
        }
        if self.fence.is_none() && !self.may_end_without_peer() && group.is_alone() {
            self.fence = Some(group.fence_far_members());
        }
        if !self.may_end_without_peer() {
            group.check_present(self.call, waited);
        }
        if calls.get() > 0 {
            self.endpoint.check_peers();
        }
        let publishes = match &self.limit {
            Some((_, Expiry::EndsWait(_))) => false, // the wait ends by itself
            _ => self.is_for_word() || self.call.is_some(),
        };
        if publishes {
            self.has_published = true;
            let Pe { rank: me, detector, shared_handles, .. } = &*self.endpoint.pe;
            let shares = !shared_handles.is_zero();
            let call = self.call.map(|call| (call, self.awaited_change()));
            detector.borrow_mut().note_poll(job, *me, group, call, shares);
        }
    }
}

impl Backoff<'_> {
    /// Pauses without polling operations.
    fn pause_without_operations(&mut self) -> u32 {
        for callback in self.endpoint.pe.callbacks.borrow().iter().filter_map(Weak::upgrade) {
            callback();
        }
        let config = self.endpoint.job.config();
        let yields = || Yields::new(self.endpoint.pe.budget.get());
        let waited = self.paused.get_or_insert_with(yields).waited();
        self.run_checks(waited);
        self.expire(waited);
        let Some(yields) = self.paused.as_mut().filter(|_| config.waiting != Waiting::Spin) else {
            return POLLS_PER_YIELD;
        };
        if config.waiting == Waiting::SpinYieldPark && should_sleep(self.endpoint, yields, waited) {
            self.announce_or_sleep(waited);
            return 0;
        }
        let Endpoint { job, pe, .. } = self.endpoint;
        let others_compete = || job.parking_slot(pe.rank).has_competitors();
        self.waits.note_yield(yields.yield_now(others_compete));
        if yields.are_contended() {
            self.endpoint.leave_shared_processor();
        }
        if config.fits() { POLLS_PER_YIELD } else { 0 }
    }

    /// Announces a sleep, or sleeps if it has already been announced.
    fn announce_or_sleep(&mut self, waited: Duration) {
        let Endpoint { job, pe, .. } = self.endpoint;
        let left =
            self.limit.as_ref().map_or(Duration::MAX, |(limit, _)| limit.saturating_sub(waited));
        let Some(sleeper) = self.announced.take() else {
            self.announced = Some(job.parking_slot(pe.rank).announce());
            return;
        };
        if let Some(yields) = &mut self.paused {
            yields.note_sleep();
        }
        self.endpoint.leave_shared_processor();
        let most = match job.silence() {
            None => {
                let next = job.config().check_interval() * (self.checks + 1);
                SLEEP.max(next.saturating_sub(waited))
            }
            // Packets of a far PE wake no thread until some thread has looked for them.
            Some(silence) => nap_after(waited.min(silence)),
        };
        let begun = Instant::now();
        sleeper.sleep(most.min(left));
        self.waits.note_sleep(begun.elapsed());
    }
}

impl Endpoint {
    /// Returns the number of polls before the first pause of a wait. It is small if there are
    /// operations, because a pause polls them.
    #[inline(always)]
    pub(super) fn polls(&self) -> u32 {
        let Pe { engine, budget, .. } = &*self.pe;
        let polls = budget.get().polls();
        match () {
            () if engine.is_idle() => polls,
            () if self.job.has_far() => 0, // the first pause sends packets
            () => POLLS_PER_PROGRESS.min(polls),
        }
    }

    fn leave_shared_processor(&self) {
        self.job.leave_shared_processor(self.pe.rank, self.calls(), &self.pe.moves);
    }
}

/// Returns whether it is time to sleep. A wait for far PEs keeps yielding, regardless of earlier
/// waits, because their packets wake no thread. A call may have many such waits.
fn should_sleep(endpoint: &Endpoint, yields: &mut Yields, waited: Duration) -> bool {
    let Endpoint { job, pe, .. } = endpoint;
    match job.silence() {
        None => yields.are_over(waited, || job.parking_slot(pe.rank).has_competitors()),
        Some(silence) => waited.min(silence) >= FAR_YIELDS,
    }
}

impl Backoff<'_> {
    /// Pauses in a job with far PEs. The first pause sends what far PEs may wait for. Each later
    /// pause looks for what they have sent. It yields if there was nothing, because a look takes as
    /// long as a yield.
    fn pause_far(&mut self) -> u32 {
        if self.spun == 0 {
            self.endpoint.job.flush_now();
        } else {
            match self.receive() {
                // This may be what the PE waits for. Now and then pause too, so that limits hold
                // even if packets keep coming.
                Received::Something if !self.spun.is_multiple_of(LOOKS_PER_PAUSE) => {}
                Received::Something | Received::Nothing => {
                    self.pause_without_operations();
                }
                Received::Busy => self.yield_to_driver(),
            }
        }
        self.spun = self.spun.saturating_add(1);
        self.polls.min(POLLS_PER_LOOK)
    }

    /// Looks for what far PEs have sent, and polls the other operations if there are any.
    fn receive(&self) -> Received {
        let Endpoint { job, pe, .. } = self.endpoint;
        match pe.engine.has_only(1) {
            true => job.look(),
            false if self.endpoint.poll_operations() => Received::Nothing,
            false => Received::Busy,
        }
    }
}

impl Backoff<'_> {
    /// Pauses in the way that the PE's operations allow. Returns how often to poll until the next
    /// pause.
    fn pause_once(&mut self) -> u32 {
        let Pe { engine, budget, .. } = &*self.endpoint.pe;
        if engine.is_idle() {
            return self.pause_without_operations();
        }
        if self.endpoint.job.has_far() {
            return self.pause_far();
        }
        if !self.endpoint.poll_operations() {
            // The helper thread polls the operations, perhaps for long. Only a PE that has itself
            // polled for messages may conclude from waiting or finished peers that no message will
            // come. So this PE only compares calls.
            let yields = || Yields::new(budget.get());
            let waited = self.paused.get_or_insert_with(yields).waited();
            self.expire(waited);
            self.yield_to_driver();
            return POLLS_PER_PROGRESS;
        }
        self.spun = self.spun.saturating_add(self.polls);
        if self.spun < budget.get().polls() {
            return self.polls;
        }
        self.pause_without_operations().min(self.polls)
    }
}

impl Idle for Backoff<'_> {
    #[cold]
    #[inline(never)]
    fn pause(&mut self) -> u32 {
        self.waits.polls += u64::from(self.polls_to_pause);
        let polls = self.pause_once();
        self.polls_to_pause = 1 + polls;
        polls
    }
}

impl Drop for Backoff<'_> {
    fn drop(&mut self) {
        let Pe { budget, waits, .. } = &*self.endpoint.pe;
        if let Some(yields) = &self.paused {
            budget.set(yields.next_budget());
            self.waits.time = yields.waited();
        }
        let mut sum = waits.get();
        sum += self.waits;
        waits.set(sum);
        if self.has_published {
            deadlock::clear(&self.endpoint.job, self.endpoint.pe.rank);
        }
    }
}
