//! Credits: how the PEs of a team keep within a window of calls.

use std::future::Future;

use crate::{Local, Op, Rank};

/// Flow control between calls; no part of an algorithm.
pub trait Credits: Local {
    /// Gives `to` credit: the caller has left another quarter of the team's window of calls.
    fn credit(&self, to: Rank, quarter: u64) -> impl Future<Output = Op>;

    /// Waits until every peer has given the credit for quarter number `quarter`.
    fn await_credits(&self, quarter: u64) -> impl Future<Output = Op>;
}
