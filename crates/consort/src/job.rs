//! A job whose PEs are existing threads: they join it, and leave it.

use std::{
    cell::RefCell,
    fmt,
    mem::ManuallyDrop,
    ops::Deref,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{Arc, Weak},
    thread,
};

use consort_fabric::Rank;
use consort_machine::discard;
use consort_native::Failure;

#[cfg(doc)]
use crate::JobBuilder;
use crate::{
    Error, Pe, Result,
    error::{CallError, LaunchError},
    pe::Ending,
    ranks::{Ranks, failed_by},
};

/// A job: a fixed number of PEs that run a program together.
///
/// [`Job::threads`] and [`Job::from_env`] configure one. [`JobBuilder::run`] and
/// [`JobBuilder::pool`] give each PE a thread. A value of this type lets existing threads be the
/// PEs, such as those of [`std::thread::scope`] or a pool: [`JobBuilder::build`] creates it, and
/// the threads join it.
///
/// Clone it into the threads, or share it by reference. Each thread [runs](Self::run) a program as
/// one of the PEs, or [joins](Self::join) and leaves. After a thread has left its PE and dropped
/// the PE's handles, any thread may join as that PE. It continues with the PE's next call. Calls
/// wait for ranks that no thread has joined yet. If that takes longer than
/// [`JobBuilder::join_timeout`], 10 s by default, the job fails with [`Error::TimedOut`], which
/// names these ranks.
///
/// Threads that join start where the system has placed them. If two of them later wait on one
/// processor, one moves to another: see [placing and waiting](crate#placing-and-waiting).
///
/// ```
/// use consort::{Job, ops::Sum};
/// use std::thread;
///
/// let job = Job::threads(3).build()?;
/// let sums = thread::scope(|scope| {
///     let job = &job;
///     let program = |part| move || job.run(|pe| pe.world().all_reduce(part, Sum));
///     let threads = [1, 2, 3].map(|part| scope.spawn(program(part)));
///     threads.map(|thread| thread.join().expect("no panic"))
/// });
/// assert_eq!(sums, [Ok(6), Ok(6), Ok(6)]);
/// # Ok::<(), consort::Error>(())
/// ```
#[derive(Clone)]
pub struct Job(pub(crate) Arc<Ranks>);

/// A PE that the calling thread runs until this is dropped: from [`Job::join`]. Use it as a [`Pe`].
///
/// Dropping it leaves the job, as [`JoinedPe::leave`] does; if a panic drops it, the job fails. The
/// job also fails if the thread ends without dropping it. If a thread leaves early because of an
/// error, the others wait for it: let it [`run`](Self::run) its program instead. Do not keep a
/// `JoinedPe` in a thread-local value, which may be dropped too late, when the thread has ended.
///
/// A struct can own it, together with the PE's teams, symmetric memory and plans:
///
/// ```
/// use consort::{Job, JoinedPe, Result, Symmetric, Team, ops::Max};
/// use std::thread;
///
/// struct Worker {
///     pe: JoinedPe,
///     world: Team,
///     best: Symmetric<u64>,
/// }
///
/// impl Worker {
///     fn join(job: &Job) -> Result<Self> {
///         let pe = job.join()?;
///         let world = pe.world().clone();
///         Ok(Self { best: world.symmetric(1)?, world, pe })
///     }
///
///     fn offer(&mut self, score: u64) -> Result<u64> {
///         let best = self.world.all_reduce(score.max(self.best.load(0)?), Max)?;
///         self.best.store(0, best)?;
///         Ok(best)
///     }
/// }
///
/// let job = Job::threads(2).build()?;
/// let play = |scores: [u64; 2]| {
///     let mut worker = Worker::join(&job)?;
///     worker.offer(scores[0])?;
///     let best = worker.offer(scores[1])?;
///     worker.pe.leave()?; // reports errors; dropping the worker leaves as well
///     Ok::<_, consort::Error>(best)
/// };
/// let play = &play;
/// let best = thread::scope(|scope| {
///     let threads = [[3, 1], [2, 5]].map(|scores| scope.spawn(move || play(scores)));
///     threads.map(|thread| thread.join().expect("no panic"))
/// });
/// assert_eq!(best, [Ok(5), Ok(5)]);
/// # Ok::<(), consort::Error>(())
/// ```
pub struct JoinedPe {
    /// `Some` until it is dropped.
    pe: Option<Pe>,
    pub(crate) ranks: Arc<Ranks>,
    /// Whether the thread was panicking already when it joined.
    was_panicking: bool,
}

impl Job {
    pub(crate) fn new(ranks: Arc<Ranks>) -> Self {
        Self(ranks)
    }

    /// Returns the number of PEs.
    #[must_use]
    pub fn size(&self) -> usize {
        self.0.size()
    }

    /// Returns the name given by [`JobBuilder::named`]; empty without one.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.job.config().name
    }

    /// Joins as the PE with the lowest rank that no thread runs.
    ///
    /// # Errors
    /// [`LaunchError::JobFull`] when threads run all PEs, or other threads have handles on the
    /// rest; [`LaunchError::JoinedAlready`] when the calling thread runs one of them;
    /// [`LaunchError::ThreadEnds`] in a destructor of a thread-local value that runs after the
    /// library's own destructors; the job's error when it has failed; and [`Error::Forked`] in a
    /// child that was forked after the job was created.
    pub fn join(&self) -> Result<JoinedPe> {
        self.ensure_may_join()?;
        for rank in self.0.here() {
            match self.0.enter(rank) {
                Ok(Some(pe)) => return Ok(self.joined(rank, pe)),
                Ok(None) | Err(Error::Launch(LaunchError::HeldElsewhere { .. })) => {}
                Err(error) => return Err(error),
            }
        }
        Err(LaunchError::JobFull { pes: self.size() }.into())
    }

    /// Joins as the PE of this rank.
    ///
    /// # Errors
    /// [`CallError::RankOutOfRange`] when there is no such PE; [`LaunchError::RankTaken`] when
    /// another thread runs it; [`LaunchError::HeldElsewhere`] when another thread, which has left,
    /// still has handles on it; and as [`Job::join`].
    pub fn join_as(&self, rank: Rank) -> Result<JoinedPe> {
        self.ensure_may_join()?;
        if rank.index() >= self.size() {
            return Err(CallError::RankOutOfRange { rank, pes: self.size() }.into());
        }
        let is_here = self.0.here().any(|here| here == rank);
        let pe = if is_here { self.0.enter(rank)? } else { None };
        let pe = pe.ok_or(Error::Launch(LaunchError::RankTaken { rank }))?;
        Ok(self.joined(rank, pe))
    }

    /// Joins, runs `program` on the calling thread, and leaves: [`Job::join`] and
    /// [`JoinedPe::run`].
    ///
    /// # Errors
    /// As both.
    pub fn run<R>(&self, program: impl FnOnce(&Pe) -> Result<R>) -> Result<R> {
        self.join()?.run(program)
    }

    /// As [`Job::run`], for a program with its own error type; see [`JobBuilder::try_run`].
    ///
    /// # Errors
    /// As [`Job::join`] and [`JoinedPe::try_run`].
    pub fn try_run<R, E, F>(&self, program: F) -> Result<R, E>
    where
        E: From<Error> + fmt::Display,
        F: FnOnce(&Pe) -> Result<R, E>,
    {
        self.join()?.try_run(program)
    }

    fn ensure_may_join(&self) -> Result<()> {
        if self.0.job.is_poisoned() {
            return Err(Error::of_job(&self.0.job));
        }
        match Memberships::of_this_thread(|all| all.rank_in(&self.0)) {
            Some(Some(rank)) => Err(LaunchError::JoinedAlready { rank }.into()),
            Some(None) => Ok(()),
            None => Err(LaunchError::ThreadEnds.into()),
        }
    }

    fn joined(&self, rank: Rank, pe: Pe) -> JoinedPe {
        let ranks = Arc::clone(&self.0);
        Memberships::of_this_thread(|all| all.0.push((Arc::downgrade(&ranks), rank)));
        JoinedPe { pe: Some(pe), ranks, was_panicking: thread::panicking() }
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Job");
        shown.field("name", &self.name()).field("size", &self.size()).finish_non_exhaustive()
    }
}

impl Deref for JoinedPe {
    type Target = Pe;

    fn deref(&self) -> &Pe {
        self.pe.as_ref().expect("it is there until this is dropped")
    }
}

impl JoinedPe {
    /// Runs `program`, and leaves. If the program panics or returns an error, the job fails for
    /// that reason, and so do the waits of all other PEs, as under [`JobBuilder::run`].
    ///
    /// # Errors
    /// The program's own; [`Error::PeFailed`] when it has panicked; and as [`JoinedPe::leave`].
    pub fn run<R>(self, program: impl FnOnce(&Pe) -> Result<R>) -> Result<R> {
        self.try_run(program)
    }

    /// As [`JoinedPe::run`], for a program with its own error type; see [`JobBuilder::try_run`].
    ///
    /// # Errors
    /// As [`JoinedPe::run`].
    pub fn try_run<R, E, F>(mut self, program: F) -> Result<R, E>
    where
        E: From<Error> + fmt::Display,
        F: FnOnce(&Pe) -> Result<R, E>,
    {
        let (job, rank) = (Arc::clone(&self.ranks.job), self.world().rank());
        match catch_unwind(AssertUnwindSafe(|| program(&self))) {
            Ok(Ok(result)) => match self.end() {
                Ok(left) => left.map(|()| result).map_err(E::from),
                Err(panic) => Err(failed_by(&job, rank, panic).into()),
            },
            Ok(Err(error)) => {
                job.poison(&Failure::Pe { rank, reason: error.to_string() });
                Err(error)
            }
            Err(panic) => Err(failed_by(&job, rank, panic).into()),
        }
    }

    /// Leaves the job: waits for the PE's nonblocking calls, and leaves its smaller teams. Another
    /// thread may then join as this PE, once this thread has dropped its handles on it: teams,
    /// symmetric memory, requests and plans. Their calls now return [`CallError::Ended`].
    ///
    /// # Errors
    /// The job's error when it has failed; [`LaunchError::StillShared`] when other threads have
    /// handles on the PE's symmetric memory.
    ///
    /// # Panics
    /// When an operator of a nonblocking call panics; the job has then failed.
    pub fn leave(mut self) -> Result<()> {
        self.end().unwrap_or_else(|panic| resume_unwind(panic))
    }

    fn end(&mut self) -> thread::Result<Result<()>> {
        let Some(pe) = self.pe.take() else { return Ok(Ok(())) };
        if !self.ranks.job.is_current() {
            // The PE continues in the parent; a forked child only has a copy of it.
            let _ = ManuallyDrop::new(pe);
            self.leave_thread();
            return Ok(Err(Error::Forked));
        }
        let (job, rank) = (&self.ranks.job, pe.world().rank());
        let ended = if thread::panicking() && !self.was_panicking {
            let reason = "it panicked: its thread unwound".to_owned();
            job.poison(&Failure::Pe { rank, reason });
            Ok(Err(Error::of_job(job)))
        } else {
            catch_unwind(AssertUnwindSafe(|| {
                pe.end(Ending::Leaves)?;
                if job.is_poisoned() { Err(Error::of_job(job)) } else { Ok(()) }
            }))
        };
        match &ended {
            Ok(Ok(())) => {}
            Ok(Err(error)) => job.poison(&Failure::Pe { rank, reason: error.to_string() }),
            Err(panic) => job.fail(rank, panic),
        }
        if !matches!(ended, Ok(Ok(()))) {
            pe.abandon();
        }
        self.ranks.leave(pe);
        self.leave_thread();
        ended
    }

    /// Removes the PE from those for which the calling thread fails the job when it ends.
    pub(crate) fn leave_thread(&self) {
        Memberships::of_this_thread(|all| all.remove(&self.ranks));
    }
}

impl Drop for JoinedPe {
    fn drop(&mut self) {
        // The error or the panic has failed the job.
        if let Err(panic) = self.end() {
            discard(panic);
        }
    }
}

impl fmt::Debug for JoinedPe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("JoinedPe").field(&self.pe).finish()
    }
}

/// The jobs that a thread has joined, with its ranks. When the thread ends, those that it has not
/// left fail.
#[derive(Default)]
struct Memberships(Vec<(Weak<Ranks>, Rank)>);

thread_local! {
    static MEMBERSHIPS: RefCell<Memberships> = RefCell::default();
}

impl Memberships {
    /// Accesses the memberships of the calling thread; `None` while the thread's thread-local
    /// values are being dropped.
    fn of_this_thread<R>(access: impl FnOnce(&mut Self) -> R) -> Option<R> {
        MEMBERSHIPS.try_with(|all| access(&mut all.borrow_mut())).ok()
    }

    fn rank_in(&self, ranks: &Arc<Ranks>) -> Option<Rank> {
        let mut all = self.0.iter();
        all.find(|(job, _)| job.as_ptr() == Arc::as_ptr(ranks)).map(|(_, rank)| *rank)
    }

    fn remove(&mut self, ranks: &Arc<Ranks>) {
        self.0.retain(|(job, _)| job.as_ptr() != Arc::as_ptr(ranks));
    }
}

impl Drop for Memberships {
    fn drop(&mut self) {
        for (ranks, rank) in self.0.drain(..).filter_map(|(job, rank)| Some((job.upgrade()?, rank)))
        {
            let reason = "its thread ended without leaving the job".to_owned();
            ranks.job.poison(&Failure::Pe { rank, reason });
        }
    }
}
