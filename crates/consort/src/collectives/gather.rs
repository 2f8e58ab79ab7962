//! Gather: the root gets every PE's block.

use consort_fabric::{Collective, Pod, Rank};

use super::{Held, blank};
use crate::{Displacements, Result, Symmetric, Team, symmetric::element::Element, value::Value};
#[cfg(doc)]
use crate::{Error, error::CallError};

/// # Gather
impl Team<'_> {
    /// Returns on the root the `value` of every PE, in the order of the ranks, and `None`
    /// elsewhere. The value is copied into the call, so the modes may be Loose.
    ///
    /// # Errors
    /// [`CallError::RootOutOfRange`], and see [`Team`].
    ///
    /// ```
    /// # use consort::{Job, Rank};
    /// let all = Job::threads(3).run(|pe| pe.world().gather(pe.world().rank().0 * 10, Rank(0)))?;
    /// assert_eq!(all, [Some(vec![0, 10, 20]), None, None]);
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[track_caller]
    pub fn gather<T: Value<Kind>, Kind>(&self, value: T, root: Rank) -> Result<Option<Vec<T>>> {
        self.gather_values::<T, _>(&[value.pack()], root)
    }

    /// Returns on the root the `values` of all PEs one after the other, in the order of the ranks,
    /// and `None` elsewhere. All PEs pass the same number; if not, use [`Team::gather_vector`].
    /// Otherwise as [`Team::gather`].
    ///
    /// # Errors
    /// [`CallError::RootOutOfRange`], and see [`Team`].
    #[track_caller]
    pub fn gather_blocks<T: Value<Kind>, Kind>(
        &self,
        values: &[T],
        root: Rank,
    ) -> Result<Option<Vec<T>>> {
        self.gather_values::<T, _>(&T::pack_all(values), root)
    }

    #[track_caller]
    fn gather_values<T: Value<Kind>, Kind>(
        &self,
        source: &[T::Packed],
        root: Rank,
    ) -> Result<Option<Vec<T>>> {
        let is_root = self.rank() == root;
        let pes = if is_root { self.size() } else { 0 };
        let mut all = blank(source.len().saturating_mul(pes));
        self.on_slices::<T, _>(Collective::Gather, Some(root), None, source, &mut all)?;
        Ok(is_root.then(|| T::unpack_all(all)))
    }

    /// Copies PE `i`'s `source` to block `i` of the root's `target`. All sources have one length,
    /// and the target has one block of that length for each PE. Other PEs' `target` is not touched.
    ///
    /// # Errors
    /// [`CallError::RootOutOfRange`], [`CallError::Blocks`] on the root,
    /// [`CallError::BorrowedSlice`] with exit mode None, and see [`Team`].
    #[track_caller]
    pub fn gather_slice<T: Pod>(&self, source: &[T], target: &mut [T], root: Rank) -> Result<()> {
        self.refuse_borrowed()?;
        self.on_slices::<T, T>(Collective::Gather, Some(root), None, source, target)
    }

    /// Copies PE `i`'s part of `source` to block `i` of the root's part of `target`.
    ///
    /// # Errors
    /// [`CallError::RootOutOfRange`], [`CallError::Blocks`], [`CallError::InPlace`], and see
    /// [`Team`].
    #[track_caller]
    pub fn gather_symmetric<T: Element>(
        &self,
        source: &Symmetric<T>,
        target: &Symmetric<T>,
        root: Rank,
    ) -> Result<()> {
        self.on_symmetric(Collective::Gather, Some(root), None, source, target)
    }

    /// Returns on the root the `values` of all PEs one after the other, and the displacements of
    /// each PE's block; `None` elsewhere. PEs may pass different numbers of values: a first gather
    /// sends the counts to the root. Exit mode None is treated as Mine.
    ///
    /// # Errors
    /// [`CallError::RootOutOfRange`], and see [`Team`].
    ///
    /// ```
    /// # use consort::{Job, Rank};
    /// let all = Job::threads(3).run(|pe| {
    ///     let me = pe.world().rank();
    ///     pe.world().gather_vector(&vec![me.0; me.index()], Rank(0)) // as many as its rank
    /// })?;
    /// let (values, blocks) = all[0].as_ref().expect("the root's");
    /// assert_eq!(values, &[1, 2, 2]);
    /// assert_eq!(blocks.range(Rank(2)), 1..3);
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[track_caller]
    pub fn gather_vector<T: Value<Kind>, Kind>(
        &self,
        values: &[T],
        root: Rank,
    ) -> Result<Option<(Vec<T>, Displacements)>> {
        let team = self.keeping();
        let blocks = match team.gather(values.len(), root)? {
            Some(counts) => Some(Displacements::new(&counts)?),
            None => None,
        };
        let mut all = blank(blocks.as_ref().map_or(0, Displacements::extent));
        let (source, none) = (T::pack_all(values), Displacements::default());
        let given = (&*source, Held::One(source.len()));
        let received = (&mut all[..], team.held_by_root(root, blocks.as_ref().unwrap_or(&none)));
        team.on_blocks::<T, _>(Collective::GatherVector, Some(root), given, received)?;
        Ok(blocks.map(|blocks| (T::unpack_all(all), blocks)))
    }

    /// Copies PE `i`'s `source` to block `i` of the root's `target`, which has the same length.
    /// Other PEs' `target` and `blocks` are ignored.
    ///
    /// # Errors
    /// [`CallError::RootOutOfRange`], [`CallError::Displacements`] on the root,
    /// [`CallError::BorrowedSlice`] with exit mode None, [`Error::Mismatched`] when two PEs pass
    /// different lengths for a block, and see [`Team`].
    #[track_caller]
    pub fn gather_vector_slice<T: Pod>(
        &self,
        source: &[T],
        target: &mut [T],
        blocks: &Displacements,
        root: Rank,
    ) -> Result<()> {
        let given = (source, Held::One(source.len()));
        let received = self.held_by_root(root, blocks);
        self.on_blocks::<T, T>(Collective::GatherVector, Some(root), given, (target, received))
    }

    /// Copies the first `len` elements of PE `i`'s part of `source` to block `i` of the root's part
    /// of `target`. `len` may differ from PE to PE. Other PEs' `blocks` are ignored.
    ///
    /// Exit mode None is treated as Mine: no PE returns while its buffer is exposed.
    ///
    /// # Errors
    /// [`CallError::RootOutOfRange`], [`CallError::Displacements`] on the root,
    /// [`CallError::OutOfBounds`], [`CallError::InPlace`], [`Error::Mismatched`] when two PEs pass
    /// different lengths for a block, and see [`Team`].
    #[track_caller]
    pub fn gather_vector_symmetric<T: Element>(
        &self,
        source: &Symmetric<T>,
        len: usize,
        target: &Symmetric<T>,
        blocks: &Displacements,
        root: Rank,
    ) -> Result<()> {
        let given = (source, Held::One(len));
        let received = (target, self.held_by_root(root, blocks));
        self.on_symmetric_blocks(Collective::GatherVector, Some(root), given, received)
    }
}
