//! The PEs of a job, and the state of each: whether a thread runs it.

#![expect(unsafe_code, reason = "a PE continues on another thread")]

use std::{
    io,
    mem::ManuallyDrop,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
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
    runtime::{plans::Ready, selection::Choices},
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
    /// A thread runs it.
    Taken,
}

/// A PE that no thread runs.
struct Idle(Box<Pe>);

// SAFETY: a PE is bound to one thread by the reference counts and cells that its parts share. All
// of them are inside: anything else that refers to them borrows the PE, and nothing borrows it when
// `leave` gets it by value. A forgotten value may keep a count up for ever, but is not accessed any
// more. The callbacks that others registered, which may capture anything, are gone. Values that a
// program or another thread may have put in can be sent, as is checked below.
unsafe impl Send for Idle {}

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
    /// [`Error::Memory`] when the system refuses memory for it, and [`LaunchError::Thread`] when
    /// its helper cannot be started. The job has then failed.
    pub(crate) fn enter(&self, rank: Rank) -> Result<Option<Box<Pe>>> {
        let mut place = self.place(rank);
        let pe = match std::mem::replace(&mut *place, Place::Taken) {
            Place::Taken => return Ok(None),
            Place::Left(Idle(pe)) => pe,
            Place::New => {
                let pe = Pe::new(&self.job, rank, self.choices.clone());
                let pe = Box::new(pe.inspect_err(|error| {
                    self.job.poison(&Failure::Pe { rank, reason: error.to_string() });
                })?);
                if self.job.config().helpers {
                    self.start_helper(&pe)?;
                }
                pe
            }
        };
        self.job.arrive(rank);
        Ok(Some(pe))
    }

    /// Takes a PE back from the thread that ran it.
    pub(crate) fn leave(&self, pe: Box<Pe>) {
        let rank = pe.world().rank();
        pe.state.endpoint.forget_callbacks();
        self.job.depart(rank);
        *self.place(rank) = Place::Left(Idle(pe));
    }

    /// Starts a thread that drives the nonblocking calls of a PE.
    fn start_helper(&self, pe: &Pe) -> Result<()> {
        let rank = pe.world().rank();
        let (engine, job) = (Arc::clone(pe.state.endpoint.engine()), Arc::clone(&self.job));
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

    /// Runs a program on the PE of this rank to its end, on the calling thread. Returns the
    /// fingerprint of all the PE's calls so far.
    pub(crate) fn run(&self, rank: Rank, program: &Program<'_>, ending: Ending) -> Result<u64> {
        let ended = catch_unwind(AssertUnwindSafe(|| {
            let mut pe = self.enter(rank)?.expect("one thread runs a PE");
            let ended = self.run_entered(&mut pe, program, ending);
            let fingerprint = pe.state.endpoint.fingerprint();
            self.leave(pe);
            ended.map(|()| fingerprint)
        }));
        ended.unwrap_or_else(|panic| Err(failed_by(&self.job, rank, panic)))
    }

    fn run_entered(&self, pe: &mut Pe, program: &Program<'_>, ending: Ending) -> Result<()> {
        let (job, rank) = (&*self.job, pe.world().rank());
        let ended = catch_unwind(AssertUnwindSafe(|| {
            // The text of the program's own error is the reason that is reported to the others.
            program(pe).map_err(|reason| Error::PeFailed { rank, reason })?;
            pe.end(ending)
        }));
        let ended = match ended {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => {
                let reason = match &error {
                    Error::PeFailed { rank: of, reason } if *of == rank => reason.clone(),
                    error => error.to_string(),
                };
                job.poison(&Failure::Pe { rank, reason });
                Err(error)
            }
            Err(panic) => Err(failed_by(job, rank, panic)),
        };
        if ended.is_err() {
            pe.abandon();
        }
        ended
    }

    /// Fails the job because the calls of its PEs, which no thread runs, do not match.
    #[cold]
    pub(crate) fn compare_calls(&self) {
        if let Place::Left(Idle(pe)) = &*self.place(Rank(0)) {
            // This fails the job for the PEs whose calls differ.
            let _ = pe.state.endpoint.finish();
        }
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
