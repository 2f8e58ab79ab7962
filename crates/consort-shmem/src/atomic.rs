//! Atomic operations on words of 4 and 8 bytes; floats are handled by their bits. They are
//! sequentially consistent, except for stores, which are ordered after everything that the PE has
//! done before. The process of a far PE performs the operations on the words of that PE. Operations
//! without a result do not wait for it.

use std::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Release, SeqCst},
};

use consort::Rank;
use consort_fabric::{Atomic, Signal};
use consort_native::Width;
use libc::c_int;

use crate::{
    contexts::Context,
    elements::Amo,
    world::{Location, World, ensure_aligned, world},
};

/// The change that an operation makes to a word.
#[derive(Clone, Copy)]
pub(crate) enum AtomicOp {
    Load,
    /// Sets the word without returning the old value.
    Set(u64),
    Swap(u64),
    CompareSwap(u64, u64),
    Add(u64),
    /// Adds to the word without returning the old value.
    Increase(u64),
    And(u64),
    Or(u64),
    Xor(u64),
}

impl AtomicOp {
    /// Returns the operation to request from a far PE: one that returns the old value, or a signal,
    /// which returns nothing.
    fn far(self) -> Result<Atomic, Signal> {
        Ok(match self {
            Self::Load => Atomic::Load,
            Self::Set(new) => return Err(Signal::Set(new)),
            Self::Swap(new) => Atomic::Swap(new),
            Self::CompareSwap(current, new) => Atomic::CompareSwap { current, new },
            Self::Add(by) => Atomic::FetchAdd(by),
            Self::Increase(by) => return Err(Signal::Add(by)),
            Self::And(by) => Atomic::FetchAnd(by),
            Self::Or(by) => Atomic::FetchOr(by),
            Self::Xor(by) => Atomic::FetchXor(by),
        })
    }
}

macro_rules! change {
    ($word:expr, $change:expr, $of:expr) => {{
        let (word, of) = ($word, $of);
        match $change {
            AtomicOp::Load => word.load(SeqCst),
            AtomicOp::Set(new) => {
                // Release: a PE that sees the word sees everything that this PE has put before.
                word.store(of(new), Release);
                of(0)
            }
            AtomicOp::Swap(new) => word.swap(of(new), SeqCst),
            AtomicOp::CompareSwap(old, new) => {
                let (Ok(before) | Err(before)) =
                    word.compare_exchange(of(old), of(new), SeqCst, SeqCst);
                before
            }
            AtomicOp::Add(by) | AtomicOp::Increase(by) => word.fetch_add(of(by), SeqCst),
            AtomicOp::And(by) => word.fetch_and(of(by), SeqCst),
            AtomicOp::Or(by) => word.fetch_or(of(by), SeqCst),
            AtomicOp::Xor(by) => word.fetch_xor(of(by), SeqCst),
        }
    }};
}

/// Changes a word, for a routine whose `argument` is its address. Returns the old value, unless the
/// operation only sets the word.
#[inline(always)]
pub(crate) fn change<T: Amo>(
    routine: &str,
    context: Context,
    (argument, address): (&str, *const T),
    change: AtomicOp,
    pe: c_int,
) -> T {
    const { assert!(size_of::<T>() == 4 || size_of::<T>() == 8) };
    let world = world(routine);
    let pe = context.pe(world, routine, pe);
    let place = world.locate(routine, (argument, address), size_of::<T>(), pe);
    ensure_aligned(routine, argument, address.addr(), size_of::<T>());
    T::of_bits(change_at::<T>(world, (pe, place), change))
}

/// Changes the word at a location of a PE, which has been checked. Returns the same as [`change`].
#[inline(always)]
pub(crate) fn change_at<T>(world: &World, (pe, place): (Rank, Location), change: AtomicOp) -> u64 {
    let at = match place {
        Location::Near(at) => at,
        Location::Far(at) => return change_far(world, (pe, at), size_of::<T>(), change),
    };
    let before = if size_of::<T>() == 4 {
        // SAFETY: an aligned word of symmetric memory.
        let word = unsafe { AtomicU32::from_ptr(at.cast()) };
        #[expect(clippy::cast_possible_truncation, reason = "the word has only these bits")]
        u64::from(change!(word, change, |bits: u64| bits as u32))
    } else {
        // SAFETY: an aligned word of symmetric memory.
        let word = unsafe { AtomicU64::from_ptr(at.cast()) };
        change!(word, change, |bits: u64| bits)
    };
    if !matches!(change, AtomicOp::Load) {
        world.one_sided().wake(pe);
    }
    before
}

#[cold]
#[inline(never)]
fn change_far(world: &World, (pe, at): (Rank, usize), bytes: usize, change: AtomicOp) -> u64 {
    let width = if bytes == 4 { Width::Four } else { Width::Eight };
    match change.far() {
        Ok(operation) => world.one_sided().atomic(pe, at, width, operation),
        Err(signal) => {
            world.one_sided().signal(pe, at, width, signal);
            0
        }
    }
}

/// `shmem_atomic_fetch`.
///
/// # Safety
/// The address is that of a word of the type, here and below.
#[inline]
pub unsafe fn atomic_fetch<T: Amo>(context: Context, source: *const T, pe: c_int) -> T {
    change("shmem_atomic_fetch", context, ("source", source), AtomicOp::Load, pe)
}

/// `shmem_atomic_set`.
///
/// # Safety
/// As [`atomic_fetch`].
#[inline]
pub unsafe fn atomic_set<T: Amo>(context: Context, dest: *mut T, value: T, pe: c_int) {
    let set = AtomicOp::Set(value.bits());
    change("shmem_atomic_set", context, ("dest", dest.cast_const()), set, pe);
}

/// `shmem_atomic_compare_swap`.
///
/// # Safety
/// As [`atomic_fetch`].
#[inline]
pub unsafe fn atomic_compare_swap<T: Amo>(
    context: Context,
    dest: *mut T,
    cond: T,
    value: T,
    pe: c_int,
) -> T {
    let how = AtomicOp::CompareSwap(cond.bits(), value.bits());
    change("shmem_atomic_compare_swap", context, ("dest", dest.cast_const()), how, pe)
}

macro_rules! with_value {
    ($($fetching:ident, $routine:literal: $change:ident;)*) => {$(
        #[doc = concat!("`", $routine, "`.")]
        ///
        /// # Safety
        /// As [`atomic_fetch`].
        #[inline]
        pub unsafe fn $fetching<T: Amo>(
            context: Context,
            dest: *mut T,
            value: T,
            pe: c_int,
        ) -> T {
            let how = AtomicOp::$change(value.bits());
            change($routine, context, ("dest", dest.cast_const()), how, pe)
        }
    )*};
}

with_value! {
    atomic_swap, "shmem_atomic_swap": Swap;
    atomic_fetch_add, "shmem_atomic_fetch_add": Add;
    atomic_fetch_and, "shmem_atomic_fetch_and": And;
    atomic_fetch_or, "shmem_atomic_fetch_or": Or;
    atomic_fetch_xor, "shmem_atomic_fetch_xor": Xor;
}

macro_rules! without_result {
    ($($name:ident, $routine:literal: $change:ident;)*) => {$(
        #[doc = concat!("`", $routine, "`.")]
        ///
        /// # Safety
        /// As [`atomic_fetch`].
        #[inline]
        pub unsafe fn $name<T: Amo>(context: Context, dest: *mut T, value: T, pe: c_int) {
            let how = AtomicOp::$change(value.bits());
            change($routine, context, ("dest", dest.cast_const()), how, pe);
        }
    )*};
}

without_result! {
    atomic_add, "shmem_atomic_add": Increase;
    atomic_and, "shmem_atomic_and": And;
    atomic_or, "shmem_atomic_or": Or;
    atomic_xor, "shmem_atomic_xor": Xor;
}

/// `shmem_atomic_inc`.
///
/// # Safety
/// As [`atomic_fetch`].
#[inline]
pub unsafe fn atomic_inc<T: Amo>(context: Context, dest: *mut T, pe: c_int) {
    change("shmem_atomic_inc", context, ("dest", dest.cast_const()), AtomicOp::Increase(1), pe);
}

/// `shmem_atomic_fetch_inc`.
///
/// # Safety
/// As [`atomic_fetch`].
#[inline]
pub unsafe fn atomic_fetch_inc<T: Amo>(context: Context, dest: *mut T, pe: c_int) -> T {
    change("shmem_atomic_fetch_inc", context, ("dest", dest.cast_const()), AtomicOp::Add(1), pe)
}
