//! All-reduce: every PE gets the combination of all contributions.

use consort_fabric::{Collective, Operator, Pod};

use super::{combination, on_values};
#[cfg(doc)]
use crate::{Error, error::CallError};
use crate::{
    Result, Symmetric, Team,
    symmetric::element::Element,
    value::{Unpacking, Value},
};

/// # All-reduce
impl Team<'_> {
    /// Combines the `value` of every PE in the order of the ranks, and returns the result on every
    /// PE. The value is copied into the call, so the modes may be Loose. Operators are those of
    /// [`Team::reduce`].
    ///
    /// # Errors
    /// See [`Team`].
    ///
    /// ```
    /// # use consort::{Job, ops::Sum};
    /// let all = Job::threads(3).run(|pe| {
    ///     let residual = f64::from(pe.world().rank().0);
    ///     pe.world().all_reduce(residual, Sum)
    /// })?;
    /// assert_eq!(all, [3.0; 3]);
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[inline]
    #[track_caller]
    pub fn all_reduce<T: Value<Kind>, O: Operator<T>, Kind>(
        &self,
        value: T,
        operator: O,
    ) -> Result<T> {
        let source = [value.pack()];
        let mut target = source;
        let operator = Unpacking::new(operator);
        let combination = on_values(&operator);
        self.on_slices::<T, _>(Collective::AllReduce, None, combination, &source, &mut target)?;
        let [result] = target;
        Ok(T::unpack(result))
    }

    /// Combines the `source` of every PE, element by element and in the order of the ranks, into
    /// every PE's `target`.
    ///
    /// # Errors
    /// [`CallError::Lengths`] if the two differ, [`CallError::BorrowedSlice`] with exit mode None,
    /// and see [`Team`].
    #[inline]
    #[track_caller]
    pub fn all_reduce_slice<T: Pod, O: Operator<T>>(
        &self,
        source: &[T],
        target: &mut [T],
        operator: O,
    ) -> Result<()> {
        self.refuse_borrowed()?;
        let combination = combination::<T, O>(&operator);
        self.on_slices::<T, T>(Collective::AllReduce, None, combination, source, target)
    }

    /// Combines the `data` of every PE, element by element and in the order of the ranks, and
    /// replaces it by the result. All PEs make the call in place.
    ///
    /// Data of 32 KiB or more is combined in place, unless a forced algorithm needs contributions
    /// separate from results, or an element is larger than 16 KiB. Other data is copied, at most 1
    /// MiB at a time.
    ///
    /// # Errors
    /// [`CallError::BorrowedSlice`] with exit mode None, and see [`Team`].
    #[track_caller]
    pub fn all_reduce_in_place<T: Pod, O: Operator<T>>(
        &self,
        data: &mut [T],
        operator: O,
    ) -> Result<()> {
        self.in_place(Collective::AllReduce, None, combination::<T, O>(&operator), data)
    }

    /// Combines every PE's part of `source` into every PE's part of `target`.
    ///
    /// # Errors
    /// [`CallError::Lengths`] if the two differ, [`CallError::InPlace`], and see [`Team`].
    #[inline]
    #[track_caller]
    pub fn all_reduce_symmetric<T: Element, O: Operator<T>>(
        &self,
        source: &Symmetric<T>,
        target: &Symmetric<T>,
        operator: O,
    ) -> Result<()> {
        let combination = combination::<T, O>(&operator);
        self.on_symmetric(Collective::AllReduce, None, combination, source, target)
    }
}
