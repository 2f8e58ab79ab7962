//! What a job has once, and what each PE shows to all others whatever team they meet in.

#![expect(unsafe_code, reason = "says what may lie in a segment")]

use std::sync::atomic::AtomicU64;

use super::{accessing::Accessing, beat::Beat, parker::Parker, poison::Poison, queue::Queue};
use crate::segment::part::Flat;

/// What a job has once, at the beginning of its segment.
#[repr(C)]
pub(crate) struct Header {
    pub(crate) poison: Poison,
    /// When the clock common to all PEs began, on that of the machine, in nanoseconds.
    pub(crate) epoch_ns: AtomicU64,
}

/// What one PE shows, on lines of its own.
#[repr(C, align(128))]
pub(crate) struct PeState {
    /// Raised while the PE copies memory that a peer has exposed: in its blocking call, and in its
    /// nonblocking ones, which another thread may drive meanwhile.
    pub(crate) accessing: [Accessing; 2],
    pub(crate) parker: Parker,
    pub(crate) beat: Beat,
}

// SAFETY: integers that are atomics, and padding; zeros are a sound job and a clock without epoch.
unsafe impl Flat for Header {}
// SAFETY: integers that are atomics, and padding.
unsafe impl Flat for PeState {}
// SAFETY: lines, which are integers that are atomics.
unsafe impl Flat for Queue {}
