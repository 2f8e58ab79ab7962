//! Symmetric memory: the same allocation on every PE. All PEs can put to it and get from it.

use std::{
    any::type_name,
    fmt,
    marker::PhantomData,
    ops::{Bound, RangeBounds},
    ptr,
    rc::Rc,
    sync::Arc,
};

use consort_fabric::{Collective, readable_type};
use consort_native::{Block, Buffer, Endpoint, HeapError, Job};

use super::{area::Area, element::Element, shared::SharedSymmetric};
use crate::{
    Error, Result, Team,
    error::CallError,
    runtime::{hold::Hold, state::State},
};

/// The same number of elements on every PE of a team, initially 0; from [`Team::symmetric`].
///
/// Ranks are ranks in that team. Collectives of other teams may use it too, if their PEs are in its
/// team. Once its team is freed, its own operations return [`CallError::Freed`].
///
/// Every PE may read and write every part at any time, so there are no references into it: elements
/// are copied in and out, each byte atomically. A copy that races with another yields a mixture of
/// old and new bytes. Use signals, [`Symmetric::wait_until`] or a collective to know when data has
/// arrived. Dropping it is local. The memory is reused once all PEs have dropped it, their ranges
/// of it ([`Symmetric::range`]) and their shared handles ([`Symmetric::share`]).
///
/// ```
/// use consort::Job;
///
/// // Each PE puts its rank into the memory of its right neighbour.
/// let ranks = Job::threads(4).run(|pe| {
///     let world = pe.world();
///     let inbox = world.symmetric::<u32>(1)?; // one element on each PE
///     inbox.put(world.right(), 0, &[world.rank().0])?;
///     inbox.quiet()?; // this PE's put is complete
///     world.barrier()?; // all PEs' puts are
///     inbox.load(0)
/// })?;
/// assert_eq!(ranks, [3, 0, 1, 2]);
/// # Ok::<(), consort::Error>(())
/// ```
pub struct Symmetric<T: Element, E = Whole> {
    pub(super) state: Hold,
    block: Arc<Block>,
    /// The index of the first element in the block.
    first: usize,
    len: usize,
    elements: PhantomData<(T, E)>,
}

/// A marker for [`Symmetric`]: a whole allocation.
#[derive(Clone, Copy, Debug)]
pub enum Whole {}

/// A marker for [`Symmetric`]: a range of an allocation.
#[derive(Clone, Copy, Debug)]
pub enum Ranged {}

/// A range of symmetric memory, from [`Symmetric::range`], only for one-sided communication.
pub type SymmetricRange<T> = Symmetric<T, Ranged>;

impl<T: Element> Symmetric<T> {
    /// Allocates memory in a call of this name.
    #[track_caller]
    pub(crate) fn allocate(team: &Team, len: usize, name: &str) -> Result<Self> {
        const { T::FITS }
        let bytes = len.saturating_mul(size_of::<T>());
        let block = team.allocate(name, |endpoint| Block::allocate(endpoint, bytes))?;
        let (block, elements) = (Arc::new(block), PhantomData);
        Ok(Self { state: team.state.clone(), block, first: 0, len, elements })
    }

    /// Fails unless this can be the source of `team`'s `collective` and `target` its target: memory
    /// of the PE that makes the call, one allocation in a broadcast, and two in other collectives,
    /// which may both be empty.
    #[inline]
    pub(crate) fn check_with(
        &self,
        target: &Self,
        collective: Collective,
        team: &Hold,
    ) -> Result<()> {
        self.ensure_of_pe(team)?;
        target.ensure_of_pe(team)?;
        let [bytes, target_bytes] = [self, target].map(|memory| memory.block.bytes());
        let is_one = self.block.offset() == target.block.offset() && bytes > 0 && target_bytes > 0;
        match (collective, is_one) {
            (Collective::Broadcast, false) if bytes.max(target_bytes) > 0 => {
                Err(CallError::TwoMemories.into())
            }
            (Collective::Broadcast, _) | (_, false) => Ok(()),
            (_, true) => Err(CallError::InPlace.into()),
        }
    }

    /// Returns the first `len` elements of this PE's part as a buffer for a collective of the same
    /// PE.
    #[inline]
    pub(crate) fn buffer<'b>(&'b self, state: &'b State, len: usize) -> Buffer<'b> {
        let rank = state.endpoint.rank_in_world();
        let bytes = len.saturating_mul(size_of::<T>());
        Buffer::symmetric(state.endpoint.job(), rank, self.block.offset(), bytes)
    }

    /// Returns the block of the heap that this PE holds.
    pub(crate) fn block(&self) -> &Arc<Block> {
        &self.block
    }
}

impl<T: Element, E> Symmetric<T, E> {
    /// Returns the number of elements on each PE. Local.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether it has no elements. Local.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns a range of these elements, with indices that start at 0. Local, so each PE may use
    /// its own ranges.
    ///
    /// A range is for one-sided communication. Collectives work on whole allocations: the name of a
    /// call, which reveals a mismatch, contains the length of its memory, but not the position.
    ///
    /// # Errors
    /// [`CallError::OutOfBounds`].
    ///
    /// ```
    /// # use consort::Job;
    /// Job::threads(2).run(|pe| {
    ///     let world = pe.world();
    ///     let table = world.symmetric::<u32>(100)?;
    ///     let halves = [table.range(..50)?, table.range(50..)?];
    ///     let mine = &halves[world.rank().index()]; // on the other PE
    ///     mine.put(world.right(), 0, &[world.rank().0 + 1; 50])?;
    ///     world.barrier()?;
    ///     let theirs = &halves[world.right().index()];
    ///     assert_eq!(theirs.to_vec()?, [world.right().0 + 1; 50]);
    ///     assert!(theirs.load(50).is_err());
    ///     Ok(())
    /// })?;
    /// # Ok::<(), consort::Error>(())
    /// ```
    ///
    /// ```compile_fail,E0308
    /// # use consort::{Job, Rank};
    /// Job::threads(2).run(|pe| {
    ///     let table = pe.world().symmetric::<u32>(100)?;
    ///     pe.world().in_symmetric(&table.range(..50)?, &table.range(..50)?).broadcast(Rank(0)) // takes all of it
    /// });
    /// ```
    pub fn range(&self, range: impl RangeBounds<usize>) -> Result<SymmetricRange<T>> {
        let first = match range.start_bound() {
            Bound::Included(&first) => Some(first),
            Bound::Excluded(&before) => before.checked_add(1),
            Bound::Unbounded => Some(0),
        };
        let end = match range.end_bound() {
            Bound::Included(&last) => last.checked_add(1),
            Bound::Excluded(&end) => Some(end),
            Bound::Unbounded => Some(self.len),
        };
        let is_counted = first.is_some() && end.is_some();
        let [from, to] = [first, end].map(|bound| bound.unwrap_or(usize::MAX));
        if !is_counted || from > to || to > self.len {
            return Err(CallError::OutOfBounds { first: from, end: to, len: self.len }.into());
        }
        Ok(Symmetric {
            state: self.state.clone(),
            block: Arc::clone(&self.block),
            first: self.first + from,
            len: to - from,
            elements: PhantomData,
        })
    }

    /// Fails unless this is memory of the PE that has `team`.
    #[inline(always)]
    fn ensure_of_pe(&self, team: &Hold) -> Result<()> {
        if Rc::ptr_eq(self.state.owner(), team.owner()) { Ok(()) } else { Err(self.refusal(team)) }
    }

    /// Returns why this memory, of another PE than that of `team`, cannot be used. A thread runs at
    /// most one PE of a job, so another PE of the same job does not run.
    #[cold]
    fn refusal(&self, team: &Hold) -> Error {
        let [own, theirs]: [&Job; 2] = [self.state.endpoint.job(), team.endpoint.job()];
        if ptr::eq(own, theirs) { CallError::Ended.into() } else { CallError::OtherJob.into() }
    }

    /// Returns the offset of the elements in each heap.
    fn offset(&self) -> usize {
        self.block.offset() + self.first * size_of::<T>()
    }

    /// Returns the elements, while the PE is in a call of this team, which is not freed.
    fn area(&self) -> Area<'_, T> {
        let endpoint = &self.state.endpoint;
        Area {
            one_sided: endpoint.one_sided(),
            ranks: endpoint.group().ranks(),
            offset: self.offset(),
            len: self.len,
            elements: PhantomData,
        }
    }

    /// Performs an operation on these elements and those of `other`, which may be of another team
    /// of the same PE.
    #[inline(always)]
    pub(super) fn run_with<U: Element, X, R>(
        &self,
        other: &Symmetric<U, X>,
        operation: impl FnOnce(&Area<'_, T>, &Area<'_, U>) -> Result<R>,
    ) -> Result<R> {
        other.ensure_of_pe(&self.state)?;
        self.run(|area| {
            if ptr::eq(&raw const *self.state, &raw const *other.state) {
                return operation(area, &other.area_of(area));
            }
            other.state.ensure_alive()?;
            operation(area, &other.area())
        })
    }

    /// Returns these elements, in an operation on `other`, whose team is not freed.
    fn area_of<'a, U>(&self, other: &Area<'a, U>) -> Area<'a, T> {
        let Area { one_sided, ranks, .. } = *other;
        let (offset, len) = (self.offset(), self.len);
        Area { one_sided, ranks, offset, len, elements: PhantomData }
    }

    #[inline(always)]
    pub(super) fn run<R>(&self, operation: impl FnOnce(&Area<'_, T>) -> Result<R>) -> Result<R> {
        let _inside = self.state.enter_one_sided()?;
        self.state.ensure_sound()?;
        operation(&self.area())
    }

    /// Creates a handle on the same memory for other threads of this PE's program. Local.
    ///
    /// # Errors
    /// [`CallError::Freed`].
    ///
    /// ```
    /// # use consort::{Job, Rank, symmetric::Until};
    /// Job::threads(2).run(|pe| {
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
        Ok(SharedSymmetric::new(&self.state.endpoint, &self.block, self.offset(), self.len))
    }
}

/// # Symmetric memory
impl Team {
    /// Allocates `len` zeroed elements in every PE's symmetric memory.
    ///
    /// # Errors
    /// [`Error::Memory`] when less than that is left, and see [`Team`].
    #[track_caller]
    pub fn symmetric<T: Element>(&self, len: usize) -> Result<Symmetric<T>> {
        let name = format!("symmetric({len} of {})", readable_type(type_name::<T>()));
        Symmetric::allocate(self, len, &name)
    }

    /// Allocates the same memory on all PEs of the team, in a call of this name. No PE allocates
    /// before all have entered, so memory that PEs drop before the call can be reused. No PE
    /// returns before all have allocated.
    #[track_caller]
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

impl<T: Element, E> fmt::Debug for Symmetric<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Symmetric").field("len", &self.len).finish_non_exhaustive()
    }
}
