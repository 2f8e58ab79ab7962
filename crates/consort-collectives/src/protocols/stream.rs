//! A stream: a message of any length between two PEs, in chunks that use two buffers alternately.
//!
//! | step `i` | sender | receiver |
//! | --- | --- | --- |
//! | | waits until chunk `i - 2` is taken | |
//! | | sends chunk `i` into buffer `i mod 2` | receives it |
//! | | | signals that chunk `i` is taken |
//!
//! A message of at most two chunks needs no such signals. If a PE forwards chunk `i` before chunk
//! `i + 1` has arrived, the result is a pipeline (double buffering as in OC-BCAST; Petrović 2015,
//! section 3.1.1).

use consort_fabric::{Channel, Rank, Step};

/// The division of a message into chunks; the same on all PEs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Chunks {
    total: usize,
    chunk: usize,
    count: u32,
    lines: u32,
}

impl Chunks {
    /// Divides `total` bytes into chunks of at most `wanted` bytes, each of whole elements, so that
    /// the buffers of an edge fit into `room` lines. `None` if not even one element fits.
    #[must_use]
    pub fn new(total: usize, element: usize, wanted: usize, room: u32) -> Option<Self> {
        let lines = Channel::count_for;
        let room = room as usize;
        if total <= wanted && lines(total) <= room {
            let lines = u32::try_from(lines(total)).ok()?;
            return Some(Self { total, chunk: total, count: 1, lines });
        }
        let element = element.max(1);
        let most = wanted.min(Channel::capacity_of(room / 2));
        let chunk = if most >= element { most / element * element } else { element };
        let count = u32::try_from(total.div_ceil(chunk)).ok()?;
        let lines = lines(chunk);
        (2 * lines <= room).then_some(())?;
        Some(Self { total, chunk, count, lines: u32::try_from(lines).ok()? })
    }

    /// Returns the number of lines of one edge's buffers.
    #[must_use]
    pub const fn lines_per_edge(&self) -> u32 {
        if self.count == 1 { self.lines } else { 2 * self.lines }
    }

    /// Returns the number of chunks, at least 1.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Returns the offset and length of chunk `index`, in bytes.
    #[inline(always)]
    #[must_use]
    pub fn range(&self, index: u32) -> (usize, usize) {
        if self.count == 1 {
            return (0, self.total);
        }
        let at = index as usize * self.chunk;
        (at, self.chunk.min(self.total - at))
    }

    /// Returns the chunk that must be taken before chunk `index` is sent.
    #[inline(always)]
    #[must_use]
    pub const fn awaits(&self, index: Step) -> Option<Step> {
        index.checked_sub(2)
    }

    /// Returns whether the sender waits for the signal that chunk `index` is taken.
    #[inline(always)]
    #[must_use]
    pub const fn is_awaited(&self, index: Step) -> bool {
        index + 2 < self.count
    }

    /// Returns the length of the largest chunk, in bytes.
    #[must_use]
    pub const fn chunk_bytes(&self) -> usize {
        self.chunk
    }
}

/// One direction between two PEs, as seen from one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Edge {
    /// The PE at the other end.
    pub peer: Rank,
    /// The first line of the buffers, in the receiver's inbox.
    pub data: Channel,
    /// The channel in the sender's inbox in which the receiver signals that a chunk is taken.
    pub taken: Channel,
}

impl Edge {
    /// Returns the first line of the buffer for chunk `index`.
    #[inline(always)]
    #[must_use]
    pub fn buffer(&self, chunks: &Chunks, index: Step) -> Channel {
        Channel::new(self.data.index() + index % 2 * chunks.lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_whole_elements_that_cover_the_message() {
        for total in [0, 1, 8, 56, 57, 1000, 5600, 100_000] {
            for element in [1, 8, 24, 100] {
                for room in [2, 3, 10, 255] {
                    let total = total / element * element;
                    let Some(chunks) = Chunks::new(total, element, 4096, room) else {
                        assert!(2 * Channel::count_for(element) > room as usize);
                        continue;
                    };
                    assert!(chunks.lines_per_edge() <= room);
                    let mut next = 0;
                    for index in 0..chunks.count() {
                        let (at, bytes) = chunks.range(index);
                        assert_eq!(at, next);
                        assert!(
                            bytes % element == 0
                                && bytes <= Channel::capacity_of(chunks.lines as usize)
                        );
                        next += bytes;
                    }
                    assert_eq!(next, total);
                }
            }
        }
    }

    #[test]
    fn lengths_past_32_bits_are_divided_and_counted() {
        let gib = 1 << 30;
        for total in [4 * gib, 5 * gib + 8] {
            let chunks = Chunks::new(total, 8, 4096, 255).expect("it fits");
            let ranges = (0..chunks.count()).map(|index| chunks.range(index));
            let end = ranges.fold(0, |next, (at, bytes)| {
                assert_eq!(at, next);
                next + bytes
            });
            assert_eq!(end, total);
            assert_eq!(Chunks::new(total, 1, 1, 255), None, "too many chunks to count");
        }
    }
}
