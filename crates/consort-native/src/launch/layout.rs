//! The layout of a job's segment.
//!
//! | part of the segment | what |
//! | --- | --- |
//! | the header | whether the job has failed, and why; the clock |
//! | a state for each PE | its parker, the call it waits in, its accesses to peers' memory |
//! | the directory | the owners of regions, teams, and names: see `directory` |
//! | a message buffer for each PE | two chunks |
//! | a heap for each PE | symmetric memory; behind it static variables, if peers reach them |
//! | staging for each PE of the node | copies of private buffers, if the PEs are processes |
//! | the rest | groups: inboxes, and the words that members publish |

use crate::{
    directory::lock::BYTES as DIRECTORY_BYTES,
    host::usage::memory_bytes,
    inbox::geometry::BUFFER_BYTES,
    segment::{page::PAGE, reservation::Segment},
    state::header::{Header, PeState},
};

/// Room for at least so many groups as large as the world. It is only reserved.
const WORLDS: usize = 1024;

/// The most bytes for copies of private buffers of all PEs of a node. They are only addresses: any
/// PE may come to copy all that the machine's memory holds, and none uses pages before.
const STAGING: usize = 4 << 40;

/// The fewest such bytes of each process.
const LEAST_STAGING: usize = 64 << 10;

/// The most bytes that are reserved for groups.
const MOST_GROUND: usize = 1 << 40;

/// The offsets of the parts of a job's segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts {
    pub(super) states: usize,
    pub(super) directory: usize,
    pub(super) buffers: usize,
    pub(super) heaps: usize,
    /// The distance from one PE's heap to the next PE's.
    pub(super) heap_stride: usize,
    /// The offset of a PE's static variables from its heap.
    pub(super) statics: usize,
    /// Bytes from the beginning of a PE's heap to the end of what peers reach of it.
    pub(super) memory_bytes: usize,
    /// The offset of the staging of the node's first PE, and the bytes of each.
    pub(super) staging: usize,
    pub(super) staging_bytes: usize,
    pub(super) ground: usize,
}

/// What `reserve` reserves with so many bytes of each PE for copies of private buffers, of `pes`
/// PEs of a node: enough for all of the machine's memory, or fewer where the system gives no
/// more.
pub(super) fn reserve_staging<R>(pes: u32, reserve: impl Fn(usize) -> Option<R>) -> Option<R> {
    let most = STAGING / (pes as usize).next_power_of_two();
    let all = memory_bytes().and_then(usize::checked_next_power_of_two).unwrap_or(most);
    let sizes = (0..).step_by(4).map(|shift| most.min(2 * all) >> shift);
    sizes.take_while(|&bytes| bytes >= LEAST_STAGING).find_map(reserve)
}

/// The offset of the PEs' states in a segment, and their end.
pub(crate) fn states(pes: usize) -> (usize, usize) {
    let states = size_of::<Header>().next_multiple_of(PAGE);
    (states, (states + pes * size_of::<PeState>()).next_multiple_of(PAGE))
}

impl Parts {
    /// The parts of a segment of `pes` PEs, whose heaps are aligned to `align` as the segment is.
    /// Of these `staged` have staging.
    pub(super) fn of(
        pes: usize,
        (heap_bytes, align): (usize, usize),
        statics_bytes: usize,
        (staged, staging_bytes): (usize, usize),
    ) -> Option<Self> {
        let (states, directory) = states(pes);
        let buffers = directory + DIRECTORY_BYTES;
        let heaps = (buffers + pes * BUFFER_BYTES).next_multiple_of(align);
        let statics = heap_bytes.checked_next_multiple_of(PAGE)?;
        let end = statics.checked_add(statics_bytes.checked_next_multiple_of(PAGE)?)?;
        // One page more, so that equal offsets of different PEs fall into different cache sets,
        // unless all are to be aligned.
        let heap_stride = end.checked_add(PAGE)?.checked_next_multiple_of(align)?;
        let staging = heap_stride.checked_mul(pes)?.checked_add(heaps)?;
        let ground = staging_bytes.checked_mul(staged)?.checked_add(staging)?;
        Some(Self {
            states,
            directory,
            buffers,
            heaps,
            heap_stride,
            statics,
            memory_bytes: if statics_bytes == 0 { heap_bytes } else { end },
            staging,
            staging_bytes,
            ground,
        })
    }

    /// The offset of a PE's static variables in the segment.
    pub(super) fn statics_of(&self, pe: usize) -> usize {
        self.heaps + pe * self.heap_stride + self.statics
    }

    /// Reserves the segment by `reserve`, with room for many groups, the largest of `group_bytes`;
    /// with room for fewer if the system does not reserve so much.
    pub(super) fn reserve(
        &self,
        group_bytes: usize,
        reserve: &dyn Fn(usize) -> Option<Segment>,
    ) -> Option<Segment> {
        let most = group_bytes.saturating_mul(WORLDS).min(MOST_GROUND);
        reserve_sparingly(group_bytes, most, |room| reserve(self.ground.checked_add(room)?))
    }
}

/// Reserves `most`. If that fails, reserves about a quarter of what is available, since threads and
/// other jobs need memory too, but at least `least`.
fn reserve_sparingly<R>(
    least: usize,
    most: usize,
    reserve: impl Fn(usize) -> Option<R>,
) -> Option<R> {
    let whole = most.max(least);
    if let Some(reserved) = reserve(whole) {
        return Some(reserved);
    }
    let mut halves = std::iter::successors(Some(whole / 2), |room| Some(room / 2));
    let room = halves.find(|&room| room <= least || reserve(room).is_some())?;
    reserve((room / 4).max(least)).or_else(|| reserve(least))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_memory_is_short_most_of_it_is_left() {
        let reserve = |least, most, there: usize| {
            reserve_sparingly(least, most, |room| (room <= there).then_some(room))
        };
        assert_eq!(reserve(10, 1000, 1000), Some(1000));
        assert_eq!(reserve(10, 5, 10), Some(10));
        for there in 10..1000 {
            let reserved = reserve(10, 1000, there).expect("the least is there");
            assert!(reserved == 10 || reserved <= there / 4, "{reserved} of {there}");
            assert!(reserved >= 10 && reserved >= there / 8 - 1, "{reserved} of {there}");
        }
        assert_eq!(reserve(10, 1000, 9), None);
    }
}
