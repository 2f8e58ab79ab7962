//! Scatter: PE `i` gets the root's block `i`.

use bytemuck::Zeroable;
use consort_fabric::{Collective, Pod, Rank};

use super::{Held, blank};
use crate::{Displacements, Result, Symmetric, Team, symmetric::element::Element, value::Value};
#[cfg(doc)]
use crate::{Error, error::CallError};

/// # Scatter
impl Team<'_> {
    /// Returns the root's value `i` on PE `i`. The root passes one value for each PE. Other PEs'
    /// `values` are ignored, and may be empty. Values are copied into the call, so the modes may be
    /// Loose.
    ///
    /// # Errors
    /// [`CallError::RootOutOfRange`], [`CallError::Blocks`] on the root, and see [`Team`].
    ///
    /// ```
    /// # use consort::{Job, Rank};
    /// let all = Job::threads(3).run(|pe| {
    ///     let primes = if pe.world().rank() == Rank(1) { vec![2, 3, 5] } else { Vec::new() };
    ///     pe.world().scatter(&primes, Rank(1))
    /// })?;
    /// assert_eq!(all, [2, 3, 5]);
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[track_caller]
    pub fn scatter<T: Value<Kind>, Kind>(&self, values: &[T], root: Rank) -> Result<T> {
        let mut target = [T::Packed::zeroed()];
        self.scatter_values(values, &mut target, root)?;
        let [mine] = target;
        Ok(T::unpack(mine))
    }

    /// Returns block `i` of the root's `values` on PE `i`. The root passes a block of `len` values
    /// for each PE. Otherwise as [`Team::scatter`].
    ///
    /// # Errors
    /// [`CallError::RootOutOfRange`], [`CallError::Blocks`] on the root, and see [`Team`].
    #[track_caller]
    pub fn scatter_blocks<T: Value<Kind>, Kind>(
        &self,
        values: &[T],
        len: usize,
        root: Rank,
    ) -> Result<Vec<T>> {
        let mut mine = blank(len);
        self.scatter_values(values, &mut mine, root)?;
        Ok(T::unpack_all(mine))
    }

    #[track_caller]
    fn scatter_values<T: Value<Kind>, Kind>(
        &self,
        values: &[T],
        target: &mut [T::Packed],
        root: Rank,
    ) -> Result<()> {
        let source = T::pack_all(values);
        self.on_slices::<T, _>(Collective::Scatter, Some(root), None, &source, target)
    }

    /// Copies block `i` of the root's `source` to PE `i`'s `target`. The source has one block of
    /// the target's length for each PE. Other PEs' `source` is ignored.
    ///
    /// # Errors
    /// [`CallError::RootOutOfRange`], [`CallError::Blocks`] on the root,
    /// [`CallError::BorrowedSlice`] with exit mode None, and see [`Team`].
    #[track_caller]
    pub fn scatter_slice<T: Pod>(&self, source: &[T], target: &mut [T], root: Rank) -> Result<()> {
        self.refuse_borrowed()?;
        self.on_slices::<T, T>(Collective::Scatter, Some(root), None, source, target)
    }

    /// Copies block `i` of the root's part of `source` into PE `i`'s part of `target`.
    ///
    /// # Errors
    /// [`CallError::RootOutOfRange`], [`CallError::Blocks`], [`CallError::InPlace`], and see
    /// [`Team`].
    #[track_caller]
    pub fn scatter_symmetric<T: Element>(
        &self,
        source: &Symmetric<T>,
        target: &Symmetric<T>,
        root: Rank,
    ) -> Result<()> {
        self.on_symmetric(Collective::Scatter, Some(root), None, source, target)
    }

    /// Returns block `i` of the root's `values` on PE `i`. Other PEs' `values` and `blocks` are
    /// ignored, and may be empty. A first scatter sends each PE the length of its block. Exit mode
    /// None is treated as Mine.
    ///
    /// # Errors
    /// [`CallError::RootOutOfRange`], [`CallError::Displacements`] on the root, and see [`Team`].
    ///
    /// ```
    /// # use consort::{Displacements, Job, Rank};
    /// let all = Job::threads(3).run(|pe| {
    ///     let (digits, blocks) = match pe.world().rank() {
    ///         Rank(0) => (vec![3, 1, 4, 1, 5, 9], Displacements::new(&[1, 3, 2])?),
    ///         _ => Default::default(),
    ///     };
    ///     pe.world().scatter_vector(&digits, &blocks, Rank(0))
    /// })?;
    /// assert_eq!(all[1], [1, 4, 1]);
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[track_caller]
    pub fn scatter_vector<T: Value<Kind>, Kind>(
        &self,
        values: &[T],
        blocks: &Displacements,
        root: Rank,
    ) -> Result<Vec<T>> {
        let team = self.keeping();
        let mut counts = Vec::new();
        if team.rank() == root {
            blocks.check_source(team.pes(), values.len())?;
            counts = blocks.counts();
        }
        let mut mine = blank(team.scatter(&counts, root)?);
        let (source, received) = (T::pack_all(values), Held::One(mine.len()));
        let (given, received) = (team.held_by_root(root, blocks), (&mut mine[..], received));
        let given = (&*source, given);
        team.on_blocks::<T, _>(Collective::ScatterVector, Some(root), given, received)?;
        Ok(T::unpack_all(mine))
    }

    /// Copies block `i` of the root's `source` to PE `i`'s `target`, which has the same length.
    /// Other PEs' `source` and `blocks` are ignored.
    ///
    /// # Errors
    /// [`CallError::RootOutOfRange`], [`CallError::Displacements`] on the root,
    /// [`CallError::BorrowedSlice`] with exit mode None, [`Error::Mismatched`] when two PEs pass
    /// different lengths for a block, and see [`Team`].
    #[track_caller]
    pub fn scatter_vector_slice<T: Pod>(
        &self,
        source: &[T],
        blocks: &Displacements,
        target: &mut [T],
        root: Rank,
    ) -> Result<()> {
        let given = self.held_by_root(root, blocks);
        let received = Held::One(target.len());
        self.on_blocks::<T, T>(
            Collective::ScatterVector,
            Some(root),
            (source, given),
            (target, received),
        )
    }

    /// Copies block `i` of the root's part of `source` to the first `len` elements of PE `i`'s part
    /// of `target`. `len` may differ from PE to PE. Other PEs' `blocks` are ignored.
    ///
    /// Exit mode None is treated as Mine: no PE returns while its buffer is exposed.
    ///
    /// # Errors
    /// [`CallError::RootOutOfRange`], [`CallError::Displacements`] on the root,
    /// [`CallError::OutOfBounds`], [`CallError::InPlace`], [`Error::Mismatched`] when two PEs pass
    /// different lengths for a block, and see [`Team`].
    #[track_caller]
    pub fn scatter_vector_symmetric<T: Element>(
        &self,
        source: &Symmetric<T>,
        blocks: &Displacements,
        target: &Symmetric<T>,
        len: usize,
        root: Rank,
    ) -> Result<()> {
        let given = (source, self.held_by_root(root, blocks));
        let received = (target, Held::One(len));
        self.on_symmetric_blocks(Collective::ScatterVector, Some(root), given, received)
    }
}
