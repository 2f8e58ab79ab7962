//! One PE's end of a team: the numbers of its calls, its scratch memory, and how it waits.

#![expect(unsafe_code, reason = "declares what its callers must see to")]

use std::{
    cell::{Cell, RefCell, UnsafeCell},
    fmt,
    future::{Future, poll_fn},
    marker::PhantomData,
    panic::resume_unwind,
    pin::Pin,
    rc::{Rc, Weak},
    sync::{
        Arc,
        atomic::{
            Ordering::{Release, SeqCst},
            fence,
        },
    },
    task::Poll,
    time::{Duration, Instant},
};

use consort_fabric::{Op, Poisoned, Rank};

use crate::{
    begun::{Begun, Shore},
    call::Call,
    directory::{NoGroup, Place},
    engine::{Engine, Flights},
    group::Group,
    job::{Job, SEQUENCE_BITS, SEQUENCE_MASK},
    ledger::Ledger,
    machine::NativeMachine,
    operands::Operands,
    segment::Segment,
    waiting::{Idle, Waiting, Watch, block_on},
};

/// Polls before the first pause: some tens of microseconds, longer than any hot wait.
const SPINS: u32 = 20_000;
/// Polls between those of the flights, where there are any.
const POLLS_PER_PROGRESS: u32 = 32;
/// Turns of the library between looks at the clock, outside of waits.
const TURNS_PER_GLANCE: u32 = 16;
/// Polls between yields.
const POLLS_PER_YIELD: u32 = 100;
/// Yields before a PE sleeps, where it may.
const YIELDS_BEFORE_SLEEP: u32 = 2_000;
/// How long a PE sleeps before it looks around, in case a peer has left without a word.
const SLEEP: Duration = Duration::from_millis(20);
/// What the numbers of calls are rolled into one by: odd, so that of two histories that differ in
/// one call none becomes equal.
const ROLL: u64 = 0x9e37_79b9_7f4a_7c15;
/// How often a waiting PE looks whether its peers make the same call.
const LOOK_AROUND: Duration = Duration::from_millis(5);

/// What a PE has once, whatever teams it is in.
struct Pe {
    /// Its rank in the world.
    rank: Rank,
    /// Memory for partial results and incoming messages of blocking calls, half and half.
    scratch: Segment,
    engine: Arc<Engine>,
    /// What is done while a call waits.
    errands: RefCell<Vec<Weak<dyn Fn()>>>,
    /// Polls before the first pause.
    spins: u32,
}

/// One PE's end of a team. Stays on its thread.
pub struct Endpoint {
    job: Arc<Job>,
    /// An empty one once the PE has left it. Replaced in [`Endpoint::leave`] and in
    /// [`Endpoint::serve_again`] alone.
    group: UnsafeCell<Arc<Group>>,
    pe: Rc<Pe>,
    /// The rank in the group.
    rank: Cell<Rank>,
    size: Cell<u32>,
    calls: Cell<u64>,
    /// The number of the next step. Words have its low bits.
    sequence: Cell<u64>,
    /// The numbers of all calls so far, rolled into one.
    rolled: Cell<u64>,
    allocations: Cell<u64>,
    /// Teams made of this one.
    teams: Cell<u64>,
    ledger: Arc<Ledger>,
    /// What nonblocking calls share, once there are any, until the PE leaves the group.
    shore: RefCell<Option<Arc<Shore>>>,
    /// Turns of the library outside of any wait.
    turns: Cell<u32>,
    /// When calls were last compared with the peers' outside of a wait.
    glanced: Cell<Option<Instant>>,
    stays_here: PhantomData<*const ()>,
}

/// A PE's part in a team that it has joined: the group, and its rank there.
#[derive(Debug)]
pub struct Part(Group, Rank);

fn size(group: &Group) -> u32 {
    u32::try_from(group.size()).unwrap_or(u32::MAX)
}

impl Endpoint {
    /// The end of PE `rank` of the team of all PEs, to be made on its own thread, once.
    #[must_use]
    pub fn new(job: Arc<Job>, rank: Rank) -> Self {
        job.states[rank.index()].parker.settle();
        let world = Group::new(&job, job.world, (0..job.config().pes).map(Rank).collect(), rank);
        let bytes = world.geometry.lines * size_of::<crate::line::Line>();
        let fits = job.config().pes <= job.config().cores;
        let pe = Pe {
            rank,
            scratch: Segment::reserve(2 * bytes).expect("memory for partial results"),
            engine: Arc::default(),
            errands: RefCell::default(),
            spins: if fits { SPINS } else { 1 },
        };
        Self::of(job, Rc::new(pe), (world, rank))
    }

    fn of(job: Arc<Job>, pe: Rc<Pe>, (group, rank): (Group, Rank)) -> Self {
        Self {
            size: Cell::new(size(&group)),
            group: UnsafeCell::new(Arc::new(group)),
            pe,
            rank: Cell::new(rank),
            calls: Cell::new(0),
            sequence: Cell::new(job.config().first_step),
            job,
            rolled: Cell::new(0),
            allocations: Cell::new(0),
            teams: Cell::new(0),
            ledger: Arc::default(),
            shore: RefCell::default(),
            turns: Cell::new(0),
            glanced: Cell::new(None),
            stays_here: PhantomData,
        }
    }

    /// The job.
    #[inline]
    pub fn job(&self) -> &Arc<Job> {
        &self.job
    }

    /// What the PEs of the team share.
    #[inline(always)]
    pub fn group(&self) -> &Arc<Group> {
        // SAFETY: nothing but `leave` and `serve_again` replaces it, whose callers have nothing
        // that borrows it.
        unsafe { &*self.group.get() }
    }

    /// The PE's rank in the team.
    #[inline]
    pub fn rank(&self) -> Rank {
        self.rank.get()
    }

    /// The PEs of the team.
    #[inline]
    pub fn size(&self) -> u32 {
        self.size.get()
    }

    /// The PE's rank in the world.
    #[inline]
    pub fn rank_in_world(&self) -> Rank {
        self.pe.rank
    }

    /// Calls made so far.
    #[inline(always)]
    pub fn calls(&self) -> u64 {
        self.calls.get()
    }

    /// What tells this PE's next allocation from all others of the job, as its peers tell it.
    pub(crate) fn next_allocation(&self) -> (u64, u64) {
        let number = self.allocations.replace(self.allocations.get() + 1);
        (self.group().number(), number)
    }

    /// This PE's part in a new team of these PEs of this team, whose ranks there are in the order
    /// of the list. All PEs of this team come here, in the same order of teams; those of other
    /// colours make teams of their own. `None` for a PE that is not in the list.
    ///
    /// # Errors
    /// When there is no memory for another team.
    pub fn join(&self, color: u32, members: &[Rank]) -> Result<Option<Part>, NoGroup> {
        let made = self.teams.replace(self.teams.get() + 1);
        let Some(at) = members.iter().position(|&rank| rank == self.rank()) else {
            return Ok(None);
        };
        let group = self.group();
        let ranks = members.iter().map(|&rank| group.in_world(rank)).collect();
        let rank = Rank(u32::try_from(at).unwrap_or(u32::MAX));
        Ok(Some(Part(group.join(made, color, ranks, rank)?, rank)))
    }

    /// This PE's end of a team that it has joined.
    #[must_use]
    pub fn end_of(&self, Part(group, rank): Part) -> Self {
        Self::of(Arc::clone(&self.job), Rc::clone(&self.pe), (group, rank))
    }

    /// Lets go of what the team's PEs share, after the last call. Its memory is free once all have.
    ///
    /// # Safety
    /// No call of this end is alive, and no borrow of its group.
    pub unsafe fn leave(&self) {
        let nothing = Group::new(&self.job, Place::NOWHERE, Box::default(), Rank(0));
        // SAFETY: the caller's promise.
        unsafe { self.replace_group(nothing) };
        self.shore.take();
        self.calls.set(0); // so that `check_peers` has none to compare
    }

    /// Becomes this PE's end of another team, after it has left its own.
    ///
    /// # Safety
    /// As [`Endpoint::leave`].
    pub unsafe fn serve_again(&self, Part(group, rank): Part) {
        self.rank.set(rank);
        self.size.set(size(&group));
        self.sequence.set(self.job.config().first_step);
        self.rolled.set(0);
        self.allocations.set(0);
        self.teams.set(0);
        self.turns.set(0);
        self.glanced.set(None);
        // SAFETY: the caller's promise.
        unsafe { self.replace_group(group) };
    }

    /// # Safety
    /// As [`Endpoint::leave`].
    unsafe fn replace_group(&self, group: Group) {
        // SAFETY: nobody borrows it, by the caller's promise; an end stays on its thread.
        let place = unsafe { &mut *self.group.get() };
        let before = std::mem::replace(place, Arc::new(group));
        drop(before); // which may run code of its own, with nothing borrowed
    }

    /// Begins the next collective call of the team: every PE must make the same, with the same
    /// number of the call, by its name, and `steps`.
    ///
    /// # Safety
    /// The call is dropped before this PE makes another, and one future at a time drives it: its
    /// scratch memory is the PE's, and [`Call`] is `Sync` only so that such a future may move.
    #[inline(always)]
    pub unsafe fn begin<'c>(
        &'c self,
        name: u64,
        steps: u64,
        operands: &'c Operands<'c>,
    ) -> Call<'c> {
        let (_, turn, word) = self.number(name, steps);
        let (job, group, scratch) = (&self.job, self.group(), &self.pe.scratch);
        Call::new(job, group, self.rank(), turn, word, scratch, operands)
    }

    /// Begins the next collective call of the team, to be driven by a flight while other calls are
    /// made. It must end before the PE is a window ahead.
    pub fn start(&self, name: u64, steps: u64) -> Begun {
        // Before it has a number: who panics, since there is no memory, has not begun the call.
        let scratch = Some(self.pe.engine.scratch(self.pe.scratch.bytes()));
        let (number, _, word) = self.number(name, steps);
        self.ledger.start(number);
        let shore = Arc::clone(self.shore.borrow_mut().get_or_insert_with(|| self.new_shore()));
        Begun { shore, number, word, scratch }
    }

    #[cold]
    fn new_shore(&self) -> Arc<Shore> {
        Arc::new(Shore {
            job: Arc::clone(&self.job),
            group: Arc::clone(self.group()),
            engine: Arc::clone(&self.pe.engine),
            ledger: Arc::clone(&self.ledger),
            rank: self.rank(),
        })
    }

    /// The number of the next call, its place in the window, and the word of its messages. Peers
    /// can see it from now on, by its name.
    #[inline(always)]
    fn number(&self, name: u64, steps: u64) -> (u64, usize, u64) {
        let call = self.calls.get();
        let sequence = self.sequence.get();
        // Messages carry the numbers of all calls so far: after one that did not match, none does.
        let rolled = self.rolled.get().wrapping_mul(ROLL).wrapping_add(name);
        self.calls.set(call + 1);
        self.sequence.set(sequence + steps);
        self.rolled.set(rolled);
        let group = self.group();
        let turn = group.geometry.turn(call);
        let own = name << SEQUENCE_BITS | sequence & SEQUENCE_MASK;
        // Release: pairs with the acquire in `check_peers`, which may look up the call's name.
        group.own_recent(call).store(own, Release);
        (call, turn, (rolled << SEQUENCE_BITS).wrapping_add(sequence))
    }

    /// What drives this PE's flights.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.pe.engine
    }

    /// Has a future driven whenever this PE waits or asks for progress, or by its helper; it counts
    /// among `also` until it is gone.
    ///
    /// # Safety
    /// It may be polled and dropped on any thread, and what it borrows lives until it is gone: when
    /// it was found ready, and at the latest after [`Engine::clear`].
    pub unsafe fn launch<'f>(
        &self,
        flight: Pin<Box<dyn Future<Output = ()> + 'f>>,
        also: Option<&Flights>,
    ) {
        // SAFETY: the caller's promise is the engine's condition.
        unsafe { self.pe.engine.launch(flight, also) };
    }

    /// Moves flights on, and now and then compares calls with the peers'. For a PE that
    /// is in no call.
    ///
    /// # Panics
    /// When an operator does; the job has failed then.
    pub fn progress(&self) {
        self.poll_flights();
        let turns = self.turns.get().wrapping_add(1);
        self.turns.set(turns);
        if !turns.is_multiple_of(TURNS_PER_GLANCE) {
            return; // looking at the clock takes as long as a turn
        }
        let now = Instant::now();
        let since = self.glanced.get().unwrap_or(now);
        let is_due = now - since >= LOOK_AROUND;
        self.glanced.set(Some(if is_due { now } else { since }));
        if is_due && self.ledger.first().is_some() && !self.job.is_poisoned() {
            self.check_peers();
        }
    }

    /// Polls all flights once, unless the helper does; says whether it did.
    fn poll_flights(&self) -> bool {
        self.pe.engine.poll().unwrap_or_else(|panic| {
            self.job.fail(self.pe.rank, &panic);
            resume_unwind(panic)
        })
    }

    /// Gives a credit once all calls so far are complete.
    pub fn owe(&self, credit: u64) {
        let give = |credit| self.group().give_credit(self.rank(), credit);
        self.ledger.owe(self.calls.get(), credit, give);
    }

    /// Waits until this PE's calls before number `end` are complete.
    ///
    /// # Errors
    /// When the job has failed.
    pub fn await_own(&self, end: u64) -> Op {
        while let Some(first) = self.ledger.first().filter(|&first| first < end) {
            self.block_until(first, || {
                self.ledger.first().is_none_or(|now| now > first).then_some(())
            })?;
        }
        Ok(())
    }

    /// The first of this PE's nonblocking calls that is under way.
    pub fn first_under_way(&self) -> Option<u64> {
        self.ledger.first()
    }

    /// Waits until `test` gives something, which flights bring about, at last call `number`.
    ///
    /// # Errors
    /// When the job has failed.
    pub fn block_until<T>(&self, number: u64, test: impl Fn() -> Option<T>) -> Op<T> {
        let future = poll_fn(|_| match test() {
            Some(value) => Poll::Ready(Ok(value)),
            None if self.job.is_poisoned() => Poll::Ready(Err(Poisoned)),
            None => Poll::Pending,
        });
        let pauses = || Pauses { polls: 1, ..Pauses::new(self, true, Some(number)) };
        block_on(future, &Unwatched, || 1, pauses)
    }

    /// Polls before the first pause of a wait: few if there are flights, which each pause polls.
    #[inline(always)]
    fn polls(&self) -> u32 {
        let Pe { engine, spins, .. } = &*self.pe;
        if engine.is_idle() { *spins } else { POLLS_PER_PROGRESS.min(*spins) }
    }

    /// A view for one-sided operations outside of any collective.
    ///
    /// # Safety
    /// As [`Endpoint::begin`].
    pub unsafe fn one_sided<'c>(&'c self, operands: &'c Operands<'c>) -> Call<'c> {
        Call::new(&self.job, self.group(), self.rank(), 0, 0, &self.pe.scratch, operands)
    }

    fn state(&self) -> &crate::job::PeState {
        &self.job.states[self.pe.rank.index()]
    }

    /// Polls `future`, which drives `call`, in place until it is ready, waiting as the launch said.
    /// The call is the last that was begun.
    ///
    /// # Errors
    /// When the job has failed.
    #[inline(always)]
    pub fn block_on<T>(&self, call: &Call<'_>, future: impl Future<Output = Op<T>>) -> Op<T> {
        let pauses = || Pauses::new(self, true, self.calls.get().checked_sub(1));
        block_on(future, call, || self.polls(), pauses)
    }

    /// As [`Endpoint::block_on`], for a view outside of any collective. It waits for all to have
    /// left the call `until`, if for a call at all.
    ///
    /// # Errors
    /// When the job has failed.
    #[inline]
    pub fn block_on_view<T>(
        &self,
        view: &Call<'_>,
        until: Option<u64>,
        future: impl Future<Output = Op<T>>,
    ) -> Op<T> {
        block_on(future, view, || self.polls(), || Pauses::new(self, true, until))
    }

    /// This PE's view of the machine, for locks and delegation among all PEs of the job.
    pub fn machine(&self) -> NativeMachine<'_> {
        NativeMachine::new(&self.job, self.pe.rank)
    }

    /// Polls `future`, which waits for words of its own, in place until it is ready. It yields as
    /// the launch said but never sleeps, since whoever writes a word does not know who waits for
    /// it.
    pub fn block_on_machine<T>(&self, future: impl Future<Output = T>) -> T {
        block_on(future, &Unwatched, || self.polls(), || Pauses::new(self, false, None))
    }

    /// As [`Endpoint::block_on`], for a future on a [`NoticeBoard`](crate::NoticeBoard), in a call
    /// of this number, if it is in one.
    ///
    /// # Errors
    /// When the job has failed.
    pub fn block_on_notices<T>(
        &self,
        call: Option<u64>,
        future: impl Future<Output = Op<T>>,
    ) -> Op<T> {
        block_on(future, &Unwatched, || self.polls(), || Pauses::new(self, true, call))
    }

    /// Has `errand` run now and then while this PE waits in a call, whatever it waits for, until it
    /// is dropped. It makes no calls and does not wait.
    pub fn add_errand(&self, errand: &Rc<dyn Fn()>) {
        let mut errands = self.pe.errands.borrow_mut();
        errands.retain(|errand| errand.strong_count() > 0);
        errands.push(Rc::downgrade(errand));
    }

    /// Compares this PE's last calls with the peers'.
    fn check_peers(&self) {
        self.group().check_peers(self.rank(), self.calls.get(), self.sequence.get());
    }

    /// Says that this PE makes no more calls in this team. Peers that wait for one then fail.
    ///
    /// # Errors
    /// When this PE is the first to see that calls have not matched, or that a peer that has
    /// finished made fewer or more.
    pub fn finish(&self) -> Op {
        if self.job.is_poisoned() {
            return Ok(()); // the program knows
        }
        self.group().finish(self.rank(), self.sequence.get());
        fence(SeqCst); // of two PEs that finish, one sees the other
        self.check_peers();
        self.group().check_finished(self.rank(), self.sequence.get());
        if self.job.is_poisoned() { Err(Poisoned) } else { Ok(()) }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("rank", &self.rank()).finish_non_exhaustive()
    }
}

/// The pauses of one wait.
struct Pauses<'e> {
    endpoint: &'e Endpoint,
    since: Option<Instant>,
    looked: u32,
    /// When calls were last compared while the helper polled.
    compared: Option<Instant>,
    yields: u32,
    ready: bool,
    /// Whether a message would wake it.
    sleeps: bool,
    /// At the last look nobody was left to send anything.
    alone: bool,
    /// The call that it waits in, or for all to have left.
    call: Option<u64>,
    /// Whether the others know.
    told: bool,
    /// Polls so far, in pauses that were for flights alone.
    spun: u32,
    /// Polls between those of flights; one, where they are what is waited for.
    polls: u32,
}

/// Nothing that the executor could watch.
struct Unwatched;

impl Watch for Unwatched {
    fn spin(&self, _: &mut u32) {}
}

impl<'e> Pauses<'e> {
    fn new(endpoint: &'e Endpoint, sleeps: bool, call: Option<u64>) -> Self {
        Self {
            endpoint,
            since: None,
            looked: 0,
            compared: None,
            yields: 0,
            ready: false,
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
        let (group, rank) = (self.endpoint.group(), self.endpoint.rank());
        if job.is_poisoned() {
            return;
        }
        // The second look: what a peer sent before it finished has been polled for since the first.
        if self.alone {
            return group.abandon(rank);
        }
        self.alone = group.is_alone(rank);
        if calls.get() > 0 {
            self.endpoint.check_peers();
        }
        if let Some(call) = self.call.filter(|_| job.has_made_teams()) {
            self.told = true;
            job.deadlocks.beat(job, self.endpoint.pe.rank, group, rank, call);
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
        if !self.endpoint.poll_flights() {
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

impl Pauses<'_> {
    /// Pauses, there being no flights to poll.
    fn pause_alone(&mut self) -> u32 {
        for errand in self.endpoint.pe.errands.borrow().iter().filter_map(Weak::upgrade) {
            errand();
        }
        self.look_around();
        let job = &self.endpoint.job;
        let parker = &self.endpoint.state().parker;
        match job.config().waiting {
            Waiting::Spin => POLLS_PER_YIELD,
            Waiting::SpinYieldPark if self.sleeps && self.yields >= YIELDS_BEFORE_SLEEP => {
                if self.ready {
                    parker.sleep(SLEEP);
                } else {
                    parker.prepare();
                }
                self.ready = !self.ready;
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

impl Drop for Pauses<'_> {
    fn drop(&mut self) {
        if self.ready {
            self.endpoint.state().parker.cancel();
        }
        if self.told {
            self.endpoint.job.deadlocks.clear(self.endpoint.pe.rank);
        }
    }
}
