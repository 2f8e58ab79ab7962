//! Numbers at random, the same ones each time.

use consort_fabric::splitmix64;

/// A generator, of its state.
pub(crate) struct Draws(pub(crate) u64);

impl Draws {
    /// A number below `end`.
    pub(crate) const fn below(&mut self, end: u64) -> u64 {
        splitmix64(&mut self.0) % end
    }

    /// One of some.
    pub(crate) fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        let index = self.below(all.len() as u64);
        &all[usize::try_from(index).unwrap_or(0)]
    }
}
