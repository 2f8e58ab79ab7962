//! Everyone's block, to the root.

use consort_fabric::{Collective, Pod, Rank};

use super::{Held, blank};
#[cfg(doc)]
use crate::Error;
use crate::{Displacements, Result, Symmetric, Team, symmetric::element::Element};

/// # Gather
impl Team<'_> {
    /// Returns everyone's `value`, in the order of the ranks, on the root, and `None` elsewhere.
    /// A value is copied into the call, so it may be Loose.
    ///
    /// # Errors
    /// [`Error::RootOutOfRange`], and see [`Team`].
    ///
    /// ```
    /// # use consort::{Pes, Rank};
    /// let all = Pes::threads(3).run(|pe| pe.world().gather(pe.world().rank().0 * 10, Rank(0)))?;
    /// assert_eq!(all[0].1, Some(vec![0, 10, 20]));
    /// # Ok::<(), consort::Error>(())
    /// ```
    pub fn gather<T: Pod>(&self, value: T, root: Rank) -> Result<Option<Vec<T>>> {
        let source = std::slice::from_ref(&value);
        let is_root = self.rank() == root;
        let mut all = blank(if is_root { self.size() as usize } else { 0 });
        self.on_slices(Collective::Gather, Some(root), None, source, &mut all)?;
        Ok(is_root.then_some(all))
    }

    /// Copies PE `i`'s `source` into the root's `target` as its block `i`. The target is as many
    /// blocks as there are PEs, of the length of a source; elsewhere it is not touched.
    ///
    /// # Errors
    /// [`Error::RootOutOfRange`], [`Error::Blocks`] on the root, [`Error::BorrowedSlice`] with exit
    /// mode None, and see [`Team`].
    pub fn gather_slice<T: Pod>(&self, source: &[T], target: &mut [T], root: Rank) -> Result<()> {
        self.refuse_borrowed()?;
        self.on_slices(Collective::Gather, Some(root), None, source, target)
    }

    /// Copies PE `i`'s part of `source` into the root's part of `target` as its block `i`.
    ///
    /// # Errors
    /// [`Error::RootOutOfRange`], [`Error::Blocks`], [`Error::InPlace`], and see [`Team`].
    pub fn gather_symmetric<T: Element>(
        &self,
        source: &Symmetric<T>,
        target: &Symmetric<T>,
        root: Rank,
    ) -> Result<()> {
        self.on_symmetric(Collective::Gather, Some(root), None, source, target)
    }

    /// Returns everyone's `values` one after the other, and where each PE's are, on the root, and
    /// `None` elsewhere. A gather before tells the root how many they are. Exit mode None is as
    /// Mine.
    ///
    /// # Errors
    /// [`Error::RootOutOfRange`], and see [`Team`].
    ///
    /// ```
    /// # use consort::{Pes, Rank};
    /// let all = Pes::threads(3).run(|pe| {
    ///     let me = pe.world().rank();
    ///     pe.world().gather_vector(&vec![me.0; me.index()], Rank(0)) // as many as its rank
    /// })?;
    /// let (values, blocks) = all[0].1.as_ref().expect("the root's");
    /// assert_eq!(values, &[1, 2, 2]);
    /// assert_eq!(blocks.range(Rank(2)), 1..3);
    /// # Ok::<(), consort::Error>(())
    /// ```
    pub fn gather_vector<T: Pod>(
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
        team.gather_vector_slice(
            values,
            &mut all,
            blocks.as_ref().unwrap_or(&Displacements::default()),
            root,
        )?;
        Ok(blocks.map(|blocks| (all, blocks)))
    }

    /// Copies PE `i`'s `source` into the root's `target` as its block `i`, which is as long.
    /// Elsewhere target and blocks do not matter.
    ///
    /// # Errors
    /// [`Error::RootOutOfRange`], [`Error::Displacements`] on the root, [`Error::BorrowedSlice`]
    /// with exit mode None, [`Error::Mismatched`] when two PEs give different lengths for a block,
    /// and see [`Team`].
    pub fn gather_vector_slice<T: Pod>(
        &self,
        source: &[T],
        target: &mut [T],
        blocks: &Displacements,
        root: Rank,
    ) -> Result<()> {
        let given = (source, Held::One(source.len()));
        let received = self.held_by_root(root, blocks);
        self.on_blocks(Collective::GatherVector, Some(root), given, (target, received))
    }

    /// Copies the first `len` elements of PE `i`'s part of `source`, which may differ from PE to
    /// PE, into the root's part of `target` as its block `i`. Elsewhere than on the root the blocks
    /// do not matter.
    ///
    /// Exit mode None is as Mine: nobody leaves while its buffer is exposed.
    ///
    /// # Errors
    /// [`Error::RootOutOfRange`], [`Error::Displacements`] on the root, [`Error::OutOfBounds`],
    /// [`Error::InPlace`], [`Error::Mismatched`] when two PEs give different lengths for a block,
    /// and see [`Team`].
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
