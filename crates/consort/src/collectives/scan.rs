//! Scans: PE `i` gets the combination of the contributions of PEs 0 to `i`, or 0 to `i - 1`.

use consort_fabric::{Collective, Operator, Pod, Rank};

use super::{combination, on_values};
#[cfg(doc)]
use crate::{Error, error::CallError};
use crate::{
    Result, Symmetric, Team,
    symmetric::element::Element,
    value::{Unpacking, Value},
};

/// # Inclusive and exclusive scan
impl Team<'_> {
    /// Combines the values of PEs 0 to `i` in the order of the ranks, and returns the result on PE
    /// `i`. The value is copied into the call, so the modes may be Loose. Operators are those of
    /// [`Team::reduce`].
    ///
    /// # Errors
    /// See [`Team`].
    ///
    /// ```
    /// # use consort::{Job, ops::Sum};
    /// let all = Job::threads(3).run(|pe| pe.world().scan(10, Sum))?;
    /// assert_eq!(all, [10, 20, 30]);
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[track_caller]
    pub fn scan<T: Value<Kind>, O: Operator<T>, Kind>(&self, value: T, operator: O) -> Result<T> {
        let result = self.scan_value(Collective::Scan, value, operator)?;
        Ok(T::unpack(result))
    }

    /// Scans one value, and returns the packed result.
    #[track_caller]
    fn scan_value<T: Value<Kind>, O: Operator<T>, Kind>(
        &self,
        collective: Collective,
        value: T,
        operator: O,
    ) -> Result<T::Packed> {
        let source = [value.pack()];
        let mut target = source;
        let operator = Unpacking::new(operator);
        let combination = on_values(&operator);
        self.on_slices::<T, _>(collective, None, combination, &source, &mut target)?;
        let [result] = target;
        Ok(result)
    }

    /// Combines the `source` of PEs 0 to `i`, element by element and in the order of the ranks,
    /// into PE `i`'s `target`.
    ///
    /// # Errors
    /// [`CallError::Lengths`] if the two differ, [`CallError::BorrowedSlice`] with exit mode None,
    /// and see [`Team`].
    #[track_caller]
    pub fn scan_slice<T: Pod, O: Operator<T>>(
        &self,
        source: &[T],
        target: &mut [T],
        operator: O,
    ) -> Result<()> {
        self.refuse_borrowed()?;
        let combination = combination::<T, O>(&operator);
        self.on_slices::<T, T>(Collective::Scan, None, combination, source, target)
    }

    /// Combines the `data` of PEs 0 to `i` into PE `i`'s `data`. The data is copied, or not, as in
    /// [`Team::all_reduce_in_place`].
    ///
    /// # Errors
    /// [`CallError::BorrowedSlice`] with exit mode None, and see [`Team`].
    #[track_caller]
    pub fn scan_in_place<T: Pod, O: Operator<T>>(&self, data: &mut [T], operator: O) -> Result<()> {
        self.in_place(Collective::Scan, None, combination::<T, O>(&operator), data)
    }

    /// Combines the parts of `source` of PEs 0 to `i` into PE `i`'s part of `target`.
    ///
    /// # Errors
    /// [`CallError::Lengths`] if the two differ, [`CallError::InPlace`], and see [`Team`].
    #[track_caller]
    pub fn scan_symmetric<T: Element, O: Operator<T>>(
        &self,
        source: &Symmetric<T>,
        target: &Symmetric<T>,
        operator: O,
    ) -> Result<()> {
        let combination = combination::<T, O>(&operator);
        self.on_symmetric(Collective::Scan, None, combination, source, target)
    }

    /// Combines the values of the PEs before PE `i` in the order of their ranks, and returns the
    /// result on PE `i`. Returns `None` on PE 0, which has no PE before it.
    ///
    /// # Errors
    /// See [`Team`].
    ///
    /// ```
    /// # use consort::{Job, ops::Sum};
    /// // The position of each PE's part in a file that all write together.
    /// let all = Job::threads(3).run(|pe| pe.world().exclusive_scan(100_u64, Sum))?;
    /// assert_eq!(all, [None, Some(100), Some(200)]);
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[track_caller]
    pub fn exclusive_scan<T: Value<Kind>, O: Operator<T>, Kind>(
        &self,
        value: T,
        operator: O,
    ) -> Result<Option<T>> {
        let result = self.scan_value(Collective::ExclusiveScan, value, operator)?;
        Ok((self.rank() != Rank(0)).then(|| T::unpack(result)))
    }

    /// Combines the `source` of the PEs before PE `i`, element by element and in the order of the
    /// ranks, into PE `i`'s `target`. PE 0's `target` is not touched.
    ///
    /// # Errors
    /// As [`Team::scan_slice`].
    #[track_caller]
    pub fn exclusive_scan_slice<T: Pod, O: Operator<T>>(
        &self,
        source: &[T],
        target: &mut [T],
        operator: O,
    ) -> Result<()> {
        self.refuse_borrowed()?;
        let combination = combination::<T, O>(&operator);
        self.on_slices::<T, T>(Collective::ExclusiveScan, None, combination, source, target)
    }

    /// Combines the parts of `source` of the PEs before PE `i` into PE `i`'s part of `target`.
    ///
    /// # Errors
    /// As [`Team::scan_symmetric`].
    #[track_caller]
    pub fn exclusive_scan_symmetric<T: Element, O: Operator<T>>(
        &self,
        source: &Symmetric<T>,
        target: &Symmetric<T>,
        operator: O,
    ) -> Result<()> {
        let combination = combination::<T, O>(&operator);
        self.on_symmetric(Collective::ExclusiveScan, None, combination, source, target)
    }
}
