//! Everyone's block, to the root.

use consort_fabric::{Collective, Pod, Rank};

use super::blank;
#[cfg(doc)]
use crate::Error;
use crate::{Result, Symmetric, Team, symmetric::Element};

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
        self.refuse_loans()?;
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
}
