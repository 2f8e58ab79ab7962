//! Broadcast: every PE gets the root's data.

use std::panic::Location;

use consort_fabric::{Collective, Pod, Rank};
use consort_native::{Buffer, Operands, Site};

#[cfg(doc)]
use crate::{Error, error::CallError};
use crate::{
    Result, Symmetric, Team, collectives::brought, symmetric::element::Element, value::Value,
};

/// # Broadcast
impl Team<'_> {
    /// Returns the root's `value` on every PE. The value is copied into the call, so the modes may
    /// be Loose.
    ///
    /// # Errors
    /// [`CallError::RootOutOfRange`], and see [`Team`].
    ///
    /// ```
    /// # use consort::{Job, Rank};
    /// let all = Job::threads(3).run(|pe| {
    ///     let mine = pe.world().rank().0;
    ///     pe.world().broadcast(mine, Rank(2))
    /// })?;
    /// assert_eq!(all, [2; 3]);
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[inline]
    #[track_caller]
    pub fn broadcast<T: Value<Kind>, Kind>(&self, mut value: T, root: Rank) -> Result<T> {
        self.broadcast_value(&mut value, root, Location::caller())?;
        Ok(value)
    }

    /// As [`Team::broadcast`]; separate, because in a closure the caller would be the closure.
    #[inline(always)]
    fn broadcast_value<T: Value<Kind>, Kind>(
        &self,
        value: &mut T,
        root: Rank,
        site: Site,
    ) -> Result<()> {
        value.as_packed(|packed| {
            self.broadcast_from::<T, _>(std::slice::from_mut(packed), root, site)
        })
    }

    /// Copies the root's `data` into every PE's `data`, which has the same length.
    ///
    /// # Errors
    /// [`CallError::RootOutOfRange`], [`CallError::BorrowedSlice`] with exit mode None, and see
    /// [`Team`].
    #[inline]
    #[track_caller]
    pub fn broadcast_slice<T: Pod>(&self, data: &mut [T], root: Rank) -> Result<()> {
        self.refuse_borrowed()?;
        self.broadcast_from::<T, T>(data, root, Location::caller())
    }

    /// As [`Team::on_slices`].
    #[inline]
    fn broadcast_from<N, T: Pod>(&self, data: &mut [T], root: Rank, site: Site) -> Result<()> {
        let len = data.len();
        let (source, target) = if self.rank() == root {
            (Buffer::source(data), Buffer::ABSENT)
        } else {
            (Buffer::ABSENT, Buffer::target(data))
        };
        let operands = Operands { kernel: None, source, target, layouts: None };
        self.state.call::<N, T>(
            (Collective::Broadcast, self.sync()),
            Some(root),
            len,
            false,
            (&operands, site),
            "",
        )
    }

    /// Copies the root's part of `data` into every PE's part. With Loose modes a PE may return, and
    /// make further calls, while data still moves.
    ///
    /// # Errors
    /// [`CallError::RootOutOfRange`], and see [`Team`].
    #[inline]
    #[track_caller]
    pub fn broadcast_symmetric<T: Element>(&self, data: &Symmetric<T>, root: Rank) -> Result<()> {
        let is_root = self.rank() == root;
        let (source, target) = (data.buffer(&self.state), data.buffer(&self.state));
        let [source, target] = brought(Collective::Broadcast, is_root, source, target);
        let operands = Operands { kernel: None, source, target, layouts: None };
        self.state.call::<T, T>(
            (Collective::Broadcast, self.sync()),
            Some(root),
            data.len(),
            true,
            (&operands, Location::caller()),
            "",
        )
    }
}
