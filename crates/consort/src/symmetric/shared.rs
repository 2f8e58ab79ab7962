//! Handles on symmetric memory for threads that are not PEs.

use std::{fmt, marker::PhantomData, sync::Arc, time::Duration};

use consort_fabric::{Atomic, Rank, Signal, Until};
use consort_native::{Block, Counted, Endpoint, OneSided, Tally};

use super::{area::Area, element::Element, word::Word};
#[cfg(doc)]
use crate::Symmetric;
#[cfg(doc)]
use crate::error::LaunchError;
use crate::{Error, Result, error::CallError};

/// A handle for any thread on symmetric memory or a range of it, from [`Symmetric::share`].
///
/// Operations of a thread count as its PE's. Ranks are ranks in the team that allocated the memory,
/// and "own part" means the part of the PE that shared it. [`SharedSymmetric::fence`] and
/// [`SharedSymmetric::quiet`] order and complete the puts of the calling thread.
///
/// Handles are counted, including clones. While one exists, the memory is not reused, even if all
/// PEs have dropped theirs or have freed the team. All handles of a PE must be dropped before the
/// PE ends. When its program returns, the PE waits for that, and fails with
/// [`LaunchError::StillShared`] after a second. A handle that is used later still accesses the same
/// memory.
///
/// ```
/// use consort::{Job, Rank, symmetric::{Signal, Until}};
///
/// let received = Job::threads(2).run(|pe| {
///     let world = pe.world();
///     let (line, full) = (world.symmetric::<u64>(8)?, world.symmetric::<u32>(1)?);
///     if world.rank() == Rank(0) {
///         let (line, full) = (line.share()?, full.share()?);
///         // A thread that is not a PE puts data into the memory of PE 1.
///         let reader = std::thread::spawn(move || {
///             line.put_signal(Rank(1), 0, &[5; 8], &full, 0, Signal::Set(1))
///         });
///         reader.join().expect("no panic")?;
///         return Ok(0);
///     }
///     full.wait_until(0, Until::Equals(1))?;
///     line.load(7)
/// })?;
/// assert_eq!(received[1], 5);
/// # Ok::<(), consort::Error>(())
/// ```
pub struct SharedSymmetric<T: Element> {
    block: Block,
    /// The offset of the elements in each heap.
    offset: usize,
    /// The ranks in the world of the team's PEs.
    ranks: Arc<[Rank]>,
    /// The PE's rank in the world; `me` is its rank in the team.
    pe: Rank,
    me: Rank,
    len: usize,
    handles: Tally,
    _counted: Counted,
    elements: PhantomData<fn() -> T>,
}

impl<T: Element> SharedSymmetric<T> {
    pub(super) fn new(endpoint: &Endpoint, block: &Block, offset: usize, len: usize) -> Self {
        let handles = endpoint.shared_handles();
        Self {
            block: block.hold(),
            offset,
            ranks: endpoint.group().ranks().into(),
            pe: endpoint.rank_in_world(),
            me: endpoint.rank(),
            len,
            handles: handles.clone(),
            _counted: handles.count(),
            elements: PhantomData,
        }
    }

    /// Returns the elements, unless the job has failed.
    fn sound_area(&self) -> Result<Area<'_, T>> {
        let job = self.block.job();
        if job.is_poisoned() { Err(Error::of_job(job)) } else { Ok(self.area()) }
    }

    fn area(&self) -> Area<'_, T> {
        Area {
            one_sided: OneSided::new(self.block.job(), self.pe),
            ranks: &self.ranks,
            offset: self.offset,
            len: self.len,
            elements: PhantomData,
        }
    }

    /// Returns the team rank of the PE that shared the memory. "Own part" means that PE's part.
    #[must_use]
    pub fn rank(&self) -> Rank {
        self.me
    }

    /// Returns the number of elements on each PE.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether it has no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// As [`Symmetric::put`].
    ///
    /// # Errors
    /// [`CallError::RankOutOfRange`], [`CallError::OutOfBounds`], [`Error::PeFailed`].
    pub fn put(&self, to: Rank, first: usize, data: &[T]) -> Result<()> {
        self.sound_area()?.put(to, first, data)
    }

    /// As [`Symmetric::get`].
    ///
    /// # Errors
    /// [`CallError::RankOutOfRange`], [`CallError::OutOfBounds`], [`Error::PeFailed`].
    pub fn get(&self, from: Rank, first: usize, data: &mut [T]) -> Result<()> {
        self.sound_area()?.get(from, first, data)
    }

    /// As [`Symmetric::put_one`].
    ///
    /// # Errors
    /// [`CallError::RankOutOfRange`], [`CallError::OutOfBounds`], [`Error::PeFailed`].
    pub fn put_one(&self, to: Rank, index: usize, value: T) -> Result<()> {
        self.put(to, index, &[value])
    }

    /// As [`Symmetric::get_one`].
    ///
    /// # Errors
    /// [`CallError::RankOutOfRange`], [`CallError::OutOfBounds`], [`Error::PeFailed`].
    pub fn get_one(&self, from: Rank, index: usize) -> Result<T> {
        let mut value = T::zeroed();
        self.get(from, index, std::slice::from_mut(&mut value))?;
        Ok(value)
    }

    /// As [`Symmetric::put_strided`].
    ///
    /// # Errors
    /// [`CallError::RankOutOfRange`], [`CallError::OutOfBounds`], [`Error::PeFailed`].
    ///
    /// # Panics
    /// When a stride is 0.
    pub fn put_strided(
        &self,
        to: Rank,
        first: usize,
        stride: usize,
        data: &[T],
        data_stride: usize,
    ) -> Result<()> {
        self.sound_area()?.put_strided(to, (first, stride), (data, data_stride))
    }

    /// As [`Symmetric::get_strided`].
    ///
    /// # Errors
    /// [`CallError::RankOutOfRange`], [`CallError::OutOfBounds`], [`Error::PeFailed`].
    ///
    /// # Panics
    /// When a stride is 0.
    pub fn get_strided(
        &self,
        from: Rank,
        first: usize,
        stride: usize,
        data: &mut [T],
        data_stride: usize,
    ) -> Result<()> {
        self.sound_area()?.get_strided(from, (first, stride), (data, data_stride))
    }

    /// As [`Symmetric::put_signal`], with flags that are also shared.
    ///
    /// # Errors
    /// As [`Symmetric::put_signal`].
    pub fn put_signal<W: Word>(
        &self,
        to: Rank,
        first: usize,
        data: &[T],
        flags: &SharedSymmetric<W>,
        word: usize,
        how: Signal,
    ) -> Result<()> {
        if !Arc::ptr_eq(self.block.job(), flags.block.job()) {
            return Err(CallError::OtherJob.into());
        }
        self.sound_area()?.put_signal(to, first, data, (&flags.area(), word), how)
    }

    /// As [`Symmetric::fence`], for this thread.
    pub fn fence(&self) {
        self.area().one_sided.fence();
    }

    /// As [`Symmetric::quiet`], for this thread.
    pub fn quiet(&self) {
        self.area().one_sided.quiet();
    }
}

/// Creates another handle, which is also counted.
impl<T: Element> Clone for SharedSymmetric<T> {
    fn clone(&self) -> Self {
        Self {
            block: self.block.hold(),
            ranks: Arc::clone(&self.ranks),
            handles: self.handles.clone(),
            _counted: self.handles.count(),
            ..*self
        }
    }
}

impl<T: Word> SharedSymmetric<T> {
    /// As [`Symmetric::atomic`].
    ///
    /// # Errors
    /// [`CallError::RankOutOfRange`], [`CallError::OutOfBounds`], [`Error::PeFailed`].
    pub fn atomic(&self, at: Rank, index: usize, operation: Atomic) -> Result<T> {
        self.sound_area()?.atomic(at, index, operation)
    }

    /// As [`Symmetric::fetch_add`].
    ///
    /// # Errors
    /// As [`SharedSymmetric::atomic`].
    pub fn fetch_add(&self, at: Rank, index: usize, value: T) -> Result<T> {
        self.atomic(at, index, Atomic::FetchAdd(value.to_bits()))
    }

    /// As [`Symmetric::signal`].
    ///
    /// # Errors
    /// As [`SharedSymmetric::atomic`].
    pub fn signal(&self, to: Rank, index: usize, how: Signal) -> Result<()> {
        self.sound_area()?.signal(to, index, how)
    }

    /// Waits until a word of its own part meets the condition, and returns it. Unlike a PE's
    /// wait, it drives no nonblocking calls, and does not end when all other PEs have finished.
    ///
    /// # Errors
    /// [`CallError::OutOfBounds`], [`Error::PeFailed`].
    pub fn wait_until(&self, index: usize, until: Until) -> Result<T> {
        let value = self.wait(index, until, None)?;
        Ok(value.expect("a wait without a limit ends with a word"))
    }

    /// As [`SharedSymmetric::wait_until`], for at most `limit`; on a time-out returns `None`, and
    /// may be called again.
    ///
    /// # Errors
    /// [`CallError::OutOfBounds`], [`Error::PeFailed`].
    pub fn wait_until_timeout(
        &self,
        index: usize,
        until: Until,
        limit: Duration,
    ) -> Result<Option<T>> {
        self.wait(index, until, Some(limit))
    }

    fn wait(&self, index: usize, until: Until, limit: Option<Duration>) -> Result<Option<T>> {
        let area = self.area();
        let (word, width) = area.word(index)?;
        let value = area.one_sided.wait_until(word, width, until, limit);
        let value = value.map_err(|_| Error::of_job(self.block.job()))?;
        Ok(value.map(T::from_bits))
    }
}

impl<T: Element> fmt::Debug for SharedSymmetric<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedSymmetric").field("len", &self.len).finish_non_exhaustive()
    }
}
