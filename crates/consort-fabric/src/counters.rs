//! Counters of a call, to which several PEs add.

use std::future::Future;

use crate::{Local, Op, Rank};

/// Counters: words on each PE that are 0 when a call begins.
pub trait Counters: Local {
    /// Adds `by` to counter `counter` of PE `at`, and returns the old value. An algorithm that uses
    /// a counter resets it to 0 before the call ends.
    fn count(&self, at: Rank, counter: u32, by: u64) -> impl Future<Output = Op<u64>>;

    /// Arrives at counter `counter` of PE `at`, as one of `pes` PEs. Returns whether the caller is
    /// the last to arrive; the last one also resets the counter to 0.
    fn arrive(&self, at: Rank, counter: u32, pes: u64) -> impl Future<Output = Op<bool>> {
        async move {
            let is_last = self.count(at, counter, 1).await? + 1 == pes;
            if is_last {
                self.count(at, counter, pes.wrapping_neg()).await?;
            }
            Ok(is_last)
        }
    }
}
