//! Ticket locks: first come, first served. A lock's address selects the PE that stores its word.
//!
//! The upper half of the word is the next ticket, and the lower half is the one being served.

use std::ffi::c_long;

use consort::Rank;
use libc::c_int;

use crate::{
    atomic::{AtomicOp, change_at},
    failure::fail,
    world::{Location, World, ensure_aligned, world},
};

/// The bits of a lock's word that hold the ticket being served.
const SERVED: u64 = u32::MAX as u64;
/// The increment of the word for the next ticket.
const ONE_TICKET: u64 = 1 << 32;

/// A lock, as all PEs see it.
struct Lock {
    routine: &'static str,
    world: &'static World,
    home: Rank,
    at: Location,
}

impl Lock {
    fn new(routine: &'static str, lock: *mut c_long) -> Self {
        let world = world(routine);
        ensure_aligned(routine, "lock", lock.addr(), 8);
        // Locks are spread over the PEs.
        let offset = world.offset_of(lock.addr(), 8).unwrap_or(0);
        let home = Rank(u32::try_from(offset / 8 % world.pes as usize).unwrap_or(0));
        let at = world.locate(routine, ("lock", lock.cast_const()), 8, home);
        Self { routine, world, home, at }
    }

    fn change(&self, change: AtomicOp) -> u64 {
        change_at::<u64>(self.world, (self.home, self.at), change)
    }
}

const fn served(word: u64) -> u64 {
    word & SERVED
}

const fn next(word: u64) -> u64 {
    word >> 32
}

/// `shmem_set_lock`.
///
/// # Safety
/// `lock` points to a lock in symmetric memory, here and below.
pub unsafe fn set(lock: *mut c_long) {
    let lock = Lock::new("shmem_set_lock", lock);
    let ticket = next(lock.change(AtomicOp::Add(ONE_TICKET)));
    let test = || (served(lock.change(AtomicOp::Load)) == ticket).then_some(());
    if test().is_none() && lock.world.one_sided().wait_for(lock.home, test).is_err() {
        fail(lock.routine, "the job has failed");
    }
}

/// `shmem_test_lock`. Returns 0 if it has set the lock, and 1 if the lock was already set.
///
/// # Safety
/// As [`set`].
pub unsafe fn test(lock: *mut c_long) -> c_int {
    let lock = Lock::new("shmem_test_lock", lock);
    let before = lock.change(AtomicOp::Load);
    let is_free = next(before) == served(before);
    let take = AtomicOp::CompareSwap(before, before.wrapping_add(ONE_TICKET));
    c_int::from(!(is_free && lock.change(take) == before))
}

/// `shmem_clear_lock`: the holder's earlier operations are complete first.
///
/// # Safety
/// As [`set`].
pub unsafe fn clear(lock: *mut c_long) {
    let lock = Lock::new("shmem_clear_lock", lock);
    lock.world.one_sided().quiet();
    let mut word = lock.change(AtomicOp::Load);
    loop {
        if next(word) == served(word) {
            fail(lock.routine, "argument lock is a lock that is not set");
        }
        let found = lock.change(AtomicOp::CompareSwap(word, word & !SERVED | served(word + 1)));
        if found == word {
            return;
        }
        word = found;
    }
}
