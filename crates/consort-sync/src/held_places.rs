//! The mutexes that a thread holds, and where it locked them, in debug builds. Locking one again is
//! then an error that names the place, and not an endless wait.
//!
//! A thread records up to 16 mutexes; it does not find others again. The record needs no destructor,
//! so a library that locks mutexes can be unloaded.

use std::{cell::Cell, panic::Location};

/// The number of mutexes that a thread records.
const MOST: usize = 16;

/// The address of a mutex, and where the thread locked it.
type HeldPlace = (usize, &'static Location<'static>);

thread_local! {
    static HELD: [Cell<Option<HeldPlace>>; MOST] = const { [const { Cell::new(None) }; MOST] };
}

fn find(address: usize) -> Option<HeldPlace> {
    HELD.with(|held| held.iter().filter_map(Cell::get).find(|(of, _)| *of == address))
}

/// Refuses to lock a mutex that this thread holds.
///
/// # Panics
/// When the thread has locked the mutex at this address and it `is_held`.
#[inline]
#[track_caller]
pub(crate) fn refuse_second_lock(address: usize, is_held: impl FnOnce() -> bool) {
    if let Some((_, place)) = find(address) {
        // It is not held if its guard was forgotten and another mutex has the address now.
        assert!(
            !is_held(),
            "this thread waits for itself: it already holds this mutex, which it locked at \
             {place}; drop that guard first"
        );
        forget(address);
    }
}

/// Records that this thread has locked a mutex at the caller's place.
#[inline]
#[track_caller]
pub(crate) fn note(address: usize) {
    let place = Location::caller();
    HELD.with(|held| {
        if let Some(free) = held.iter().find(|one| one.get().is_none()) {
            free.set(Some((address, place)));
        }
    });
}

/// Records that this thread no longer holds a mutex.
#[inline]
pub(crate) fn forget(address: usize) {
    HELD.with(|held| {
        let is_it = |one: &&Cell<Option<HeldPlace>>| one.get().is_some_and(|(of, _)| of == address);
        if let Some(it) = held.iter().find(is_it) {
            it.set(None);
        }
    });
}
