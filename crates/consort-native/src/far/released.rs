//! Numbers of call names that this process has released, and that it keeps for a while because
//! recent calls may use them.

use std::sync::{Mutex, PoisonError};

/// After this many more numbers, those that no recent call has are returned.
const MANY: usize = 64;

/// Numbers of names, with one entry for each hold.
#[derive(Default)]
pub(super) struct ReleasedNumbers(Mutex<Vec<u64>>);

impl ReleasedNumbers {
    /// Keeps a number. If many are kept, removes and returns those for which `is_recent` returns
    /// false.
    pub(super) fn keep<R: Fn(u64) -> bool>(
        &self,
        number: u64,
        is_recent: impl FnOnce() -> R,
    ) -> Vec<u64> {
        let mut numbers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        numbers.push(number);
        if !numbers.len().is_multiple_of(MANY) {
            return Vec::new();
        }
        let is_recent = is_recent();
        numbers.extract_if(.., |number| !is_recent(*number)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_recent_calls_are_kept() {
        let released = ReleasedNumbers::default();
        let many = MANY as u64;
        let recent = || |number| number == 3;
        assert!((0..many - 1).all(|number| released.keep(number, recent).is_empty()));
        assert_eq!(released.keep(many, recent).len(), MANY - 1);
        assert!((0..many - 2).all(|number| released.keep(number, recent).is_empty()));
        assert!(released.keep(7, || |_| false).contains(&3));
    }
}
