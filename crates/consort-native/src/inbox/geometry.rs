//! The layout of a group's memory: the inboxes of its members, and the words that each member
//! publishes.

use consort_fabric::{Capabilities, Levels, Nodes, Rank, Vendor, window};

use super::line::Line;
use crate::launch::pairwise::pairwise_bytes;

/// Bits of the sequence number in a message's word; the bits above distinguish calls.
///
/// At 130 ns a barrier, 40 bits suffice for 39 hours; 32 would wrap around after 9 minutes.
pub const SEQUENCE_BITS: u32 = 40;
pub(crate) const SEQUENCE_MASK: u64 = (1 << SEQUENCE_BITS) - 1;

/// The number of buffers that a PE may expose to a peer in one call.
pub(crate) const EXPOSURES: u32 = 2;

/// The size of a PE's message buffer in bytes: two chunks that stay in a core's private caches.
pub(crate) const BUFFER_BYTES: usize = 64 << 10;

/// The minimum number of lines in a call between far PEs. Longer messages then need no splitting.
/// Otherwise each part of a split message costs a round trip.
const FAR_LINES: usize = 2048;

/// The layout of a group's memory: inboxes, and each member's published words.
///
/// An inbox contains the cache lines of long messages, call by call; then short slots, channel by
/// channel; then a pair's lines for each peer.
///
/// A *short slot* is two words. The first is the payload of an 8-byte message, or the channel's
/// second signal word. The second is the sequence word. The short slots of four successive calls on
/// one channel share a cache line, so messages that a PE sends in successive calls travel together.
///
/// In a *pair's lines* two PEs synchronize, exchange or combine a few words, in blocking calls.
/// There are three lines, in the inbox of the lower rank. In the first, each PE has two short
/// slots. In each of the others, each PE has one wide slot: three words of data and the sequence
/// word. The operations of a pair use the slots in turn. A PE begins an operation only after it has
/// finished the previous one, so its peer may still be in the previous one, but not in an earlier
/// one. So a pair always uses the same lines. If both PEs write a line, reading the peer's slot
/// also brings the line back. If a writer must first take the line from a reader, that costs one
/// more transfer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Geometry {
    /// The number of calls that may be pending at once: PEs differ by at most this many calls.
    pub(crate) window: usize,
    /// The bits of a call's number that are its window position.
    position_mask: usize,
    /// The number of lines in one call between near PEs, and between far PEs.
    near_lines: usize,
    pub(crate) lines: usize,
    /// The number of lines from one call to the next: one more, so that equal channels of
    /// successive calls fall into different cache sets.
    pub(crate) stride: usize,
    /// The offset of the short slots in an inbox, in words.
    pub(crate) first_short_slot: usize,
    /// The offset of the pairs' lines in an inbox, in words.
    pub(crate) first_pair: usize,
    /// The number of words in a PE's inbox.
    pub(crate) per_pe: usize,
    /// The first word that members publish.
    pub(crate) first_member: usize,
    /// The number of words from one member's published words to the next member's.
    pub(crate) per_member: usize,
    /// Offsets within a member's published words: of the credits, of the counts of exposures and
    /// detaches, and of the exposed buffers' addresses.
    pub(crate) credits: usize,
    pub(crate) exposure_counts: usize,
    /// The number of words in the counts of one call.
    pub(crate) per_count: usize,
    pub(crate) exposures: usize,
    /// The first of the words that record the members. Each is 0, or a rank in the world plus 1.
    pub(crate) ranks: usize,
    /// The total number of words.
    pub(crate) words: usize,
}

/// The number of words in a line.
pub(crate) const LINE_WORDS: usize = 8;
/// The number of words in a short slot.
pub(crate) const SHORT_SLOT_WORDS: usize = 2;
/// The number of short slots, and of wide slots, that a PE has in a pair's lines.
pub(crate) const PAIR_TURNS: usize = 2;
/// The number of words in a pair's lines: one line with all short slots, and one line with wide
/// slots for each turn.
pub(crate) const PAIR_WORDS: usize = LINE_WORDS + PAIR_TURNS * LINE_WORDS;
/// The distance in words from the sequence word of a PE's first short slot to that of its first
/// wide slot.
pub(crate) const FIRST_WIDE_SLOT: usize = LINE_WORDS + LINE_WORDS / 2 - SHORT_SLOT_WORDS;

/// Offsets within a member's published words: the word that records where the member has finished,
/// the two words that count the waits of its blocking and of its nonblocking calls, the region in
/// which it has finished, and the log of its recent calls (on separate lines).
pub(crate) const FINISHED: usize = 0;
pub(crate) const MOVES: usize = 1;
pub(crate) const FINISHED_REGION: usize = 3;
pub(crate) const RECENT: usize = 2 * LINE_WORDS;

/// The length of a member's log of recent calls, which peers compare with theirs: two windows.
/// After a mismatch no PE gets more than a window and a quarter ahead, so all logs still contain
/// the call.
pub(crate) const RECENT_CALLS: usize = 128;

/// Returns the index of a call in the log of recent calls.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "only the low bits count")]
pub(crate) const fn recent(call: u64) -> usize {
    call as usize & (RECENT_CALLS - 1)
}

/// The purpose of a word of a group's memory for which a member waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WordPurpose {
    /// A message or a signal on a channel.
    Channel(usize),
    /// A pairwise operation with a member.
    Pair(Rank),
    /// A buffer that a member exposes.
    Exposure(Rank),
    /// The count of detaches of the member's exposures.
    Detaches,
}

impl Geometry {
    /// Returns the layout for a group of `pes` PEs. Small groups get room for long messages, large
    /// groups a line for each peer. `nodes` describes how the PEs of the job are placed.
    pub(crate) fn of(pes: usize, nodes: Nodes) -> Self {
        let near_lines = (4 * pes).max(256);
        let lines = if nodes == Nodes::One { near_lines } else { near_lines.max(FAR_LINES) };
        let window = window(pes);
        debug_assert!(2 * window <= RECENT_CALLS, "recent calls are two windows");
        let stride = lines + 1;
        let first_short_slot = stride * window * LINE_WORDS;
        // Inboxes of different PEs differ in the low 12 bits of their addresses. Otherwise a PE
        // would stall if it stores into a peer's channel and then loads from the same channel of
        // its own, because processors compare only these bits first. (Measured: 2 ns of an 80 ns
        // near barrier.)
        let apart = 17 * LINE_WORDS;
        let first_pair = first_short_slot + lines * window * SHORT_SLOT_WORDS;
        let per_pe = first_pair + pes * PAIR_WORDS + apart;
        let first_member = pes * per_pe;
        let credits = RECENT + RECENT_CALLS;
        let exposure_counts = credits + pes * LINE_WORDS;
        // The number of detaches, on a separate line because peers write it. Then the number of
        // exposures, the call's word, the era, and the eras of exposures. Whole lines.
        let exposures_of_peers = pes * EXPOSURES as usize;
        let per_count = LINE_WORDS + (3 + exposures_of_peers).next_multiple_of(LINE_WORDS);
        let exposures = exposure_counts + window * per_count;
        let per_member = exposures + window * exposures_of_peers * LINE_WORDS + apart;
        let ranks = first_member + pes * per_member;
        let words = ranks + pes;
        Self {
            window,
            position_mask: window - 1,
            near_lines,
            lines,
            stride,
            first_short_slot,
            first_pair,
            per_pe,
            first_member,
            per_member,
            credits,
            exposure_counts,
            per_count,
            exposures,
            ranks,
            words,
        }
    }

    /// Returns the index of a word that a member publishes.
    #[inline(always)]
    pub(crate) fn member(&self, rank: Rank, word: usize) -> usize {
        self.first_member + rank.index() * self.per_member + word
    }

    pub(crate) fn bytes(&self) -> usize {
        self.words * size_of::<u64>()
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "only the low bits count")]
    pub(crate) fn position(&self, call: u64) -> usize {
        call as usize & self.position_mask
    }

    /// Returns the purpose of the word at index `at`, if member `rank` waits for it.
    pub(crate) fn purpose(&self, rank: Rank, at: usize) -> Option<WordPurpose> {
        let rank_of = |index: usize| u32::try_from(index).ok().map(Rank);
        let (inbox, in_inbox) = (at / self.per_pe, at % self.per_pe);
        if at < self.first_member {
            let is_own = inbox == rank.index();
            return match in_inbox {
                _ if in_inbox >= self.first_pair => {
                    let higher = (in_inbox - self.first_pair) / PAIR_WORDS;
                    rank_of(if is_own { higher } else { inbox }).map(WordPurpose::Pair)
                }
                _ if in_inbox >= self.first_short_slot => {
                    let slot = (in_inbox - self.first_short_slot) / SHORT_SLOT_WORDS;
                    Some(WordPurpose::Channel(slot / self.window))
                }
                _ => Some(WordPurpose::Channel(in_inbox / LINE_WORDS % self.stride)),
            };
        }
        let published = at.checked_sub(self.member(rank, 0)).filter(|&at| at < self.per_member)?;
        if published >= self.exposures {
            let exposure = (published - self.exposures) / LINE_WORDS;
            let pes = self.words - self.ranks;
            return rank_of(exposure / EXPOSURES as usize % pes).map(WordPurpose::Exposure);
        }
        (published >= self.exposure_counts).then_some(WordPurpose::Detaches)
    }

    /// Returns the capabilities of a group whose members are placed on `nodes`.
    pub(crate) fn capabilities(&self, nodes: Nodes) -> Capabilities {
        let lines = if nodes == Nodes::One { self.near_lines } else { self.lines };
        Capabilities {
            inbox_channels: u32::try_from(lines).unwrap_or(u32::MAX),
            scratch_bytes: lines * size_of::<Line>(),
            buffer_bytes: BUFFER_BYTES,
            exposes: true,
            buffered: true,
            pairwise_bytes: pairwise_bytes(),
            counts: true,
            vendor: Vendor::NONE,
            nodes,
            levels: Levels::NONE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spot_names_the_use_of_a_word() {
        let geometry = Geometry::of(5, Nodes::One);
        let me = Rank(2);
        let inbox = me.index() * geometry.per_pe;
        let position = geometry.window - 1;
        let line = inbox + (position * geometry.stride + 37) * LINE_WORDS + LINE_WORDS - 1;
        assert_eq!(geometry.purpose(me, line), Some(WordPurpose::Channel(37)));
        let slot = (37 * geometry.window + position) * SHORT_SLOT_WORDS + 1;
        let slot = inbox + geometry.first_short_slot + slot;
        assert_eq!(geometry.purpose(me, slot), Some(WordPurpose::Channel(37)));
        let pair = |low: usize, high: usize| {
            low * geometry.per_pe + geometry.first_pair + high * PAIR_WORDS + 3
        };
        assert_eq!(geometry.purpose(me, pair(2, 4)), Some(WordPurpose::Pair(Rank(4))));
        assert_eq!(geometry.purpose(me, pair(1, 2)), Some(WordPurpose::Pair(Rank(1))));
        let exposure = (position * 5 + 3) * EXPOSURES as usize + 1;
        let exposure = geometry.member(me, geometry.exposures + exposure * LINE_WORDS + 7);
        assert_eq!(geometry.purpose(me, exposure), Some(WordPurpose::Exposure(Rank(3))));
        let detaches = geometry.exposure_counts + position * geometry.per_count;
        assert_eq!(
            geometry.purpose(me, geometry.member(me, detaches)),
            Some(WordPurpose::Detaches)
        );
        assert_eq!(geometry.purpose(me, geometry.member(me, FINISHED)), None);
    }
}
