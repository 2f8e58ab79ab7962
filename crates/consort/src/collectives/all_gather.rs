//! All-gather: every PE gets every PE's block.

use consort_fabric::{Collective, Pod};

use super::{Held, blank};
use crate::{Displacements, Result, Symmetric, Team, symmetric::element::Element, value::Value};
#[cfg(doc)]
use crate::{Error, error::CallError};

/// # All-gather
impl Team<'_> {
    /// Returns the `value` of every PE, in the order of the ranks. The value is copied into the
    /// call, so the modes may be Loose.
    ///
    /// # Errors
    /// See [`Team`].
    ///
    /// ```
    /// # use consort::Job;
    /// let all = Job::threads(3).run(|pe| pe.world().all_gather(pe.world().rank().0 * 10))?;
    /// assert_eq!(all, [[0, 10, 20]; 3]);
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[track_caller]
    pub fn all_gather<T: Value<Kind>, Kind>(&self, value: T) -> Result<Vec<T>> {
        self.all_gather_values::<T, _>(&[value.pack()])
    }

    /// Returns the `values` of all PEs one after the other, in the order of the ranks. All PEs pass
    /// the same number; if not, use [`Team::all_gather_vector`]. Otherwise as [`Team::all_gather`].
    ///
    /// # Errors
    /// See [`Team`].
    ///
    /// ```
    /// # use consort::Job;
    /// let all = Job::threads(2).run(|pe| {
    ///     let me = pe.world().rank().0;
    ///     pe.world().all_gather_blocks(&[(me, 'a'), (me, 'b')])
    /// })?;
    /// assert_eq!(all[1], [(0, 'a'), (0, 'b'), (1, 'a'), (1, 'b')]);
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[track_caller]
    pub fn all_gather_blocks<T: Value<Kind>, Kind>(&self, values: &[T]) -> Result<Vec<T>> {
        self.all_gather_values::<T, _>(&T::pack_all(values))
    }

    #[track_caller]
    fn all_gather_values<T: Value<Kind>, Kind>(&self, source: &[T::Packed]) -> Result<Vec<T>> {
        let mut all = blank(source.len().saturating_mul(self.size()));
        self.on_slices::<T, _>(Collective::AllGather, None, None, source, &mut all)?;
        Ok(T::unpack_all(all))
    }

    /// Copies PE `i`'s `source` to block `i` of every PE's `target`. All sources have one length,
    /// and the target has one block of that length for each PE.
    ///
    /// # Errors
    /// [`CallError::Blocks`], [`CallError::BorrowedSlice`] with exit mode None, and see [`Team`].
    #[track_caller]
    pub fn all_gather_slice<T: Pod>(&self, source: &[T], target: &mut [T]) -> Result<()> {
        self.refuse_borrowed()?;
        self.on_slices::<T, T>(Collective::AllGather, None, None, source, target)
    }

    /// Copies PE `i`'s block `i` of `data` to block `i` of every PE's `data`. This allocates a copy
    /// of the PE's own block, because peers may read the block while theirs are written to `data`.
    ///
    /// # Errors
    /// [`CallError::Blocks`] when `data` cannot be divided into one block per PE,
    /// [`CallError::BorrowedSlice`] with exit mode None, and see [`Team`].
    #[track_caller]
    pub fn all_gather_in_place<T: Pod>(&self, data: &mut [T]) -> Result<()> {
        let len = data.len() / self.size();
        let source = data[self.rank().index() * len..][..len].to_vec();
        self.all_gather_slice(&source, data)
    }

    /// Copies PE `i`'s part of `source` to block `i` of every PE's part of `target`.
    ///
    /// # Errors
    /// [`CallError::Blocks`], [`CallError::InPlace`], and see [`Team`].
    #[track_caller]
    pub fn all_gather_symmetric<T: Element>(
        &self,
        source: &Symmetric<T>,
        target: &Symmetric<T>,
    ) -> Result<()> {
        self.on_symmetric(Collective::AllGather, None, None, source, target)
    }

    /// Returns the `values` of all PEs one after the other, and the displacements of each PE's
    /// block. PEs may pass different numbers of values: a first all-gather exchanges the counts, by
    /// the algorithm forced for all-gathers, if any. Exit mode None is treated as Mine.
    ///
    /// # Errors
    /// See [`Team`].
    ///
    /// ```
    /// # use consort::{Job, Rank};
    /// let all = Job::threads(3).run(|pe| {
    ///     let me = pe.world().rank();
    ///     pe.world().all_gather_vector(&vec![me.0; me.index()]) // as many as its rank
    /// })?;
    /// let (values, blocks) = &all[0];
    /// assert_eq!(values, &[1, 2, 2]);
    /// assert_eq!(blocks.range(Rank(2)), 1..3);
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[track_caller]
    pub fn all_gather_vector<T: Value<Kind>, Kind>(
        &self,
        values: &[T],
    ) -> Result<(Vec<T>, Displacements)> {
        let team = self.keeping();
        let blocks = Displacements::new(&team.all_gather(values.len())?)?;
        let mut all = blank(blocks.extent());
        let (source, received) = (T::pack_all(values), Held::Each(&blocks));
        let given = (&*source, Held::One(source.len()));
        team.on_blocks::<T, _>(Collective::AllGatherVector, None, given, (&mut all, received))?;
        Ok((T::unpack_all(all), blocks))
    }

    /// Copies PE `i`'s `source` to block `i` of every PE's `target`. In `blocks`, that block has
    /// the same length.
    ///
    /// # Errors
    /// [`CallError::Displacements`], [`CallError::BorrowedSlice`] with exit mode None,
    /// [`Error::Mismatched`] when two PEs pass different lengths for a block, and see [`Team`].
    #[track_caller]
    pub fn all_gather_vector_slice<T: Pod>(
        &self,
        source: &[T],
        target: &mut [T],
        blocks: &Displacements,
    ) -> Result<()> {
        let given = (source, Held::One(source.len()));
        self.on_blocks::<T, T>(
            Collective::AllGatherVector,
            None,
            given,
            (target, Held::Each(blocks)),
        )
    }

    /// Copies the first `len` elements of PE `i`'s part of `source` to block `i` of every PE's part
    /// of `target`. `len` may differ from PE to PE.
    ///
    /// Exit mode None is treated as Mine: no PE returns while its buffer is exposed.
    ///
    /// # Errors
    /// [`CallError::Displacements`], [`CallError::OutOfBounds`], [`CallError::InPlace`],
    /// [`Error::Mismatched`] when two PEs pass different lengths for a block, and see [`Team`].
    #[track_caller]
    pub fn all_gather_vector_symmetric<T: Element>(
        &self,
        source: &Symmetric<T>,
        len: usize,
        target: &Symmetric<T>,
        blocks: &Displacements,
    ) -> Result<()> {
        let (given, received) = ((source, Held::One(len)), (target, Held::Each(blocks)));
        self.on_symmetric_blocks(Collective::AllGatherVector, None, given, received)
    }
}
