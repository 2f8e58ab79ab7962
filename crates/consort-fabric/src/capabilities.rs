//! The capabilities of a fabric.

use crate::{Levels, Nodes, PAIRWISE_BYTES};

/// The capabilities of a fabric for a call. An algorithm that needs more cannot serve the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Capabilities {
    /// The channels in a PE's inbox for one call. Each is one cache line.
    pub inbox_channels: u32,
    /// Bytes of the accumulator, and also of the memory for incoming messages.
    pub scratch_bytes: usize,
    /// Bytes of a PE's message buffer.
    pub buffer_bytes: usize,
    /// Whether a PE can expose its buffers, so that peers can get and put without its help.
    pub exposes: bool,
    /// Whether a send completes before its receiver takes the message. If not, two PEs that both
    /// first send to each other deadlock.
    pub buffered: bool,
    /// The longest message that two PEs exchange pairwise, in bytes: at least 8, and at most
    /// [`PAIRWISE_BYTES`].
    pub pairwise_bytes: usize,
    /// Whether PEs can add to each other's counters.
    pub counts: bool,
    /// How the PEs are placed on nodes, or on the last-level caches of one node.
    pub nodes: Nodes,
    /// How nodes are divided, and how they are grouped.
    pub levels: Levels,
    /// The PEs that can use collectives of the fabric.
    pub vendor: Vendor,
}

impl Capabilities {
    /// Returns the capabilities of a single-node fabric with everything except its own collectives,
    /// and with this much memory: inbox channels, bytes for partial results, and bytes of a message
    /// buffer.
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
            levels: Levels::NONE,
            vendor: Vendor::NONE,
        }
    }
}

/// The PEs that can use collectives that a fabric provides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Vendor {
    /// Whether the PEs of the team can.
    pub team: bool,
    /// Whether the first PEs of the team's nodes can.
    pub leaders: bool,
}

impl Vendor {
    /// No PEs.
    pub const NONE: Self = Self { team: false, leaders: false };
}
