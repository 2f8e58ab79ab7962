//! Counting puts: a counter of completed puts and gets at their target (Dinan, Cole, Jost, Smith,
//! Underwood, Wisniewski: Reducing Synchronization Overhead Through Bundled Communication, 2014).
//! A counter is a word of the symmetric heap, as in section 2.1 there.

use std::{
    ffi::{c_long, c_void},
    ptr::null_mut,
    sync::atomic::{
        AtomicI64,
        Ordering::{Acquire, Release},
    },
};

use libc::c_int;

use crate::{
    atomic::{AtomicOp, change},
    contexts::Context,
    memory,
    rma::{get_as, put_as},
    wait::{GE, wait_until},
    world::{ensure_aligned, world},
};

/// A counter, as C programs hold it: `shmemx_ct_t`. The address of its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Counter(pub *mut i64);

impl Counter {
    /// Checks the counter, and returns this PE's word of it.
    fn word(self, routine: &str) -> &'static AtomicI64 {
        let world = world(routine);
        world.locate(routine, ("ct", self.0.cast_const()), 8, world.rank);
        ensure_aligned(routine, "ct", self.0.addr(), 8);
        // SAFETY: an aligned word of symmetric memory, which has just been checked. Such memory is
        // never unmapped.
        unsafe { AtomicI64::from_ptr(self.0) }
    }

    /// Adds one to the counter at a PE, after the data has been put or read there.
    fn count(self, routine: &str, pe: c_int) {
        change(routine, Context::DEFAULT, ("ct", self.0.cast_const()), AtomicOp::Increase(1), pe);
    }
}

/// `shmemx_ct_create`: collective. The counter is null if there is no memory.
///
/// # Safety
/// `ct` points to a writable variable.
pub unsafe fn create(ct: *mut Counter) {
    // SAFETY: guaranteed by the caller.
    unsafe { ct.write(Counter(memory::calloc(1, 8).cast())) };
}

/// `shmemx_ct_free`: collective.
///
/// # Safety
/// `ct` points to a writable variable that holds a counter.
pub unsafe fn free(ct: *mut Counter) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        memory::free(ct.read().0.cast());
        ct.write(Counter(null_mut()));
    }
}

/// `shmemx_ct_get`: reads this PE's counter.
pub fn value(ct: Counter) -> c_long {
    ct.word("shmemx_ct_get").load(Acquire)
}

/// `shmemx_ct_set`: sets this PE's counter.
pub fn set(ct: Counter, value: c_long) {
    ct.word("shmemx_ct_set").store(value, Release);
    let world = world("shmemx_ct_set");
    world.one_sided().wake(world.rank);
}

/// `shmemx_ct_wait`: waits until this PE's counter is at least this value. Data that was put
/// before is then visible.
pub fn wait(ct: Counter, at_least: c_long) {
    ct.word("shmemx_ct_wait");
    // SAFETY: a word of the symmetric heap.
    unsafe { wait_until::<i64>(ct.0, GE, at_least) };
}

/// `shmemx_putmem_ct`: counted at the target once the data is there.
///
/// # Safety
/// `source` is readable for `len` bytes.
pub unsafe fn putmem(ct: Counter, dest: *mut c_void, source: *const c_void, len: usize, pe: c_int) {
    let routine = "shmemx_putmem_ct";
    // SAFETY: guaranteed by the caller.
    unsafe { put_as::<u8>(routine, Context::DEFAULT, dest.cast(), source.cast(), len, pe) };
    ct.count(routine, pe);
}

/// `shmemx_getmem_ct`: counted at the data's owner once the data has been read.
///
/// # Safety
/// `dest` is writable for `len` bytes.
pub unsafe fn getmem(ct: Counter, dest: *mut c_void, source: *const c_void, len: usize, pe: c_int) {
    let routine = "shmemx_getmem_ct";
    // SAFETY: guaranteed by the caller.
    unsafe { get_as::<u8>(routine, Context::DEFAULT, dest.cast(), source.cast(), len, pe) };
    ct.count(routine, pe);
}
