//! A counter.

use std::sync::atomic::Ordering::Relaxed;

use consort_fabric::{Line, Machine};

use super::VALUES;
use crate::delegation::{Scheme, ServerScheme, Service};

/// A counter, modulo [`VALUES`], under a scheme.
#[derive(Debug, Default)]
pub struct Counter<S> {
    scheme: S,
    count: Count,
}

/// Word 0: the count.
#[derive(Debug, Default)]
struct Count(Line);

impl<M: Machine> Service<M> for Count {
    /// Adds the argument and returns the count before.
    #[inline]
    async fn serve(&self, m: &M, _: u64, by: u64) -> u64 {
        let count = m.load(&self.0[0], Relaxed).await;
        m.store(&self.0[0], count.wrapping_add(by) % VALUES, Relaxed).await;
        count
    }
}

impl<S: Scheme> Counter<S> {
    /// A counter of 0.
    #[must_use]
    pub fn new(scheme: S) -> Self {
        Self { scheme, count: Count::default() }
    }

    /// Adds to the counter and returns the count before.
    ///
    /// # Errors
    /// When a wait ends early.
    pub async fn fetch_add<M: Machine>(
        &self,
        m: &M,
        local: &S::Local,
        by: u64,
    ) -> Result<u64, M::Stop> {
        self.scheme.apply(m, local, &self.count, 0, by).await
    }
}

impl<S: ServerScheme> Counter<S> {
    /// Serves all threads, until [`stop`](Self::stop) is called.
    ///
    /// # Errors
    /// When a wait ends early.
    pub async fn run<M: Machine>(&self, m: &M) -> Result<(), M::Stop> {
        self.scheme.run(m, &self.count).await
    }

    /// Lets the server end.
    ///
    /// # Errors
    /// When a wait ends early.
    pub async fn stop<M: Machine>(&self, m: &M) -> Result<(), M::Stop> {
        self.scheme.stop(m).await
    }
}
