//! Copying memory that others may be writing.
//!
//! A racing `memcpy` is undefined behaviour, and a loop over relaxed atomics is not vectorized by
//! the compiler. On `x86_64` the copy is therefore an assembly block: it does what a sequence of
//! relaxed atomic byte accesses could do, so a race yields some mixture of old and new bytes and
//! nothing worse. Elsewhere, and in Miri, the loop of relaxed atomics stands.

#![expect(unsafe_code, reason = "copies between raw addresses")]

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Copies `bytes` from `source` to `target`; each byte atomically, in no order.
///
/// # Safety
/// `source` is readable and `target` writable for `bytes` during the call, and they do not
/// overlap. Others may access both meanwhile, but only atomically or through this function.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
pub(crate) unsafe fn copy_shared(target: *mut u8, source: *const u8, bytes: usize) {
    // SAFETY: `rep movsb` reads and writes just the `bytes` that the caller vouches for; the
    // direction flag is clear on entry, as the ABI demands; registers are declared.
    unsafe {
        std::arch::asm!(
            "rep movsb",
            inout("rcx") bytes => _,
            inout("rsi") source => _,
            inout("rdi") target => _,
            options(nostack, preserves_flags)
        );
    }
}

/// Copies `bytes` from `source` to `target`; each byte atomically, in no order.
///
/// # Safety
/// As on other machines: `source` is readable and `target` writable for `bytes` during the call,
/// they do not overlap, and others access both atomically or through this function.
#[cfg(any(not(target_arch = "x86_64"), miri))]
pub(crate) unsafe fn copy_shared(target: *mut u8, source: *const u8, bytes: usize) {
    use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
    for index in 0..bytes {
        let from = source.wrapping_add(index).cast_mut();
        // SAFETY: readable, by the caller's promise.
        let value = unsafe { AtomicU8::from_ptr(from) }.load(Relaxed);
        // SAFETY: writable, by the caller's promise.
        unsafe { AtomicU8::from_ptr(target.wrapping_add(index)) }.store(value, Relaxed);
    }
}

/// As [`copy_shared`], for the few bytes of a line: word by word where both sides are aligned.
///
/// # Safety
/// As [`copy_shared`].
#[inline(always)]
pub(crate) unsafe fn copy_shared_line(target: *mut u8, source: *const u8, bytes: usize) {
    if !(target.addr() | source.addr() | bytes).is_multiple_of(8) {
        // SAFETY: the caller's promise.
        return unsafe { copy_shared(target, source, bytes) };
    }
    for at in (0..bytes).step_by(8) {
        let from = source.wrapping_add(at).cast_mut().cast::<u64>();
        // SAFETY: an aligned word inside the source; others access it atomically only.
        let word = unsafe { AtomicU64::from_ptr(from) }.load(Relaxed);
        let to = target.wrapping_add(at).cast::<u64>();
        // SAFETY: an aligned word inside the target; others access it atomically only.
        unsafe { AtomicU64::from_ptr(to) }.store(word, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_arrives() {
        let source: Vec<u8> = (0..=255).cycle().take(1000).collect();
        for bytes in [0, 1, 7, 8, 63, 64, 65, 1000] {
            let mut target = vec![0; 1000];
            // SAFETY: two distinct buffers of 1000 bytes, owned here.
            unsafe { copy_shared(target.as_mut_ptr(), source.as_ptr(), bytes) };
            assert_eq!(target[..bytes], source[..bytes]);
            let mut target = vec![0; 1000];
            // SAFETY: as above.
            unsafe { copy_shared_line(target.as_mut_ptr(), source.as_ptr(), bytes) };
            assert_eq!(target[..bytes], source[..bytes]);
            assert!(target[bytes..].iter().all(|&byte| byte == 0));
        }
    }
}
