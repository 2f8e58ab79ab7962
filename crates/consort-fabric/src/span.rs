//! Spans: blocks of a call's buffers.

#[cfg(doc)]
use crate::Capabilities;

/// A buffer that a call can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// The caller's contribution; never written.
    Source,
    /// The caller's result.
    Target,
    /// Private memory of [`Capabilities::scratch_bytes`], for partial results.
    Accumulator,
    /// Private memory of the same size, for a message that is combined next.
    Incoming,
    /// The symmetric heap: the same offsets on every PE.
    Heap,
    /// The PE's message buffer of [`Capabilities::buffer_bytes`], which every peer reaches without
    /// a rendezvous. An algorithm that fills it does not end before its peers have copied what they
    /// need.
    Buffer,
}

/// A block of one of the call's buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// The buffer.
    pub place: Place,
    /// The offset from the buffer's beginning, in bytes.
    pub at: usize,
    /// The length in bytes.
    pub bytes: usize,
}

impl Span {
    /// Returns a part of the caller's contribution.
    #[inline]
    #[must_use]
    pub const fn source(at: usize, bytes: usize) -> Self {
        Self { place: Place::Source, at, bytes }
    }

    /// Returns a part of the caller's result.
    #[inline]
    #[must_use]
    pub const fn target(at: usize, bytes: usize) -> Self {
        Self { place: Place::Target, at, bytes }
    }

    /// Returns the first `bytes` of the memory for partial results.
    #[inline]
    #[must_use]
    pub const fn accumulator(bytes: usize) -> Self {
        Self { place: Place::Accumulator, at: 0, bytes }
    }

    /// Returns the first `bytes` of the memory for an incoming message.
    #[inline]
    #[must_use]
    pub const fn incoming(bytes: usize) -> Self {
        Self { place: Place::Incoming, at: 0, bytes }
    }

    /// Returns a part of the message buffer.
    #[inline]
    #[must_use]
    pub const fn buffer(at: usize, bytes: usize) -> Self {
        Self { place: Place::Buffer, at, bytes }
    }

    /// Returns a part of the symmetric heap.
    #[inline]
    #[must_use]
    pub const fn heap(at: usize, bytes: usize) -> Self {
        Self { place: Place::Heap, at, bytes }
    }
}
