//! Block `i` of the root, to PE `i`.

use consort_fabric::{Collective, Pod, Rank};

#[cfg(doc)]
use crate::Error;
use crate::{Result, Symmetric, Team, symmetric::Element};

impl Team<'_> {
    /// Returns value `i` of the root's on PE `i`. The root gives as many values as there are PEs;
    /// elsewhere `values` does not matter, and may be empty. Values are copied into the call, so it
    /// may be Loose.
    ///
    /// # Errors
    /// [`Error::RootOutOfRange`], [`Error::Blocks`] on the root, and see [`Team`].
    ///
    /// ```
    /// # use consort::{Pes, Rank};
    /// let all = Pes::threads(3).run(|pe| {
    ///     let primes = if pe.world().rank() == Rank(1) { vec![2, 3, 5] } else { Vec::new() };
    ///     pe.world().scatter(&primes, Rank(1))
    /// })?;
    /// assert_eq!(all[2].1, 5);
    /// # Ok::<(), consort::Error>(())
    /// ```
    pub fn scatter<T: Pod>(&self, values: &[T], root: Rank) -> Result<T> {
        let mut mine = T::zeroed();
        let target = std::slice::from_mut(&mut mine);
        self.on_slices(Collective::Scatter, Some(root), None, values, target)?;
        Ok(mine)
    }

    /// Copies block `i` of the root's `source` into PE `i`'s `target`. The source is as many blocks
    /// as there are PEs, of the length of a target; elsewhere it does not matter.
    ///
    /// # Errors
    /// [`Error::RootOutOfRange`], [`Error::Blocks`] on the root, [`Error::BorrowedSlice`] with exit
    /// mode None, and see [`Team`].
    pub fn scatter_slice<T: Pod>(&self, source: &[T], target: &mut [T], root: Rank) -> Result<()> {
        self.refuse_loans()?;
        self.on_slices(Collective::Scatter, Some(root), None, source, target)
    }

    /// Copies block `i` of the root's part of `source` into PE `i`'s part of `target`.
    ///
    /// # Errors
    /// [`Error::RootOutOfRange`], [`Error::Blocks`], [`Error::InPlace`], and see [`Team`].
    pub fn scatter_symmetric<T: Element>(
        &self,
        source: &Symmetric<T>,
        target: &Symmetric<T>,
        root: Rank,
    ) -> Result<()> {
        self.on_symmetric(Collective::Scatter, Some(root), None, source, target)
    }
}
