//! The pending nonblocking calls of a PE in a team, and the credits that wait for them.
//!
//! A credit promises that all calls of this PE up to some number are complete. So the last of these
//! calls to complete gives the credit: on the PE itself (during some other wait) or on its helper
//! thread. Credits are given under the lock and in order, because each credit implies all earlier
//! ones.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

#[derive(Debug, Default)]
struct Entries {
    /// The numbers of the pending calls, in order.
    under_way: VecDeque<u64>,
    /// The owed credits: the number after the last call that must be complete, and the credit.
    owed: VecDeque<(u64, u64)>,
}

impl Entries {
    fn settle(&mut self, give: impl Fn(u64)) {
        let first = self.under_way.front().copied().unwrap_or(u64::MAX);
        while let Some(&(end, credit)) = self.owed.front().filter(|(end, _)| *end <= first) {
            debug_assert!(end <= first, "all before are complete");
            give(credit);
            self.owed.pop_front();
        }
    }
}

/// The pending nonblocking calls of one PE in one team.
#[derive(Debug, Default)]
pub(crate) struct PendingCalls(Mutex<Entries>);

impl PendingCalls {
    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that call `number` is pending. Numbers ascend.
    pub(crate) fn start(&self, number: u64) {
        self.entries().under_way.push_back(number);
    }

    /// Records that call `number` is complete, and gives the credits that no pending call holds
    /// back any more.
    pub(crate) fn complete(&self, number: u64, give: impl Fn(u64)) {
        let mut entries = self.entries();
        entries.under_way.retain(|&other| other != number);
        entries.settle(give);
    }

    /// Gives `credit` as soon as all calls before `end` are complete.
    pub(crate) fn owe(&self, end: u64, credit: u64, give: impl Fn(u64)) {
        let mut entries = self.entries();
        entries.owed.push_back((end, credit));
        entries.settle(give);
    }

    /// Returns the number of the first pending call, if there is one.
    pub(crate) fn first(&self) -> Option<u64> {
        self.entries().under_way.front().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn credits_are_given_in_order_and_not_before_their_calls_are_complete() {
        let (pending_calls, given) = (PendingCalls::default(), RefCell::default());
        let give = |credit: u64| Vec::push(&mut given.borrow_mut(), credit);
        for number in [14, 15, 33] {
            pending_calls.start(number);
        }
        pending_calls.owe(16, 0, give);
        pending_calls.owe(32, 1, give);
        pending_calls.complete(15, give);
        assert_eq!((given.borrow().len(), pending_calls.first()), (0, Some(14)));
        pending_calls.complete(14, give);
        assert_eq!(*given.borrow(), [0, 1]);
        pending_calls.owe(48, 2, give);
        assert_eq!(given.borrow().len(), 2);
        pending_calls.complete(33, give);
        assert_eq!((&given.borrow()[..], pending_calls.first()), (&[0, 1, 2][..], None));
    }
}
