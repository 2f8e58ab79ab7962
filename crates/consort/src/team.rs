//! A team of PEs and its collectives.

use std::{
    any::type_name,
    cell::{Cell, RefCell},
    fmt,
    ops::Deref,
    rc::Rc,
    sync::Arc,
};

use consort_collectives::{
    Algorithm, Plan, PlanError, Setting, Visitor,
    flow::{Flow, Quarter},
    visit,
};
use consort_fabric::{
    Candidate, Capabilities, Collective, Kernel, Mode, Operator, OperatorClass, Pod, Query, Rank,
    Signature, Sync,
};
use consort_native::{Begun, CallNumber, Endpoint, Failure, HeapError, NoNumber, Operands, Part};

use crate::{
    ChosenBy, Error, Result, Symmetric,
    cache::{Cache, Key, Prepared, Ready},
    choices::Choices,
    online::{KindKey, Online},
    symmetric::Element,
    teams::Teams,
};

/// The PE is in a call, of whatever team.
const INSIDE: u8 = 1;
/// There may be flights to move on.
const FLIGHTS: u8 = 2;
/// A panic has taken along what peers wait for: if it was caught, the job fails.
const ABANDONED: u8 = 4;

/// What a team's PE keeps between calls.
pub(crate) struct State {
    pub(crate) endpoint: Endpoint,
    pub(crate) choices: RefCell<Choices>,
    cache: Cache,
    pub(crate) barrier: RefCell<Option<Arc<dyn Ready>>>,
    flow: RefCell<Flow>,
    /// Refines choices, if the launch asked for it.
    online: Option<Online>,
    /// Calls whose number has none of these bits begin a quarter of the window.
    quarter_mask: Cell<u64>,
    synchronized: Cell<bool>,
    /// Whether a nonblocking call was begun in this quarter.
    started: Cell<bool>,
    /// [`INSIDE`], [`FLIGHTS`] and [`ABANDONED`], of the PE and so of all its teams.
    presence: Rc<Cell<u8>>,
    /// Where the PE keeps it; 0 for the world's.
    number: usize,
    /// Teams that have had this state and were freed: it serves one after the other.
    generation: Cell<u32>,
    is_freed: Cell<bool>,
}

/// A hold on the state of a team, which may be freed, and then be another team's.
#[derive(Clone, Copy)]
pub(crate) struct Hold<'p> {
    state: &'p State,
    generation: u32,
}

impl Deref for Hold<'_> {
    type Target = State;

    #[inline(always)]
    fn deref(&self) -> &State {
        self.state
    }
}

/// Some of the PEs of a job, as one of them sees them, with the synchronization modes of its calls.
/// [`Pe::world`](crate::Pe::world) is all of them; [`Team::split`] and others make smaller ones.
///
/// Ranks are those in the team, from 0 on. Calls of different teams have nothing to do with each
/// other, but a PE makes them one after the other: PEs that are in several teams call them in an
/// order that all can follow. If they wait for each other in turn, all get [`Error::Mismatched`].
///
/// Every method is collective unless it says otherwise: all PEs of the team call it, in the same
/// order, with the same root, length, type, operator and modes.
///
/// # Errors
/// Every collective returns [`Error::PeFailed`] when a PE has failed and [`Error::Mismatched`] when
/// PEs made different calls.
///
/// # Panics
/// A collective panics when its operator does. The job has failed then, even if the panic is
/// caught.
#[derive(Clone, Copy)]
pub struct Team<'p> {
    pub(crate) state: Hold<'p>,
    pub(crate) teams: &'p Teams,
    rank: Rank,
    size: u32,
    sync: Sync,
}

/// What a call is, besides its buffers.
pub(crate) struct Shape<'k> {
    collective: Collective,
    root: Option<Rank>,
    bytes: usize,
    symmetric: bool,
    datatype: &'static str,
    element_bytes: usize,
    kernel: Option<(Kernel<'k>, &'static str)>,
    /// Whether other calls are made while it is under way.
    nonblocking: bool,
}

impl State {
    pub(crate) fn new(endpoint: Endpoint, choices: Choices) -> Self {
        Self::of(0, endpoint, choices, Rc::default())
    }

    fn of(number: usize, endpoint: Endpoint, choices: Choices, presence: Rc<Cell<u8>>) -> Self {
        let flow = Flow::new(endpoint.group().window());
        Self {
            quarter_mask: Cell::new(flow.quarter_mask()),
            online: choices.online().map(Online::new),
            endpoint,
            choices: RefCell::new(choices),
            cache: Cache::default(),
            barrier: RefCell::new(None),
            flow: RefCell::new(flow),
            // Nothing is under way before the first call.
            synchronized: Cell::new(true),
            started: Cell::new(false),
            presence,
            number,
            generation: Cell::new(0),
            is_freed: Cell::new(false),
        }
    }

    /// The state of a team made of this one.
    pub(crate) fn of_part(&self, number: usize, part: Part) -> Self {
        let endpoint = self.endpoint.end_of(part);
        let choices = self.choices.borrow().of_team(endpoint.size());
        Self::of(number, endpoint, choices, Rc::clone(&self.presence))
    }

    /// Becomes the state of another team made of `parent`, after its own was freed.
    pub(crate) fn serve_again(&self, parent: &Self, part: Part) {
        assert!(self.is_freed.replace(false), "a state serves one team at a time");
        // SAFETY: its team is freed, so no call of it is alive, and nothing borrows its group,
        // which this crate never keeps a borrow of.
        #[expect(unsafe_code, reason = "gives the state of a freed team to another")]
        unsafe {
            self.endpoint.serve_again(part);
        }
        let flow = Flow::new(self.endpoint.group().window());
        self.quarter_mask.set(flow.quarter_mask());
        self.flow.replace(flow);
        let choices = parent.choices.borrow().of_team(self.endpoint.size());
        self.choices.replace(choices);
        self.synchronized.set(true);
        self.started.set(false);
    }

    /// Where the PE keeps it.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// Whether its team has been freed.
    pub(crate) fn is_freed(&self) -> bool {
        self.is_freed.get()
    }

    /// Fails once the job has failed.
    pub(crate) fn ensure_sound(&self) -> Result<()> {
        let job = self.endpoint.job();
        if job.is_poisoned() { Err(Error::of_job(job)) } else { Ok(()) }
    }

    /// Waits until all nonblocking calls of this PE in this team are complete.
    pub(crate) fn drain(&self) -> Result<()> {
        let _inside = self.go_inside()?;
        let drained = self.endpoint.await_own(u64::MAX);
        drained.map_err(|_| Error::of_job(self.endpoint.job()))
    }

    /// Refuses calls from within a call, and moves flights on if there are any.
    #[inline(always)]
    pub(crate) fn go_inside(&self) -> Result<Inside<'_>> {
        match self.presence.replace(INSIDE) {
            0 => Ok(Inside(&self.presence)),
            before => self.go_inside_from(before),
        }
    }

    /// There is something to look at first: a call that this comes from, flights, or what a panic
    /// has left.
    #[cold]
    fn go_inside_from(&self, before: u8) -> Result<Inside<'_>> {
        self.presence.set(before | INSIDE);
        if before & ABANDONED != 0 {
            self.fail_abandoned();
        }
        if before & INSIDE != 0 {
            return Err(Error::Reentrant);
        }
        let inside = Inside(&self.presence);
        self.endpoint.progress();
        if self.endpoint.engine().is_idle() {
            self.presence.set(INSIDE);
        }
        Ok(inside)
    }

    /// A panic unwinds, and drops what peers wait for. Uncaught, it tells its own story.
    pub(crate) fn abandon(&self) {
        self.presence.set(self.presence.get() | ABANDONED);
    }

    #[cold]
    fn fail_abandoned(&self) -> Error {
        let rank = self.endpoint.rank_in_world();
        let reason = "it caught a panic that dropped its announcements without closing them";
        self.endpoint.job().poison(Failure::Pe { rank, reason: reason.to_owned() });
        Error::of_job(self.endpoint.job())
    }

    /// Fails if a panic that was caught has taken along what peers wait for.
    pub(crate) fn ensure_kept(&self) -> Result<()> {
        if self.presence.get() & ABANDONED == 0 { Ok(()) } else { Err(self.fail_abandoned()) }
    }

    #[inline(always)]
    fn turn_if_due(&self) -> Result<()> {
        if self.endpoint.calls() & self.quarter_mask.get() == 0 { self.turn() } else { Ok(()) }
    }

    /// What is due before the next call, if it begins a quarter of the window.
    #[cold]
    fn turn(&self) -> Result<()> {
        if self.online.as_ref().is_some_and(|online| online.is_due(self.endpoint.calls())) {
            self.cache.expire(); // so that choices may be refined
        }
        let quarter =
            Quarter { synchronized: self.synchronized.take(), started: self.started.take() };
        let mut turn = self.flow.borrow_mut().turn_after(quarter);
        let is_idle = self.endpoint.engine().is_idle();
        // Without flights all calls so far are complete: the credit can be given at once.
        if !is_idle && let Some(credit) = turn.take_credit() {
            self.endpoint.owe(credit);
        }
        // SAFETY: `turn` alone drives the view, to its end, and `run` refuses calls from within a
        // call.
        #[expect(unsafe_code, reason = "makes a view for giving and awaiting credits")]
        let view = unsafe { self.endpoint.one_sided(&Operands::NONE) };
        let (calls, quarter_calls) = (self.endpoint.calls(), self.quarter_mask.get() + 1);
        // The first call of the quarter before the last: who has begun it has given the credit.
        let until = calls.checked_sub(2 * quarter_calls);
        let mut done = self.endpoint.block_on_view(&view, until, turn.run(&view));
        if !is_idle {
            done = done
                .and_then(|()| self.endpoint.await_own(calls.saturating_sub(3 * quarter_calls)));
        }
        done.map_err(|_| Error::of_job(self.endpoint.job()))
    }

    /// What the fabric can do for a call. The message buffer is one for all blocking calls.
    fn capabilities(&self, nonblocking: bool) -> Capabilities {
        let capabilities = self.endpoint.group().capabilities();
        let buffer_bytes = if nonblocking { 0 } else { capabilities.buffer_bytes };
        Capabilities { buffer_bytes, ..capabilities }
    }

    /// What the tuner is asked about a call of this shape.
    fn query(&self, shape: &Shape<'_>, sync: Sync) -> Query {
        Query {
            collective: shape.collective,
            sync,
            pes: self.endpoint.size(),
            bytes: shape.bytes as u64,
            operator: shape.kernel.map_or(OperatorClass::Commutative, |(kernel, _)| kernel.class()),
            symmetric: shape.symmetric,
        }
    }

    /// Which candidate serves a call of this shape.
    fn choose(&self, shape: &Shape<'_>, sync: Sync) -> (Candidate, ChosenBy) {
        let capabilities = self.capabilities(shape.nonblocking);
        let query = self.query(shape, sync);
        self.choices.borrow().choose(&query, shape.element_bytes, capabilities)
    }

    /// Which candidates may serve calls of this shape, the one that does first.
    pub(crate) fn contestants(&self, shape: &Shape<'_>, sync: Sync) -> Vec<Candidate> {
        let capabilities = self.capabilities(shape.nonblocking);
        let query = self.query(shape, sync);
        self.choices.borrow().contestants(&query, shape.element_bytes, capabilities)
    }

    /// Keeps a plan for calls of this shape.
    pub(crate) fn keep(&self, shape: &Shape<'_>, key: Key, ready: &Arc<dyn Ready>) {
        self.cache.keep(shape.collective, key, ready);
    }
}

impl<'p> Hold<'p> {
    /// A hold on the state of a team that was made just now.
    pub(crate) fn new(state: &'p State) -> Self {
        Self { state, generation: state.generation.get() }
    }

    /// The state, whatever team has it: for what concerns the PE alone.
    pub(crate) fn whoever(&self) -> &'p State {
        self.state
    }

    /// Fails once the team is freed.
    #[inline(always)]
    pub(crate) fn ensure_alive(&self) -> Result<()> {
        if self.generation == self.state.generation.get() { Ok(()) } else { Err(Error::Freed) }
    }

    /// Refuses calls from within a call, and of a team that is freed.
    #[inline]
    pub(crate) fn enter(&self) -> Result<Inside<'p>> {
        self.ensure_alive()?;
        self.state.go_inside()
    }

    /// Makes the call by a plan that is new.
    #[cold]
    #[inline(never)]
    pub(crate) fn run_new(&self, ready: &dyn Ready, operands: &Operands<'_>) -> Result<()> {
        self.run(ready, operands)
    }

    /// Makes the call, inside the team's window of calls.
    #[inline(always)]
    pub(crate) fn run(&self, ready: &dyn Ready, operands: &Operands<'_>) -> Result<()> {
        self.ensure_alive()?;
        let _inside = self.go_inside()?;
        if self.endpoint.job().is_poisoned() {
            return Err(Error::of_job(self.endpoint.job()));
        }
        self.turn_if_due()?;
        match ready.call(&self.endpoint, &self.synchronized, operands) {
            Ok(()) => Ok(()),
            Err(_) => Err(Error::of_job(self.endpoint.job())),
        }
    }

    /// Lets go of all that is large, once all PEs of the team have agreed to.
    pub(crate) fn free(&self) -> Result<()> {
        let _inside = self.enter()?;
        self.is_freed.set(true);
        self.state.generation.set(self.generation.wrapping_add(1));
        self.cache.forget();
        self.barrier.take();
        if let Some(online) = &self.online {
            online.clear();
        }
        // SAFETY: no call is alive, for all that make one hold what `enter` gives; so nothing
        // borrows the group, which this crate never keeps a borrow of.
        #[expect(unsafe_code, reason = "gives the memory of a team's PEs back")]
        unsafe {
            self.endpoint.leave();
        }
        Ok(())
    }

    /// Begins a nonblocking call, once there is room for it in the window: what `begin` gets is its
    /// own, and what it launches is polled for the first time.
    pub(crate) fn start<R>(&self, ready: &dyn Ready, begin: impl FnOnce(Begun) -> R) -> Result<R> {
        let _inside = self.enter()?;
        self.ensure_sound()?;
        self.turn_if_due()?;
        self.started.set(true);
        let begun = begin(ready.begin(&self.endpoint));
        self.presence.set(INSIDE | FLIGHTS);
        self.endpoint.progress();
        Ok(begun)
    }

    /// Meets all other PEs of the team, who do `what` as well.
    #[cold]
    pub(crate) fn agree(&self, what: &str) -> Result<()> {
        let ready = self.prepare_named(&Shape::barrier(), Sync::STRICT, what)?;
        self.run_new(&*ready, &Operands::NONE)
    }

    /// Plans a call of this shape that goes by this name.
    pub(crate) fn prepare_named(
        &self,
        shape: &Shape<'_>,
        sync: Sync,
        name: &str,
    ) -> Result<Arc<dyn Ready>> {
        self.prepare_as(shape, sync, &self.choose(shape, sync).0, name)
    }

    /// Plans a call of this shape.
    #[cold]
    pub(crate) fn prepare(&self, shape: &Shape<'_>, sync: Sync) -> Result<Arc<dyn Ready>> {
        self.prepare_by(shape, sync, &self.choose(shape, sync).0)
    }

    /// The first call, at least `ahead` calls after number `call`, that begins a quarter of the
    /// window; the last number of all where there is none.
    pub(crate) fn quarter_from(&self, call: u64, ahead: u64) -> u64 {
        let quarter_calls = self.quarter_mask.get() + 1;
        call.saturating_add(ahead).checked_next_multiple_of(quarter_calls).unwrap_or(u64::MAX)
    }

    /// Plans a call of this shape that `candidate` is to serve.
    pub(crate) fn prepare_by(
        &self,
        shape: &Shape<'_>,
        sync: Sync,
        candidate: &Candidate,
    ) -> Result<Arc<dyn Ready>> {
        let signature = Signature {
            collective: shape.collective,
            sync,
            bytes: shape.bytes as u64,
            root: shape.root,
            datatype: shape.datatype,
            operator: shape.kernel.map(|(_, name)| name),
        };
        let memory = if shape.symmetric { " in symmetric memory" } else { "" };
        let way = if shape.nonblocking { "start " } else { "" };
        self.prepare_as(shape, sync, candidate, &format!("{way}{signature}{memory}"))
    }

    /// Plans a call of this shape that `candidate` is to serve and that goes by this name.
    fn prepare_as(
        &self,
        shape: &Shape<'_>,
        sync: Sync,
        candidate: &Candidate,
        name: &str,
    ) -> Result<Arc<dyn Ready>> {
        self.ensure_alive()?;
        let (barrier, _) = self.choose(&Shape::barrier(), Sync::STRICT);
        let synchronizes = shape.collective == Collective::Barrier
            || sync.entry == Mode::All
            || sync.exit == Mode::All;
        let bracket = if synchronizes { format!(" within {barrier}") } else { String::new() };
        let name = format!("{name} by {candidate}{bracket}");
        let number = self.endpoint.job().number(&name);
        let number = number.map_err(|NoNumber { most }| match self.ensure_sound() {
            Ok(()) => Error::Calls { most },
            Err(failed) => failed,
        })?;
        let setting = Setting {
            collective: shape.collective,
            rank: self.endpoint.rank(),
            pes: self.endpoint.size(),
            root: shape.root.unwrap_or(Rank(0)),
            bytes: shape.bytes,
            element_bytes: shape.element_bytes,
            operator: shape.kernel.map_or(OperatorClass::Commutative, |(kernel, _)| kernel.class()),
            sync,
            symmetric: shape.symmetric,
            capabilities: self.capabilities(shape.nonblocking),
            first_slot: Setting::first_slot(shape.collective, self.endpoint.size()),
            beside: false,
            counter: 1,
        };
        let maker = Maker {
            collective: shape.collective,
            setting: &setting,
            candidate,
            barrier: &barrier,
            number,
            synchronizes,
        };
        Ok(visit(shape.collective, &candidate.algorithm, maker)??)
    }
}

/// Clears the mark that a call is under way.
pub(crate) struct Inside<'s>(&'s Cell<u8>);

impl Drop for Inside<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.set(self.0.get() & !INSIDE);
    }
}

/// Makes a plan for an algorithm that is known by name.
struct Maker<'m> {
    collective: Collective,
    setting: &'m Setting,
    candidate: &'m Candidate,
    barrier: &'m Candidate,
    number: CallNumber,
    synchronizes: bool,
}

impl Visitor for Maker<'_> {
    type Output = Result<Arc<dyn Ready>, PlanError>;

    fn visit<A: Algorithm>(self) -> Self::Output {
        Ok(Arc::new(Prepared::<A> {
            plan: Plan::new(self.collective, self.setting, self.candidate, self.barrier)?,
            number: self.number,
            synchronizes: self.synchronizes,
            candidate: self.candidate.clone(),
        }))
    }
}

impl<'p> Team<'p> {
    pub(crate) fn new(state: &'p State, teams: &'p Teams) -> Self {
        let (rank, size) = (state.endpoint.rank(), state.endpoint.size());
        Self { state: Hold::new(state), teams, rank, size, sync: Sync::default() }
    }

    /// The caller's rank. Local.
    #[must_use]
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// The number of PEs. Local.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.size
    }

    /// The PE before this one, the last before the first. Local.
    #[must_use]
    pub fn left(&self) -> Rank {
        self.rank().plus(u64::from(self.size()) - 1, self.size())
    }

    /// The PE after this one, the first after the last. Local.
    #[must_use]
    pub fn right(&self) -> Rank {
        self.rank().plus(1, self.size())
    }

    /// The same team, its calls in other synchronization modes. Local.
    ///
    /// ```
    /// # use consort::{Pes, Rank, Sync};
    /// Pes::threads(2).run(|pe| {
    ///     let strict = pe.world().with(Sync::STRICT);
    ///     strict.broadcast(7, Rank(0)) // nobody returns before all have the 7
    /// })?;
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[must_use]
    pub fn with(self, sync: Sync) -> Self {
        Self { sync, ..self }
    }

    /// The modes of this team's calls. Local.
    #[must_use]
    pub fn sync(&self) -> Sync {
        self.sync
    }

    /// Allocates `len` elements of zero in every PE's symmetric memory.
    ///
    /// # Errors
    /// [`Error::Memory`] when there is not so much left, and see [`Team`].
    pub fn symmetric<T: Element>(&self, len: usize) -> Result<Symmetric<'p, T>> {
        Symmetric::allocate(*self, len, &format!("symmetric({len} of {})", type_name::<T>()))
    }

    /// Has all PEs of the team, in a call that goes by this name, take the same memory: when all
    /// have come, and so have dropped what they drop before. None returns before all have.
    pub(crate) fn allocate<M>(
        &self,
        name: &str,
        take: impl FnOnce(&Endpoint) -> Result<M, HeapError>,
    ) -> Result<M> {
        self.state.agree(name)?;
        let memory = match take(&self.state.endpoint) {
            Ok(memory) => memory,
            Err(error) => {
                self.state.ensure_sound()?;
                return Err(error.into()); // as on all PEs
            }
        };
        self.barrier()?;
        Ok(memory)
    }

    /// The algorithm that serves a call like `broadcast_slice` or `reduce_slice` (with a
    /// commutative operator) of `bytes`, and where that choice came from. Local.
    #[must_use]
    pub fn choice(&self, collective: Collective, bytes: usize) -> (Candidate, ChosenBy) {
        let shape = Shape { bytes, collective, ..Shape::barrier() };
        let sync = if collective == Collective::Barrier { Sync::STRICT } else { self.sync };
        self.state.choose(&shape, sync)
    }

    /// Has all later calls of `collective` served by `candidate`, or chosen again with `None`. All
    /// PEs of the team must say the same before their next call. Of a team that is freed it changes
    /// nothing.
    pub fn force(&self, collective: Collective, candidate: Option<Candidate>) {
        if self.state.ensure_alive().is_err() {
            return; // what it had may be another team's
        }
        self.state.choices.borrow_mut().force(collective, candidate);
        self.state.cache.clear();
        self.state.barrier.borrow_mut().take();
        if let Some(online) = &self.state.online {
            online.clear();
        }
    }

    /// The algorithm of the plan that was made last for `collective`; none once the team is freed.
    /// Local.
    #[must_use]
    pub fn served_by(&self, collective: Collective) -> Option<Candidate> {
        self.state.ensure_alive().ok()?;
        match collective {
            Collective::Barrier => {
                self.state.barrier.borrow().as_ref().map(|ready| ready.candidate().clone())
            }
            _ => self.state.cache.latest(collective),
        }
    }

    /// The same for calls whose result is used at once, and so never left behind.
    pub(crate) fn keeping(self) -> Self {
        let exit = if self.sync.exit == Mode::None { Mode::Mine } else { self.sync.exit };
        self.with(Sync { exit, ..self.sync })
    }

    pub(crate) fn refuse_loans(&self) -> Result<()> {
        if self.sync.exit == Mode::None {
            return Err(Error::BorrowedSlice(self.sync));
        }
        Ok(())
    }

    /// Makes a call on `len` elements, by the plan that is kept for it or by a new one.
    #[inline]
    pub(crate) fn call<T: Pod>(
        &self,
        collective: Collective,
        root: Option<Rank>,
        len: usize,
        symmetric: bool,
        operands: &Operands<'_>,
        operator: &'static str,
    ) -> Result<()> {
        let bytes = len * size_of::<T>();
        let datatype = type_name::<T>();
        let key = Key {
            call: Key::pack(collective, self.sync, root.unwrap_or(Rank(0)), symmetric),
            bytes,
            datatype: datatype.as_ptr().addr(),
            kernel: operands.kernel.as_ref().map_or(0, |one| Key::of_operator(one, operator)),
        };
        if let Some(ready) = self.state.cache.find(&key) {
            return self.state.run(&*ready, operands);
        }
        let kernel = operands.kernel.map(|kernel| (kernel, operator));
        let element_bytes = size_of::<T>();
        let nonblocking = false;
        let shape = Shape {
            collective,
            root,
            bytes,
            symmetric,
            datatype,
            element_bytes,
            kernel,
            nonblocking,
        };
        self.call_by_new_plan(key, &shape, operands)
    }

    /// The plan of a nonblocking call, as it is kept or a new one.
    pub(crate) fn plan_to_start(&self, shape: &Shape<'_>) -> Result<Arc<dyn Ready>> {
        drop(self.state.enter()?); // an operator must not plan either
        let key = shape.key(self.sync);
        if let Some(ready) = self.state.cache.share(&key) {
            return Ok(ready);
        }
        self.check_root(shape)?;
        let ready = self.state.prepare(shape, self.sync)?;
        self.state.keep(shape, key, &ready);
        Ok(ready)
    }

    fn check_root(&self, shape: &Shape<'_>) -> Result<()> {
        let pes = self.size();
        match shape.root.filter(|root| root.0 >= pes) {
            Some(root) => Err(Error::RootOutOfRange { root, pes }),
            None => Ok(()),
        }
    }

    /// Makes a plan, and a call by it.
    #[cold]
    fn call_by_new_plan(&self, key: Key, shape: &Shape<'_>, operands: &Operands<'_>) -> Result<()> {
        drop(self.state.enter()?); // what makes no call leaves no plan, and refines nothing
        self.check_root(shape)?;
        let state = self.state;
        if let Some(online) = &state.online {
            return self.refine(online, key, shape, operands);
        }
        let ready = state.prepare(shape, self.sync)?;
        state.keep(shape, key, &ready);
        state.run_new(&*ready, operands)
    }
}

impl<'k> Shape<'k> {
    /// A nonblocking call on blocks of `len` elements of `T`.
    pub(crate) fn nonblocking<T: Pod>(
        collective: Collective,
        root: Option<Rank>,
        len: usize,
        symmetric: bool,
        kernel: Option<(Kernel<'k>, &'static str)>,
    ) -> Self {
        Self {
            collective,
            root,
            bytes: len * size_of::<T>(),
            symmetric,
            datatype: type_name::<T>(),
            element_bytes: size_of::<T>(),
            kernel,
            nonblocking: true,
        }
    }

    /// An all-reduce of `len` elements.
    pub(crate) fn all_reduce<T: Pod, O: Operator<T>>(len: usize, operator: &'k O) -> Self {
        Self {
            collective: Collective::AllReduce,
            bytes: len * size_of::<T>(),
            datatype: type_name::<T>(),
            element_bytes: size_of::<T>(),
            kernel: Some((Kernel::new::<T, O>(operator), O::NAME)),
            ..Self::barrier()
        }
    }

    /// How contributions are combined.
    pub(crate) fn kernel(&self) -> Option<Kernel<'k>> {
        self.kernel.map(|(kernel, _)| kernel)
    }

    /// What a blocking call has in common with its peers'.
    pub(crate) fn kind_key(&self, sync: Sync) -> KindKey {
        KindKey {
            call: Key::pack(self.collective, sync, self.root.unwrap_or(Rank(0)), self.symmetric),
            bytes: self.bytes,
            datatype: self.datatype,
            element_bytes: self.element_bytes,
            operator: self.kernel.map(|(kernel, name)| (name, kernel.class())),
        }
    }

    fn key(&self, sync: Sync) -> Key {
        let root = self.root.unwrap_or(Rank(0));
        let call = Key::pack(self.collective, sync, root, self.symmetric)
            | if self.nonblocking { Key::NONBLOCKING } else { 0 };
        let datatype = self.datatype.as_ptr().addr();
        let kernel = self.kernel.as_ref().map_or(0, |(one, name)| Key::of_operator(one, name));
        Key { call, bytes: self.bytes, datatype, kernel }
    }

    pub(crate) fn barrier() -> Self {
        Self { bytes: 0, datatype: "", ..Self::blocking::<u8>(Collective::Barrier) }
    }

    /// A blocking call without a root or an operator, on blocks of one element of `T`.
    pub(crate) fn blocking<T: Pod>(collective: Collective) -> Self {
        Self { nonblocking: false, ..Self::nonblocking::<T>(collective, None, 1, false, None) }
    }
}

impl fmt::Debug for Team<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Team")
            .field("rank", &self.rank())
            .field("size", &self.size())
            .field("sync", &self.sync)
            .finish()
    }
}
