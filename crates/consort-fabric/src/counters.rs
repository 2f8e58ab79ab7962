//! Counters of a call, which several PEs add to.

use std::future::Future;

use crate::{Local, Op, Rank};

/// Words on each PE that begin every call at 0.
pub trait Counters: Local {
    /// Adds `by` to counter `counter` of `at` and returns what it was. Whoever uses a counter
    /// brings it back to 0 before the call ends.
    fn count(&self, at: Rank, counter: u32, by: u64) -> impl Future<Output = Op<u64>>;

    /// Counts the caller among `pes` that come to counter `counter` of `at`. Says whether it is the
    /// last, by whom the counter is 0 again.
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
