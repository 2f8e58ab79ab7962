//! Locks: tickets, in the memory of the PE that a lock's address selects. First come, first served.
//!
//! The upper half of the word is the next ticket, and the lower half the one that is served.

use std::{
    ffi::c_long,
    sync::atomic::{
        AtomicU32, AtomicU64,
        Ordering::{AcqRel, Acquire, Relaxed},
    },
};

use consort::Rank;
use libc::c_int;

use crate::{
    failure::fail,
    ordering,
    world::{World, world},
};

/// A lock, as all PEs see it.
struct Lock {
    routine: &'static str,
    world: &'static World,
    home: Rank,
    at: *mut u8,
}

impl Lock {
    fn new(routine: &'static str, lock: *mut c_long) -> Self {
        let world = world(routine);
        if !lock.addr().is_multiple_of(8) {
            let address = lock.addr();
            fail(routine, format_args!("argument lock is {address:#x}, expected a multiple of 8"));
        }
        // Locks are spread over the PEs.
        let offset = world.offset_of(lock.addr(), 8).unwrap_or(0);
        let home = Rank(u32::try_from(offset / 8 % world.pes as usize).unwrap_or(0));
        let at = world.place(routine, ("lock", lock.cast_const()), 8, home);
        Self { routine, world, home, at }
    }

    fn word(&self) -> &AtomicU64 {
        // SAFETY: an aligned word of symmetric memory.
        unsafe { AtomicU64::from_ptr(self.at.cast()) }
    }

    /// The ticket that is served: the lower half.
    fn served(&self) -> &AtomicU32 {
        // SAFETY: as above; the processor's bytes begin with the lowest.
        unsafe { AtomicU32::from_ptr(self.at.cast()) }
    }

    /// The next ticket: the upper half.
    fn next(&self) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { AtomicU32::from_ptr(self.at.wrapping_add(4).cast()) }
    }
}

/// `shmem_set_lock`.
///
/// # Safety
/// `lock` is a lock, here and below.
pub unsafe fn set(lock: *mut c_long) {
    let lock = Lock::new("shmem_set_lock", lock);
    let ticket = lock.next().fetch_add(1, AcqRel);
    let test = || (lock.served().load(Acquire) == ticket).then_some(());
    if test().is_none() && lock.world.one_sided().wait_for(lock.home, test).is_err() {
        fail(lock.routine, "the job has failed");
    }
}

/// `shmem_test_lock`. Returns 0 if it has set the lock, and 1 if it is set.
///
/// # Safety
/// As [`set`].
pub unsafe fn test(lock: *mut c_long) -> c_int {
    let lock = Lock::new("shmem_test_lock", lock);
    let before = lock.word().load(Relaxed);
    let is_free = before >> 32 == before & u64::from(u32::MAX);
    let with_ticket = before.wrapping_add(1 << 32);
    let has_set =
        is_free && lock.word().compare_exchange(before, with_ticket, AcqRel, Relaxed).is_ok();
    c_int::from(!has_set)
}

/// `shmem_clear_lock`: what its holder has done is complete before.
///
/// # Safety
/// As [`set`].
pub unsafe fn clear(lock: *mut c_long) {
    let lock = Lock::new("shmem_clear_lock", lock);
    ordering::quiet_all();
    let before = lock.word().load(Relaxed);
    if before >> 32 == before & u64::from(u32::MAX) {
        fail(lock.routine, "argument lock is a lock that is not set");
    }
    lock.served().fetch_add(1, AcqRel);
    lock.world.one_sided().wake(lock.home);
}
