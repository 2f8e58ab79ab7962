//! A number of values that are alive, for whoever waits for their end.

use std::sync::{
    Arc,
    atomic::{
        AtomicUsize,
        Ordering::{Acquire, Relaxed, Release},
    },
};

/// The number.
#[derive(Clone, Debug, Default)]
pub struct Tally(Arc<AtomicUsize>);

/// Counts as long as it lives.
#[derive(Debug)]
pub struct Counted(Tally);

impl Tally {
    /// One more, until that is dropped.
    #[must_use]
    pub fn count(&self) -> Counted {
        self.0.fetch_add(1, Relaxed);
        Counted(self.clone())
    }

    /// How many there are. What those did that are gone happened before.
    #[inline(always)]
    #[must_use]
    pub fn get(&self) -> usize {
        self.0.load(Acquire) // pairs with the release in `Counted`
    }

    /// Whether there is none.
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
