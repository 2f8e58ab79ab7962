//! One-sided accesses to elements of symmetric memory, and the order of these accesses.

use consort_fabric::{Operator, Rank};

use super::{element::Element, memory::Symmetric};
use crate::Result;
#[cfg(doc)]
use crate::{Error, error::CallError};

/// The bytes that [`Symmetric::fill`] copies at a time, from a core's first-level cache.
const FILLED_BYTES: usize = 4096;

impl<T: Element, E> Symmetric<T, E> {
    /// Copies `data` to `to`'s part, starting at element `first`. One-sided: returns when `data`
    /// may be changed. The put is complete after [`Symmetric::quiet`].
    ///
    /// # Errors
    /// [`CallError::RankOutOfRange`], [`CallError::OutOfBounds`], [`Error::PeFailed`].
    pub fn put(&self, to: Rank, first: usize, data: &[T]) -> Result<()> {
        self.run(|area| area.put(to, first, data))
    }

    /// Copies elements of `from`'s part, starting at element `first`, into `data`. One-sided.
    ///
    /// # Errors
    /// [`CallError::RankOutOfRange`], [`CallError::OutOfBounds`], [`Error::PeFailed`].
    pub fn get(&self, from: Rank, first: usize, data: &mut [T]) -> Result<()> {
        self.run(|area| area.get(from, first, data))
    }

    /// Sets one element of `to`'s part, as OpenSHMEM's `shmem_p`. One-sided. The put is complete
    /// after [`Symmetric::quiet`].
    ///
    /// # Errors
    /// [`CallError::RankOutOfRange`], [`CallError::OutOfBounds`], [`Error::PeFailed`].
    ///
    /// ```
    /// # use consort::Job;
    /// let results = Job::threads(3).run(|pe| {
    ///     let world = pe.world();
    ///     let cell = world.symmetric::<u32>(1)?;
    ///     cell.put_one(world.right(), 0, world.rank().0)?;
    ///     world.barrier()?;
    ///     Ok((cell.load(0)?, cell.get_one(world.right(), 0)?))
    /// })?;
    /// assert_eq!(results, [(2, 0), (0, 1), (1, 2)]);
    /// # Ok::<(), consort::Error>(())
    /// ```
    pub fn put_one(&self, to: Rank, index: usize, value: T) -> Result<()> {
        self.put(to, index, &[value])
    }

    /// Returns one element of `from`'s part, as OpenSHMEM's `shmem_g`. One-sided.
    ///
    /// # Errors
    /// [`CallError::RankOutOfRange`], [`CallError::OutOfBounds`], [`Error::PeFailed`].
    pub fn get_one(&self, from: Rank, index: usize) -> Result<T> {
        let mut value = T::zeroed();
        self.get(from, index, std::slice::from_mut(&mut value))?;
        Ok(value)
    }

    /// Combines `data` with `from`'s part, starting at element `first`:
    /// `data[i] = data[i] (op) part[i]`. One-sided.
    ///
    /// # Errors
    /// [`CallError::RankOutOfRange`], [`CallError::OutOfBounds`], [`Error::PeFailed`].
    ///
    /// ```
    /// # use consort::{Job, Rank, ops::Max};
    /// Job::threads(2).run(|pe| {
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

    /// Copies every `data_stride`th element of `data`, starting at the first, to `to`'s part. The
    /// first goes to element `first`, and each other one `stride` elements after the previous one.
    /// One-sided: returns when `data` may be changed.
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
        self.run(|area| area.put_strided(to, (first, stride), (data, data_stride)))
    }

    /// Copies elements of `from`'s part into every `data_stride`th element of `data`, starting at
    /// the first. The first comes from element `first`, and each other one `stride` elements after
    /// the previous one. One-sided.
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
        self.run(|area| area.get_strided(from, (first, stride), (data, data_stride)))
    }

    /// Reads one element of this PE's part.
    ///
    /// # Errors
    /// [`CallError::OutOfBounds`], [`Error::PeFailed`].
    pub fn load(&self, index: usize) -> Result<T> {
        self.get_one(self.state.endpoint.rank(), index)
    }

    /// Sets one element of this PE's part.
    ///
    /// # Errors
    /// [`CallError::OutOfBounds`], [`Error::PeFailed`].
    pub fn store(&self, index: usize, value: T) -> Result<()> {
        self.put_one(self.state.endpoint.rank(), index, value)
    }

    /// Returns all elements of this PE's part.
    ///
    /// # Errors
    /// [`Error::PeFailed`], [`CallError::Freed`].
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let mut elements = vec![T::zeroed(); self.len()];
        self.get(self.state.endpoint.rank(), 0, &mut elements)?;
        Ok(elements)
    }

    /// Sets all elements of this PE's part to `value`.
    ///
    /// # Errors
    /// [`Error::PeFailed`], [`CallError::Freed`].
    ///
    /// ```
    /// # use consort::Job;
    /// let all = Job::threads(2).run(|pe| {
    ///     let table = pe.world().symmetric::<f64>(1000)?;
    ///     table.fill(f64::INFINITY)?;
    ///     table.range(10..20)?.fill(0.5)?;
    ///     table.range(9..12)?.to_vec()
    /// })?;
    /// assert_eq!(all[1], [f64::INFINITY, 0.5, 0.5]);
    /// # Ok::<(), consort::Error>(())
    /// ```
    pub fn fill(&self, value: T) -> Result<()> {
        // Zero-sized elements are all in one piece.
        let piece = FILLED_BYTES.checked_div(size_of::<T>()).map_or(usize::MAX, |count| count + 1);
        let some = vec![value; self.len().min(piece)];
        let me = self.state.endpoint.rank();
        self.run(|area| {
            let firsts = (0..self.len()).step_by(some.len().max(1));
            firsts
                .map(|first| (first, some.len().min(self.len() - first)))
                .try_for_each(|(first, count)| area.put(me, first, &some[..count]))
        })
    }

    /// Returns the address of an element of `pe`'s part, for the program's own loads and stores, as
    /// OpenSHMEM's `shmem_ptr`. It is valid while the memory is allocated. Other PEs may access the
    /// memory at any time, so read and write it atomically.
    ///
    /// # Errors
    /// [`CallError::NeedsSharedMemory`] when `pe` shares no memory with this PE;
    /// [`CallError::RankOutOfRange`], [`CallError::OutOfBounds`], [`Error::PeFailed`].
    pub fn address(&self, pe: Rank, index: usize) -> Result<*mut T> {
        self.run(|area| area.address(pe, index))
    }

    /// Orders this PE's earlier puts before its later ones and signals, for every PE. Local.
    ///
    /// # Errors
    /// [`Error::PeFailed`].
    pub fn fence(&self) -> Result<()> {
        self.run(|area| {
            area.one_sided.fence();
            area.ensure_answered()
        })
    }

    /// Waits until all puts of this PE are complete. Local.
    ///
    /// # Errors
    /// [`Error::PeFailed`].
    pub fn quiet(&self) -> Result<()> {
        self.run(|area| {
            area.one_sided.quiet();
            area.ensure_answered()
        })
    }
}
