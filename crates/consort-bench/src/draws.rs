//! Numbers at random, the same ones each time: xorshift64 (Marsaglia 2003).

/// The state of the generator, and so the number, after another; never zero.
#[inline]
pub(crate) const fn step(mut state: u64) -> u64 {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    state
}

/// A generator.
pub(crate) struct Draws(u64);

impl Draws {
    /// Of a seed, which is not zero.
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `end`.
    pub(crate) const fn below(&mut self, end: u64) -> u64 {
        self.0 = step(self.0);
        // The upper bits are the better ones.
        (self.0 >> 32) % end
    }

    /// One of some.
    pub(crate) fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        let index = self.below(all.len() as u64);
        &all[usize::try_from(index).unwrap_or(0)]
    }
}
