//! Collectives on places: offsets from the heap, in memory that peers can access. For languages in
//! which any address in that memory may be an operand.

use std::panic::Location;

use consort_fabric::{Collective, Operator, Pod, Rank};
use consort_native::Buffer;

use super::verb::{Held, Verb, bytes_of, layouts};
use crate::{Displacements, Result, Team, error::CallError, runtime::dispatch::Combining};

/// # Places
impl Team {
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
        let verb = Verb { root, ..Verb::new(collective) };
        let symmetric = are_symmetric(collective, (source, target));
        let places = self.places(&verb, (source, target), bytes_of::<T>(len))?;
        let buffers = places.map(|(offset, bytes)| self.place(offset, bytes)).into();
        let combination = operator.map(Combining::new::<T, O>);
        self.in_heap::<T>(verb, len, symmetric, combination, buffers, Location::caller())
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
        let layouts = layouts::<T>(self, held.0, held.1)?;
        let buffers = (self.place(source, contributed), self.place(target, received));
        let (verb, site) = (Verb::new(Collective::AllGatherVector), Location::caller());
        self.run::<T, T>(verb, 0, true, None, buffers, Some(&layouts), site)
    }

    /// Returns the root's places at these offsets in a call on blocks of `block_bytes`. Those of a
    /// broadcast are on different PEs, so they may overlap.
    #[inline(always)]
    pub(crate) fn places(
        &self,
        verb: &Verb<'_>,
        (source, target): (usize, usize),
        block_bytes: usize,
    ) -> Result<[(usize, usize); 2]> {
        let (collective, pes) = (verb.collective, self.pes());
        if collective == Collective::Broadcast {
            return Ok([source, target].map(|offset| (offset, block_bytes)));
        }
        let (contributed, received) =
            (collective.source_blocks(pes, true), collective.target_blocks(pes, true));
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
}

/// Returns whether peers access the buffers at these offsets without a rendezvous. In a broadcast,
/// they do only if both offsets are the same. Otherwise, the memory is exposed, but not copied.
pub(crate) fn are_symmetric(collective: Collective, (source, target): (usize, usize)) -> bool {
    collective != Collective::Broadcast || source == target
}

/// Returns whether two places, each an offset and a length in bytes, have no byte in common.
pub(crate) fn are_apart((first, first_bytes): (usize, usize), second: (usize, usize)) -> bool {
    let ends_by = |(first, bytes): (usize, usize), at| first.saturating_add(bytes) <= at;
    ends_by(second, first) || ends_by((first, first_bytes), second.0)
}
