//! The PEs of a job, and for each PE whether a thread runs it.

#![expect(unsafe_code, reason = "a PE continues on another thread")]

use std::{
    io,
    mem::ManuallyDrop,
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    thread::{self, JoinHandle, ThreadId},
};

use consort_fabric::Rank;
use consort_machine::{
    Cores, Panic,
    advice::of_thread,
    affinity::{self, CpuId},
    discard, panic_reason,
};
use consort_native::{Engine, Failure, Job, MemoryError};

use crate::{
    Error, Pe, Result,
    error::LaunchError,
    pe::Ending,
    results::{Failed, Program},
    runtime::{
        hold::{States, TakesBack, ThreadBoundPe},
        kept,
        plans::Ready,
        selection::Choices,
    },
    warn::event,
};

/// The cores on which the PEs of a job run.
#[derive(Debug)]
pub(crate) struct Placement {
    pub(crate) cores: Cores,
    /// Whether each PE stays on its core.
    pub(crate) holds: bool,
}

/// The PEs of a job.
pub(crate) struct Ranks {
    pub(crate) job: Arc<Job>,
    placement: Option<Arc<Placement>>,
    choices: Choices,
    places: Box<[Mutex<Place>]>,
    helpers: Mutex<Vec<Helper>>,
}

/// The state of one PE.
enum Place {
    /// No thread has run it.
    New,
    /// A thread has run it, and left.
    Left(Idle),
    /// No thread runs it, but one has handles on it.
    Held(Held),
    /// A thread runs it.
    Taken,
}

/// A PE that no thread runs, and on which there are no handles. When this is dropped, its job gets
/// the PE back.
pub(crate) struct Idle(Rc<ThreadBoundPe>);

// SAFETY: a PE is bound to one thread by the reference counts and cells that its parts share. All
// of them are inside: whatever else refers to them has a reference to the owner, and there is none
// but this one. The callbacks that others registered, which may capture anything, are gone. Values
// that a program or another thread may have put in can be sent, as is checked below.
unsafe impl Send for Idle {}

impl Idle {
    /// # Safety
    /// There is no other reference to the owner, weak or strong.
    unsafe fn new(owner: Rc<ThreadBoundPe>) -> Self {
        owner.world.endpoint.forget_callbacks();
        Self(owner)
    }

    /// Returns the PE, for the calling thread to run. Its job is not told: only threads that join
    /// a job arrive and depart.
    pub(crate) fn resume(self) -> Pe {
        Pe::of(self.0)
    }
}

/// A PE that no thread runs, but on which this thread has handles; any thread if it is `None`.
struct Held {
    thread: Option<ThreadId>,
    owner: *const ThreadBoundPe,
}

// SAFETY: only the thread that has the handles follows the pointer, or any thread if the handles
// may change threads, by the contract of `bindings::bind_to_process`.
unsafe impl Send for Held {}

impl Held {
    /// Returns the owner, if the calling thread has the handles.
    fn on_this_thread(&self) -> Option<Rc<ThreadBoundPe>> {
        if self.thread.is_some_and(|of| of != this_thread()) {
            return None;
        }
        // SAFETY: the pointer is of an `Rc`. The owner is alive, because this place changes when
        // the last handle on it is dropped, and the handles are on this thread.
        unsafe { Rc::increment_strong_count(self.owner) };
        // SAFETY: as above; the count that this takes over was just added.
        Some(unsafe { Rc::from_raw(self.owner) })
    }
}

/// Returns the id of the calling thread. It is kept, because [`thread::current`] counts a reference
/// to the thread, by two atomic operations.
fn this_thread() -> ThreadId {
    thread_local! {
        static ID: ThreadId = thread::current().id();
    }
    ID.with(|&id| id)
}

/// Choices with a program's own algorithms, plans of them, and operations.
const _: () = is_send::<(Choices, Arc<dyn Ready>, Arc<Engine>)>();

const fn is_send<T: Send>() {}

/// The helper thread of a PE.
struct Helper {
    engine: Arc<Engine>,
    thread: JoinHandle<()>,
}

impl Ranks {
    pub(crate) fn new(job: Arc<Job>, placement: Option<Arc<Placement>>, choices: Choices) -> Self {
        let places = (0..job.config().pes).map(|_| Mutex::new(Place::New)).collect();
        Self { job, placement, choices, places, helpers: Mutex::default() }
    }

    /// Returns the number of PEs.
    pub(crate) fn size(&self) -> usize {
        self.places.len()
    }

    /// Returns the ranks of the PEs that threads of this process run.
    pub(crate) fn here(&self) -> impl Iterator<Item = Rank> + use<> {
        self.job.here().into_iter()
    }

    fn place(&self, rank: Rank) -> MutexGuard<'_, Place> {
        self.places[rank.index()].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the PE of this rank for the calling thread to run; `None` if another one runs it.
    ///
    /// # Errors
    /// [`LaunchError::HeldElsewhere`] when another thread has handles on it. [`Error::Memory`] when
    /// the system refuses memory for it, and [`LaunchError::Thread`] when its helper cannot be
    /// started: the job has then failed.
    pub(crate) fn enter(self: &Arc<Self>, rank: Rank) -> Result<Option<Pe>> {
        let mut place = self.place(rank);
        let pe = match std::mem::replace(&mut *place, Place::Taken) {
            Place::Taken => return Ok(None),
            Place::Left(idle) => idle.resume(),
            Place::Held(held) => match held.on_this_thread() {
                Some(owner) => Pe::of(owner),
                None => {
                    *place = Place::Held(held);
                    return Err(LaunchError::HeldElsewhere { rank }.into());
                }
            },
            Place::New => {
                let (choices, taking_back) = (self.choices.clone(), self.taking_back());
                let pe = Pe::new(&self.job, rank, choices, taking_back).inspect_err(|error| {
                    self.job.poison(&Failure::Pe { rank, reason: error.to_string() });
                })?;
                if self.job.config().helpers
                    && let Err(error) = self.start_helper(&pe)
                {
                    drop(place); // the PE is given back
                    return Err(error);
                }
                pe
            }
        };
        self.job.arrive(rank);
        Ok(Some(pe))
    }

    /// Takes a PE back from the thread that ran it.
    pub(crate) fn leave(&self, pe: Pe) {
        let rank = pe.world().rank();
        if let Some(idle) = self.leave_idle(pe) {
            *self.place(rank) = Place::Left(idle);
        }
    }

    /// As [`Self::leave`], but gives the PE to the caller if there are no handles on it. Until the
    /// caller drops it, only [`Idle::resume`] can enter it.
    pub(crate) fn leave_idle(&self, pe: Pe) -> Option<Idle> {
        let rank = pe.world().rank();
        let owner = pe.into_owner();
        self.job.depart(rank);
        if Rc::strong_count(&owner) == 1 {
            // SAFETY: there is no other strong reference, and nothing makes weak ones.
            return Some(unsafe { Idle::new(owner) });
        }
        // The last handle calls `take_back`, later and on this thread.
        let thread = (!owner.changes_threads.get()).then(this_thread);
        *self.place(rank) = Place::Held(Held { thread, owner: Rc::as_ptr(&owner) });
        None
    }

    /// Returns the job to which a PE's states return.
    fn taking_back(self: &Arc<Self>) -> Weak<dyn TakesBack> {
        let job: Weak<Self> = Arc::downgrade(self);
        job
    }

    /// Drops what the PE of this rank keeps on the calling thread.
    pub(crate) fn forget_kept(&self, rank: Rank) {
        let owner = match &*self.place(rank) {
            Place::Held(held) => held.on_this_thread(),
            _ => None,
        };
        if let Some(owner) = owner {
            kept::forget(&owner);
        }
    }

    /// Starts a thread that drives the nonblocking calls of a PE.
    fn start_helper(&self, pe: &Pe) -> Result<()> {
        let rank = pe.world().rank();
        let (engine, job) = (Arc::clone(pe.state().endpoint.engine()), Arc::clone(&self.job));
        let helps = Arc::clone(&engine);
        let name = format!("helper of {}", job.config().thread_name(rank));
        let body = move || helps.help(|panic| drop(failed_by(&job, rank, panic)));
        match started(name, |named| named.spawn(body)) {
            Ok(thread) => {
                let mut helpers = self.helpers.lock().unwrap_or_else(PoisonError::into_inner);
                helpers.push(Helper { engine, thread });
                Ok(())
            }
            Err(reason) => {
                self.job.poison(&Failure::Pe { rank, reason: format!("has no helper: {reason}") });
                Err(LaunchError::Thread { rank, reason }.into())
            }
        }
    }

    /// Moves the calling thread to the processor of a PE.
    pub(crate) fn settle(&self, rank: Rank) {
        let Some(placement) = &self.placement else { return };
        let Placement { cores, holds } = &**placement;
        let place: fn(CpuId) -> _ = if *holds { affinity::pin } else { affinity::move_to };
        if let Err(error) = place(cores.cpus()[rank.index()]) {
            event(&format!("PE {rank} could not be moved to its core: {error}"));
        }
    }

    /// Runs a program on the PE of this rank to its end, on the calling thread.
    pub(crate) fn run(
        self: &Arc<Self>,
        rank: Rank,
        program: &Program<'_>,
        ending: Ending,
    ) -> Result<()> {
        let ended = catch_unwind(AssertUnwindSafe(|| {
            kept::forget_ended();
            let pe = self.enter(rank)?.expect("one thread runs a PE");
            let ended = self.run_entered(&pe, program, ending);
            self.leave(pe);
            ended.map_err(|error| *error)
        }));
        ended.unwrap_or_else(|panic| Err(failed_by(&self.job, rank, panic)))
    }

    /// Runs a program on a PE of the calling thread. An error is boxed, because it is large, and
    /// each region passes this result on.
    pub(crate) fn run_entered(
        &self,
        pe: &Pe,
        program: &dyn Fn(&Pe) -> Result<(), String>,
        ending: Ending,
    ) -> Result<(), Box<Error>> {
        let rank = pe.world().rank();
        let ended = catch_unwind(AssertUnwindSafe(|| {
            // The text of the program's own error is the reason that is reported to the others.
            program(pe).map_err(|reason| Error::PeFailed { rank, reason })?;
            pe.end(ending).map_err(Box::new)
        }));
        match ended {
            Ok(Ok(())) => Ok(()),
            ended => Err(Box::new(self.failed_on(pe, ended))),
        }
    }

    /// Fails the job because a PE's program has not ended well. Returns the PE's error.
    #[cold]
    fn failed_on(&self, pe: &Pe, ended: Result<Result<(), Box<Error>>, Panic>) -> Error {
        let (job, rank) = (&*self.job, pe.world().rank());
        let error = match ended {
            Ok(ended) => {
                let error = *ended.expect_err("it has not ended well");
                let reason = match &error {
                    Error::PeFailed { rank: of, reason } if *of == rank => reason.clone(),
                    error => error.to_string(),
                };
                job.poison(&Failure::Pe { rank, reason });
                error
            }
            Err(panic) => failed_by(job, rank, panic),
        };
        pe.abandon();
        error
    }

    /// Fails the job because the calls of its PEs, which no thread runs, do not match.
    #[cold]
    pub(crate) fn compare_calls(&self) {
        let place = self.place(Rank(0));
        let owner = match &*place {
            Place::Left(Idle(owner)) => Some(Rc::clone(owner)),
            Place::Held(held) => held.on_this_thread(),
            Place::New | Place::Taken => None,
        };
        if let Some(owner) = owner {
            // This fails the job for the PEs whose calls differ.
            let _ = owner.world.endpoint.finish();
        }
        drop(place);
        let reason = "its calls differ from those of other PEs".to_owned();
        self.job.poison(&Failure::Pe { rank: Rank(0), reason });
    }

    /// Returns why the job failed, after these PEs returned errors.
    pub(crate) fn first_cause(&self, errors: Vec<(Rank, Error)>) -> Failed {
        let culprit = match self.job.failure() {
            Some(Failure::Pe { rank, .. }) => Some(rank),
            _ => None,
        };
        let of_culprit = errors.into_iter().find(|(rank, _)| Some(*rank) == culprit);
        let error = of_culprit.map_or_else(|| Error::of_job(&self.job), |(_, error)| error);
        Failed { culprit, error }
    }
}

impl TakesBack for Ranks {
    fn take_back(self: Arc<Self>, states: Box<States>) {
        let rank = states.world.endpoint.rank_in_world();
        // SAFETY: the owner is new.
        let idle = unsafe { Idle::new(ThreadBoundPe::new(states, self.taking_back())) };
        *self.place(rank) = Place::Left(idle);
    }
}

impl Drop for Ranks {
    fn drop(&mut self) {
        if !self.job.is_poisoned() {
            self.job.end();
        }
        if !self.job.is_current() {
            // A forked child has no helper threads that it could wait for.
            let helpers = std::mem::take(&mut self.helpers);
            let _ = ManuallyDrop::new(helpers);
            return;
        }
        let helpers = self.helpers.get_mut().unwrap_or_else(PoisonError::into_inner);
        helpers.iter().for_each(|helper| helper.engine.stop_helping());
        for Helper { thread, .. } in helpers.drain(..) {
            // A value of the program may hold the job, and may be dropped by a helper.
            if thread.thread().id() != thread::current().id() {
                // A panic of the program's values has already failed the job.
                let _ = thread.join();
            }
        }
    }
}

/// Starts a thread with this name by `spawn`, if there is room for its stack.
///
/// # Errors
/// The system's reason, and the limit to raise.
pub(crate) fn started<T>(
    name: String,
    spawn: impl FnOnce(thread::Builder) -> io::Result<T>,
) -> Result<T, String> {
    MemoryError::ensure_thread().map_err(|refused| refused.to_string())?;
    spawn(thread::Builder::new().name(name)).map_err(|error| of_thread(&error))
}

/// Fails the job because a PE has panicked, and returns the PE's error.
pub(crate) fn failed_by(job: &Job, rank: Rank, panic: Panic) -> Error {
    job.fail(rank, &panic);
    let reason = panic_reason(&*panic);
    discard(panic);
    Error::PeFailed { rank, reason }
}
