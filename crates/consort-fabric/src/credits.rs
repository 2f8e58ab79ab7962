//! Credits: flow control that keeps the PEs of a team within a window of calls.

use std::future::Future;

use crate::{Local, Op, Rank};

/// The window of a team on machines: the most calls that may be pending at once. Its inboxes have
/// room for so many, so large teams have a shorter one.
#[must_use]
pub const fn window(pes: usize) -> usize {
    if pes <= 64 { 64 } else { 16 }
}

/// Flow control between calls. Algorithms do not use it.
pub trait Credits: Local {
    /// Gives `to` a credit: the caller has left another quarter of the window of calls, `quarter`.
    fn credit(&self, to: Rank, quarter: u64) -> impl Future<Output = Op>;

    /// Waits until every peer has given the credit for quarter number `quarter`.
    fn await_credits(&self, quarter: u64) -> impl Future<Output = Op>;
}
