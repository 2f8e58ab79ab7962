//! The capabilities of a fabric.

use crate::{Nodes, PAIRWISE_BYTES};

/// The capabilities of a fabric for a call. An algorithm that needs more cannot serve the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Channels in a PE's inbox for one call, each of one cache line.
    pub inbox_channels: u32,
    /// Bytes of the accumulator, and also of the memory for incoming messages.
    pub scratch_bytes: usize,
    /// Bytes of a PE's message buffer.
    pub buffer_bytes: usize,
    /// Whether a PE can expose its buffers, so that peers get and put without its help.
    pub exposes: bool,
    /// Whether a send completes before its receiver takes the message. If not, two PEs that both
    /// first send to each other deadlock.
    pub buffered: bool,
    /// The longest message that two PEs exchange pairwise, in bytes: at least 8, and at most
    /// [`PAIRWISE_BYTES`].
    pub pairwise_bytes: usize,
    /// Whether PEs count at each other's counters.
    pub counts: bool,
    /// How the PEs lie on nodes, or on the last-level caches of one.
    pub nodes: Nodes,
    /// Who takes part in collectives that the fabric itself has.
    pub vendor: Vendor,
}

impl Capabilities {
    /// Returns the capabilities of a fabric of one node that can do everything but collectives of
    /// its own, with this much memory: inbox channels, bytes for partial results, and bytes of a
    /// message buffer.
    #[must_use]
    pub const fn with_memory(
        inbox_channels: u32,
        scratch_bytes: usize,
        buffer_bytes: usize,
    ) -> Self {
        Self {
            inbox_channels,
            scratch_bytes,
            buffer_bytes,
            exposes: true,
            buffered: true,
            pairwise_bytes: PAIRWISE_BYTES,
            counts: true,
            nodes: Nodes::One,
            vendor: Vendor::NONE,
        }
    }
}

/// Who takes part in collectives that a fabric itself has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Vendor {
    /// Whether the PEs of the team can.
    pub team: bool,
    /// Whether the first PEs of its nodes can.
    pub leaders: bool,
}

impl Vendor {
    /// Nobody.
    pub const NONE: Self = Self { team: false, leaders: false };
}
