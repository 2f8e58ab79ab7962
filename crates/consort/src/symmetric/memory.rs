//! Symmetric memory: the same allocation on every PE. All PEs can put to it and get from it.

use std::{any::type_name, fmt, marker::PhantomData, sync::Arc};

use consort_fabric::{Atomic, Operator, Rank, Signal, Until};
use consort_native::{Block, Buffer, Endpoint, HeapError, Job};

use super::{area::Area, element::Element, shared::SharedSymmetric, word::Word};
use crate::{
    Error, Result, Team,
    runtime::state::{Hold, State},
};

/// The same number of elements on every PE of a team, all 0 at first; from [`Team::symmetric`].
///
/// Ranks are those in that team. Collectives of other teams may use it too, if their PEs are in its
/// team. Once its team is freed, its own operations return [`Error::Freed`].
///
/// Every PE may read and write every part at any time, so there are no references into it: elements
/// are copied in and out, each byte atomically. A copy that races with another yields a mixture of
/// old and new bytes. Use signals, [`Symmetric::wait_until`] or a collective to know when data is
/// there. Dropping it is local; the memory is reused once all PEs have dropped theirs, and their
/// shared handles ([`Symmetric::share`]).
///
/// ```
/// use consort::Pes;
///
/// // Each PE puts its rank into the memory of its right neighbour.
/// let ranks = Pes::threads(4).run(|pe| {
///     let world = pe.world();
///     let inbox = world.symmetric::<u32>(1)?; // one element on each PE
///     inbox.put(world.right(), 0, &[world.rank().0])?;
///     inbox.quiet()?; // this PE's put is complete
///     world.barrier()?; // everyone's is
///     inbox.load(0)
/// })?;
/// assert_eq!((ranks[0].1, ranks[1].1), (3, 0));
/// # Ok::<(), consort::Error>(())
/// ```
pub struct Symmetric<'p, T: Element> {
    state: Hold<'p>,
    block: Arc<Block>,
    len: usize,
    elements: PhantomData<T>,
}

impl<'p, T: Element> Symmetric<'p, T> {
    /// Allocates memory in a call of this name.
    pub(crate) fn allocate(team: Team<'p>, len: usize, name: &str) -> Result<Self> {
        const { T::FITS }
        let bytes = len.saturating_mul(size_of::<T>());
        let block = team.allocate(name, |endpoint| Block::allocate(endpoint, bytes))?;
        Ok(Self { state: team.state, block: Arc::new(block), len, elements: PhantomData })
    }

    /// The number of elements on each PE. Local.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no elements. Local.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether both are the same memory. Empty allocations never are.
    #[inline]
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.block.offset() == other.block.offset() && self.block.bytes() > 0
    }

    /// This PE's part, as a buffer for a collective of the same job.
    #[inline]
    pub(crate) fn buffer<'b>(&'b self, state: &'b State) -> Buffer<'b> {
        self.ensure_job(state.endpoint.job());
        let rank = state.endpoint.rank_in_world();
        Buffer::symmetric(state.endpoint.job(), rank, self.block.offset(), self.block.bytes())
    }

    /// Panics when `other` is memory of another job.
    pub(crate) fn ensure_same_job<U: Element>(&self, other: &Symmetric<'_, U>) {
        self.ensure_job(other.job());
    }

    /// The block of the heap that this PE holds.
    pub(crate) fn block(&self) -> &Arc<Block> {
        &self.block
    }

    #[inline]
    pub(crate) fn ensure_job(&self, job: &Job) {
        assert!(std::ptr::eq(self.job(), job), "symmetric memory of another job");
    }

    /// Returns the job's error once the job has failed.
    pub(crate) fn ensure_sound(&self) -> Result<()> {
        self.state.ensure_sound()
    }

    /// The job in which it was allocated.
    pub(crate) fn job(&self) -> &Job {
        self.state.endpoint.job()
    }

    /// The elements, while the PE is in a call of this team, which is not freed.
    fn area(&self) -> Area<'_, T> {
        let endpoint = &self.state.endpoint;
        Area {
            one_sided: endpoint.one_sided(),
            ranks: endpoint.group().ranks(),
            offset: self.block.offset(),
            len: self.len,
            elements: PhantomData,
        }
    }

    /// These elements, in an operation on `other`, whose team is not freed.
    fn area_of<'a, U>(&self, other: &Area<'a, U>) -> Area<'a, T> {
        let Area { one_sided, ranks, .. } = *other;
        let (offset, len) = (self.block.offset(), self.len);
        Area { one_sided, ranks, offset, len, elements: PhantomData }
    }

    fn run<R>(&self, operation: impl FnOnce(&Area<'_, T>) -> Result<R>) -> Result<R> {
        let _inside = self.state.enter()?;
        operation(&self.area())
    }

    /// Makes a handle on the same memory for other threads of this PE's program. Local.
    ///
    /// # Errors
    /// [`Error::Freed`].
    ///
    /// ```
    /// # use consort::{Pes, Rank, Until};
    /// Pes::threads(2).run(|pe| {
    ///     let world = pe.world();
    ///     let flags = world.symmetric::<u32>(1)?;
    ///     let shared = flags.share()?;
    ///     std::thread::scope(|scope| {
    ///         let peer = Rank(1 - world.rank().0);
    ///         scope.spawn(move || shared.fetch_add(peer, 0, 5));
    ///     });
    ///     flags.wait_until(0, Until::Equals(5))?;
    ///     Ok(())
    /// })?;
    /// # Ok::<(), consort::Error>(())
    /// ```
    pub fn share(&self) -> Result<SharedSymmetric<T>> {
        let _inside = self.state.enter()?;
        Ok(SharedSymmetric::new(&self.state.endpoint, &self.block, self.len))
    }

    /// Copies `data` to the part of `to`, from element `first` on. One-sided: returns when `data`
    /// may be changed. The put is complete after [`Symmetric::quiet`].
    ///
    /// # Errors
    /// [`Error::RankOutOfRange`], [`Error::OutOfBounds`], [`Error::PeFailed`].
    pub fn put(&self, to: Rank, first: usize, data: &[T]) -> Result<()> {
        self.run(|area| area.put(to, first, data))
    }

    /// Copies elements of the part of `from`, from element `first` on, into `data`. One-sided.
    ///
    /// # Errors
    /// [`Error::RankOutOfRange`], [`Error::OutOfBounds`], [`Error::PeFailed`].
    pub fn get(&self, from: Rank, first: usize, data: &mut [T]) -> Result<()> {
        self.run(|area| area.get(from, first, data))
    }

    /// Combines `data` with the part of `from`, from element `first` on: `data[i] = data[i] (op)
    /// part[i]`. One-sided.
    ///
    /// # Errors
    /// [`Error::RankOutOfRange`], [`Error::OutOfBounds`], [`Error::PeFailed`].
    ///
    /// ```
    /// # use consort::{Max, Pes, Rank};
    /// Pes::threads(2).run(|pe| {
    ///     let world = pe.world();
    ///     let highest = world.symmetric::<u64>(1)?;
    ///     highest.store(0, u64::from(world.rank().0) + 5)?;
    ///     world.barrier()?;
    ///     let mut seen = [2];
    ///     highest.get_combine(Rank(1), 0, &mut seen, Max)?;
    ///     assert_eq!(seen, [6]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), consort::Error>(())
    /// ```
    pub fn get_combine<O: Operator<T>>(
        &self,
        from: Rank,
        first: usize,
        data: &mut [T],
        operator: O,
    ) -> Result<()> {
        self.run(|area| area.get_combine(from, first, data, &operator))
    }

    /// Copies every `data_stride`th element of `data`, from the first on, to the part of `to`. The
    /// first goes to element `first`, and each other `stride` elements after the one before.
    /// One-sided: returns when `data` may be changed.
    ///
    /// # Errors
    /// [`Error::RankOutOfRange`], [`Error::OutOfBounds`], [`Error::PeFailed`].
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
        self.run(|area| area.put_strided(to, (first, stride), (data, data_stride)))
    }

    /// Copies elements of the part of `from` into every `data_stride`th element of `data`, from the
    /// first on. The first comes from element `first`, and each other `stride` elements after the
    /// one before. One-sided.
    ///
    /// # Errors
    /// [`Error::RankOutOfRange`], [`Error::OutOfBounds`], [`Error::PeFailed`].
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
        self.run(|area| area.get_strided(from, (first, stride), (data, data_stride)))
    }

    /// Reads one element of this PE's own part.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`], [`Error::PeFailed`].
    pub fn load(&self, index: usize) -> Result<T> {
        let mut value = T::zeroed();
        self.get(self.state.endpoint.rank(), index, std::slice::from_mut(&mut value))?;
        Ok(value)
    }

    /// Changes one element of this PE's own part.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`], [`Error::PeFailed`].
    pub fn store(&self, index: usize, value: T) -> Result<()> {
        self.put(self.state.endpoint.rank(), index, &[value])
    }

    /// Copies `data` to the part of `to`, from element `first` on, and then signals word `word` of
    /// `flags` there. A PE that waits for the signal then sees the data.
    ///
    /// # Errors
    /// [`Error::RankOutOfRange`], [`Error::OutOfBounds`], [`Error::PeFailed`].
    ///
    /// ```
    /// use consort::{Pes, Rank, Signal, Until};
    ///
    /// Pes::threads(2).run(|pe| {
    ///     let world = pe.world();
    ///     let (data, arrived) = (world.symmetric::<f64>(3)?, world.symmetric::<u64>(1)?);
    ///     if world.rank() == Rank(0) {
    ///         let values = [1.0, 2.0, 3.0];
    ///         data.put_signal(Rank(1), 0, &values, &arrived, 0, Signal::Set(1))?;
    ///     } else {
    ///         arrived.wait_until(0, Until::Equals(1))?;
    ///         assert_eq!(data.load(2)?, 3.0);
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), consort::Error>(())
    /// ```
    pub fn put_signal<W: Word>(
        &self,
        to: Rank,
        first: usize,
        data: &[T],
        flags: &Symmetric<'_, W>,
        word: usize,
        how: Signal,
    ) -> Result<()> {
        self.ensure_same_job(flags);
        self.run(|area| area.put_signal(to, first, data, (&flags.area_of(area), word), how))
    }

    /// Orders this PE's earlier puts before its later ones and signals, for every PE. Local.
    ///
    /// # Errors
    /// [`Error::PeFailed`].
    pub fn fence(&self) -> Result<()> {
        self.run(|area| {
            area.one_sided.fence();
            Ok(())
        })
    }

    /// Waits until all puts of this PE are complete. Local.
    ///
    /// # Errors
    /// [`Error::PeFailed`].
    pub fn quiet(&self) -> Result<()> {
        self.run(|area| {
            area.one_sided.quiet();
            Ok(())
        })
    }
}

impl<T: Word> Symmetric<'_, T> {
    /// Performs an atomic operation on one word of the part of `at`; sequentially consistent.
    /// Returns the old value. Operands are given by their bits, as [`Word::to_bits`] makes them.
    ///
    /// # Errors
    /// [`Error::RankOutOfRange`], [`Error::OutOfBounds`], [`Error::PeFailed`].
    pub fn atomic(&self, at: Rank, index: usize, operation: Atomic) -> Result<T> {
        self.run(|area| area.atomic(at, index, operation))
    }

    /// Adds `value` to one word of the part of `at`, wrapping around. Returns the old value.
    ///
    /// # Errors
    /// As [`Symmetric::atomic`].
    pub fn fetch_add(&self, at: Rank, index: usize, value: T) -> Result<T> {
        self.atomic(at, index, Atomic::FetchAdd(value.to_bits()))
    }

    /// Changes one word of the part of `to`, and wakes a PE that waits for it there. A PE that has
    /// seen the signal sees the data that this PE put before its last [`Symmetric::fence`].
    ///
    /// # Errors
    /// [`Error::RankOutOfRange`], [`Error::OutOfBounds`], [`Error::PeFailed`].
    pub fn signal(&self, to: Rank, index: usize, how: Signal) -> Result<()> {
        self.run(|area| area.signal(to, index, how))
    }

    /// Waits until one word of this PE's own part meets the condition, and returns it. Data that
    /// was put before the word changed, and ordered by a fence or by [`Symmetric::put_signal`], has
    /// arrived.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`], [`Error::PeFailed`]; [`Error::Mismatched`] when all other PEs have
    /// finished, so that no PE is left to change the word.
    pub fn wait_until(&self, index: usize, until: Until) -> Result<T> {
        self.run(|area| {
            let (word, width) = area.word(index)?;
            let endpoint = &self.state.endpoint;
            let value = endpoint.wait_until(word, width, until);
            value.map(T::from_bits).map_err(|_| Error::of_job(endpoint.job()))
        })
    }
}

/// # Symmetric memory
impl<'p> Team<'p> {
    /// Allocates `len` zeroed elements in every PE's symmetric memory.
    ///
    /// # Errors
    /// [`Error::Memory`] when less than that is left, and see [`Team`].
    pub fn symmetric<T: Element>(&self, len: usize) -> Result<Symmetric<'p, T>> {
        Symmetric::allocate(*self, len, &format!("symmetric({len} of {})", type_name::<T>()))
    }

    /// Takes the same memory on all PEs of the team, in a call of this name. They take it once all
    /// have entered, and so have dropped what they drop before the call. No PE returns before all
    /// have taken it.
    pub(crate) fn allocate<M>(
        &self,
        name: &str,
        take: impl FnOnce(&Endpoint) -> Result<M, HeapError>,
    ) -> Result<M> {
        self.state.agree(name)?;
        let memory = match take(&self.state.endpoint) {
            Ok(memory) => memory,
            Err(error) => {
                self.state.ensure_sound()?;
                return Err(error.into()); // all PEs return it
            }
        };
        self.barrier()?;
        Ok(memory)
    }
}

impl<T: Element> fmt::Debug for Symmetric<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Symmetric").field("len", &self.len).finish_non_exhaustive()
    }
}
