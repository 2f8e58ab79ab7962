//! All-to-all: every PE has a block for every PE.

use consort_fabric::{Collective, Pod};

use super::{Held, blank};
use crate::{Displacements, Result, Symmetric, Team, symmetric::element::Element, value::Value};
#[cfg(doc)]
use crate::{Error, error::CallError};

/// # All-to-all
impl Team<'_> {
    /// Sends value `i` to PE `i`, and returns the values that all PEs sent to this one, in the
    /// order of their ranks. The same works with a block of several values for each PE. Values are
    /// copied into the call, so the modes may be Loose.
    ///
    /// # Errors
    /// [`CallError::Blocks`] unless there are equally many values for each PE, and see [`Team`].
    ///
    /// ```
    /// # use consort::Job;
    /// let all = Job::threads(2).run(|pe| {
    ///     let me = pe.world().rank().0;
    ///     pe.world().all_to_all(&[10 * me, 10 * me + 1]) // for PE 0, for PE 1
    /// })?;
    /// assert_eq!(all, [[0, 10], [1, 11]]);
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[track_caller]
    pub fn all_to_all<T: Value<Kind>, Kind>(&self, values: &[T]) -> Result<Vec<T>> {
        let (source, mut all) = (T::pack_all(values), blank(values.len()));
        self.on_slices::<T, _>(Collective::AllToAll, None, None, &source, &mut all)?;
        Ok(T::unpack_all(all))
    }

    /// Copies block `i` of PE `j`'s `source` to block `j` of PE `i`'s `target`. Both buffers have
    /// one block for each PE, all of one length.
    ///
    /// # Errors
    /// [`CallError::Blocks`], [`CallError::BorrowedSlice`] with exit mode None, and see [`Team`].
    #[track_caller]
    pub fn all_to_all_slice<T: Pod>(&self, source: &[T], target: &mut [T]) -> Result<()> {
        self.refuse_borrowed()?;
        self.on_slices::<T, T>(Collective::AllToAll, None, None, source, target)
    }

    /// Copies block `i` of PE `j`'s `data` to block `j` of PE `i`'s `data`. This allocates a copy
    /// of `data`, because peers may read it while their blocks are written to it.
    ///
    /// # Errors
    /// As [`Team::all_to_all_slice`].
    #[track_caller]
    pub fn all_to_all_in_place<T: Pod>(&self, data: &mut [T]) -> Result<()> {
        let source = data.to_vec();
        self.all_to_all_slice(&source, data)
    }

    /// Copies block `i` of PE `j`'s part of `source` to block `j` of PE `i`'s part of `target`.
    ///
    /// # Errors
    /// [`CallError::Blocks`], [`CallError::InPlace`], and see [`Team`].
    #[track_caller]
    pub fn all_to_all_symmetric<T: Element>(
        &self,
        source: &Symmetric<T>,
        target: &Symmetric<T>,
    ) -> Result<()> {
        self.on_symmetric(Collective::AllToAll, None, None, source, target)
    }

    /// Sends block `i` of `values` to PE `i`. Returns the blocks that all PEs sent to this one, in
    /// the order of their ranks, and their displacements. A first all-to-all exchanges the lengths
    /// of the blocks. Exit mode None is treated as Mine.
    ///
    /// # Errors
    /// [`CallError::Displacements`], and see [`Team`].
    ///
    /// ```
    /// # use consort::{Displacements, Job, Rank};
    /// let all = Job::threads(2).run(|pe| {
    ///     let given = match pe.world().rank() {
    ///         Rank(0) => Displacements::new(&[1, 2])?, // one for PE 0, two for PE 1
    ///         _ => Displacements::new(&[3, 0])?,
    ///     };
    ///     pe.world().all_to_all_vector(&[7, 8, 9], &given)
    /// })?;
    /// assert_eq!(all[0].0, [7, 7, 8, 9]);
    /// assert_eq!(all[1].0, [8, 9]);
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[track_caller]
    pub fn all_to_all_vector<T: Value<Kind>, Kind>(
        &self,
        values: &[T],
        given: &Displacements,
    ) -> Result<(Vec<T>, Displacements)> {
        let team = self.keeping();
        given.check_source(team.pes(), values.len())?;
        let received = Displacements::new(&team.all_to_all(&given.counts())?)?;
        let mut all = blank(received.extent());
        let source = T::pack_all(values);
        let (given, to) = ((&*source, Held::Each(given)), (&mut all[..], Held::Each(&received)));
        team.on_blocks::<T, _>(Collective::AllToAllVector, None, given, to)?;
        Ok((T::unpack_all(all), received))
    }

    /// Copies block `i` of PE `j`'s `source` to block `j` of PE `i`'s `target`, which has the same
    /// length.
    ///
    /// # Errors
    /// [`CallError::Displacements`], [`CallError::BorrowedSlice`] with exit mode None,
    /// [`Error::Mismatched`] when two PEs pass different lengths for a block, and see [`Team`].
    #[track_caller]
    pub fn all_to_all_vector_slice<T: Pod>(
        &self,
        source: &[T],
        given: &Displacements,
        target: &mut [T],
        received: &Displacements,
    ) -> Result<()> {
        let (given, received) = (Held::Each(given), Held::Each(received));
        self.on_blocks::<T, T>(
            Collective::AllToAllVector,
            None,
            (source, given),
            (target, received),
        )
    }

    /// Copies block `i` of PE `j`'s part of `source` to block `j` of PE `i`'s part of `target`,
    /// which has the same length.
    ///
    /// Exit mode None is treated as Mine: no PE returns while its buffer is exposed.
    ///
    /// # Errors
    /// [`CallError::Displacements`], [`CallError::InPlace`], [`Error::Mismatched`] when two PEs
    /// pass different lengths for a block, and see [`Team`].
    #[track_caller]
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
