//! Where everything lies in a group's memory: the inboxes of its members, and what each shows to
//! the others.

use consort_fabric::{Capabilities, Rank};

use super::line::Line;

/// Bits of the sequence number in a message's word; what tells calls apart is above them.
///
/// 40 bits last 39 hours of barriers at 130 ns; 32 would begin again after 9 minutes.
pub const SEQUENCE_BITS: u32 = 40;
pub(crate) const SEQUENCE_MASK: u64 = (1 << SEQUENCE_BITS) - 1;

/// Buffers that a PE may expose to a peer in one call.
pub(crate) const EXPOSURES: u32 = 2;

/// Bytes of a PE's message buffer: two chunks that stay in a core's own caches.
pub(crate) const BUFFER_BYTES: usize = 64 << 10;

/// The shape of a group's memory: inboxes, and what members show.
///
/// An inbox has first the cache lines of long messages, call by call, then short slots, channel by
/// channel, then pairs.
///
/// A *short slot* is two words: the payload of a message of 8 bytes, or the second signal word of
/// the channel, and the sequence word. The short slots of four successive calls on one channel
/// share a cache line, so that what a PE sends in a row of calls travels together.
///
/// A *pair* is what two PEs synchronize by: a sequence word of each, in the inbox of the lower one,
/// four successive calls on a cache line. Whoever gets the line sees that the other is at the call
/// before its own, and leaves that call and enters the next before it loses the line again.
/// (Measured, two PEs far apart, in transfers: 1.06 a barrier; with the words on lines of their own
/// 1.25 to 1.6.) A *value pair*, by which two PEs combine a word of each, has a short slot of each,
/// two calls on a cache line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Geometry {
    /// Calls that may be under way at once: PEs differ by at most this.
    pub(crate) window: usize,
    /// Lines of one call.
    pub(crate) lines: usize,
    /// Lines from one call's to the next's: one more, so that equal channels of successive calls
    /// fall into different cache sets.
    pub(crate) stride: usize,
    /// The first word of short slots.
    pub(crate) first_short_slot: usize,
    /// The first word of pairs.
    pub(crate) first_pair: usize,
    /// The first word of value pairs.
    pub(crate) first_value_pair: usize,
    /// Words of a PE's inbox.
    pub(crate) per_pe: usize,
    /// The first word of what members show to the others.
    pub(crate) first_member: usize,
    /// Words from one member's to the next's.
    pub(crate) per_member: usize,
    /// In what a member shows, the first words of credits, of the counts of what is exposed and
    /// detached, and of where that is shown.
    pub(crate) credits: usize,
    pub(crate) exposure_counts: usize,
    pub(crate) exposures: usize,
    /// The first of the words that say who the members are: 0, or a rank in the world and 1 more.
    pub(crate) ranks: usize,
    /// Words in all.
    pub(crate) words: usize,
}

/// Words of a line.
pub(crate) const LINE_WORDS: usize = 8;
/// Words of a short slot.
pub(crate) const SHORT_SLOT_WORDS: usize = 2;
/// Words of a pair: one of each PE.
pub(crate) const PAIR_WORDS: usize = 2;
/// Words of a value pair: a short slot of each PE.
pub(crate) const VALUE_PAIR_WORDS: usize = 2 * SHORT_SLOT_WORDS;

/// In what a member shows, on lines of its own: the word that says where it has finished, the two
/// that count the waits of its blocking and of its nonblocking calls, and those of recent calls.
pub(crate) const FINISHED: usize = 0;
pub(crate) const MOVES: usize = 1;
pub(crate) const RECENT: usize = 2 * LINE_WORDS;

/// How many calls of a member are compared with those of others: two windows. After calls that did
/// not match nobody gets more than a window and a quarter ahead, so all still have them.
pub(crate) const RECENT_CALLS: usize = 128;

/// The place of a call among the recent ones.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "only the low bits count")]
pub(crate) const fn recent(call: u64) -> usize {
    call as usize & (RECENT_CALLS - 1)
}

impl Geometry {
    /// Small teams get room for long messages, large ones a line a peer and a shorter window.
    pub(crate) fn of(pes: usize) -> Self {
        let lines = (4 * pes).max(256);
        let window = if pes <= 64 { 64 } else { 16 };
        debug_assert!(2 * window <= RECENT_CALLS, "recent calls are two windows");
        let stride = lines + 1;
        let first_short_slot = stride * window * LINE_WORDS;
        // Regions of different PEs differ in the low 12 bits of their addresses: a PE that stores
        // into a peer's channel and then loads from its own equal one would otherwise be held up,
        // since processors compare just these bits first. (Measured: 2 ns of a near barrier of 80.)
        let apart = 17 * LINE_WORDS;
        let first_pair = first_short_slot + lines * window * SHORT_SLOT_WORDS;
        let first_value_pair = first_pair + lines * window * PAIR_WORDS;
        let per_pe = first_value_pair + lines * window * VALUE_PAIR_WORDS + apart;
        let first_member = pes * per_pe;
        let credits = RECENT + RECENT_CALLS;
        let exposure_counts = credits + pes * LINE_WORDS;
        let exposures = exposure_counts + window * LINE_WORDS;
        let per_member = exposures + window * pes * EXPOSURES as usize * LINE_WORDS + apart;
        let ranks = first_member + pes * per_member;
        let words = ranks + pes;
        Self {
            window,
            lines,
            stride,
            first_short_slot,
            first_pair,
            first_value_pair,
            per_pe,
            first_member,
            per_member,
            credits,
            exposure_counts,
            exposures,
            ranks,
            words,
        }
    }

    /// A word of what a member shows.
    #[inline(always)]
    pub(crate) fn member(&self, rank: Rank, word: usize) -> usize {
        self.first_member + rank.index() * self.per_member + word
    }

    /// Bytes of all that a group has.
    pub(crate) fn bytes(&self) -> usize {
        self.words * size_of::<u64>()
    }

    /// The position of a call in the window.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "only the low bits count")]
    pub(crate) fn position(&self, call: u64) -> usize {
        call as usize & (self.window - 1)
    }

    pub(crate) fn capabilities(&self) -> Capabilities {
        Capabilities {
            inbox_channels: u32::try_from(self.lines).unwrap_or(u32::MAX),
            scratch_bytes: self.lines * size_of::<Line>(),
            buffer_bytes: BUFFER_BYTES,
            exposes: true,
            buffered: true,
        }
    }
}
