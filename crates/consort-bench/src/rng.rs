//! Pseudorandom numbers, the same in each run.

use consort_fabric::splitmix64;

/// A generator, given its state.
pub struct Rng(pub u64);

impl Rng {
    /// Returns a random number below `end`.
    pub const fn below(&mut self, end: u64) -> u64 {
        splitmix64(&mut self.0) % end
    }

    /// Returns a random element.
    pub fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        let index = self.below(all.len() as u64);
        &all[usize::try_from(index).unwrap_or(0)]
    }

    pub(crate) fn shuffle<T>(&mut self, all: &mut [T]) {
        for last in (1..all.len()).rev() {
            let other = usize::try_from(self.below(last as u64 + 1)).unwrap_or(last);
            all.swap(last, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shuffle_keeps_all_elements() {
        let (mut order, mut rng) = ((0..20).collect::<Vec<usize>>(), Rng(7));
        let before = order.clone();
        rng.shuffle(&mut order);
        assert_ne!(order, before);
        order.sort_unstable();
        assert_eq!(order, before);
    }
}
