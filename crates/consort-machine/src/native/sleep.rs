//! A table of parkers, at which threads sleep that wait for a word. The word's address is the
//! index.
//!
//! A thread that stores to a word checks whether a thread sleeps at the word's entry. If two words
//! share an entry, a store to one also wakes the threads that wait for the other: they check their
//! word and sleep again.

use crate::{
    Word,
    sync::futex::Scope,
    wait::{
        parker::Parker,
        sleepers::{Sleeper, Sleepers},
    },
};

/// The number of table entries: a power of two.
const SLOTS: usize = 256;

struct ParkingSlot {
    sleepers: Sleepers,
    parker: Parker,
}

static TABLE: [ParkingSlot; SLOTS] =
    [const { ParkingSlot { sleepers: Sleepers::new(), parker: Parker::new() } }; SLOTS];

/// Returns the entry for the word at this address.
fn slot(address: usize) -> &'static ParkingSlot {
    // Fibonacci hashing (Knuth 1973, section 6.4): the upper bits of the product are well mixed.
    let mixed = (address as u64 / 8).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    &TABLE[usize::try_from(mixed >> (u64::BITS - SLOTS.ilog2())).unwrap_or(0)]
}

/// Returns the address of a word, by which threads sleep.
pub(super) fn address(word: &Word) -> usize {
    std::ptr::from_ref(word).addr()
}

/// Announces that the calling thread is about to sleep until the word at this address changes. The
/// thread must then check the word once more.
pub(super) fn announce(address: usize) -> Sleeper<'static> {
    let ParkingSlot { sleepers, parker } = slot(address);
    sleepers.announce(parker, false, Scope::Process)
}

/// Wakes the threads that sleep until this word changes. Call it after the store.
#[inline(always)]
pub(super) fn wake(word: &Word) {
    let ParkingSlot { sleepers, parker } = slot(address(word));
    if sleepers.any() {
        parker.wake(Scope::Process);
    }
}
