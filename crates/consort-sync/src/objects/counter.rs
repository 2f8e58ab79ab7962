//! A counter under a scheme.

use std::sync::atomic::Ordering::Relaxed;

use consort_machine::{Line, Machine};

use super::{Object, ObjectPart, Sequential, VALUES};
use crate::delegation::Scheme;

/// A counter under a scheme, modulo [`VALUES`].
pub type CounterObject<S> = Object<S, SequentialCounter>;

/// Word 0: the count.
#[derive(Debug, Default)]
pub struct SequentialCounter(Line);

impl Sequential for SequentialCounter {
    /// Adds the argument and returns the previous count.
    #[inline]
    async fn serve<M: Machine>(&self, m: &M, _: ObjectPart, by: u64) -> u64 {
        let count = m.load(&self.0[0], Relaxed).await;
        m.store(&self.0[0], count.wrapping_add(by) % VALUES, Relaxed).await;
        count
    }
}

impl<S: Scheme> CounterObject<S> {
    /// Creates a counter with the value 0.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new(scheme: S) -> Self {
        Self::of(scheme, None, SequentialCounter(Line::new()))
    }

    /// Adds to the counter and returns the previous count.
    ///
    /// # Errors
    /// When a wait ends early.
    pub async fn fetch_add<M: Machine>(
        &self,
        m: &M,
        local: &[S::Local; 2],
        by: u64,
    ) -> Result<u64, M::Stop> {
        self.apply(m, local, ObjectPart::Put, by).await
    }
}
