//! The loop of a kernel over memory that others may access at the same time.
//!
//! Such an access is undefined behaviour in Rust unless it is atomic, and compilers do not
//! vectorize atomic accesses. On `x86_64` an assembly block loads or stores a vector: it does
//! nothing that a sequence of relaxed atomic byte accesses could not do. The operator works on the
//! loaded values, which are private, so it may be any code; the compiler keeps them in registers.

#![cfg_attr(
    all(target_arch = "x86_64", not(miri)),
    expect(unsafe_code, reason = "loads and stores raw addresses")
)]

use crate::{Operator, Pod};

/// A loop. Its arguments are the operator, the target, the left and right operands, and bytes.
pub(super) type Combine<R> = unsafe fn(*const (), *mut u8, *const u8, *const u8, usize) -> R;

/// Returns the loop for `O` on elements of `T`. It combines whole vectors and returns their bytes:
/// 0 if there is no such loop for the type, the operator or the machine.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
pub(super) const fn racing<T: Pod, O: Operator<T>>() -> Combine<usize> {
    |_, _, _, _, _| 0
}

/// Returns the loop for `O` on elements of `T`. It combines whole vectors and returns their bytes:
/// 0 if there is no such loop for the type, the operator or the machine.
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(super) const fn racing<T: Pod, O: Operator<T>>() -> Combine<usize> {
    let fits = size_of::<T>() > 0 && vectors::BYTES.is_multiple_of(size_of::<T>());
    if fits && matches!(O::CLASS, crate::OperatorClass::Commutative) {
        vectors::combine_if_wide::<T, O>
    } else {
        |_, _, _, _, _| 0
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod vectors {
    use std::arch::{asm, is_x86_feature_detected, x86_64::__m256i};

    use crate::{Operator, Pod};

    /// The vectors that one iteration combines.
    type Vectors = [__m256i; 2];

    /// The size of [`Vectors`].
    pub(super) const BYTES: usize = size_of::<Vectors>();

    /// Combines whole pairs of vectors if the machine has AVX2. Returns their bytes.
    ///
    /// # Safety
    /// As [`Kernel::combine_racing`](crate::Kernel::combine_racing), for elements of `T`, whose
    /// size divides [`BYTES`]; `state` points to an `O`.
    pub(super) unsafe fn combine_if_wide<T: Pod, O: Operator<T>>(
        state: *const (),
        target: *mut u8,
        left: *const u8,
        right: *const u8,
        bytes: usize,
    ) -> usize {
        if !is_x86_feature_detected!("avx2") {
            return 0;
        }
        let whole = bytes - bytes % BYTES;
        // SAFETY: the kernel made `state` from a borrow of an `O` that is still alive.
        let operator = unsafe { &*state.cast::<O>() };
        // SAFETY: the machine has AVX2; the rest is the caller's promise.
        unsafe { combine::<T, O>(operator, target, left, right, whole) };
        whole
    }

    /// # Safety
    /// As [`combine_if_wide`], for a multiple of [`BYTES`], and the machine has AVX2.
    #[target_feature(enable = "avx2")]
    unsafe fn combine<T: Pod, O: Operator<T>>(
        operator: &O,
        target: *mut u8,
        left: *const u8,
        right: *const u8,
        bytes: usize,
    ) {
        for at in (0..bytes).step_by(BYTES) {
            // SAFETY: two vectors inside the left operand.
            let a = unsafe { load(left.wrapping_add(at)) };
            // SAFETY: two vectors inside the right operand.
            let b = unsafe { load(right.wrapping_add(at)) };
            let mut both = a;
            let (a, b) = ((&raw const a).cast::<T>(), (&raw const b).cast::<T>());
            let each = (&raw mut both).cast::<T>();
            for index in 0..BYTES / size_of::<T>() {
                // SAFETY: an element of local vectors; any bit pattern is a value of a `Pod`.
                let left = unsafe { a.wrapping_add(index).read_unaligned() };
                // SAFETY: as above.
                let right = unsafe { b.wrapping_add(index).read_unaligned() };
                // SAFETY: as above.
                unsafe { each.wrapping_add(index).write_unaligned(operator.apply(left, right)) };
            }
            // SAFETY: two vectors inside the target.
            unsafe { store(target.wrapping_add(at), both) };
        }
    }

    /// Loads two vectors, each byte atomically.
    ///
    /// # Safety
    /// They are readable, and others access them only atomically. The machine has AVX2.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn load(from: *const u8) -> Vectors {
        let (first, second);
        // SAFETY: reads the vectors that the caller promises, and changes two registers.
        unsafe {
            asm!(
                "vmovdqu {first}, [{from}]",
                "vmovdqu {second}, [{from} + 32]",
                first = out(ymm_reg) first,
                second = out(ymm_reg) second,
                from = in(reg) from,
                options(nostack, preserves_flags, readonly)
            );
        }
        [first, second]
    }

    /// Stores two vectors, each byte atomically.
    ///
    /// # Safety
    /// They are writable, and others access them only atomically. The machine has AVX2.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn store(to: *mut u8, [first, second]: Vectors) {
        // SAFETY: writes the vectors that the caller promises.
        unsafe {
            asm!(
                "vmovdqu [{to}], {first}",
                "vmovdqu [{to} + 32], {second}",
                first = in(ymm_reg) first,
                second = in(ymm_reg) second,
                to = in(reg) to,
                options(nostack, preserves_flags)
            );
        }
    }
}
