//! The layout of a job's segment.
//!
//! | part of the segment | what |
//! | --- | --- |
//! | the header | whether and why the job has failed; the clock |
//! | a state for each PE | its parker, the call in which it waits, its accesses to peers' memory |
//! | the directory | the owners of regions, teams, and names: see `directory` |
//! | a message buffer for each PE | two chunks |
//! | a heap for each PE | symmetric memory, then static variables, if peers access them |
//! | staging for each PE of the node | copies of private buffers, if the PEs are processes |
//! | the rest | groups: inboxes, and the words that members publish |
//!
//! The configuration determines the size. If staging or groups need more memory, they get extents,
//! which come after the segment (`segment::backing`).

use std::ops::Range;

use crate::{
    directory::lock::BYTES as DIRECTORY_BYTES,
    inbox::geometry::BUFFER_BYTES,
    segment::page::{LARGE_PAGE, PAGE},
    state::header::{Header, PeState},
};

/// The number of groups of the size of the world that have room from the start, in addition to the
/// world. There are fewer if they would take more than [`MOST_ARENA`]. More room is added when
/// needed.
const WORLDS: usize = 3;
const MOST_ARENA: usize = 64 << 20;

/// The number of bytes for each PE's copies of private buffers, if PEs are processes. More is added
/// when needed.
const STAGING: usize = 1 << 20;

#[derive(Clone, Copy, Debug)]
pub(super) struct SegmentLayout {
    pub(super) states: usize,
    pub(super) directory: usize,
    pub(super) buffers: usize,
    pub(super) heaps: usize,
    /// The distance from one PE's heap to the next PE's.
    pub(super) heap_stride: usize,
    /// The unit of heaps in bytes. Heaps do not share pages of this size, so that advice on the
    /// pages of one heap never splits a large page of another.
    unit: usize,
    /// The offset of a PE's static variables from its heap.
    pub(super) statics: usize,
    /// The number of bytes of a PE's memory that peers access, counted from the beginning of its
    /// heap.
    pub(super) memory_bytes: usize,
    /// The offset of the staging of the node's first PE, and the size of each PE's staging.
    pub(super) staging: usize,
    pub(super) staging_bytes: usize,
    pub(super) arena: usize,
    /// The size of the segment in bytes.
    pub(super) bytes: usize,
}

/// Returns the offset and the end of the PEs' states in a segment.
pub(crate) fn states(pes: usize) -> (usize, usize) {
    let states = size_of::<Header>().next_multiple_of(PAGE);
    (states, (states + pes * size_of::<PeState>()).next_multiple_of(PAGE))
}

impl SegmentLayout {
    /// Returns the layout of a segment of `pes` PEs, whose heaps are aligned to `align`, like the
    /// segment. `staged` of them have staging. The world's memory takes `group_bytes`.
    pub(super) fn of(
        pes: usize,
        (heap_bytes, align): (usize, usize),
        statics_bytes: usize,
        staged: usize,
        group_bytes: usize,
    ) -> Option<Self> {
        let (states, directory) = states(pes);
        let buffers = directory + DIRECTORY_BYTES;
        let unit = if heap_bytes.max(align) < LARGE_PAGE { PAGE } else { LARGE_PAGE };
        let heaps = (buffers + pes * BUFFER_BYTES).next_multiple_of(align.max(unit));
        let statics = heap_bytes.checked_next_multiple_of(PAGE)?;
        let end = statics.checked_add(statics_bytes.checked_next_multiple_of(PAGE)?)?;
        // One page more, so that equal offsets of different PEs fall into different cache sets,
        // unless all heaps must be aligned.
        let heap_stride = if align > PAGE {
            end.checked_add(PAGE)?.checked_next_multiple_of(align.max(unit))?
        } else {
            // With large pages, the heap of PE n begins n pages after a multiple of the unit.
            let begins = if unit > PAGE { pes * PAGE } else { 0 };
            end.checked_add(begins)?.checked_next_multiple_of(unit)?.checked_add(PAGE)?
        };
        let staging = heap_stride.checked_mul(pes)?.checked_add(heaps)?;
        let staging = staging.checked_next_multiple_of(unit)?;
        let arena = STAGING.checked_mul(staged)?.checked_add(staging)?;
        let bytes = arena.checked_add(group_bytes)?;
        let bytes = bytes.checked_add(group_bytes.saturating_mul(WORLDS).min(MOST_ARENA))?;
        Some(Self {
            states,
            directory,
            buffers,
            heaps,
            heap_stride,
            unit,
            statics,
            memory_bytes: if statics_bytes == 0 { heap_bytes } else { end },
            staging,
            staging_bytes: if staged == 0 { 0 } else { STAGING },
            arena,
            bytes,
        })
    }

    /// Returns the offset of a PE's static variables in the segment.
    pub(super) fn statics_of(&self, pe: usize) -> usize {
        self.heaps + pe * self.heap_stride + self.statics
    }

    /// Returns the range of the segment that contains a part of a PE's heap, in whole units.
    pub(super) fn units_of(&self, pe: usize, part: Range<usize>) -> Range<usize> {
        let heap = self.heaps + pe * self.heap_stride;
        let start = (heap + part.start) / self.unit * self.unit;
        start..(heap + part.end).next_multiple_of(self.unit)
    }

    /// Returns the whole units of the segment inside a part of a PE's heap. The range is empty if
    /// there are none.
    pub(super) fn units_within(&self, pe: usize, part: Range<usize>) -> Range<usize> {
        let heap = self.heaps + pe * self.heap_stride;
        let end = (heap + part.end) / self.unit * self.unit;
        (heap + part.start).next_multiple_of(self.unit).min(end)..end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_belong_to_one_heap() {
        for heap_bytes in [PAGE, LARGE_PAGE - PAGE, LARGE_PAGE, 5 * LARGE_PAGE + PAGE] {
            for align in [PAGE, 4 * PAGE, LARGE_PAGE] {
                for pes in [1, 2, 600] {
                    let layout = SegmentLayout::of(pes, (heap_bytes, align), 3 * PAGE, 0, PAGE);
                    let layout = layout.expect("a layout");
                    let units: Vec<_> =
                        (0..pes).map(|pe| layout.units_of(pe, 0..layout.memory_bytes)).collect();
                    assert!(units.windows(2).all(|two| two[0].end <= two[1].start));
                    assert!(units[0].start >= layout.buffers + pes * BUFFER_BYTES);
                    assert!(units[pes - 1].end <= layout.staging, "{layout:?}");
                    let within = layout.units_within(0, 1..layout.memory_bytes);
                    let (first, end) = (layout.heaps + 1, layout.heaps + layout.memory_bytes);
                    assert!(within.is_empty() || (first..end).contains(&within.start));
                    assert!(within.end <= end && within.end.is_multiple_of(layout.unit));
                    assert!(heap_bytes < 2 * LARGE_PAGE || !within.is_empty(), "{layout:?}");
                    assert!(layout.units_within(0, 1..2).is_empty(), "{layout:?}");
                    assert!((0..pes).all(|pe| {
                        let heap = layout.heaps + pe * layout.heap_stride;
                        heap.is_multiple_of(align)
                            && (units[pe].start..units[pe].end).contains(&heap)
                            && heap + layout.memory_bytes <= units[pe].end
                    }));
                }
            }
        }
    }

    /// The size depends only on the job's needs, not on the machine.
    #[test]
    fn the_segment_is_little_larger_than_the_heaps() {
        let layout = SegmentLayout::of(2, (64 << 20, PAGE), 0, 2, 2 << 20).expect("a layout");
        assert!(layout.bytes < (2 * 64 + 64) << 20, "{layout:?}");
    }
}
