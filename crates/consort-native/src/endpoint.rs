//! One PE's end of a job: the numbers of its calls, its scratch memory, and how it waits.

#![expect(unsafe_code, reason = "declares what its callers must see to")]

use std::{
    cell::{Cell, RefCell, UnsafeCell},
    fmt,
    future::Future,
    marker::PhantomData,
    rc::{Rc, Weak},
    sync::{
        Arc,
        atomic::{
            Ordering::{Release, SeqCst},
            fence,
        },
    },
    time::{Duration, Instant},
};

use consort_fabric::{Op, Poisoned, Rank};

use crate::{
    call::Call,
    job::{Job, SEQUENCE_BITS},
    machine::NativeMachine,
    operands::Operands,
    waiting::{Idle, Waiting, Watch, block_on},
};

/// Polls before the first pause: some tens of microseconds, longer than any hot wait.
const SPINS: u32 = 20_000;
/// Polls between yields.
const POLLS_PER_YIELD: u32 = 100;
/// Yields before a PE sleeps, where it may.
const YIELDS_BEFORE_SLEEP: u32 = 2_000;
/// How long a PE sleeps before it looks around, in case a peer has left without a word.
const SLEEP: Duration = Duration::from_millis(20);
/// What fingerprints are rolled into one by: odd, so that no two histories become equal.
const ROLL: u64 = 0x9e37_79b9_7f4a_7c15;
/// How often a waiting PE looks whether its peers make the same call.
const LOOK_AROUND: Duration = Duration::from_millis(5);

/// Memory for partial results and incoming messages, of one PE.
pub(crate) struct Scratch {
    pub(crate) bytes: Box<[UnsafeCell<u8>]>,
}

/// One PE's end of a job. Stays on its thread.
pub struct Endpoint {
    job: Arc<Job>,
    rank: Rank,
    calls: Cell<u64>,
    sequence: Cell<u64>,
    /// The fingerprints of all calls so far, rolled into one.
    rolled: Cell<u64>,
    allocations: Cell<u64>,
    scratch: Scratch,
    /// What is done while a call waits.
    errands: RefCell<Vec<Weak<dyn Fn()>>>,
    /// Polls before the first pause.
    spins: u32,
    stays_here: PhantomData<*const ()>,
}

impl Endpoint {
    /// The end of PE `rank`, to be made on its own thread, once.
    #[must_use]
    pub fn new(job: Arc<Job>, rank: Rank) -> Self {
        job.states[rank.index()].parker.settle();
        let bytes = job.geometry.lines * size_of::<crate::line::Line>();
        let fits = job.config().pes <= job.config().cores;
        Self {
            spins: if fits { SPINS } else { 1 },
            job,
            rank,
            calls: Cell::new(0),
            sequence: Cell::new(1),
            rolled: Cell::new(0),
            allocations: Cell::new(0),
            errands: RefCell::default(),
            scratch: Scratch { bytes: (0..2 * bytes).map(|_| UnsafeCell::new(0)).collect() },
            stays_here: PhantomData,
        }
    }

    /// The job.
    pub fn job(&self) -> &Arc<Job> {
        &self.job
    }

    /// The PE's rank.
    #[inline]
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// Calls made so far.
    #[inline(always)]
    pub fn calls(&self) -> u64 {
        self.calls.get()
    }

    /// The number of this PE's next allocation.
    pub(crate) fn next_allocation(&self) -> u64 {
        self.allocations.replace(self.allocations.get() + 1)
    }

    /// Begins the next collective call of the job: every PE must make the same, with the same
    /// `fingerprint` and `steps`.
    ///
    /// # Safety
    /// The call is dropped before this PE makes another, and one future at a time drives it: its
    /// scratch memory is the PE's, and [`Call`] is `Sync` only so that such a future may move.
    #[inline(always)]
    pub unsafe fn begin<'c>(
        &'c self,
        fingerprint: u64,
        steps: u64,
        operands: &'c Operands<'c>,
    ) -> Call<'c> {
        let call = self.calls.get();
        let sequence = self.sequence.get();
        // Messages carry the whole history: after calls that did not match, none does.
        let rolled = self.rolled.get().wrapping_mul(ROLL).wrapping_add(fingerprint);
        let word = (rolled << SEQUENCE_BITS).wrapping_add(sequence);
        self.calls.set(call + 1);
        self.sequence.set(sequence + steps);
        self.rolled.set(rolled);
        let turn = self.job.geometry.turn(call);
        let own = (fingerprint << SEQUENCE_BITS).wrapping_add(sequence);
        // Release: pairs with the acquire in `check_peers`, which may look up the call's name.
        self.state().history(turn).store(own, Release);
        Call::new(&self.job, self.rank, turn, word, &self.scratch, operands)
    }

    /// A view for one-sided operations outside of any collective.
    ///
    /// # Safety
    /// As [`Endpoint::begin`].
    pub unsafe fn one_sided<'c>(&'c self, operands: &'c Operands<'c>) -> Call<'c> {
        Call::new(&self.job, self.rank, 0, 0, &self.scratch, operands)
    }

    fn state(&self) -> &crate::job::PeState {
        &self.job.states[self.rank.index()]
    }

    /// Polls `future`, which drives `call`, in place until it is ready, waiting as the launch said.
    ///
    /// # Errors
    /// When the job has failed.
    #[inline(always)]
    pub fn block_on<T>(&self, call: &Call<'_>, future: impl Future<Output = Op<T>>) -> Op<T> {
        block_on(future, call, self.spins, || Pauses::new(self, true))
    }

    /// This PE's view of the machine, for locks and delegation.
    pub fn machine(&self) -> NativeMachine<'_> {
        NativeMachine::new(&self.job, self.rank)
    }

    /// Polls `future`, which waits for words of its own, in place until it is ready. It yields as
    /// the launch said but never sleeps, since whoever writes a word does not know who waits for
    /// it.
    pub fn block_on_machine<T>(&self, future: impl Future<Output = T>) -> T {
        block_on(future, &Unwatched, self.spins, || Pauses::new(self, false))
    }

    /// As [`Endpoint::block_on`], for a future on a [`NoticeBoard`](crate::NoticeBoard).
    ///
    /// # Errors
    /// When the job has failed.
    pub fn block_on_notices<T>(&self, future: impl Future<Output = Op<T>>) -> Op<T> {
        block_on(future, &Unwatched, self.spins, || Pauses::new(self, true))
    }

    /// Has `errand` run now and then while this PE waits in a call, whatever it waits for, until it
    /// is dropped. It makes no calls and does not wait.
    pub fn add_errand(&self, errand: &Rc<dyn Fn()>) {
        let mut errands = self.errands.borrow_mut();
        errands.retain(|errand| errand.strong_count() > 0);
        errands.push(Rc::downgrade(errand));
    }

    /// Says that this PE makes no more calls. Peers that wait for one then fail.
    ///
    /// # Errors
    /// When this PE is the first to see that calls have not matched, or that a peer that has
    /// finished made fewer or more.
    pub fn finish(&self) -> Op {
        if self.job.is_poisoned() {
            return Ok(()); // the program knows
        }
        self.state().finished.store(self.sequence.get(), Release);
        fence(SeqCst); // of two PEs that finish, one sees the other
        self.job.check_peers(self.rank, self.calls.get());
        self.job.check_finished(self.rank, self.sequence.get());
        if self.job.is_poisoned() { Err(Poisoned) } else { Ok(()) }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("rank", &self.rank).finish_non_exhaustive()
    }
}

/// The pauses of one wait.
struct Pauses<'e> {
    endpoint: &'e Endpoint,
    since: Option<Instant>,
    looked: u32,
    yields: u32,
    ready: bool,
    /// Whether a message would wake it.
    sleeps: bool,
    /// At the last look nobody was left to send anything.
    alone: bool,
}

/// Nothing that the executor could watch.
struct Unwatched;

impl Watch for Unwatched {
    fn spin(&self, _: &mut u32) {}
}

impl<'e> Pauses<'e> {
    fn new(endpoint: &'e Endpoint, sleeps: bool) -> Self {
        Self { endpoint, since: None, looked: 0, yields: 0, ready: false, sleeps, alone: false }
    }
}

impl Pauses<'_> {
    /// Compares calls with the peers, every few milliseconds.
    #[cold]
    fn look_around(&mut self) {
        let waited = self.since.get_or_insert_with(Instant::now).elapsed();
        if waited < LOOK_AROUND * (self.looked + 1) {
            return;
        }
        self.looked += 1;
        let endpoint = self.endpoint;
        if endpoint.job.is_poisoned() {
            return;
        }
        // The second look: what a peer sent before it finished has been polled for since the first.
        if self.alone {
            return endpoint.job.abandon(endpoint.rank);
        }
        self.alone = endpoint.job.is_alone(endpoint.rank);
        if endpoint.calls.get() == 0 {
            return;
        }
        endpoint.job.check_peers(endpoint.rank, endpoint.calls.get());
    }
}

impl Idle for Pauses<'_> {
    #[cold]
    #[inline(never)]
    fn pause(&mut self) -> u32 {
        for errand in self.endpoint.errands.borrow().iter().filter_map(Weak::upgrade) {
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
    }
}
