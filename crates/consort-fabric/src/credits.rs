//! Credits: flow control that keeps the PEs of a team within a window of calls.

use std::future::Future;

use crate::{Local, Op, Rank};

/// Returns the window of a team: the largest number of calls that may be pending at once. Inboxes
/// have room for this many, so the window of a large team is shorter.
#[must_use]
pub const fn window(pes: usize) -> usize {
    if pes <= 64 { 64 } else { 16 }
}

/// The PEs for which a credit counts: each of them has left a quarter of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Credit {
    /// The PE that gives the credit.
    Own,
    /// That PE, and the PEs whose credits for the quarter it had awaited.
    Group,
}

/// Flow control between calls. Algorithms do not use it.
pub trait Credits: Local {
    /// Gives `to` a credit for quarter number `quarter` of the window of calls.
    fn credit(&self, to: Rank, credit: Credit, quarter: u64) -> impl Future<Output = Op>;

    /// Waits until each of these peers has given such a credit for quarter number `quarter`.
    fn await_credits(
        &self,
        from: impl Iterator<Item = Rank> + Clone + Unpin,
        credit: Credit,
        quarter: u64,
    ) -> impl Future<Output = Op>;
}
