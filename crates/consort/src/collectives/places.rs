//! Collectives on places in the memory that peers can access, by offsets from the heap: for
//! languages in which any address there may be an operand.

use std::panic::Location;

use consort_fabric::{Collective, Layout, Operator, Pod, Rank};
use consort_native::{Buffer, Operands};

use super::{Held, brought, combination, layouts, planned_len};
use crate::{Displacements, Result, Team, error::CallError};

/// # Places
impl Team<'_> {
    /// Makes a call on blocks of `len` elements, at these offsets of the source and of the target
    /// from each heap. Without an operator, nothing is combined. A broadcast copies the root's
    /// source to the target of the other PEs.
    ///
    /// # Errors
    /// [`CallError::InPlace`] when source and target overlap, and see [`Team`].
    ///
    /// # Panics
    /// When a place reaches beyond a PE's memory.
    #[doc(hidden)]
    #[inline]
    #[track_caller]
    pub fn collective_at<T: Pod, O: Operator<T>>(
        &self,
        (collective, root): (Collective, Option<Rank>),
        operator: Option<&O>,
        (source, target): (usize, usize),
        len: usize,
    ) -> Result<()> {
        let kind = (collective, root, are_symmetric(collective, (source, target)));
        let is_root = root == Some(self.rank());
        let places = self.places(collective, (source, target), bytes_of::<T>(len))?;
        let [source, target] = places.map(|(offset, bytes)| self.place(offset, bytes));
        let [source, target] = brought(collective, is_root, source, target);
        self.at_places::<T, O>(kind, operator, source, target, len)
    }

    /// All-gathers blocks of different lengths: `len` elements of this PE, and those of all PEs in
    /// `blocks`.
    ///
    /// # Errors
    /// As [`Team::collective_at`], and [`CallError::Displacements`].
    #[doc(hidden)]
    #[track_caller]
    pub fn all_gather_blocks_at<T: Pod>(
        &self,
        (source, len): (usize, usize),
        (target, blocks): (usize, &Displacements),
    ) -> Result<()> {
        let (contributed, received) = (bytes_of::<T>(len), bytes_of::<T>(blocks.extent()));
        if !are_apart((source, contributed), (target, received)) {
            return Err(CallError::InPlace.into());
        }
        let held = ((len, Held::One(len)), (blocks.extent(), Held::Each(blocks)));
        let layouts = layouts::<T>(self.pes(), held.0, held.1)?;
        let operands = Operands {
            kernel: None,
            source: self.place(source, contributed),
            target: self.place(target, received),
            layouts: Some(&layouts),
        };
        let kind = (Collective::AllGatherVector, self.sync());
        self.state.call::<T, T>(kind, None, 0, true, (&operands, Location::caller()), "")
    }

    /// Returns the places at these offsets in a call on blocks of `block_bytes`, as the root has
    /// them. Those of a broadcast are on different PEs, so they may overlap.
    #[inline(always)]
    pub(crate) fn places(
        &self,
        collective: Collective,
        (source, target): (usize, usize),
        block_bytes: usize,
    ) -> Result<[(usize, usize); 2]> {
        if collective == Collective::Broadcast {
            return Ok([source, target].map(|offset| (offset, block_bytes)));
        }
        let (contributed, received) = self.blocks(collective, true);
        let source = (source, block_bytes.saturating_mul(contributed as usize));
        let target = (target, block_bytes.saturating_mul(received as usize));
        if are_apart(source, target) {
            Ok([source, target])
        } else {
            Err(CallError::InPlace.into())
        }
    }

    #[inline(always)]
    fn place(&self, offset: usize, bytes: usize) -> Buffer<'_> {
        let endpoint = &self.state.endpoint;
        Buffer::symmetric(endpoint.job(), endpoint.rank_in_world(), offset, bytes)
    }

    #[inline(always)]
    #[track_caller]
    fn at_places<'b, T: Pod, O: Operator<T>>(
        &'b self,
        (collective, root, are_symmetric): (Collective, Option<Rank>, bool),
        operator: Option<&'b O>,
        source: Buffer<'b>,
        target: Buffer<'b>,
        len: usize,
    ) -> Result<()> {
        let combination = operator.and_then(combination::<T, O>);
        let is_root = root == Some(self.rank());
        let layouts = Layout::of_blocks(collective, self.pes(), is_root, len * size_of::<T>());
        let kernel = combination.map(|(kernel, _)| kernel);
        let operands = Operands { kernel, source, target, layouts: layouts.as_ref() };
        self.state.call::<T, T>(
            (collective, self.sync()),
            root,
            planned_len(collective, len),
            are_symmetric,
            (&operands, Location::caller()),
            combination.map_or("", |(_, name)| name),
        )
    }
}

/// Returns whether peers access the buffers at these offsets without a rendezvous. In a broadcast,
/// both offsets must be the same for that; if not, the exposed memory is still symmetric and not
/// copied.
pub(crate) fn are_symmetric(collective: Collective, (source, target): (usize, usize)) -> bool {
    collective != Collective::Broadcast || source == target
}

/// Returns whether two places, each an offset and a length in bytes, have no byte in common.
pub(crate) fn are_apart((first, first_bytes): (usize, usize), second: (usize, usize)) -> bool {
    let ends_by = |(first, bytes): (usize, usize), at| first.saturating_add(bytes) <= at;
    ends_by(second, first) || ends_by((first, first_bytes), second.0)
}

/// Returns the bytes of `len` elements. If the product overflows, returns the largest number, which
/// is more than any memory has.
pub(crate) const fn bytes_of<T>(len: usize) -> usize {
    len.saturating_mul(size_of::<T>())
}
