//! A count of live values, for code that waits until there are none.

use std::sync::{
    Arc,
    atomic::{
        AtomicUsize,
        Ordering::{Acquire, Relaxed, Release},
    },
};

/// A count of live [`Counted`] values.
#[derive(Clone, Debug, Default)]
pub struct Tally(Arc<AtomicUsize>);

/// Counts as one while it lives.
#[derive(Debug)]
pub struct Counted(Tally);

impl Tally {
    /// Adds one to the count, until the result is dropped.
    #[must_use]
    pub fn count(&self) -> Counted {
        self.0.fetch_add(1, Relaxed);
        Counted(self.clone())
    }

    /// Returns the count. Whatever a value did before it was dropped happens before this returns.
    #[inline(always)]
    #[must_use]
    pub fn get(&self) -> usize {
        self.0.load(Acquire) // pairs with the release in `Counted`
    }

    /// Returns whether the count is zero.
    #[inline(always)]
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.get() == 0
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let Self(Tally(count)) = self;
        count.fetch_sub(1, Release); // pairs with the acquire in `get`
    }
}
