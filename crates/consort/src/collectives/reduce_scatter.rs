//! Reduce-scatter: PE `i` gets the combination of all blocks `i`.

use bytemuck::Zeroable;
use consort_fabric::{Collective, Operator, Pod};

use super::{blank, combination, on_values};
#[cfg(doc)]
use crate::{Error, error::CallError};
use crate::{
    Result, Symmetric, Team,
    symmetric::element::Element,
    value::{Unpacking, Value},
};

/// # Reduce-scatter
impl Team<'_> {
    /// Combines value `i` of every PE in the order of the ranks, and returns the result on PE `i`.
    /// Each PE passes one value for each PE. Values are copied into the call, so the modes may be
    /// Loose. Operators are those of [`Team::reduce`].
    ///
    /// # Errors
    /// [`CallError::Blocks`] unless there is a value for each PE, and see [`Team`].
    ///
    /// ```
    /// # use consort::{Job, ops::Sum};
    /// let all = Job::threads(2).run(|pe| pe.world().reduce_scatter(&[1, 10], Sum))?;
    /// assert_eq!(all, [2, 20]);
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[track_caller]
    pub fn reduce_scatter<T: Value<Kind>, O: Operator<T>, Kind>(
        &self,
        values: &[T],
        operator: O,
    ) -> Result<T> {
        let mut target = [T::Packed::zeroed()];
        self.reduce_scatter_values(values, &mut target, operator)?;
        let [mine] = target;
        Ok(T::unpack(mine))
    }

    /// Combines block `i` of every PE's `values`, element by element and in the order of the ranks,
    /// and returns the result on PE `i`. Otherwise as [`Team::reduce_scatter`].
    ///
    /// # Errors
    /// [`CallError::Blocks`] unless there is a block for each PE, all of one length, and see
    /// [`Team`].
    #[track_caller]
    pub fn reduce_scatter_blocks<T: Value<Kind>, O: Operator<T>, Kind>(
        &self,
        values: &[T],
        operator: O,
    ) -> Result<Vec<T>> {
        let mut mine = blank(values.len() / self.size());
        self.reduce_scatter_values(values, &mut mine, operator)?;
        Ok(T::unpack_all(mine))
    }

    #[track_caller]
    fn reduce_scatter_values<T: Value<Kind>, O: Operator<T>, Kind>(
        &self,
        values: &[T],
        target: &mut [T::Packed],
        operator: O,
    ) -> Result<()> {
        let (source, operator) = (T::pack_all(values), Unpacking::new(operator));
        let combination = on_values(&operator);
        self.on_slices::<T, _>(Collective::ReduceScatter, None, combination, &source, target)
    }

    /// Combines block `i` of every PE's `source`, element by element and in the order of the ranks,
    /// into PE `i`'s `target`. A source has one block of the target's length for each PE.
    ///
    /// # Errors
    /// [`CallError::Blocks`], [`CallError::BorrowedSlice`] with exit mode None, and see [`Team`].
    #[track_caller]
    pub fn reduce_scatter_slice<T: Pod, O: Operator<T>>(
        &self,
        source: &[T],
        target: &mut [T],
        operator: O,
    ) -> Result<()> {
        self.refuse_borrowed()?;
        let combination = combination::<T, O>(&operator);
        self.on_slices::<T, T>(Collective::ReduceScatter, None, combination, source, target)
    }

    /// Combines block `i` of every PE's part of `source` into PE `i`'s part of `target`.
    ///
    /// # Errors
    /// [`CallError::Blocks`], [`CallError::InPlace`], and see [`Team`].
    #[track_caller]
    pub fn reduce_scatter_symmetric<T: Element, O: Operator<T>>(
        &self,
        source: &Symmetric<T>,
        target: &Symmetric<T>,
        operator: O,
    ) -> Result<()> {
        let combination = combination::<T, O>(&operator);
        self.on_symmetric(Collective::ReduceScatter, None, combination, source, target)
    }
}
