//! Reduce: the root gets the combination of all contributions.

use consort_fabric::{Collective, Operator, Pod, Rank};

use super::{combination, on_values};
#[cfg(doc)]
use crate::{Error, error::CallError};
use crate::{
    Result, Symmetric, Team,
    symmetric::element::Element,
    value::{Unpacking, Value},
};

/// # Reduce
impl Team<'_> {
    /// Combines the `value` of every PE in the order of the ranks. Returns the result on the root,
    /// and `None` elsewhere.
    ///
    /// The operator is one of [`Sum`](crate::ops::Sum), [`Product`](crate::ops::Product),
    /// [`Min`](crate::ops::Min), [`Max`](crate::ops::Max), the bitwise ones, or an associative
    /// closure; see [`Operator`](crate::ops::Operator).
    ///
    /// # Errors
    /// [`CallError::RootOutOfRange`], and see [`Team`].
    ///
    /// ```
    /// # use consort::{Job, Rank};
    /// let longest = |a: [u32; 2], b: [u32; 2]| if b[1] > a[1] { b } else { a };
    /// let all = Job::threads(3).run(|pe| {
    ///     let rank = pe.world().rank().0;
    ///     pe.world().reduce([rank, 10 - rank], longest, Rank(0))
    /// })?;
    /// assert_eq!(all, [Some([0, 10]), None, None]);
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[inline]
    #[track_caller]
    pub fn reduce<T: Value<Kind>, O: Operator<T>, Kind>(
        &self,
        value: T,
        operator: O,
        root: Rank,
    ) -> Result<Option<T>> {
        let source = [value.pack()];
        let mut target = source;
        let operator = Unpacking::new(operator);
        let (combination, root_is) = (on_values(&operator), Some(root));
        self.on_slices::<T, _>(Collective::Reduce, root_is, combination, &source, &mut target)?;
        let [result] = target;
        Ok((self.rank() == root).then(|| T::unpack(result)))
    }

    /// Combines the `source` of every PE, element by element and in the order of the ranks, into
    /// the root's `target`. Other PEs' `target` is not touched, and may be empty.
    ///
    /// # Errors
    /// [`CallError::RootOutOfRange`], [`CallError::Lengths`] on the root,
    /// [`CallError::BorrowedSlice`] with exit mode None, and see [`Team`].
    #[inline]
    #[track_caller]
    pub fn reduce_slice<T: Pod, O: Operator<T>>(
        &self,
        source: &[T],
        target: &mut [T],
        operator: O,
        root: Rank,
    ) -> Result<()> {
        self.refuse_borrowed()?;
        let combination = combination::<T, O>(&operator);
        self.on_slices::<T, T>(Collective::Reduce, Some(root), combination, source, target)
    }

    /// Combines the `data` of every PE, element by element and in the order of the ranks, and
    /// replaces the root's `data` by the result. Other PEs' `data` is not changed. The data is
    /// copied, or not, as in [`Team::all_reduce_in_place`].
    ///
    /// # Errors
    /// [`CallError::RootOutOfRange`], [`CallError::BorrowedSlice`] with exit mode None, and see
    /// [`Team`].
    ///
    /// ```
    /// # use consort::{Job, Rank, ops::Sum};
    /// let all = Job::threads(3).run(|pe| {
    ///     let mut counts = vec![pe.world().rank().0, 1];
    ///     pe.world().reduce_in_place(&mut counts, Sum, Rank(0))?;
    ///     Ok(counts)
    /// })?;
    /// assert_eq!(all, [[3, 3], [1, 1], [2, 1]]);
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[track_caller]
    pub fn reduce_in_place<T: Pod, O: Operator<T>>(
        &self,
        data: &mut [T],
        operator: O,
        root: Rank,
    ) -> Result<()> {
        self.in_place(Collective::Reduce, Some(root), combination::<T, O>(&operator), data)
    }

    /// Combines every PE's part of `source` into the root's part of `target`. With Loose modes a PE
    /// may return, and make further calls, while data still moves.
    ///
    /// # Errors
    /// [`CallError::RootOutOfRange`], [`CallError::Lengths`] if the two differ,
    /// [`CallError::InPlace`], and see [`Team`].
    #[inline]
    #[track_caller]
    pub fn reduce_symmetric<T: Element, O: Operator<T>>(
        &self,
        source: &Symmetric<T>,
        target: &Symmetric<T>,
        operator: O,
        root: Rank,
    ) -> Result<()> {
        let combination = combination::<T, O>(&operator);
        self.on_symmetric(Collective::Reduce, Some(root), combination, source, target)
    }
}
