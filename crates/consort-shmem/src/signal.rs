//! Signals: words that notify a PE that data has arrived.

use libc::c_int;

use crate::{
    atomic::{AtomicOp, change},
    contexts::Context,
    elements::{Element, Waitable as _},
    failure::fail,
    rma::put_as,
    world::{ensure_aligned, world},
};

/// `SHMEM_SIGNAL_SET`.
pub const SIGNAL_SET: c_int = 0;
/// `SHMEM_SIGNAL_ADD`.
pub const SIGNAL_ADD: c_int = 1;

/// `shmem_put_signal` or `shmem_put_signal_nbi`, which `routine` names: the signal becomes visible
/// after the data.
///
/// # Safety
/// `source` is readable for `nelems` elements.
pub unsafe fn put_signal<T: Element>(
    routine: &str,
    context: Context,
    (dest, source, nelems): (*mut T, *const T, usize),
    (sig_addr, signal, sig_op): (*mut u64, u64, c_int),
    pe: c_int,
) {
    let how = match sig_op {
        SIGNAL_SET => AtomicOp::Set(signal),
        SIGNAL_ADD => AtomicOp::Increase(signal),
        other => fail(
            routine,
            format_args!("argument sig_op is {other}, expected SHMEM_SIGNAL_SET or _ADD"),
        ),
    };
    // SAFETY: guaranteed by the caller.
    unsafe { put_as(routine, context, dest, source, nelems, pe) };
    // Ordered after the put.
    change(routine, context, ("sig_addr", sig_addr.cast_const()), how, pe);
}

/// `shmem_signal_set`.
///
/// # Safety
/// `sig_addr` is the address of a signal.
pub unsafe fn signal_set(context: Context, sig_addr: *mut u64, signal: u64, pe: c_int) {
    let at = ("sig_addr", sig_addr.cast_const());
    change("shmem_signal_set", context, at, AtomicOp::Set(signal), pe);
}

/// `shmem_signal_add`.
///
/// # Safety
/// As [`signal_set`].
pub unsafe fn signal_add(context: Context, sig_addr: *mut u64, signal: u64, pe: c_int) {
    let at = ("sig_addr", sig_addr.cast_const());
    change("shmem_signal_add", context, at, AtomicOp::Increase(signal), pe);
}

/// `shmem_signal_fetch`: reads this PE's signal.
///
/// # Safety
/// As [`signal_set`].
pub unsafe fn signal_fetch(sig_addr: *const u64) -> u64 {
    let (routine, argument) = ("shmem_signal_fetch", "sig_addr");
    let world = world(routine);
    world.locate(routine, (argument, sig_addr), 8, world.rank);
    ensure_aligned(routine, argument, sig_addr.addr(), 8);
    world.one_sided().progress();
    // SAFETY: an aligned word of symmetric memory.
    unsafe { u64::load(sig_addr) }
}
