//! Channels: places for a call's messages in an inbox.

/// Bytes of data in one cache line of a message; the rest of the line is its sequence word.
pub const LINE_PAYLOAD_BYTES: usize = 56;

/// The most bytes that a PE sends in a pairwise exchange: half of a cache line, less the sequence
/// word. Its peer uses the other half.
pub const PAIRWISE_BYTES: usize = 24;

/// A slot in a PE's inbox for the current call: for signals, or for a message of one or more cache
/// lines, starting at this one.
///
/// Equal channels of successive calls are adjacent; if messages are small, several share a cache
/// line. Messages of successive calls then travel together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Channel(u32);

impl Channel {
    const SECOND: u32 = 1 << 31;

    /// Returns channel number `index`.
    #[must_use]
    pub const fn new(index: u32) -> Self {
        assert!(index < Self::SECOND, "a channel's number has 31 bits");
        Self(index)
    }

    /// Returns the second signal word of a channel, which must carry only signals.
    #[must_use]
    pub const fn second(self) -> Self {
        Self(self.0 | Self::SECOND)
    }

    /// Returns how many channels a message of `bytes` takes: at least one.
    #[must_use]
    pub const fn count_for(bytes: usize) -> usize {
        let count = bytes.div_ceil(LINE_PAYLOAD_BYTES);
        if count == 0 { 1 } else { count }
    }

    /// Returns the longest message that takes `count` channels, in bytes.
    #[must_use]
    pub const fn capacity_of(count: usize) -> usize {
        count * LINE_PAYLOAD_BYTES
    }

    /// Returns the channel's number.
    #[inline(always)]
    #[must_use]
    pub const fn index(self) -> u32 {
        self.0 & !Self::SECOND
    }

    /// Returns whether this is the second signal word.
    #[inline(always)]
    #[must_use]
    pub const fn is_second(self) -> bool {
        self.0 & Self::SECOND != 0
    }
}

/// The number of a message within its call, among those on one channel.
pub type Step = u32;
