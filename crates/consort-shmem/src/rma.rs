//! Puts and gets, and their order. Gets, and puts to near PEs, are complete when they return. When a
//! put to a far PE returns, its source may be reused.
//!
//! A fence orders the stores of one thread. A far PE performs operations in call order, except for
//! long puts; completion is requested explicitly.

use std::sync::atomic::{Ordering::Release, fence as order};

use consort_native::OneSided;
use libc::c_int;

use crate::{
    contexts::Context,
    elements::Element,
    failure::fail,
    world::{Location, world},
};

/// Returns the bytes of `nelems` elements; saturates on overflow.
#[inline(always)]
pub(crate) const fn bytes_of<T>(nelems: usize) -> usize {
    nelems.saturating_mul(size_of::<T>())
}

/// Copies to memory that other threads and PEs may access. Fails if source and target overlap
/// without being the same; the error names `routine`.
///
/// # Safety
/// As [`OneSided::copy`], except that they may overlap.
#[inline(always)]
pub(crate) unsafe fn copy(routine: &str, target: *mut u8, source: *const u8, bytes: usize) {
    if bytes == 0 || std::ptr::addr_eq(target, source) {
        return;
    }
    if target.addr().abs_diff(source.addr()) < bytes {
        overlap(routine, target.addr(), source.addr(), bytes);
    }
    // SAFETY: guaranteed by the caller, and they do not overlap.
    unsafe { OneSided::copy(target, source, bytes) };
}

#[cold]
fn overlap(routine: &str, dest: usize, source: usize, bytes: usize) -> ! {
    let both = format_args!("{bytes} bytes at {dest:#x} and at {source:#x}");
    fail(routine, format_args!("arguments dest and source overlap: {both}"));
}

/// `shmem_put`.
///
/// # Safety
/// `source` is readable for `nelems` elements.
#[inline]
pub unsafe fn put<T: Element>(
    context: Context,
    dest: *mut T,
    source: *const T,
    nelems: usize,
    pe: c_int,
) {
    // SAFETY: guaranteed by the caller.
    unsafe { put_as("shmem_put", context, dest, source, nelems, pe) }
}

/// Like `shmem_put`, but errors name `routine`.
///
/// # Safety
/// As [`put`].
#[inline(always)]
pub(crate) unsafe fn put_as<T: Element>(
    routine: &str,
    context: Context,
    dest: *mut T,
    source: *const T,
    nelems: usize,
    pe: c_int,
) {
    let world = world(routine);
    let pe = context.pe(world, routine, pe);
    let bytes = bytes_of::<T>(nelems);
    match world.locate(routine, ("dest", dest), bytes, pe) {
        Location::Near(target) => {
            // SAFETY: the target is symmetric memory; the caller guarantees the source.
            unsafe { copy(routine, target, source.cast(), bytes) };
            world.one_sided().wake(pe);
        }
        // SAFETY: guaranteed by the caller.
        Location::Far(at) => unsafe { world.one_sided().put_bytes(pe, at, source.cast(), bytes) },
    }
}

/// `shmem_get`.
///
/// # Safety
/// `dest` is writable for `nelems` elements.
#[inline]
pub unsafe fn get<T: Element>(
    context: Context,
    dest: *mut T,
    source: *const T,
    nelems: usize,
    pe: c_int,
) {
    // SAFETY: guaranteed by the caller.
    unsafe { get_as("shmem_get", context, dest, source, nelems, pe) }
}

/// Like `shmem_get`, but errors name `routine`.
///
/// # Safety
/// As [`get`].
#[inline(always)]
pub(crate) unsafe fn get_as<T: Element>(
    routine: &str,
    context: Context,
    dest: *mut T,
    source: *const T,
    nelems: usize,
    pe: c_int,
) {
    let world = world(routine);
    let pe = context.pe(world, routine, pe);
    let bytes = bytes_of::<T>(nelems);
    match world.locate(routine, ("source", source), bytes, pe) {
        // SAFETY: the source is symmetric memory; the caller guarantees the target.
        Location::Near(source) => unsafe { copy(routine, dest.cast(), source, bytes) },
        Location::Far(at) => {
            let block = std::iter::once((at, dest.cast()));
            // SAFETY: the caller guarantees the target.
            unsafe { world.one_sided().get_blocks(pe, block, bytes) };
        }
    }
}

/// `shmem_put_nbi`.
///
/// # Safety
/// As [`put`].
#[inline]
pub unsafe fn put_nbi<T: Element>(
    context: Context,
    dest: *mut T,
    source: *const T,
    nelems: usize,
    pe: c_int,
) {
    // SAFETY: guaranteed by the caller.
    unsafe { put_as("shmem_put_nbi", context, dest, source, nelems, pe) }
}

/// `shmem_get_nbi`.
///
/// # Safety
/// As [`get`].
#[inline]
pub unsafe fn get_nbi<T: Element>(
    context: Context,
    dest: *mut T,
    source: *const T,
    nelems: usize,
    pe: c_int,
) {
    // SAFETY: guaranteed by the caller.
    unsafe { get_as("shmem_get_nbi", context, dest, source, nelems, pe) }
}

/// `shmem_p`.
///
/// # Safety
/// `dest` is the address of an element of the type.
#[inline]
pub unsafe fn p<T: Element>(context: Context, dest: *mut T, value: T, pe: c_int) {
    // SAFETY: one element.
    unsafe { put_as("shmem_p", context, dest, &raw const value, 1, pe) }
}

/// `shmem_g`.
///
/// # Safety
/// `source` is the address of an element of the type.
#[inline]
pub unsafe fn g<T: Element>(context: Context, source: *const T, pe: c_int) -> T {
    let mut value = std::mem::MaybeUninit::<T>::uninit();
    // SAFETY: one element of symmetric memory, whose bytes are a value of the type.
    unsafe {
        get_as("shmem_g", context, value.as_mut_ptr(), source, 1, pe);
        value.assume_init()
    }
}

/// `shmem_fence`.
#[inline]
pub fn fence(context: Context) {
    let world = world("shmem_fence");
    if context != Context::DEFAULT && context != Context::INVALID {
        context.team("shmem_fence");
    }
    world.one_sided().fence_in_order();
}

/// `shmem_quiet`.
#[inline]
pub fn quiet(context: Context) {
    let world = world("shmem_quiet");
    if context != Context::DEFAULT && context != Context::INVALID {
        context.team("shmem_quiet");
    }
    world.one_sided().quiet();
}

/// `shmem_pe_quiet`: completes the operations on these PEs.
///
/// # Safety
/// `target_pes` is readable for `npes` numbers.
pub unsafe fn pe_quiet(context: Context, target_pes: *const c_int, npes: usize) {
    let world = world("shmem_pe_quiet");
    if context == Context::INVALID {
        return;
    }
    for index in 0..npes {
        // SAFETY: guaranteed by the caller.
        let pe = unsafe { target_pes.add(index).read() };
        context.pe(world, "shmem_pe_quiet", pe);
    }
    world.one_sided().quiet();
}

/// Makes everything that this PE has stored visible to a PE that waits for it, for example in a
/// barrier. Operations on far PEs are complete when a call begins.
pub(crate) fn publish() {
    order(Release);
}
