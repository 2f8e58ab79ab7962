//! What a fabric can do for a call.

/// What a fabric can do for a call; an algorithm that needs more does not serve the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Channels of a PE's inbox for one call, each of one cache line.
    pub inbox_channels: u32,
    /// Bytes of the accumulator, and of the memory for incoming messages.
    pub scratch_bytes: usize,
    /// Bytes of a PE's message buffer.
    pub buffer_bytes: usize,
    /// Whether a PE can expose its buffers: peers then get and put without its help.
    pub exposes: bool,
    /// Whether a message is sent before its receiver takes it. Else two PEs that both send to each
    /// other first wait forever.
    pub buffered: bool,
}
