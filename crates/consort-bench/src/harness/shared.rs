//! State that the PEs of a session share.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64},
    },
    time::Instant,
};

use crate::{limits::PingPong, peers::threads::Peer};

/// Start and end, in nanoseconds.
pub(super) type Span = (u64, u64);

/// State that the PEs of a session share.
pub(super) struct Shared {
    /// Between PEs 0 and 1, where each PE has a core.
    pub(super) ping_pong: Option<PingPong>,
    pub(super) peers: Vec<Box<dyn Peer>>,
    /// PE 0's last decision, and the one before.
    pub(super) decisions: [AtomicU64; 2],
    /// When the next call starts on the common clock, where each PE has a core.
    pub(super) go_ns: AtomicU64,
    /// A PE has left: nobody waits for it any more.
    pub(super) left: AtomicBool,
    /// Each PE's latest block: start and end of each call, or the local time of all as one.
    pub(super) spans: Vec<Mutex<Vec<Span>>>,
    pub(super) epoch: Instant,
}
