//! Rosters: lists of values that a forked child must visit.
//!
//! A child walks a roster without a lock, because another thread of the parent might have held the
//! lock at the fork. So a slot is never freed: it is reused once its value has been removed.

#![expect(unsafe_code, reason = "a lock-free list of addresses")]

use std::{
    ops::Deref,
    ptr::{from_ref, null_mut},
    sync::atomic::{
        AtomicPtr,
        Ordering::{Acquire, Relaxed, Release, SeqCst},
        fence,
    },
};

/// A list. It points to the slot that was added last.
pub(crate) struct Roster<T: 'static>(AtomicPtr<Slot<T>>);

struct Slot<T: 'static> {
    /// Null if the slot is free.
    value: AtomicPtr<T>,
    next: Option<&'static Self>,
}

/// A value in a roster, until it is dropped.
pub(crate) struct Entry<T: Send + Sync + 'static>(&'static Slot<T>);

impl<T: Send + Sync + 'static> Roster<T> {
    pub(crate) const fn new() -> Self {
        Self(AtomicPtr::new(null_mut()))
    }

    fn last(&self) -> Option<&'static Slot<T>> {
        // SAFETY: null, or a slot that is never freed. Acquire: pairs with the release in `add`.
        unsafe { self.0.load(Acquire).as_ref() }
    }

    fn slots(&self) -> impl Iterator<Item = &'static Slot<T>> {
        std::iter::successors(self.last(), |slot| slot.next)
    }

    fn add(&self, value: *mut T) -> &'static Slot<T> {
        let slot = Box::leak(Box::new(Slot { value: AtomicPtr::new(value), next: None }));
        loop {
            slot.next = self.last();
            let next = slot.next.map_or(null_mut(), |next| from_ref(next).cast_mut());
            // Release: pairs with the acquire in `last`.
            if self.0.compare_exchange(next, slot, Release, Relaxed).is_ok() {
                return slot;
            }
        }
    }

    /// Adds a value, in a free slot if there is one.
    pub(crate) fn enter(&self, value: T) -> Entry<T> {
        let value = Box::into_raw(Box::new(value));
        let takes = |slot: &&Slot<T>| {
            // Release: pairs with the acquire in `all`.
            slot.value.compare_exchange(null_mut(), value, Release, Relaxed).is_ok()
        };
        Entry(self.slots().find(takes).unwrap_or_else(|| self.add(value)))
    }

    /// Returns all values. Does only what a signal handler may do.
    ///
    /// # Safety
    /// The caller is the only thread of a child that has just been forked, and drops no entry while
    /// it uses the values.
    pub(crate) unsafe fn all(&self) -> impl Iterator<Item = &T> {
        self.slots().filter_map(|slot| {
            // SAFETY: null, or a value that `enter` stored and whose entry has not been dropped.
            // Acquire: pairs with the release in `enter`.
            unsafe { slot.value.load(Acquire).as_ref() }
        })
    }
}

impl<T: Send + Sync + 'static> Deref for Entry<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: `enter` made the pointer from a box, which is freed when this entry is dropped.
        // Relaxed: a thread that has this entry already sees the value.
        unsafe { &*self.0.value.load(Relaxed) }
    }
}

impl<T: Send + Sync + 'static> Drop for Entry<T> {
    fn drop(&mut self) {
        let value = self.0.value.swap(null_mut(), Relaxed);
        // A forked child sees the stores of the parent's other threads up to some moment. This
        // fence pairs with the fork: if the child sees any effect of dropping the value (below), it
        // also sees the store above.
        fence(SeqCst);
        // SAFETY: `enter` made it from a box, and only forked children read it: they have copies.
        drop(unsafe { Box::from_raw(value) });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn slots_are_reused() {
        static ROSTER: Roster<u32> = Roster::new();
        let all = || {
            // SAFETY: only this thread uses the roster, and it drops no entry meanwhile.
            unsafe { ROSTER.all() }.copied().collect::<Vec<_>>()
        };
        let [first, second] = [1, 2].map(|value| ROSTER.enter(value));
        assert_eq!((*first, *second, all()), (1, 2, vec![2, 1]));
        drop(first);
        assert_eq!(all(), [2]);
        let third = ROSTER.enter(3);
        assert_eq!((*third, all()), (3, vec![2, 3]));
        assert_eq!(ROSTER.slots().count(), 2);
    }
}
