//! A PE's state of a team between calls, and the entry of a call.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use consort_collectives::flow::{Flow, Quarter};
use consort_fabric::CallSpec;
use consort_native::{Endpoint, Failure, Group, Operands, Site, StartedCall};

use super::{
    plan_cache::{Cache, Key},
    plans::Ready,
    refinement::Refinements,
    selection::Choices,
};
use crate::{
    Error, Result,
    error::{CallError, LaunchError},
};

/// The PE is in a call of one of its teams.
const INSIDE: u8 = 1;
/// Operations may be pending.
const OPERATIONS: u8 = 2;
/// A panic has dropped asynchronous broadcasts for which peers wait. If it was caught, the job
/// fails.
const ABANDONED: u8 = 4;
/// No thread runs the PE: its program or its region has ended, or its thread has left the job.
const AWAY: u8 = 8;

/// How long a PE waits at its end for other threads to drop handles on its symmetric memory.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long it sleeps between two checks.
const LOOK: Duration = Duration::from_micros(50);

/// A PE's state of a team between calls.
pub(crate) struct State {
    pub(crate) endpoint: Endpoint,
    pub(crate) choices: RefCell<Choices>,
    pub(crate) cache: Cache,
    pub(crate) barrier: RefCell<Option<Arc<dyn Ready>>>,
    flow: RefCell<Flow>,
    /// Refinement of choices, if the launch enabled it.
    pub(crate) refinements: Option<Refinements>,
    /// Calls whose number has none of these bits begin a quarter of the window.
    quarter_mask: Cell<u64>,
    pub(super) synchronized: Cell<bool>,
    /// Whether a nonblocking call was started in this quarter.
    started: Cell<bool>,
    /// The flags [`INSIDE`], [`OPERATIONS`], [`ABANDONED`] and [`AWAY`]. The PE's teams share them.
    presence: Rc<Cell<u8>>,
    /// The number of this state among the PE's states; 0 for the world's.
    number: usize,
    /// The number of freed teams of this state. A state serves one team after another.
    generation: Cell<u32>,
    is_freed: Cell<bool>,
    /// The number of handles on its team; those of freed teams do not count.
    pub(super) handles: Cell<usize>,
}

impl State {
    pub(crate) fn new(endpoint: Endpoint, choices: Choices) -> Self {
        // An operation that never ends serves far PEs.
        let presence = if endpoint.engine().is_idle() { 0 } else { OPERATIONS };
        Self::of(0, endpoint, choices, Rc::new(Cell::new(presence)))
    }

    fn of(number: usize, endpoint: Endpoint, choices: Choices, presence: Rc<Cell<u8>>) -> Self {
        let flow = flow_of(endpoint.group());
        Self {
            quarter_mask: Cell::new(flow.quarter_mask()),
            refinements: choices.online().map(Refinements::new),
            endpoint,
            choices: RefCell::new(choices),
            cache: Cache::default(),
            barrier: RefCell::new(None),
            flow: RefCell::new(flow),
            // No call is pending before the first one.
            synchronized: Cell::new(true),
            started: Cell::new(false),
            presence,
            number,
            generation: Cell::new(0),
            is_freed: Cell::new(false),
            handles: Cell::new(0),
        }
    }

    /// Returns the state of a team that was formed from this one.
    pub(crate) fn of_part(&self, number: usize, part: Group) -> Self {
        let endpoint = self.endpoint.end_of(part);
        let choices = self.choices.borrow().of_group(endpoint.group());
        Self::of(number, endpoint, choices, Rc::clone(&self.presence))
    }

    /// Serves another team, formed from `parent`, after its own was freed.
    pub(crate) fn reuse_for(&self, parent: &Self, part: Group) {
        assert!(self.is_freed.replace(false), "a state serves one team at a time");
        // SAFETY: the team of this state is freed, so none of its calls is alive. Nothing else
        // borrows its group, because this crate never keeps a borrow of a group.
        #[expect(unsafe_code, reason = "reuses the state of a freed team for another")]
        unsafe {
            self.endpoint.reuse_for(part);
        }
        let flow = flow_of(self.endpoint.group());
        self.quarter_mask.set(flow.quarter_mask());
        self.flow.replace(flow);
        let choices = parent.choices.borrow().of_group(self.endpoint.group());
        self.choices.replace(choices);
        self.synchronized.set(true);
        self.started.set(false);
    }

    /// Returns the number of this state among the PE's states.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// Begins a nonblocking call within a call, once the window has room for it.
    pub(super) fn begin(
        &self,
        inside: &Inside<'_>,
        ready: &dyn Ready,
        site: Site,
    ) -> Result<StartedCall> {
        self.make_room(inside)?;
        let call = ready.begin(&self.endpoint, site)?;
        self.started.set(true);
        Ok(call)
    }

    /// Records that an operation is pending, and polls it for the first time.
    pub(super) fn poll_started(&self, _: &Inside<'_>) {
        self.presence.set(INSIDE | OPERATIONS);
        self.endpoint.progress();
    }

    /// Records whether a thread runs the PE. Calls fail while none does.
    pub(crate) fn set_away(&self, is_away: bool) {
        let others = self.presence.get() & !AWAY;
        self.presence.set(if is_away { others | AWAY } else { others });
    }

    /// Returns whether the PE is in a call, so that only an operator can have called this.
    pub(crate) fn is_inside(&self) -> bool {
        self.presence.get() & INSIDE != 0
    }

    /// Returns the number of teams that this state has served before.
    #[inline(always)]
    pub(super) fn current_generation(&self) -> u32 {
        self.generation.get()
    }

    /// Returns whether there is a handle on its team.
    pub(super) fn has_handles(&self) -> bool {
        self.handles.get() > 0
    }

    /// Leaves its team within a call, and drops the team's plans and memory.
    pub(crate) fn leave_team(&self, _: &Inside<'_>) {
        self.is_freed.set(true);
        self.generation.set(self.generation.get().wrapping_add(1));
        self.handles.set(0);
        self.cache.forget();
        self.barrier.take();
        if let Some(refinements) = &self.refinements {
            refinements.clear();
        }
        // SAFETY: no blocking call is alive: every blocking call holds an `Inside`, and the caller
        // holds the only one. A nonblocking call, which a helper may still end, has its own
        // reference to the group. So nothing borrows the group from the endpoint, because this
        // crate never keeps such a borrow.
        #[expect(unsafe_code, reason = "frees the memory of a team")]
        unsafe {
            self.endpoint.leave();
        }
    }

    /// Returns whether its team has been freed.
    pub(crate) fn is_freed(&self) -> bool {
        self.is_freed.get()
    }

    /// Returns the job's error once the job has failed.
    #[inline(always)]
    pub(crate) fn ensure_sound(&self) -> Result<()> {
        let job = self.endpoint.job();
        if job.is_poisoned() { Err(Error::of_job(job)) } else { Ok(()) }
    }

    /// Waits until all nonblocking calls of this PE in this team are complete.
    pub(crate) fn drain(&self) -> Result<()> {
        if self.presence.get() == 0 {
            return Ok(()); // no operation has been pending since the last call
        }
        let _inside = self.go_inside()?;
        let drained = self.endpoint.await_own(u64::MAX);
        drained.map_err(|_| Error::of_job(self.endpoint.job()))
    }

    /// Waits until all PEs of this team have begun the last call of this PE.
    pub(crate) fn await_peers(&self) -> Result<()> {
        let _inside = self.go_inside()?;
        self.endpoint.await_peers().map_err(|_| Error::of_job(self.endpoint.job()))
    }

    /// Waits until no other thread has a handle on this PE's symmetric memory, for at most
    /// [`PATIENCE`].
    pub(crate) fn end_sharing(&self) -> Result<()> {
        let handles = self.endpoint.shared_handles();
        if handles.is_zero() {
            return Ok(());
        }
        let begun = Instant::now();
        while !handles.is_zero() {
            self.ensure_sound()?;
            if begun.elapsed() > PATIENCE {
                return Err(LaunchError::StillShared { handles: handles.get() }.into());
            }
            self.endpoint.progress();
            thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Enters a call. Rejects calls from within a call, and drives operations if there may be any.
    #[inline(always)]
    pub(crate) fn go_inside(&self) -> Result<Inside<'_>> {
        match self.presence.replace(INSIDE) {
            0 => Ok(Inside(&self.presence)),
            before => self.go_inside_from(before, Endpoint::begin_call),
        }
    }

    /// As [`Self::go_inside`], for a test or an operation on memory, which may overtake earlier
    /// puts.
    #[inline(always)]
    pub(crate) fn go_inside_one_sided(&self) -> Result<Inside<'_>> {
        match self.presence.replace(INSIDE) {
            0 => Ok(Inside(&self.presence)),
            before => self.go_inside_from(before, Endpoint::begin_one_sided),
        }
    }

    /// Enters a call when a flag is set: no thread runs the PE, it is already in a call, operations
    /// may be pending, or a panic has dropped asynchronous broadcasts.
    #[cold]
    fn go_inside_from(&self, before: u8, begin: fn(&Endpoint)) -> Result<Inside<'_>> {
        if before & AWAY != 0 {
            self.presence.set(before);
            return Err(CallError::Ended.into());
        }
        self.presence.set(before | INSIDE);
        if before & ABANDONED != 0 {
            self.fail_abandoned();
        }
        if before & INSIDE != 0 {
            return Err(CallError::Reentrant.into());
        }
        let inside = Inside(&self.presence);
        begin(&self.endpoint);
        if self.endpoint.engine().is_idle() {
            self.presence.set(INSIDE);
        }
        Ok(inside)
    }

    /// Records that a panic, while unwinding, drops asynchronous broadcasts for which peers wait.
    /// If nobody catches the panic, the job fails with the panic itself.
    pub(crate) fn abandon(&self) {
        self.presence.set(self.presence.get() | ABANDONED);
    }

    #[cold]
    fn fail_abandoned(&self) -> Error {
        let rank = self.endpoint.rank_in_world();
        let reason =
            "it caught a panic that dropped its asynchronous broadcasts without closing them";
        self.endpoint.job().poison(&Failure::Pe { rank, reason: reason.to_owned() });
        Error::of_job(self.endpoint.job())
    }

    /// Fails if a caught panic has dropped asynchronous broadcasts for which peers wait.
    pub(crate) fn ensure_kept(&self) -> Result<()> {
        if self.presence.get() & ABANDONED == 0 { Ok(()) } else { Err(self.fail_abandoned()) }
    }

    /// Waits until the window has room for another call. Fails once the job has failed.
    #[inline(always)]
    pub(super) fn make_room(&self, _: &Inside<'_>) -> Result<()> {
        self.ensure_sound()?;
        if self.endpoint.calls() & self.quarter_mask.get() == 0 { self.turn() } else { Ok(()) }
    }

    /// Settles credits and expires plans before a call that begins a quarter of the window.
    #[cold]
    fn turn(&self) -> Result<()> {
        if self.refinements.as_ref().is_some_and(|one| one.is_due(self.endpoint.calls())) {
            self.cache.expire(); // so that choices may be refined
        }
        let quarter =
            Quarter { synchronized: self.synchronized.take(), started: self.started.take() };
        let mut turn = self.flow.borrow_mut().turn_after(quarter);
        let is_idle = self.endpoint.engine().is_idle();
        // Without operations, all calls so far are complete, so the credit can be given at once.
        if !is_idle && let Some(credit) = turn.take_credit() {
            self.endpoint.owe(credit);
        }
        // SAFETY: only `turn` drives the view, to its end, and `go_inside` rejects calls from
        // within a call.
        #[expect(unsafe_code, reason = "makes a view for giving and awaiting credits")]
        let view = unsafe { self.endpoint.view(&Operands::NONE) };
        let (calls, quarter_calls) = (self.endpoint.calls(), self.quarter_mask.get() + 1);
        // The first call of the last quarter, or of the one before: a PE that has begun it has
        // given the credits.
        let until = calls.checked_sub(turn.quarters_since() * quarter_calls);
        let mut done = self.endpoint.block_on_view(&view, until, turn.run(&view));
        if !is_idle {
            done = done
                .and_then(|()| self.endpoint.await_own(calls.saturating_sub(3 * quarter_calls)));
        }
        done.map_err(|_| Error::of_job(self.endpoint.job()))
    }

    /// Returns the first call, at least `ahead` calls after number `call`, that begins a quarter of
    /// the window; `u64::MAX` if there is none.
    pub(crate) fn quarter_from(&self, call: u64, ahead: u64) -> u64 {
        let quarter_calls = self.quarter_mask.get() + 1;
        call.saturating_add(ahead).checked_next_multiple_of(quarter_calls).unwrap_or(u64::MAX)
    }

    /// Caches a plan for calls with this key.
    pub(crate) fn keep(&self, call: &CallSpec, key: Key, ready: &Arc<dyn Ready>) {
        self.cache.keep(call.collective, key, ready);
    }
}

fn flow_of(group: &Group) -> Flow {
    Flow::new(group.window(), group.size())
}

/// Marks that the PE is in a call, until it is dropped.
pub(crate) struct Inside<'s>(&'s Cell<u8>);

impl Drop for Inside<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.set(self.0.get() & !INSIDE);
    }
}
