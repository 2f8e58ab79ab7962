//! A block from everyone to everyone: MPI's all-to-all.

use consort_fabric::{Collective, Pod};

use super::{Held, blank};
#[cfg(doc)]
use crate::Error;
use crate::{Displacements, Result, Symmetric, Team, symmetric::element::Element};

/// # All-to-all
impl Team<'_> {
    /// Gives value `i` to PE `i`, and returns what each PE gave to this one, in the order of their
    /// ranks. Values are copied into the call, so it may be Loose.
    ///
    /// # Errors
    /// [`Error::Blocks`] unless there is a value for each PE, and see [`Team`].
    ///
    /// ```
    /// # use consort::Pes;
    /// let all = Pes::threads(2).run(|pe| {
    ///     let me = pe.world().rank().0;
    ///     pe.world().all_to_all(&[10 * me, 10 * me + 1]) // for PE 0, for PE 1
    /// })?;
    /// assert_eq!(all[1].1, [1, 11]);
    /// # Ok::<(), consort::Error>(())
    /// ```
    pub fn all_to_all<T: Pod>(&self, values: &[T]) -> Result<Vec<T>> {
        let mut all = blank(values.len());
        self.on_slices(Collective::AllToAll, None, None, values, &mut all)?;
        Ok(all)
    }

    /// Copies block `i` of PE `j`'s `source` into PE `i`'s `target` as its block `j`. Both are as
    /// many blocks of equal length as there are PEs.
    ///
    /// # Errors
    /// [`Error::Blocks`], [`Error::BorrowedSlice`] with exit mode None, and see [`Team`].
    pub fn all_to_all_slice<T: Pod>(&self, source: &[T], target: &mut [T]) -> Result<()> {
        self.refuse_borrowed()?;
        self.on_slices(Collective::AllToAll, None, None, source, target)
    }

    /// Copies block `i` of PE `j`'s `data` into PE `i`'s `data` as its block `j`. The data is
    /// copied before, since peers may read it while others' comes.
    ///
    /// # Errors
    /// As [`Team::all_to_all_slice`].
    pub fn all_to_all_in_place<T: Pod>(&self, data: &mut [T]) -> Result<()> {
        let source = data.to_vec();
        self.all_to_all_slice(&source, data)
    }

    /// Copies block `i` of PE `j`'s part of `source` into PE `i`'s part of `target` as its block
    /// `j`.
    ///
    /// # Errors
    /// [`Error::Blocks`], [`Error::InPlace`], and see [`Team`].
    pub fn all_to_all_symmetric<T: Element>(
        &self,
        source: &Symmetric<T>,
        target: &Symmetric<T>,
    ) -> Result<()> {
        self.on_symmetric(Collective::AllToAll, None, None, source, target)
    }

    /// Gives block `i` of `values` to PE `i`, and returns what each PE gave to this one, in the
    /// order of their ranks, and where that is. An all-to-all before tells PEs how long the blocks
    /// are. Exit mode None is as Mine.
    ///
    /// # Errors
    /// [`Error::Displacements`], and see [`Team`].
    ///
    /// ```
    /// # use consort::{Pes, Displacements, Rank};
    /// let all = Pes::threads(2).run(|pe| {
    ///     let given = match pe.world().rank() {
    ///         Rank(0) => Displacements::new(&[1, 2])?, // one for PE 0, two for PE 1
    ///         _ => Displacements::new(&[3, 0])?,
    ///     };
    ///     pe.world().all_to_all_vector(&[7, 8, 9], &given)
    /// })?;
    /// assert_eq!(all[0].1.0, [7, 7, 8, 9]);
    /// assert_eq!(all[1].1.0, [8, 9]);
    /// # Ok::<(), consort::Error>(())
    /// ```
    pub fn all_to_all_vector<T: Pod>(
        &self,
        values: &[T],
        given: &Displacements,
    ) -> Result<(Vec<T>, Displacements)> {
        let team = self.keeping();
        given.check_source(team.size(), values.len())?;
        let received = Displacements::new(&team.all_to_all(&given.counts())?)?;
        let mut all = blank(received.extent());
        team.all_to_all_vector_slice(values, given, &mut all, &received)?;
        Ok((all, received))
    }

    /// Copies block `i` of PE `j`'s `source` into PE `i`'s `target` as its block `j`, which is as
    /// long.
    ///
    /// # Errors
    /// [`Error::Displacements`], [`Error::BorrowedSlice`] with exit mode None,
    /// [`Error::Mismatched`] when two PEs give different lengths for a block, and see [`Team`].
    pub fn all_to_all_vector_slice<T: Pod>(
        &self,
        source: &[T],
        given: &Displacements,
        target: &mut [T],
        received: &Displacements,
    ) -> Result<()> {
        let (given, received) = (Held::Each(given), Held::Each(received));
        self.on_blocks(Collective::AllToAllVector, None, (source, given), (target, received))
    }

    /// Copies block `i` of PE `j`'s part of `source` into PE `i`'s part of `target` as its block
    /// `j`, which is as long.
    ///
    /// Exit mode None is as Mine: nobody leaves while its buffer is exposed.
    ///
    /// # Errors
    /// [`Error::Displacements`], [`Error::InPlace`], [`Error::Mismatched`] when two PEs give
    /// different lengths for a block, and see [`Team`].
    pub fn all_to_all_vector_symmetric<T: Element>(
        &self,
        source: &Symmetric<T>,
        given: &Displacements,
        target: &Symmetric<T>,
        received: &Displacements,
    ) -> Result<()> {
        let (given, received) = ((source, Held::Each(given)), (target, Held::Each(received)));
        self.on_symmetric_blocks(Collective::AllToAllVector, None, given, received)
    }
}
