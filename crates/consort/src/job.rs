//! A job whose PEs are threads that exist: they join it, and leave it.

use std::{
    cell::RefCell,
    fmt,
    ops::Deref,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{Arc, Weak},
    thread,
};

use consort_fabric::Rank;
use consort_native::Failure;

use crate::{
    Error, Pe, Result,
    ranks::{Ending, Ranks},
};

/// A job that threads join as PEs: those of [`std::thread::scope`], of a pool, or any others. From
/// [`Pes::job`](crate::Pes::job).
///
/// Clone it into the threads, or share it by reference. Each thread [joins](Self::join) and so
/// becomes a PE; the number of PEs is fixed. A PE that has left may be joined again, by any thread:
/// it goes on with its next call. Calls wait for PEs that no thread has joined as. If that takes
/// longer than [`Pes::joining`](crate::Pes::joining), 10 s by default, the job fails with
/// [`Error::Missing`], which names them.
///
/// Threads that join are not moved to other processors.
///
/// ```
/// use consort::{Pes, Sum};
/// use std::thread;
///
/// let job = Pes::threads(3).job()?;
/// thread::scope(|scope| {
///     for part in 1..=3 {
///         let job = &job;
///         scope.spawn(move || {
///             let pe = job.join()?; // leaves when it is dropped
///             assert_eq!(pe.world().all_reduce(part, Sum)?, 6);
///             Ok::<(), consort::Error>(())
///         });
///     }
/// });
/// # Ok::<(), consort::Error>(())
/// ```
#[derive(Clone)]
pub struct Job(Arc<Ranks>);

/// A PE that the calling thread runs, until it is dropped: from [`Job::join`]. It is used as a
/// [`Pe`].
///
/// Dropping it leaves the job, as [`Joined::leave`] does; if a panic drops it, the job fails. The
/// job also fails if the thread ends and has not dropped it.
pub struct Joined {
    /// There is one until it is dropped.
    pe: Option<Box<Pe>>,
    ranks: Arc<Ranks>,
    /// Whether the thread was panicking already when it joined.
    was_panicking: bool,
}

impl Job {
    pub(crate) fn new(ranks: Arc<Ranks>) -> Self {
        Self(ranks)
    }

    /// The number of PEs.
    #[must_use]
    pub fn size(&self) -> usize {
        self.0.size()
    }

    /// Joins as the PE of the lowest rank that no thread runs.
    ///
    /// # Errors
    /// [`Error::Full`] when threads run all PEs; [`Error::JoinedAlready`] when the calling thread
    /// runs one of them; the job's error when it has failed.
    pub fn join(&self) -> Result<Joined> {
        self.ensure_may_join()?;
        for rank in self.0.all() {
            if let Some(pe) = self.0.enter(rank)? {
                return Ok(self.joined(rank, pe));
            }
        }
        Err(Error::Full { pes: self.size() })
    }

    /// Joins as the PE of this rank.
    ///
    /// # Errors
    /// [`Error::RankOutOfRange`] when there is no such PE; [`Error::RankTaken`] when another thread
    /// runs it; and as [`Job::join`].
    pub fn join_as(&self, rank: Rank) -> Result<Joined> {
        self.ensure_may_join()?;
        if rank.index() >= self.size() {
            return Err(Error::RankOutOfRange { rank, pes: self.0.job.config().pes });
        }
        let pe = self.0.enter(rank)?.ok_or(Error::RankTaken { rank })?;
        Ok(self.joined(rank, pe))
    }

    fn ensure_may_join(&self) -> Result<()> {
        if self.0.job.is_poisoned() {
            return Err(Error::of_job(&self.0.job));
        }
        match Memberships::of_this_thread(|all| all.rank_in(&self.0)) {
            Some(Some(rank)) => Err(Error::JoinedAlready { rank }),
            _ => Ok(()),
        }
    }

    fn joined(&self, rank: Rank, pe: Box<Pe>) -> Joined {
        let ranks = Arc::clone(&self.0);
        Memberships::of_this_thread(|all| all.0.push((Arc::downgrade(&ranks), rank)));
        Joined { pe: Some(pe), ranks, was_panicking: thread::panicking() }
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("size", &self.size()).finish_non_exhaustive()
    }
}

impl Deref for Joined {
    type Target = Pe;

    fn deref(&self) -> &Pe {
        self.pe.as_ref().expect("it is there until this is dropped")
    }
}

impl Joined {
    /// Leaves the job: waits for the PE's nonblocking calls, and leaves its smaller teams. Another
    /// thread may then join as this PE.
    ///
    /// # Errors
    /// The job's error when it has failed; [`Error::StillShared`] when other threads have handles
    /// on the PE's symmetric memory.
    pub fn leave(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        let Some(mut pe) = self.pe.take() else { return Ok(()) };
        let (job, rank) = (&self.ranks.job, pe.world().rank());
        let ended = if thread::panicking() && !self.was_panicking {
            let reason = "it panicked: its thread unwound".to_owned();
            job.poison(&Failure::Pe { rank, reason });
            Ok(Err(Error::of_job(job)))
        } else {
            catch_unwind(AssertUnwindSafe(|| pe.end(Ending::Leaves)))
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
        Memberships::of_this_thread(|all| all.remove(&self.ranks));
        ended.unwrap_or_else(|panic| resume_unwind(panic))
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        let _ = self.end(); // an error has failed the job
    }
}

impl fmt::Debug for Joined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Joined").field(&self.pe).finish()
    }
}

/// The jobs that a thread has joined, each with its rank. When the thread ends, those that it has
/// not left fail.
#[derive(Default)]
struct Memberships(Vec<(Weak<Ranks>, Rank)>);

thread_local! {
    static MEMBERSHIPS: RefCell<Memberships> = RefCell::default();
}

impl Memberships {
    /// Does something with those of the calling thread; `None` while the thread's own values are
    /// dropped.
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
            let reason = "its thread ended and has not left the job".to_owned();
            ranks.job.poison(&Failure::Pe { rank, reason });
        }
    }
}
