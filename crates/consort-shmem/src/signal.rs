//! Signals: words that tell a PE that data has come.

use libc::c_int;

use crate::{
    atomic::{atomic_add, atomic_set},
    contexts::Context,
    elements::{Element, Waitable as _},
    failure::fail,
    rma::put,
    world::world,
};

/// `SHMEM_SIGNAL_SET`.
pub const SIGNAL_SET: c_int = 0;
/// `SHMEM_SIGNAL_ADD`.
pub const SIGNAL_ADD: c_int = 1;

/// `shmem_put_signal`: the signal is seen after the data.
///
/// # Safety
/// `source` is readable for so many elements.
pub unsafe fn put_signal<T: Element>(
    context: Context,
    dest: *mut T,
    source: *const T,
    nelems: usize,
    sig_addr: *mut u64,
    signal: u64,
    sig_op: c_int,
    pe: c_int,
) {
    // SAFETY: the caller's promise; the atomic operation is ordered after the put.
    unsafe {
        put(context, dest, source, nelems, pe);
        match sig_op {
            SIGNAL_SET => atomic_set(context, sig_addr, signal, pe),
            SIGNAL_ADD => atomic_add(context, sig_addr, signal, pe),
            other => fail(
                "shmem_put_signal",
                format_args!("argument sig_op is {other}, expected SHMEM_SIGNAL_SET or _ADD"),
            ),
        }
    }
}

/// `shmem_put_signal_nbi`.
///
/// # Safety
/// As [`put_signal`].
pub unsafe fn put_signal_nbi<T: Element>(
    context: Context,
    dest: *mut T,
    source: *const T,
    nelems: usize,
    sig_addr: *mut u64,
    signal: u64,
    sig_op: c_int,
    pe: c_int,
) {
    // SAFETY: the caller's promise.
    unsafe { put_signal(context, dest, source, nelems, sig_addr, signal, sig_op, pe) }
}

/// `shmem_signal_set`.
///
/// # Safety
/// `sig_addr` is the address of a signal.
pub unsafe fn signal_set(context: Context, sig_addr: *mut u64, signal: u64, pe: c_int) {
    // SAFETY: the caller's promise.
    unsafe { atomic_set(context, sig_addr, signal, pe) }
}

/// `shmem_signal_add`.
///
/// # Safety
/// As [`signal_set`].
pub unsafe fn signal_add(context: Context, sig_addr: *mut u64, signal: u64, pe: c_int) {
    // SAFETY: the caller's promise.
    unsafe { atomic_add(context, sig_addr, signal, pe) }
}

/// `shmem_signal_fetch`: the own signal.
///
/// # Safety
/// As [`signal_set`].
pub unsafe fn signal_fetch(sig_addr: *const u64) -> u64 {
    let world = world("shmem_signal_fetch");
    world.place("shmem_signal_fetch", ("sig_addr", sig_addr), 8, world.rank);
    // SAFETY: a word of symmetric memory.
    unsafe { u64::load(sig_addr) }
}
