//! State that the PEs of a session share.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64},
    },
    time::{Duration, Instant},
};

use crate::{limits::PingPong, peers::threads::Peer};

/// Start and end, in nanoseconds.
pub(super) type Span = (u64, u64);

/// State that the PEs of a session share.
pub(super) struct Shared {
    /// The ping-pong between PEs 0 and 1, if each PE has a core.
    pub(super) ping_pong: Option<PingPong>,
    pub(super) peers: Vec<Box<dyn Peer>>,
    /// The intended time of a block.
    pub(super) block: Duration,
    /// PE 0's last decision, and the one before.
    pub(super) decisions: [AtomicU64; 2],
    /// The start of the next call on the common clock, if each PE has a core.
    pub(super) go_ns: AtomicU64,
    /// Whether a PE has left. Then no PE waits for a start any longer.
    pub(super) left: AtomicBool,
    /// Each PE's latest block: start and end of each call, or the local time of all calls as one
    /// span.
    pub(super) spans: Vec<Mutex<Vec<Span>>>,
    pub(super) epoch: Instant,
}
