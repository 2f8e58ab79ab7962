//! A counter that the processor increments, as a baseline.

use std::sync::atomic::Ordering::Relaxed;

use consort_machine::{Line, Machine};

/// A counter based on atomic addition.
#[derive(Debug, Default)]
pub struct FetchAdd(Line);

impl FetchAdd {
    /// Adds to the counter, wrapping around, and returns the previous count.
    #[inline]
    pub async fn fetch_add<M: Machine>(&self, m: &M, by: u64) -> u64 {
        m.fetch_add(&self.0[0], by, Relaxed).await
    }
}
