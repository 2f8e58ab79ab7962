//! Launching PEs and collecting their results.

use std::{
    env,
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use consort_fabric::{Candidate, Collective, Rank};
use consort_native::{
    Config, Engine, Failure, Job, Origin, Panic, Waiting, affinity::CpuId, discard, panic_reason,
};

use consort_tuner::Arrival;

use crate::{
    Algorithms, Error, Pe, Result,
    runtime::{selection::Choices, state::State, wisdom::Source},
};

/// The most PEs that a process may have.
pub const MOST_PES: u32 = 1024;

/// The default size of a PE's symmetric memory, in bytes. Pages are touched only when they are
/// used.
const HEAP_BYTES: usize = 64 << 20;

/// The configuration of a launch: the number of PEs, how they wait, the size of their symmetric
/// memory.
///
/// ```
/// use consort::{Pes, Waiting};
///
/// let ranks = Pes::threads(3)
///     .waiting(Waiting::SpinYieldPark)
///     .heap_bytes(1 << 20)
///     .run(|pe| Ok(pe.world().rank().0))?;
/// assert_eq!(ranks.len(), 3);
/// # Ok::<(), consort::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Pes {
    pes: u32,
    waiting: Option<Waiting>,
    heap_bytes: usize,
    pinned: bool,
    helpers: bool,
    forced: Vec<(Collective, Candidate)>,
    wisdom: Source,
    arrival: Arrival,
    online: Option<f64>,
    first_step: u64,
    memory: Option<Origin>,
}

/// The environment variable that selects the origin of the memory that PEs share.
const SEGMENT: &str = "CONSORT_SEGMENT";

/// The origin that `CONSORT_SEGMENT` gives; memory of this process if it is not set.
fn memory_of_environment() -> Result<Origin> {
    match env::var(SEGMENT) {
        Ok(text) => text.parse().map_err(Error::Segment),
        Err(_) => Ok(Origin::Private),
    }
}

impl Pes {
    /// `pes` threads of this process, from 1 to [`MOST_PES`].
    #[must_use]
    pub fn threads(pes: u32) -> Self {
        Self {
            pes,
            waiting: None,
            heap_bytes: HEAP_BYTES,
            pinned: true,
            helpers: false,
            forced: Vec::new(),
            wisdom: Source::default(),
            arrival: Arrival::Together,
            online: None,
            first_step: 1,
            memory: None,
        }
    }

    /// Sets how PEs wait. The default depends on the usable cores; see [pinning and
    /// waiting](crate#pinning-and-waiting).
    #[must_use]
    pub fn waiting(mut self, waiting: Waiting) -> Self {
        self.waiting = Some(waiting);
        self
    }

    /// Sets the symmetric memory of each PE, in bytes. The default is 64 MiB.
    #[must_use]
    pub fn heap_bytes(mut self, bytes: usize) -> Self {
        self.heap_bytes = bytes;
        self
    }

    /// Leaves the placement of the threads to the system. The default is to pin each PE to a core
    /// of its own if the PEs fit the usable cores; see [pinning and
    /// waiting](crate#pinning-and-waiting).
    #[must_use]
    pub fn unpinned(mut self) -> Self {
        self.pinned = false;
        self
    }

    /// Gives each PE a second thread that drives its nonblocking calls while the PE computes, and
    /// sleeps while there are none. The helper of a pinned PE runs on the PE's processor and takes
    /// time from it; with [`Pes::unpinned`] it may run on another.
    #[must_use]
    pub fn helper_threads(mut self) -> Self {
        self.helpers = true;
        self
    }

    /// Forces `candidate` for all calls of `collective` from the start; see
    /// [`Team::force`](crate::Team::force).
    #[must_use]
    pub fn force(mut self, collective: Collective, candidate: Candidate) -> Self {
        self.forced.push((collective, candidate));
        self
    }

    /// Chooses algorithms by the wisdom in the file at `path`. The file must exist and be of this
    /// machine and library. The default is the file that `CONSORT_WISDOM` names or else the one in
    /// the user's configuration directory.
    #[must_use]
    pub fn wisdom(mut self, path: impl Into<PathBuf>) -> Self {
        self.wisdom = Source::Named(path.into());
        self
    }

    /// Sets how PEs arrive at calls; the default is together. With [`Arrival::Skewed`] choices are
    /// made by the wisdom of `consort tune --arrival skewed`.
    #[must_use]
    pub fn arrival(mut self, arrival: Arrival) -> Self {
        self.arrival = arrival;
        self
    }

    /// Refines the choice of algorithms while the program runs. From time to time another algorithm
    /// serves a few calls of a kind, and replaces the current one if it is clearly faster, summed
    /// over all PEs. That costs at most `share` of the time in calls, such as 0.05, besides one try
    /// in advance of about 0.1 ms. The PEs agree on the choice in an all-reduce, for which Loose
    /// calls wait too. The algorithm of barriers is never changed.
    #[must_use]
    pub fn online(mut self, share: f64) -> Self {
        self.online = Some(share);
        self
    }

    /// Numbers the steps of calls from `step` on, which is not 0. For tests beyond 2^40 steps.
    #[doc(hidden)]
    #[must_use]
    pub fn first_step(mut self, step: u64) -> Self {
        self.first_step = step;
        self
    }

    /// Sets the origin of the memory that the PEs share. The default is the value of
    /// `CONSORT_SEGMENT`, or else private. For tests of memory that other processes could map.
    #[doc(hidden)]
    #[must_use]
    pub fn memory(mut self, memory: Origin) -> Self {
        self.memory = Some(memory);
        self
    }

    /// Chooses algorithms by the model alone, and ignores all wisdom.
    #[must_use]
    pub fn without_wisdom(mut self) -> Self {
        self.wisdom = Source::Nothing;
        self
    }

    /// Runs `program` on every PE and returns the results, in the order of their ranks.
    ///
    /// # Errors
    /// [`Error::NoPes`], [`Error::TooManyPes`], [`Error::Memory`] or [`Error::Thread`] when the job
    /// cannot be launched; [`Error::Segment`] when `CONSORT_SEGMENT` is neither `private` nor
    /// `shared`; [`Error::Wisdom`] when the named wisdom cannot be used; [`Error::PeFailed`] when a
    /// PE panicked; otherwise the error of the PE that failed first.
    pub fn run<R, F>(self, program: F) -> Result<Vec<(Rank, R)>>
    where
        R: Send,
        F: Fn(&Pe) -> Result<R> + Sync,
    {
        let launch = self.prepare()?;
        let ranks = (0..launch.job.config().pes).map(Rank);
        let results: Vec<Mutex<Option<R>>> = ranks.clone().map(|_| Mutex::default()).collect();
        let slot =
            |rank: Rank| results[rank.index()].lock().unwrap_or_else(PoisonError::into_inner);
        let ended =
            launch.run(&|pe| program(pe).map(|result| *slot(pe.world().rank()) = Some(result)));
        let results = results.into_iter();
        let results =
            results.map(|result| result.into_inner().unwrap_or_else(PoisonError::into_inner));
        match ended {
            Ok(()) => Ok(ranks.zip(results.flatten()).collect()),
            Err(error) => {
                // Each is dropped by itself: if one panics, the others are dropped all the same.
                results.for_each(discard);
                Err(error)
            }
        }
    }

    /// Makes the job, and all else that its PEs begin with.
    fn prepare(self) -> Result<Launch> {
        if self.pes == 0 {
            return Err(Error::NoPes);
        }
        if self.pes > MOST_PES {
            return Err(Error::TooManyPes { asked: self.pes, most: MOST_PES });
        }
        let topology = Algorithms::here().topology();
        let cores = topology.usable_cores();
        let waiting = self.waiting.unwrap_or_default();
        if waiting == Waiting::Spin && self.pes as usize > cores {
            tracing::warn!(
                pes = self.pes,
                cores,
                "PEs outnumber the usable cores and spin: each waits whole time slices for the \
                 others; use spin-yield-park"
            );
        }
        let cores = u32::try_from(cores).unwrap_or(u32::MAX);
        let Self { pes, heap_bytes, first_step, helpers, .. } = self;
        let memory = self.memory.map_or_else(memory_of_environment, Ok)?;
        let config = Config { pes, waiting, cores, heap_bytes, memory, first_step, helpers };
        let job = Job::new(config)?;
        let placement = if self.pinned { topology.placement(self.pes as usize) } else { None };
        let mut choices = Choices::new(self.wisdom, self.arrival, self.pes)?;
        if let Some(share) = self.online {
            choices.refine(share);
        }
        for (collective, candidate) in &self.forced {
            choices.force(*collective, Some(candidate.clone()));
        }
        Ok(Launch { job, placement, choices })
    }
}

/// A program as the PEs run it, which keeps their results: compiled once for all programs.
type Program<'p> = dyn Fn(&Pe) -> Result<()> + Sync + 'p;

/// A job whose PEs have not started.
struct Launch {
    job: Arc<Job>,
    placement: Option<Vec<CpuId>>,
    choices: Choices,
}

impl Launch {
    /// Starts one thread for each PE, and waits for all.
    fn run(&self, program: &Program<'_>) -> Result<()> {
        let Self { job, placement, choices } = self;
        thread::scope(|scope| {
            let (mut handles, mut errors) = (Vec::new(), Vec::new());
            for rank in (0..job.config().pes).map(Rank) {
                let cpu = placement.as_ref().map(|cpus| cpus[rank.index()]);
                let body = move || {
                    let ended = catch_unwind(AssertUnwindSafe(|| {
                        let pe = Pe::new(job, rank, cpu, choices.clone());
                        let run = if job.config().helpers { with_helper } else { run_pe };
                        run(&pe, job, program)
                    }));
                    ended.unwrap_or_else(|panic| Err(failed_by(job, rank, panic)))
                };
                let name = format!("PE {rank}");
                match thread::Builder::new().name(name).spawn_scoped(scope, body) {
                    Ok(handle) => handles.push((rank, handle)),
                    Err(error) => {
                        let reason = error.to_string();
                        let failure = format!("did not start: {reason}");
                        job.poison(&Failure::Pe { rank, reason: failure });
                        errors.push((rank, Error::Thread { rank, reason }));
                        break;
                    }
                }
            }
            for (rank, handle) in handles {
                let ended = handle.join().unwrap_or_else(|panic| Err(failed_by(job, rank, panic)));
                errors.extend(ended.err().map(|error| (rank, error)));
            }
            if errors.is_empty() { Ok(()) } else { Err(first_cause(job, errors)) }
        })
    }
}

/// Fails the job because a PE has panicked, and returns the PE's error.
fn failed_by(job: &Job, rank: Rank, panic: Panic) -> Error {
    job.fail(rank, &panic);
    let reason = panic_reason(&*panic);
    discard(panic);
    Error::PeFailed { rank, reason }
}

/// The error that the first PE to fail returned, if it returned one; else the failure of the job.
fn first_cause(job: &Job, errors: Vec<(Rank, Error)>) -> Error {
    let culprit = match job.failure() {
        Some(Failure::Pe { rank, .. }) => Some(rank),
        _ => None,
    };
    let of_job = Error::of_job(job);
    errors.into_iter().find(|(rank, _)| Some(*rank) == culprit).map_or(of_job, |(_, error)| error)
}

/// Stops the helper of a PE when it is dropped.
struct StopsHelping<'e>(&'e Engine);

impl Drop for StopsHelping<'_> {
    fn drop(&mut self) {
        self.0.stop_helping();
    }
}

/// Runs a PE beside its helper, a thread that drives its nonblocking calls.
fn with_helper(pe: &Pe, job: &Job, program: &Program<'_>) -> Result<()> {
    let rank = pe.world().rank();
    let engine = &**pe.state.endpoint.engine();
    let failed = move |panic| drop(failed_by(job, rank, panic));
    thread::scope(|scope| {
        // The scope waits for the helper, so this stops the helper even if the PE panics.
        let _stops_helping = StopsHelping(engine);
        let name = format!("helper of PE {rank}");
        let helper = thread::Builder::new().name(name);
        if let Err(error) = helper.spawn_scoped(scope, move || engine.help(failed)) {
            let reason = error.to_string();
            job.poison(&Failure::Pe { rank, reason: format!("has no helper: {reason}") });
            return Err(Error::Thread { rank, reason });
        }
        run_pe(pe, job, program)
    })
}

/// Runs a PE to its end.
fn run_pe(pe: &Pe, job: &Job, program: &Program<'_>) -> Result<()> {
    let rank = pe.world().rank();
    let ended = catch_unwind(AssertUnwindSafe(|| {
        program(pe)?;
        pe.state.ensure_kept()?;
        pe.state.end_sharing()?;
        pe.alive().try_for_each(State::drain)?;
        let matched = pe.alive().try_for_each(|team| team.endpoint.finish());
        matched.map_err(|_| Error::of_job(job))
    }));
    let ended = match ended {
        Ok(ended) => ended.inspect_err(|error| {
            job.poison(&Failure::Pe { rank, reason: error.to_string() });
        }),
        Err(panic) => Err(failed_by(job, rank, panic)),
    };
    // Operations that are left belong to a job that has failed. Dropping them revokes the buffers
    // that they have exposed.
    pe.state.endpoint.engine().clear();
    ended
}
