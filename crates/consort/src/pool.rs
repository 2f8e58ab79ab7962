//! PEs that stay, and run one program after the other.
//!
//! Source of the idea: the parallel regions of OpenMP, whose threads wait for the next region.
//!
//! A region begins when the caller stores its number and address in one cache line, which all other
//! PEs watch. Each PE ends by storing the number in its own line, which the caller watches. So a
//! region costs two transfers of a cache line in addition to its program. PEs sleep in long waits.

#![expect(unsafe_code, reason = "passes a borrowed program to other threads")]

use std::{
    cell::RefCell,
    fmt,
    mem::ManuallyDrop,
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
};

use consort_fabric::Rank;
use consort_machine::{ProcessToken, advice::of_thread, discard, threads::ManyThreadStart};
use consort_native::Event;

use crate::{
    Error, Pe, Result,
    error::LaunchError,
    pe::Ending,
    ranks::{Ranks, started},
    results::{Failed, Program, Results, collect, one_for_each},
    runtime::kept,
};

/// PEs that stay, and run one program after the other: each in a *parallel region*, which all PEs
/// have left before the call that began it returns. From
/// [`JobBuilder::pool`](crate::JobBuilder::pool).
///
/// Threads that share a pool run their regions one after the other. So a program in a region must
/// not wait for a thread that runs a region of the same pool; nor may two pools run regions of each
/// other at the same time.
///
/// A region costs about a microsecond, whereas [`JobBuilder::run`](crate::JobBuilder::run) starts
/// threads and takes memory for each program. The thread that calls [`Pool::run`] is PE 0 during
/// the region; each other PE has its own thread, which sleeps in long waits. Plans, and the wisdom
/// of earlier calls, persist between regions. So do the teams, symmetric memory and plans in a
/// value that the PE [keeps](Pe::keep).
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
    /// The PEs; `None` after a region has failed. Locked during a region.
    ranks: Mutex<Option<Arc<Ranks>>>,
    makes: Box<dyn Fn() -> Result<Arc<Ranks>> + Send + Sync>,
    threads: Vec<JoinHandle<()>>,
}

/// The state that the caller and the threads of a pool share.
struct Shared {
    start: Start,
    /// By rank; the entry of PE 0 is not used.
    ends: Box<[End]>,
    starting: Event,
    ending: Event,
    process: ProcessToken,
    /// The pool in whose region the current region began.
    outer: Mutex<Option<Arc<Self>>>,
}

/// The region that began last.
#[repr(align(128))]
struct Start {
    /// Its number; 0 before the first.
    number: AtomicU64,
    /// Null at the end of the pool.
    region: AtomicPtr<Region<'static>>,
}

/// The last region that a PE has left.
#[repr(align(128))]
#[derive(Default)]
struct End {
    number: AtomicU64,
    /// The fingerprint of the PE's calls.
    fingerprint: AtomicU64,
}

/// A region, from the view of its PEs.
struct Region<'r> {
    program: &'r Program<'r>,
    ranks: &'r Arc<Ranks>,
    errors: Mutex<Vec<(Rank, Error)>>,
}

thread_local! {
    /// The pool whose region the thread is in. It has no destructor, so it can be read as long as
    /// the thread lives, even by destructors of other thread-local values, which may run regions.
    static INSIDE: RefCell<ManuallyDrop<Option<Arc<Shared>>>> =
        const { RefCell::new(ManuallyDrop::new(None)) };
}

/// Returns the pool whose region the calling thread is in.
fn enclosing() -> Option<Arc<Shared>> {
    INSIDE.with(|inside| inside.borrow().as_ref().map(Arc::clone))
}

/// Sets the pool whose region the calling thread is in.
fn enter(pool: Option<Arc<Shared>>) {
    INSIDE.with(|inside| drop(ManuallyDrop::into_inner(inside.replace(ManuallyDrop::new(pool)))));
}

// A failed region leaves nothing behind: the next one has new PEs.
impl UnwindSafe for Pool {}
impl RefUnwindSafe for Pool {}

impl Region<'_> {
    /// Runs the program on a PE, and returns the fingerprint of its calls.
    fn run(&self, rank: Rank) -> u64 {
        self.ranks.run(rank, self.program, Ending::Finishes).unwrap_or_else(|error| {
            self.errors.lock().unwrap_or_else(PoisonError::into_inner).push((rank, error));
            0
        })
    }
}

impl Shared {
    /// Runs regions on the thread of a PE until the end of the pool.
    fn work(self: &Arc<Self>, rank: Rank) {
        enter(Some(Arc::clone(self)));
        self.run_regions(rank);
        // Now, so that no value of the thread is gone before.
        let forgotten = catch_unwind(kept::forget_all);
        discard(forgotten.err());
        enter(None);
    }

    fn run_regions(&self, rank: Rank) {
        let (mut last, own) = (0, &self.ends[rank.index()]);
        loop {
            last = self.starting.wait(|| {
                // Acquire: pairs with the release in `start`.
                Some(self.start.number.load(Acquire)).filter(|&number| number != last)
            });
            let region = self.start.region.load(Relaxed);
            // SAFETY: the pointer is null, or from a reference. The region lives until all threads
            // have stored its number in their lines, which this thread does only below.
            let Some(region) = (unsafe { region.as_ref() }) else { return };
            let fingerprint = region.run(rank);
            if !self.process.is_current() {
                return; // in a child that the program has forked, this is the only thread
            }
            own.fingerprint.store(fingerprint, Relaxed);
            own.number.store(last, Release); // pairs with the acquire in `end`
            self.ending.notify();
        }
    }

    fn outer(&self) -> MutexGuard<'_, Option<Arc<Self>>> {
        self.outer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether a region of this pool waits for a region that begins in a region of `inner`.
    fn waits_for(&self, inner: Option<Arc<Self>>) -> bool {
        let outer = |inner: &Arc<Self>| inner.outer().clone();
        std::iter::successors(inner, outer).any(|pool| ptr::eq(&*pool, self))
    }

    /// Begins a region on the threads of all other PEs.
    ///
    /// # Safety
    /// The region lives until `end` has returned.
    unsafe fn start(&self, region: *mut Region<'static>) {
        self.start.region.store(region, Relaxed);
        let number = self.start.number.load(Relaxed) + 1;
        self.start.number.store(number, Release); // pairs with the acquire in `work`
        self.starting.notify();
    }

    /// Waits until all other PEs have left the region. Returns whether their calls have this
    /// fingerprint.
    fn end(&self, fingerprint: u64) -> bool {
        let number = self.start.number.load(Relaxed);
        let mut same = true;
        for end in &self.ends[1..] {
            // Acquire: pairs with the release in `work`.
            self.ending.wait(|| (end.number.load(Acquire) == number).then_some(()));
            same &= end.fingerprint.load(Relaxed) == fingerprint;
        }
        same
    }
}

impl Pool {
    pub(crate) fn new(
        makes: impl Fn() -> Result<Arc<Ranks>> + Send + Sync + 'static,
    ) -> Result<Self> {
        let ranks = makes()?;
        let size = ranks.size();
        let fits = ranks.job.config().fits();
        let shared = Arc::new(Shared {
            start: Start { number: AtomicU64::new(0), region: AtomicPtr::new(ptr::null_mut()) },
            ends: (0..size).map(|_| End::default()).collect(),
            starting: Event::new(fits),
            ending: Event::new(fits),
            process: ProcessToken::current(),
            outer: Mutex::new(None),
        });
        let makes = Box::new(makes);
        let mut pool = Self { shared, ranks: Mutex::new(None), makes, threads: vec![] };
        let refused =
            |error| Error::Launch(LaunchError::Thread { rank: Rank(0), reason: of_thread(&error) });
        let starting = ManyThreadStart::of(size).map_err(refused)?;
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
        drop(starting);
        *pool.locked() = Some(ranks);
        Ok(pool)
    }

    fn locked(&self) -> MutexGuard<'_, Option<Arc<Ranks>>> {
        self.ranks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of PEs.
    #[must_use]
    pub fn size(&self) -> usize {
        self.shared.ends.len()
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
    /// [`LaunchError::Inputs`] when there are fewer or more inputs than PEs, and as [`Pool::run`].
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

    /// Runs a program on all PEs, in one region.
    fn region(&self, program: &Program<'_>) -> Result<(), Failed> {
        let of_pool = |error| Failed { culprit: None, error };
        if !self.shared.process.is_current() {
            return Err(of_pool(Error::Forked)); // the threads belong to the parent
        }
        let outer = enclosing();
        if self.shared.waits_for(outer.clone()) {
            return Err(of_pool(Error::Launch(LaunchError::Nested)));
        }
        let mut current = self.locked();
        let ranks = match &mut *current {
            Some(ranks) => ranks,
            none => none.insert((self.makes)().map_err(of_pool)?),
        };
        ranks.ensure_not_held_elsewhere(Rank(0)).map_err(of_pool)?;
        ranks.job.begin_region();
        let region = Region { program, ranks, errors: Mutex::default() };
        self.shared.outer().clone_from(&outer);
        enter(Some(Arc::clone(&self.shared)));
        // SAFETY: the region lives until `end` has returned, because nothing here panics before:
        // `run` catches the panics of a PE. A child that the program forks has none of the threads.
        unsafe { self.shared.start(ptr::from_ref(&region).cast_mut().cast()) };
        let fingerprint = region.run(Rank(0));
        if !self.shared.process.is_current() {
            enter(outer);
            return Err(of_pool(Error::Forked)); // the program has forked this child
        }
        let same = self.shared.end(fingerprint);
        enter(outer);
        *self.shared.outer() = None;
        let errors = region.errors.into_inner().unwrap_or_else(PoisonError::into_inner);
        if !same && errors.is_empty() {
            ranks.compare_calls();
        }
        if errors.is_empty() && !ranks.job.is_poisoned() {
            return Ok(());
        }
        let failed = ranks.first_cause(errors);
        *current = None;
        drop(current); // a kept value may use the pool when it is dropped
        kept::forget_ended();
        Err(failed)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if !self.shared.process.is_current() {
            // A forked child has none of the threads, and cannot wait for them.
            let _ = ManuallyDrop::new(std::mem::take(&mut self.threads));
            return;
        }
        let ranks = self.locked().take();
        let forgotten =
            catch_unwind(AssertUnwindSafe(|| ranks.map(|ranks| ranks.forget_kept(Rank(0)))));
        // SAFETY: there is no region.
        unsafe { self.shared.start(ptr::null_mut()) };
        for thread in self.threads.drain(..) {
            // The thread catches the panics of programs, and does not panic itself.
            let _ = thread.join();
        }
        if let Err(panic) = forgotten {
            if thread::panicking() { discard(panic) } else { resume_unwind(panic) }
        }
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("size", &self.size()).finish_non_exhaustive()
    }
}
