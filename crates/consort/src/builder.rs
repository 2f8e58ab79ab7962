//! The configuration of a job, and the ways to run programs on it.

#[cfg(feature = "bindings")]
pub(crate) mod bindings;
mod ground;
mod loopback;
mod meeting;
mod processes;
mod settings;
mod start;

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use consort_fabric::{Candidate, Collective, Nodes, Rank};
use consort_machine::{Waiting, affinity};
use consort_native::{Origin, SharedFile};
use consort_tuner::Arrival;

use crate::{
    Error, Job, Pe, Pool, Result,
    error::LaunchError,
    fabric::{MOST_PES, ProcessShape, Sharing},
    rendezvous::Rendezvous,
    results::{Results, collect, one_for_each},
    run::launch,
    runtime::wisdom::Source,
    tune::Algorithms,
    warn::event,
};

/// How long a PE waits for a PE that no thread runs, by default.
pub(crate) const JOINING: Duration = Duration::from_secs(10);

/// The configuration of a launch: the number of PEs, how they wait, the size of their symmetric
/// memory.
///
/// [`Job::threads`], [`Job::from_env`], [`Job::processes`] and [`Job::one_per_core`] create it.
/// [`JobBuilder::run`] runs a program on new threads or on this process. [`JobBuilder::pool`]
/// creates threads that stay. [`JobBuilder::build`] creates a job that existing threads join.
///
/// In the environment, `CONSORT_WISDOM` names the wisdom ([`JobBuilder::wisdom`]), and
/// `CONSORT_RECORD` names a new or existing file to which a job adds its calls, for
/// `consort tune --record`. `CONSORT_TRACE` names a file for a trace of the calls, which Perfetto
/// and Chrome show.
///
/// ```
/// use consort::{Job, Waiting};
///
/// let ranks = Job::threads(3)
///     .waiting(Waiting::SpinYieldPark)
///     .heap_bytes(1 << 20)
///     .run(|pe| Ok(pe.world().rank().0))?;
/// assert_eq!(ranks.len(), 3);
/// # Ok::<(), consort::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct JobBuilder {
    pes: usize,
    start: Start,
    name: String,
    joining: Duration,
    waiting: Option<Waiting>,
    heap_bytes: Option<usize>,
    heap_align: usize,
    statics_bytes: usize,
    statics: Option<Arc<SharedFile>>,
    names_places: bool,
    pinning: Pinning,
    helpers: bool,
    forced: Vec<(Collective, Candidate)>,
    wisdom: Source,
    arrival: Arrival,
    online: Option<f64>,
    first_step: u64,
    memory: Option<Origin>,
    loopback: Option<([Nodes; 2], u64)>,
    shape: Option<ProcessShape>,
    sharing: Option<Sharing>,
}

/// The kind of PEs to start.
#[derive(Clone, Debug)]
enum Start {
    /// Threads of this process.
    Threads,
    /// As the environment says.
    Environment,
    /// Processes that meet; this one becomes the PE of this rank.
    Processes(Rank, Rendezvous),
}

/// The policy for placing PEs on cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pinning {
    Placed,
    Pinned,
    System,
}

/// # Launching
impl Job {
    /// Configures `pes` threads of this process, from 1 to [`MOST_PES`].
    #[must_use]
    pub fn threads(pes: usize) -> JobBuilder {
        JobBuilder {
            pes,
            start: Start::Threads,
            name: String::new(),
            joining: JOINING,
            waiting: None,
            heap_bytes: None,
            heap_align: 0,
            statics_bytes: 0,
            statics: None,
            names_places: true,
            pinning: Pinning::Placed,
            helpers: false,
            forced: Vec::new(),
            wisdom: Source::default(),
            arrival: Arrival::Together,
            online: None,
            first_step: 1,
            memory: None,
            loopback: None,
            shape: None,
            sharing: None,
        }
    }

    /// Configures PEs from the environment: processes, or threads of this process.
    ///
    /// | started | the PEs |
    /// | --- | --- |
    /// | by `consort run -n 4 program` | 4 processes; this is one of them |
    /// | by `mpirun -n 4 program` of an MPI | 4 processes, which may be on many machines |
    /// | the same, with `CONSORT_PES_PER_PROCESS=2` | 8; 2 are threads of this process |
    /// | by `torchrun --nproc-per-node 4 program` or `srun -N 1 -n 4 program` | 4 processes of one machine: see [`Rendezvous::environment`] |
    /// | alone, with `CONSORT_PES=4` | 4 threads of this process |
    /// | alone | `alone` threads of this process |
    ///
    /// If the PEs are processes, a program runs on the thread that calls [`JobBuilder::run`], which
    /// returns only this PE's result, once the programs of all PEs have ended.
    ///
    /// ```
    /// use consort::{Job, ops::Sum};
    ///
    /// let sums = Job::from_env(4).run(|pe| {
    ///     let world = pe.world();
    ///     world.all_reduce(world.rank().0, Sum)
    /// })?;
    /// for (rank, sum) in sums.ranked() {
    ///     println!("PE {rank}: {sum}");
    /// }
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[must_use]
    pub fn from_env(alone: usize) -> JobBuilder {
        JobBuilder { start: Start::Environment, ..Self::threads(alone) }
    }

    /// Configures PEs that are existing processes of this machine, however they were started: by a
    /// shell, a batch system, a test harness or `fork`. This process becomes PE `rank` of `size`.
    /// The processes meet at the `rendezvous` when the job is launched.
    ///
    /// In each process, the thread that calls [`JobBuilder::run`] runs the PE, or a thread
    /// [joins](Job::join). `run` returns only this PE's result, once the programs of all PEs have
    /// ended. The processes watch each other: if one ends before its program does, the calls of all
    /// others return an error within a second. No file is left behind, no matter when a process
    /// ends.
    ///
    /// The processes must belong to one user, and be in the same namespaces of processes, users and
    /// times; otherwise none of them launches the job. They must have the same version of Consort
    /// and the same configuration.
    ///
    /// Start this program once for each rank from 0 to 3:
    ///
    /// ```no_run
    /// use consort::{Job, Rank, Rendezvous, Result, ops::Sum};
    ///
    /// fn main() -> Result<()> {
    ///     let rank = std::env::args().nth(1).and_then(|rank| rank.parse().ok());
    ///     let rank = Rank(rank.expect("a rank"));
    ///     let job = Job::processes(rank, 4, Rendezvous::name("job-42"));
    ///     let sum = job.run(|pe| pe.world().all_reduce(rank.0, Sum))?;
    ///     assert_eq!(sum[rank], 6);
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn processes(rank: Rank, size: usize, rendezvous: Rendezvous) -> JobBuilder {
        JobBuilder { start: Start::Processes(rank, rendezvous), ..Self::threads(size) }
    }

    /// Configures one PE per core that this process may use, so that none waits for another's core:
    /// one per processor of its affinity mask, or as many as the quota of its cgroups grants, rounded
    /// up, if that is less. A program that often sleeps can use more PEs than its quota grants.
    #[must_use]
    pub fn one_per_core() -> JobBuilder {
        let cores = Algorithms::here().topology().usable_cores();
        Self::threads(cores.min(MOST_PES))
    }
}

impl JobBuilder {
    /// Names the job. The names of its threads consist of this and their rank, for debuggers and
    /// profilers (Linux shows 15 bytes), and errors of waits that took too long include it.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into().replace('\0', ""); // names of threads cannot contain it
        self
    }

    /// Sets how PEs wait; see [placing and waiting](crate#placing-and-waiting).
    #[must_use]
    pub fn waiting(mut self, waiting: Waiting) -> Self {
        self.waiting = Some(waiting);
        self
    }

    /// Sets the symmetric memory of each PE, in bytes. The default is the value of
    /// `CONSORT_HEAP_BYTES`, such as `64M` or `1.5G`, or else 512 MiB. It is address space: a page
    /// takes memory only once the program has touched it. Under an address space limit
    /// (`ulimit -v`), the default heaps take at most a quarter of it.
    #[must_use]
    pub fn heap_bytes(mut self, bytes: usize) -> Self {
        self.heap_bytes = Some(bytes);
        self
    }

    /// Keeps each PE on its own core until it ends, if the PEs fit the usable cores. By default, a
    /// PE is only moved there when it starts; see [placing and waiting](crate#placing-and-waiting).
    /// Use this for measurements, and for programs that have the machine to themselves.
    ///
    /// PE 0 of a pool is the caller's thread, and the PEs of a [`Job`] are the program's threads:
    /// neither is pinned.
    #[must_use]
    pub fn pinned(mut self) -> Self {
        self.pinning = Pinning::Pinned;
        self
    }

    /// Leaves the placement of the threads to the system. By default, each PE is moved to its own
    /// core when it starts; see [placing and waiting](crate#placing-and-waiting).
    #[must_use]
    pub fn unpinned(mut self) -> Self {
        self.pinning = Pinning::System;
        self
    }

    /// Sets how long the PEs of a [`Job`] wait for a PE that no thread runs, before the job fails.
    /// The default is 10 s. The time starts again whenever a PE joins for the first time.
    #[must_use]
    pub fn join_timeout(mut self, limit: Duration) -> Self {
        self.joining = limit;
        self
    }

    /// Gives each PE a second thread that drives its nonblocking calls while the PE computes, and
    /// sleeps while there are none. The helper of a [pinned](Self::pinned) PE runs on the PE's
    /// processor and takes time from it.
    #[must_use]
    pub fn helper_threads(mut self) -> Self {
        self.helpers = true;
        self
    }

    /// Forces `candidate` for all calls of `collective` from the start; see
    /// [`TeamAlgorithms::force`](crate::tune::TeamAlgorithms::force).
    #[must_use]
    pub fn force(mut self, collective: Collective, candidate: Candidate) -> Self {
        self.forced.push((collective, candidate));
        self
    }

    /// Chooses algorithms by the wisdom in the file at `path`, which must exist and belong to this
    /// machine and library. The default is the file that `CONSORT_WISDOM` names, or else the one in
    /// the user's configuration directory. If that cannot be used, one process of the job warns.
    #[must_use]
    pub fn wisdom(mut self, path: impl Into<PathBuf>) -> Self {
        self.wisdom = Source::Named(path.into());
        self
    }

    /// States how PEs arrive at calls. The default is together. With [`Arrival::Skewed`], the job
    /// uses the wisdom of `consort tune --arrival skewed`.
    #[must_use]
    pub fn arrival(mut self, arrival: Arrival) -> Self {
        self.arrival = arrival;
        self
    }

    /// Refines the choice of algorithms while the program runs. From time to time another algorithm
    /// serves a few calls of a kind. If it is clearly faster, summed over all PEs, it replaces the
    /// current one. Trials take at most `share` of the time in calls, such as 0.05, plus about 0.1
    /// ms for a first trial. The PEs agree on the choice in an all-reduce, for which even Loose
    /// calls wait. The algorithm of barriers is never changed.
    #[must_use]
    pub fn online(mut self, share: f64) -> Self {
        self.online = Some(share);
        self
    }

    /// Chooses algorithms by the model alone, and ignores all wisdom. `CONSORT_RECORD` ignores the
    /// job, because tuning does not affect it.
    #[must_use]
    pub fn without_wisdom(mut self) -> Self {
        self.wisdom = Source::Nothing;
        self
    }

    /// Runs `program` on every PE and returns the results, in the order of the ranks.
    ///
    /// All PEs run the same closure at the same time. So it may only read what it borrows, and its
    /// results are the values that it returns. To change data of the caller, give each PE a piece
    /// of it by [`JobBuilder::run_with`].
    ///
    /// # Errors
    /// [`Error::Launch`] or [`Error::Memory`] when the job cannot be launched: for instance with
    /// [`LaunchError::NoPes`], [`LaunchError::TooManyPes`], [`LaunchError::Thread`] or
    /// [`LaunchError::Meeting`]; [`Error::Config`] when an environment variable has a value that
    /// cannot be used; [`Error::Wisdom`] when the named wisdom cannot be used; [`Error::PeFailed`]
    /// when a PE panicked; otherwise the error of the PE that failed first, or the job's error if
    /// the job failed but no program returned the error.
    pub fn run<R, F>(self, program: F) -> Result<Results<R>>
    where
        R: Send,
        F: Fn(&Pe) -> Result<R> + Sync,
    {
        self.try_run(program)
    }

    /// As [`JobBuilder::run`], with an input for each PE, in the order of the ranks: pieces of a
    /// slice that PEs may change, or anything else that is `Send`.
    ///
    /// # Errors
    /// [`LaunchError::InputCount`] when there are fewer or more inputs than PEs, and as
    /// [`JobBuilder::run`].
    ///
    /// ```
    /// use consort::{Job, ops::Sum};
    ///
    /// let mut data = vec![1.0; 1000];
    /// Job::threads(4).run_with(data.chunks_mut(250), |pe, part| {
    ///     let sum = pe.world().all_reduce(part.iter().sum::<f64>(), Sum)?;
    ///     part.iter_mut().for_each(|x| *x /= sum);
    ///     Ok(())
    /// })?;
    /// assert_eq!(data[999], 0.001);
    /// # Ok::<(), consort::Error>(())
    /// ```
    pub fn run_with<T, R, F>(
        self,
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

    /// As [`JobBuilder::run`], for a program with its own error type: `anyhow::Error`, `io::Error`,
    /// or any type to which this library's [`Error`] converts. If the compiler asks for the type,
    /// end the program with `Ok::<_, io::Error>(result)`, or `anyhow::Ok(result)`.
    ///
    /// # Errors
    /// The error of the PE that failed first; the errors of [`JobBuilder::run`], as `E`.
    ///
    /// ```
    /// use consort::{Job, Rank};
    /// use std::{fs, io};
    ///
    /// let lines = Job::threads(2).try_run(|pe| {
    ///     let world = pe.world();
    ///     let lines = match world.rank() {
    ///         Rank(0) => fs::read_to_string("Cargo.toml")?.lines().count(),
    ///         _ => 0,
    ///     };
    ///     Ok::<_, io::Error>(world.broadcast(lines, Rank(0))?)
    /// })?;
    /// assert_eq!(lines[0], lines[1]);
    /// # Ok::<(), io::Error>(())
    /// ```
    pub fn try_run<R, E, F>(self, program: F) -> Result<Results<R>, E>
    where
        R: Send,
        E: From<Error> + fmt::Display + Send,
        F: Fn(&Pe) -> Result<R, E> + Sync,
    {
        let parts = self.start_program()?;
        let inputs = vec![(); parts[0].size()];
        collect(inputs, |pe, ()| program(pe), |program| launch(&parts, program))
    }

    /// Combines [`JobBuilder::run_with`] and [`JobBuilder::try_run`].
    ///
    /// # Errors
    /// As both.
    pub fn try_run_with<T, R, E, F>(
        self,
        inputs: impl IntoIterator<Item = T>,
        program: F,
    ) -> Result<Results<R>, E>
    where
        T: Send,
        R: Send,
        E: From<Error> + fmt::Display + Send,
        F: Fn(&Pe, T) -> Result<R, E> + Sync,
    {
        let parts = self.start_program()?;
        let inputs = one_for_each(parts[0].size(), inputs)?;
        collect(inputs, program, |program| launch(&parts, program))
    }

    /// Creates a job whose PEs are existing threads: each [joins](Job::join) and leaves it.
    ///
    /// # Errors
    /// As [`JobBuilder::run`], when the job cannot be launched; [`LaunchError::JobOfProcesses`]
    /// when an MPI has started this process as one of its PEs.
    pub fn build(self) -> Result<Job> {
        if matches!(self.pinning, Pinning::Pinned) {
            event("threads that join a job are not pinned, because they belong to the program");
        }
        if self.started()?.is_some() {
            return Err(LaunchError::JobOfProcesses.into());
        }
        let joining = self.joining;
        Ok(Job::new(self.start_at(Some(joining))?))
    }

    /// Creates PEs that stay, and run one program after the other: see [`Pool`].
    ///
    /// # Errors
    /// As [`JobBuilder::run`], when the job cannot be launched; [`LaunchError::PoolOfProcesses`]
    /// when the PEs are processes.
    pub fn pool(self) -> Result<Pool> {
        let is_process = matches!(self.start, Start::Processes(..));
        let is_met = is_process || self.met_by_environment()?.is_some();
        if is_met || self.member()?.is_some() || self.started()?.is_some() {
            return Err(LaunchError::PoolOfProcesses.into());
        }
        // The threads stay where they are when the job is created again.
        let placement = self.place(affinity::current());
        Pool::new(move || self.clone().start_threads(placement.clone()))
    }
}
