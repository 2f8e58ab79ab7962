//! PEs that run one program after the other, and wait in between.
//!
//! Source of the idea: the parallel regions of OpenMP, whose threads wait for the next region.
//!
//! A region begins when the caller stores the number of the region in one cache line, which all
//! other PEs watch. The line also holds the program, if it is small. Each PE ends by storing the
//! number in its own line, which the caller watches. That line also holds the PE's result, if it is
//! small. So a region takes at least two transfers of a cache line and the time of its program. PEs
//! sleep in long waits.
//!
//! Before a region begins, the other PEs wait for the caller. So it does little: it locks the pool,
//! usually by plain loads and stores, and takes PE 0, which the pool keeps.

#![expect(unsafe_code, reason = "passes a borrowed program to other threads")]

use std::{
    cell::{Cell, UnsafeCell},
    fmt, hint,
    mem::{ManuallyDrop, MaybeUninit},
    panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind, resume_unwind},
    ptr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{
            AtomicPtr, AtomicU64,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use consort_fabric::Rank;
use consort_machine::{
    BiasedGuard, BiasedMutex, ProcessToken, ThreadToken,
    advice::of_thread,
    discard,
    threads::ManyThreadStart,
    wait::{moves::Moves, spin_budget::POLLS_PER_YIELD},
};
use consort_native::{Config, Event, Job};

use crate::{
    Error, Pe, Result,
    error::LaunchError,
    pe::Ending,
    ranks::{Idle, Ranks, failed_by, started},
    results::{Failed, Program, Results, collect, one_for_each, results_of},
    runtime::kept,
};

/// Threads that stay for successive parallel regions, like those of OpenMP; from
/// [`JobBuilder::pool`](crate::JobBuilder::pool). In a *parallel region*, all PEs run one program,
/// and the call that began it returns when all have left it.
///
/// Threads that share a pool run their regions one after the other. So a program in a region must
/// not wait for a thread that runs a region of the same pool; nor may two pools run regions of each
/// other at the same time.
///
/// An empty region of two threads takes about three transfers of a cache line between their cores,
/// less than half a microsecond, whereas [`JobBuilder::run`](crate::JobBuilder::run) starts threads
/// and takes memory for each program. The thread that calls [`Pool::run`] is PE 0 during the
/// region; each other PE has its own thread, which sleeps in long waits. Plans, and the wisdom of
/// earlier calls, persist between regions. So do the teams, symmetric memory and plans in a value
/// that the PE [keeps](Pe::keep).
///
/// Regions are cheapest on the thread that has created the pool, until another thread runs one.
///
/// When a region fails, its error is returned once all PEs have left it, and the next region has
/// new PEs.
///
/// ```
/// use consort::{Job, ops::Sum};
///
/// let pool = Job::threads(4).pool()?;
/// let mut data = vec![1_u64; 1000];
/// for round in 0..3 {
///     let sums = pool.run_with(data.chunks_mut(250), |pe, part| {
///         part.iter_mut().for_each(|x| *x += 1); // borrows the data
///         pe.world().all_reduce(part.iter().sum::<u64>(), Sum)
///     })?;
///     assert_eq!(sums, [1000 * (round + 2); 4]);
/// }
/// # Ok::<(), consort::Error>(())
/// ```
pub struct Pool {
    shared: Arc<Shared>,
    /// Locked during a region. The lock is biased to the thread that has created the pool, because
    /// that one usually runs all regions.
    current: BiasedMutex<Current>,
    makes: Box<dyn Fn() -> Result<Arc<Ranks>> + Send + Sync>,
    threads: Vec<JoinHandle<()>>,
}

/// The state that a thread needs to begin a region.
struct Current {
    /// The PEs; `None` after a region has failed.
    ranks: Option<Arc<Ranks>>,
    /// PE 0 of `ranks`, between regions. `None` before the first region, and if there were handles
    /// on it when the last one ended.
    idle: Option<Idle>,
    /// The number of the last region. It is also in a line that the other PEs have read, and which
    /// may therefore be far from this one.
    number: u64,
}

/// The state that the caller and the threads of a pool share.
struct Shared {
    start: Start,
    /// By rank.
    ends: Box<[End]>,
    starting: Event,
    ending: Event,
    process: ProcessToken,
    /// The PEs of the current region, which the pool owns. They change after a region has failed.
    ranks: AtomicPtr<Ranks>,
    /// The errors of the current region.
    errors: Mutex<Errors>,
    /// The pool in whose region the current region began, or null.
    outer: AtomicPtr<Self>,
    /// How long a thread polls after a region before it may sleep, in nanoseconds.
    warm_ns: AtomicU64,
}

/// The region that began last. One line holds all that a PE needs to run it.
#[repr(C, align(128))]
struct Start {
    /// The region's number; 0 before the first, and [`OVER`] at the end of the pool.
    number: AtomicU64,
    /// Runs the program; `None` tells the threads to give up their PEs.
    call: Cell<Option<Call>>,
    program: Cell<*const ()>,
    /// The place of a small program.
    inline: UnsafeCell<[MaybeUninit<u64>; PROGRAM_WORDS]>,
}

/// The number of a region in which the threads end.
const OVER: u64 = u64::MAX;

/// Runs the program at an address on a PE, and stores its result at another address. Returns the
/// text of an error.
type Call = unsafe fn(program: *const (), pe: &Pe, result: *mut ()) -> Result<(), String>;

/// The largest program in the line of a region, and the largest result in the line of a PE, in
/// words.
const PROGRAM_WORDS: usize = 5;
const RESULT_WORDS: usize = 5;

/// The last region that a PE has left, and how.
#[repr(C, align(128))]
struct End {
    number: AtomicU64,
    /// The fingerprint of the PE's calls.
    fingerprint: Cell<u64>,
    /// Whether the PE has run the program, so there may be a result.
    has_run: Cell<bool>,
    has_failed: Cell<bool>,
    result: UnsafeCell<[MaybeUninit<u64>; RESULT_WORDS]>,
}

impl Start {
    fn new() -> Self {
        Self {
            number: AtomicU64::new(0),
            call: Cell::new(None),
            program: Cell::new(ptr::null()),
            inline: UnsafeCell::new([MaybeUninit::uninit(); PROGRAM_WORDS]),
        }
    }
}

impl End {
    fn new() -> Self {
        Self {
            number: AtomicU64::new(0),
            fingerprint: Cell::new(0),
            has_run: Cell::new(false),
            has_failed: Cell::new(false),
            result: UnsafeCell::new([MaybeUninit::uninit(); RESULT_WORDS]),
        }
    }
}

// SAFETY: the cells and places follow this rule. While no region runs, only the thread that has
// locked `Pool::current` accesses them. During a region, its PEs only read `start`, and each PE
// accesses its own entry of `ends`. The numbers of the lines, which are stored with release and
// loaded with acquire, order these accesses. The contract of `Turn::run` covers the program and the
// results.
unsafe impl Sync for Shared {}
// SAFETY: as above.
unsafe impl Send for Shared {}

thread_local! {
    /// The pool whose region the thread is in, or null. It has no destructor, so it can be read as
    /// long as the thread lives, even by destructors of other thread-local values, which may run
    /// regions.
    static INSIDE: Cell<*const Shared> = const { Cell::new(ptr::null()) };
}

// A failed region leaves nothing behind: the next one has new PEs.
impl UnwindSafe for Pool {}
impl RefUnwindSafe for Pool {}

/// A PE on its thread, between and in regions.
struct Member<'s> {
    shared: &'s Shared,
    rank: Rank,
    /// The PE, with the PEs of its job; `None` before its first region, and after one has failed.
    pe: Option<(Arc<Ranks>, Pe)>,
    /// The moves away from processors on which other PEs waited.
    moves: Cell<Moves>,
}

impl Member<'_> {
    /// Runs regions until the end of the pool.
    fn run_regions(&mut self) {
        let Self { shared, rank, .. } = *self;
        let Shared { start, ends, starting, ending, .. } = shared;
        let (mut last, own) = (0, &ends[rank.index()]);
        loop {
            let begun = || {
                // Acquire: pairs with the release in `Shared::start`.
                Some(start.number.load(Acquire)).filter(|&number| number != last)
            };
            last = shared.poll_while_warm(begun).unwrap_or_else(|| {
                starting.wait_then(begun, || {
                    if let Some((ranks, _)) = &self.pe {
                        ranks.job.leave_shared_processor(rank, last, &self.moves);
                    }
                })
            });
            if last == OVER {
                return;
            }
            own.has_run.set(false);
            let ended = if start.call.get().is_some() {
                self.run(last)
            } else {
                self.give_up();
                Ok(0)
            };
            if !shared.process.is_current() {
                return; // in a child that the program has forked, this is the only thread
            }
            own.fingerprint.set(*ended.as_ref().unwrap_or(&0));
            own.has_failed.set(ended.is_err());
            if let Err(error) = ended {
                shared.errors().push((rank, *error));
            }
            own.number.store(last, Release); // pairs with the acquire in `Shared::end`
            ending.notify();
        }
    }

    /// Runs the program of the region of this number. Returns the fingerprint of the PE's calls.
    fn run(&mut self, region: u64) -> Result<u64, Box<Error>> {
        let Self { shared, rank, .. } = *self;
        if self.pe.is_none() {
            let ranks = shared.ranks.load(Relaxed).cast_const();
            // SAFETY: the pointer is from an `Arc` that the pool owns during the region.
            unsafe { Arc::increment_strong_count(ranks) };
            // SAFETY: as above; the count that this takes over was just added.
            let ranks = unsafe { Arc::from_raw(ranks) };
            let pe = entered(&ranks, rank)?;
            self.pe = Some((ranks, pe));
        }
        let (ranks, pe) = self.pe.as_ref().expect("it has been entered");
        shared.run(ranks, pe, region)
    }

    /// Gives the PE up, because its job has failed.
    fn give_up(&mut self) {
        let given_up = catch_unwind(AssertUnwindSafe(|| {
            if let Some((ranks, pe)) = self.pe.take() {
                ranks.leave(pe);
            }
            kept::forget_ended();
        }));
        discard(given_up.err());
    }
}

/// Returns a PE of a pool for the calling thread, which is the only one to run it.
fn entered(ranks: &Arc<Ranks>, rank: Rank) -> Result<Pe> {
    let enter = || ranks.enter(rank).map(|pe| pe.expect("one thread runs a PE"));
    catch_unwind(AssertUnwindSafe(enter))
        .unwrap_or_else(|panic| Err(failed_by(&ranks.job, rank, panic)))
}

impl Shared {
    /// Runs regions on the thread of a PE until the end of the pool.
    fn work(&self, rank: Rank) {
        INSIDE.set(self);
        let mut member = Member { shared: self, rank, pe: None, moves: Cell::default() };
        member.run_regions();
        if self.process.is_current() {
            member.give_up();
        } else {
            let _ = ManuallyDrop::new(member); // the PE belongs to the parent
        }
        // The kept values are dropped first, while the thread's other values still exist.
        let forgotten = catch_unwind(kept::forget_all);
        discard(forgotten.err());
        INSIDE.set(ptr::null());
    }

    /// Runs the program of the region of this number on a PE of the calling thread. Returns the
    /// fingerprint of the PE's calls.
    fn run(&self, ranks: &Ranks, pe: &Pe, region: u64) -> Result<u64, Box<Error>> {
        let program = |pe: &Pe| {
            let Self { start, ends, .. } = self;
            let own = &ends[pe.world().rank().index()];
            kept::forget_ended();
            own.has_run.set(true);
            let call = start.call.get().expect("a region has a program");
            // SAFETY: the program is one of `call`, and lives until all PEs have left the region,
            // by the contract of `Turn::run`. There is room for its result, or it stores none here.
            unsafe { call(start.program.get(), pe, own.result.get().cast()) }
        };
        ranks.run_entered(pe, &program, Ending::EndsRegion(region))?;
        Ok(pe.state().endpoint.fingerprint())
    }

    fn errors(&self) -> MutexGuard<'_, Errors> {
        self.errors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether a region of this pool waits for the regions of `inner`, directly or through
    /// pools in between.
    fn waits_for(&self, inner: *const Self) -> bool {
        let mut pool = inner;
        // SAFETY: the calling thread is a PE of `inner`, or in a region of it. The pool in which
        // its region began, and so on, waits for it, so they all last until this call has returned.
        // A pool without a region has no outer one.
        while let Some(inside) = unsafe { pool.as_ref() } {
            if ptr::eq(inside, self) {
                return true;
            }
            pool = inside.outer.load(Relaxed);
        }
        false
    }

    /// Records the pool in whose region the current region begins; null if there is none, because
    /// the pool that was recorded earlier may be gone.
    fn set_outer(&self, outer: *const Self) {
        // A needless store would take the line from the other PEs.
        if !ptr::eq(self.outer.load(Relaxed), outer) {
            self.outer.store(outer.cast_mut(), Relaxed);
        }
    }

    /// Calls `makes` as in a region, so that subscribers to its events cannot run one.
    fn inside<T>(&self, makes: impl FnOnce() -> T) -> T {
        let outer = INSIDE.replace(self);
        self.set_outer(outer);
        let made = catch_unwind(AssertUnwindSafe(makes));
        self.set_outer(ptr::null());
        INSIDE.set(outer);
        made.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Polls for as long as the threads stay warm. Returns what `begun` returns by then.
    fn poll_while_warm(&self, begun: impl Fn() -> Option<u64>) -> Option<u64> {
        let warm = Duration::from_nanos(self.warm_ns.load(Relaxed));
        if warm.is_zero() {
            return None;
        }
        let start = Instant::now();
        while start.elapsed() < warm {
            for _ in 0..POLLS_PER_YIELD {
                if let Some(number) = begun() {
                    return Some(number);
                }
                hint::spin_loop();
            }
            thread::yield_now();
        }
        None
    }

    /// Begins the region of this number on the threads of all other PEs.
    fn start(&self, number: u64) {
        self.start.number.store(number, Release); // pairs with the acquire in `run_regions`
        self.starting.notify();
    }

    /// Waits until all other PEs have left the region of this number. Returns whether each of them
    /// has succeeded, and all their calls have this fingerprint.
    fn end(&self, job: &Job, number: u64, fingerprint: u64) -> bool {
        let mut is_good = true;
        for end in &self.ends[1..] {
            // Acquire: pairs with the release in `run_regions`.
            let ended = || (end.number.load(Acquire) == number).then_some(());
            // The others learn where this PE waits; it has the lowest rank, so it stays there.
            self.ending.wait_then(ended, || {
                job.leave_shared_processor(Rank(0), number, &Cell::default());
            });
            is_good &= !end.has_failed.get() && end.fingerprint.get() == fingerprint;
        }
        is_good
    }
}

/// A region of the calling thread, which is PE 0. No other region begins until this is dropped.
struct Turn<'p> {
    shared: &'p Shared,
    current: BiasedGuard<'p, Current>,
    /// The PE of the calling thread, until the region begins; `None` if `current` has it.
    pe: Option<Pe>,
}

/// The errors of a region's PEs; none if the job has failed otherwise.
type Errors = Vec<(Rank, Error)>;

/// How a region has ended. It fits into two registers, because all regions pass it on.
type Ended = Result<(), Box<[(Rank, Error)]>>;

impl Turn<'_> {
    /// Runs the region with this program, by `call`. Returns the program, and the errors if the
    /// region has failed.
    ///
    /// # Safety
    /// `call` takes an `F`. Any thread may use it, and its results.
    unsafe fn run<F>(&mut self, program: F, call: Call) -> (F, Ended) {
        let Start { call: called, program: at, inline, .. } = &self.shared.start;
        let mut program = ManuallyDrop::new(program);
        let is_small = size_of::<F>() <= 8 * PROGRAM_WORDS && align_of::<F>() <= align_of::<u64>();
        let place = if is_small { inline.get().cast::<F>() } else { &raw mut *program };
        if is_small {
            // SAFETY: the program moves to a place with room for it, which nobody else accesses,
            // because no region runs.
            unsafe { place.copy_from_nonoverlapping(&raw const *program, 1) };
        }
        at.set(place.cast_const().cast());
        called.set(Some(call));
        let ended = self.run_region();
        // SAFETY: the program is there, and all PEs have left the region. This moves it out.
        (unsafe { place.read() }, ended)
    }

    /// Runs the region.
    fn run_region(&mut self) -> Ended {
        let Self { shared, ref mut current, ref mut pe } = *self;
        let Current { ranks, idle, number } = &mut **current;
        let ranks = ranks.as_ref().expect("the turn has its PEs");
        *number += 1;
        let number = *number;
        let outer = INSIDE.replace(shared);
        shared.set_outer(outer);
        ranks.job.begin_region(number);
        shared.ends[0].has_run.set(false);
        // Nothing unwinds until `end` has returned. A child that the program forks has none of the
        // threads.
        shared.start(number);
        let pe = pe.take().or_else(|| idle.take().map(Idle::resume));
        let pe = pe.expect("a turn has one region");
        let ended = shared.run(ranks, &pe, number);
        let left = catch_unwind(AssertUnwindSafe(|| ranks.leave_idle(pe)));
        let ended = match left {
            Ok(left) => {
                *idle = left;
                ended
            }
            Err(panic) => Err(Box::new(failed_by(&ranks.job, Rank(0), panic))),
        };
        INSIDE.set(outer);
        if !shared.process.is_current() {
            return Err(Box::new([(Rank(0), Error::Forked)])); // the program has forked this child
        }
        let is_good = shared.end(&ranks.job, number, *ended.as_ref().unwrap_or(&0));
        if is_good && ended.is_ok() && !ranks.job.is_poisoned() {
            shared.set_outer(ptr::null());
            return Ok(());
        }
        drop(idle.take()); // gives PE 0 back: `compare_calls` needs all PEs in their places
        let mut errors = std::mem::take(&mut *shared.errors());
        errors.extend(ended.err().map(|error| (Rank(0), *error)));
        if errors.is_empty() && !is_good {
            ranks.compare_calls();
        }
        Err(errors.into_boxed_slice())
    }

    /// Ends a region that has failed with these errors: the next one has new PEs. Returns its
    /// cause.
    fn fail(self, errors: Errors) -> Failed {
        let Self { shared, mut current, .. } = self;
        if !shared.process.is_current() {
            return Failed { culprit: None, error: Error::Forked };
        }
        let ranks = current.ranks.take().expect("the turn has its PEs");
        let failed = ranks.first_cause(errors);
        // Values that PEs drop when they are given up may run regions.
        shared.set_outer(INSIDE.get());
        shared.start.call.set(None);
        current.number += 1;
        shared.start(current.number);
        shared.end(&ranks.job, current.number, 0);
        shared.set_outer(ptr::null());
        // Values that the program has left in its PEs may use the pool when they are dropped.
        drop(current);
        let dropped = catch_unwind(AssertUnwindSafe(|| {
            drop(ranks);
            kept::forget_ended();
        }));
        discard(dropped.err()); // the region has its error
        failed
    }
}

impl Pool {
    pub(crate) fn new(
        makes: impl Fn() -> Result<Arc<Ranks>> + Send + Sync + 'static,
    ) -> Result<Self> {
        let ranks = makes()?;
        let size = ranks.size();
        let Config { here, processors, .. } = *ranks.job.config();
        let starting = Event::new(here, processors);
        let ending = starting.beside();
        let shared = Arc::new(Shared {
            start: Start::new(),
            ends: (0..size).map(|_| End::new()).collect(),
            starting,
            ending,
            process: ProcessToken::current(),
            ranks: AtomicPtr::new(Arc::as_ptr(&ranks).cast_mut()),
            errors: Mutex::default(),
            outer: AtomicPtr::default(),
            warm_ns: AtomicU64::new(0),
        });
        let makes = Box::new(makes);
        let current = BiasedMutex::new(Current { ranks: None, idle: None, number: 0 });
        current.bias_to(ThreadToken::current());
        let mut pool = Self { shared, current, makes, threads: vec![] };
        let refused =
            |error| Error::Launch(LaunchError::Thread { rank: Rank(0), reason: of_thread(&error) });
        let many = ManyThreadStart::of(size).map_err(refused)?;
        for rank in ranks.here().skip(1) {
            let (shared, placing) = (Arc::clone(&pool.shared), Arc::clone(&ranks));
            let body = move || {
                placing.settle(rank);
                drop(placing);
                shared.work(rank);
            };
            let name = ranks.job.config().thread_name(rank);
            let thread = started(name, |named| named.spawn(body));
            pool.threads.push(
                thread.map_err(|reason| Error::Launch(LaunchError::Thread { rank, reason }))?,
            );
        }
        drop(many);
        pool.locked().expect("nobody else has the pool").ranks = Some(ranks);
        Ok(pool)
    }

    /// Locks the state of the pool. Returns `None` if the calling thread has the lock by its bias.
    fn locked(&self) -> Option<BiasedGuard<'_, Current>> {
        self.current.lock(ThreadToken::current())
    }

    /// Returns the number of PEs.
    #[must_use]
    pub fn size(&self) -> usize {
        self.shared.ends.len()
    }

    /// Makes the threads poll for `time` after each region before they may sleep. The next region
    /// then begins after a transfer of a cache line, and not after a wake-up, which takes some ten
    /// microseconds. A thread that polls uses a core. The default is zero: threads then poll for
    /// some microseconds, depending on earlier waits.
    ///
    /// A new time takes effect at the end of the next region.
    ///
    /// ```
    /// # use std::time::Duration;
    /// let pool = consort::Job::threads(2).pool()?;
    /// pool.keep_warm(Duration::from_millis(20)); // a frame of a control loop
    /// # Ok::<(), consort::Error>(())
    /// ```
    pub fn keep_warm(&self, time: Duration) {
        self.shared.warm_ns.store(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Relaxed);
    }

    /// Runs `program` on every PE and returns the results, in the order of the ranks. The calling
    /// thread is PE 0 meanwhile. If another thread runs a region, waits until it is over.
    ///
    /// # Errors
    /// [`LaunchError::Nested`] in a region of this pool; [`Error::Forked`] in a child that was
    /// forked after the pool was created; otherwise as [`JobBuilder::run`](crate::JobBuilder::run).
    pub fn run<R, F>(&self, program: F) -> Result<Results<R>>
    where
        R: Send,
        F: Fn(&Pe) -> Result<R> + Sync,
    {
        self.try_run(program)
    }

    /// As [`Pool::run`], with an input for each PE, in the order of the ranks. See
    /// [`JobBuilder::run_with`](crate::JobBuilder::run_with).
    ///
    /// # Errors
    /// [`LaunchError::InputCount`] when there are fewer or more inputs than PEs, and as
    /// [`Pool::run`].
    pub fn run_with<T, R, F>(
        &self,
        inputs: impl IntoIterator<Item = T>,
        program: F,
    ) -> Result<Results<R>>
    where
        T: Send,
        R: Send,
        F: Fn(&Pe, T) -> Result<R> + Sync,
    {
        self.try_run_with(inputs, program)
    }

    /// As [`Pool::run`], for a program with its own error type. See
    /// [`JobBuilder::try_run`](crate::JobBuilder::try_run).
    ///
    /// # Errors
    /// The error of the PE that failed first; the errors of [`Pool::run`], as `E`.
    pub fn try_run<R, E, F>(&self, program: F) -> Result<Results<R>, E>
    where
        R: Send,
        E: From<Error> + fmt::Display + Send,
        F: Fn(&Pe) -> Result<R, E> + Sync,
    {
        if const { fits::<R, E>() } {
            return self.run_inline(program);
        }
        collect(vec![(); self.size()], |pe, ()| program(pe), |program| self.region(program))
    }

    /// Combines [`Pool::run_with`] and [`Pool::try_run`].
    ///
    /// # Errors
    /// As both.
    pub fn try_run_with<T, R, E, F>(
        &self,
        inputs: impl IntoIterator<Item = T>,
        program: F,
    ) -> Result<Results<R>, E>
    where
        T: Send,
        R: Send,
        E: From<Error> + fmt::Display + Send,
        F: Fn(&Pe, T) -> Result<R, E> + Sync,
    {
        let inputs = one_for_each(self.size(), inputs)?;
        collect(inputs, program, |program| self.region(program))
    }

    /// Passes a turn to `body`, which runs the region.
    fn turn(&self, body: &mut dyn FnMut(&mut Turn<'_>) -> Ended) -> Result<(), Failed> {
        let of_pool = |error| Err(Failed { culprit: None, error });
        let Self { shared, makes, .. } = self;
        if !shared.process.is_current() {
            return of_pool(Error::Forked); // the threads belong to the parent
        }
        if shared.waits_for(INSIDE.get()) {
            return of_pool(Error::Launch(LaunchError::Nested));
        }
        let Some(current) = self.locked() else {
            // This thread works on the pool, and has called a subscriber or a destructor.
            return of_pool(Error::Launch(LaunchError::Nested));
        };
        let mut turn = Turn { shared, current, pe: None };
        if turn.current.idle.is_none() {
            let ranks = match &mut turn.current.ranks {
                Some(ranks) => ranks,
                none => {
                    let ranks = match shared.inside(makes) {
                        Ok(ranks) => none.insert(ranks),
                        Err(error) => return of_pool(error),
                    };
                    shared.ranks.store(Arc::as_ptr(ranks).cast_mut(), Relaxed);
                    ranks
                }
            };
            match entered(ranks, Rank(0)) {
                Ok(pe) => turn.pe = Some(pe),
                Err(error) if !ranks.job.is_poisoned() => return of_pool(error),
                // The job has failed before, for another reason.
                Err(Error::Launch(LaunchError::HeldElsewhere { .. })) => {
                    return Err(turn.fail(Vec::new()));
                }
                Err(error) => return Err(turn.fail(vec![(Rank(0), error)])),
            }
        }
        body(&mut turn).map_err(|errors| turn.fail(errors.into_vec()))
    }

    /// Runs a program on all PEs, in one region.
    fn region(&self, program: &Program<'_>) -> Result<(), Failed> {
        /// # Safety
        /// The program is a `&Program`.
        unsafe fn call(program: *const (), pe: &Pe, _: *mut ()) -> Result<(), String> {
            // SAFETY: by the contract of this function.
            let program = unsafe { *program.cast::<&Program<'_>>() };
            program(pe)
        }
        // SAFETY: a program is `Sync`, and stores its results itself.
        self.turn(&mut |turn| unsafe { turn.run(program, call) }.1)
    }

    /// Runs a program on all PEs in one region, with its results in the lines of the PEs.
    fn run_inline<R, E, F>(&self, program: F) -> Result<Results<R>, E>
    where
        R: Send,
        E: From<Error> + fmt::Display + Send,
        F: Fn(&Pe) -> Result<R, E> + Sync,
    {
        /// # Safety
        /// The program is an `F`, and there is room for the result.
        unsafe fn call<R, E: fmt::Display, F: Fn(&Pe) -> Result<R, E>>(
            program: *const (),
            pe: &Pe,
            result: *mut (),
        ) -> Result<(), String> {
            let result = result.cast::<InlineResult<R, E>>();
            // SAFETY: by the contract of this function.
            let program = unsafe { &*program.cast::<F>() };
            // SAFETY: as above.
            unsafe { result.write(None) };
            let own = program(pe).map_err(Box::new);
            let ended = own.as_ref().map(drop).map_err(|error| error.to_string());
            // SAFETY: as above; what this overwrites needs no drop.
            unsafe { result.write(Some(own)) };
            ended
        }
        // The program and what a failed region leaves are dropped after the turn, because they may
        // use the pool then.
        let mut program = Some(program);
        // Only the values leave the turn: a `Result` with room for an error is large to copy.
        let (mut values, mut left) = (Vec::new(), Vec::new());
        let ended = self.turn(&mut |turn| {
            let moved = program.take().expect("a turn has one region");
            // SAFETY: a program is `Sync`, and its results are `Send`.
            let (moved, ended) = unsafe { turn.run(moved, call::<R, E, F>) };
            program = Some(moved);
            let of_ends = turn.shared.ends.iter().map(|end| {
                let result = end.result.get().cast::<InlineResult<R, E>>();
                // SAFETY: all PEs have left the region, and `call` has stored a result if it has
                // run. It is read once, because the next region stores another one.
                if end.has_run.get() { unsafe { result.read() } } else { None }
            });
            match ended {
                Ok(()) => {
                    let value = |result: InlineResult<R, E>| {
                        result.and_then(Result::ok).expect("each PE has succeeded")
                    };
                    values = of_ends.map(value).collect();
                }
                // In a forked child, the results of other PEs may be incomplete copies.
                Err(_) if !turn.shared.process.is_current() => {}
                Err(_) => left = of_ends.collect(),
            }
            ended
        });
        match ended {
            Ok(()) => Ok(Results::of_all(values)),
            failed => results_of(failed, left.into_iter()),
        }
    }
}

/// The result of a PE in its line; `None` while the program runs, and after it has panicked. An
/// error is large.
type InlineResult<R, E> = Option<Result<R, Box<E>>>;

/// Returns whether a result has room there.
const fn fits<R, E>() -> bool {
    size_of::<InlineResult<R, E>>() <= 8 * RESULT_WORDS
        && align_of::<InlineResult<R, E>>() <= align_of::<u64>()
}

impl Drop for Pool {
    fn drop(&mut self) {
        if !self.shared.process.is_current() {
            // A forked child has none of the threads, and cannot wait for them.
            let _ = ManuallyDrop::new(std::mem::take(&mut self.threads));
            return;
        }
        let Current { ranks, idle, .. } = self.current.get_mut();
        drop(idle.take());
        let ranks = ranks.take();
        let forget = || ranks.as_ref().map(|ranks| ranks.forget_kept(Rank(0)));
        let forgotten = catch_unwind(AssertUnwindSafe(forget));
        // A value that a thread drops at its end must not wait for the region that this is in.
        self.shared.set_outer(INSIDE.get());
        self.shared.start(OVER);
        for thread in self.threads.drain(..) {
            // The thread catches the panics of programs, and does not panic itself.
            let _ = thread.join();
        }
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(ranks)));
        let mut panics = [forgotten.err(), dropped.err()].into_iter().flatten();
        let first = panics.next();
        panics.for_each(discard);
        if let Some(panic) = first {
            if thread::panicking() { discard(panic) } else { resume_unwind(panic) }
        }
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("size", &self.size()).finish_non_exhaustive()
    }
}
