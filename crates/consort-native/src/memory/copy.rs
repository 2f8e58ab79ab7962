//! Copies of memory that others may write at the same time.
//!
//! A racing `memcpy` is undefined behaviour, and compilers do not vectorize a loop over relaxed
//! atomics. On `x86_64` the copy is therefore inline assembly. It does nothing that a sequence of
//! relaxed atomic byte accesses could not do, so a race yields only a mixture of old and new bytes.
//! Elsewhere, and in Miri, `portable` copies by atomic operations and always accesses a given byte
//! with the same size. Its tests run on every machine.

#![expect(unsafe_code, reason = "copies between raw addresses")]

#[cfg(all(target_arch = "x86_64", not(miri)))]
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

#[cfg(all(target_arch = "x86_64", not(miri)))]
use consort_fabric::LINE_PAYLOAD_BYTES;

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
use super::portable;
use super::region::Memory;

/// The longest copy that uses vector registers, because `rep movsb` takes about 15 ns to start.
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(super) const FEW_BYTES: usize = 384;

/// Copies `bytes` from `source` to `target`. Each byte is copied atomically, in no particular
/// order.
///
/// # Safety
/// `source` is readable and `target` writable for `bytes` during the call, and they do not
/// overlap. Others may access both meanwhile, but only atomically or through this function.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
unsafe fn copy_bytes(target: *mut u8, source: *const u8, bytes: usize) {
    // SAFETY: `rep movsb` accesses exactly the `bytes` that the caller promises. The direction flag
    // is clear on entry, as the ABI demands. The registers are declared.
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

/// The size of a cache line in bytes.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const LINE: usize = 64;

/// A way to move a few bytes of a copy.
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(super) trait MoveChunk {
    /// Moves `BYTES` (16, 8, 4, 2 or 1) with one load and one store.
    ///
    /// # Safety
    /// The bytes `at..at + BYTES` are within the copy.
    unsafe fn once<const BYTES: usize>(&mut self, at: usize);
}

/// Splits a short copy into moves. Each byte is moved once, because another PE may change a word as
/// soon as it is written.
///
/// # Safety
/// `copy` has `bytes` bytes.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
pub(super) unsafe fn in_moves(bytes: usize, copy: &mut impl MoveChunk) {
    let mut at = 0;
    while bytes - at >= 16 {
        // SAFETY: at least 16 bytes are left.
        unsafe { copy.once::<16>(at) };
        at += 16;
    }
    if bytes & 8 != 0 {
        // SAFETY: fewer than 16 bytes are left, and their number has bit 8 set.
        unsafe { copy.once::<8>(at) };
        at += 8;
    }
    if bytes & 4 != 0 {
        // SAFETY: fewer than 8 bytes are left, and their number has bit 4 set.
        unsafe { copy.once::<4>(at) };
        at += 4;
    }
    if bytes & 2 != 0 {
        // SAFETY: fewer than 4 bytes are left, and their number has bit 2 set.
        unsafe { copy.once::<2>(at) };
        at += 2;
    }
    if bytes & 1 != 0 {
        // SAFETY: one byte is left.
        unsafe { copy.once::<1>(at) };
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
struct CopyChunk {
    target: *mut u8,
    source: *const u8,
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
impl MoveChunk for CopyChunk {
    #[inline(always)]
    unsafe fn once<const BYTES: usize>(&mut self, at: usize) {
        macro_rules! by {
            ($move:literal, $class:ident, $as:literal) => {
                // SAFETY: the bytes are readable and writable, by the caller's promise.
                unsafe {
                    std::arch::asm!(
                        concat!($move, " {value", $as, "}, [{source} + {at}]"),
                        concat!($move, " [{target} + {at}], {value", $as, "}"),
                        value = out($class) _,
                        source = in(reg) self.source,
                        target = in(reg) self.target,
                        at = in(reg) at,
                        options(nostack, preserves_flags)
                    )
                }
            };
        }
        match BYTES {
            16 => by!("movups", xmm_reg, ""),
            8 => by!("mov", reg, ""),
            4 => by!("mov", reg, ":e"),
            2 => by!("mov", reg, ":x"),
            1 => by!("mov", reg_byte, ""),
            _ => unreachable!("no register moves {BYTES} bytes"),
        }
    }
}

/// Like [`copy_bytes`], for up to [`FEW_BYTES`].
///
/// # Safety
/// Same as [`copy_bytes`].
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(never)]
unsafe fn copy_few(target: *mut u8, source: *const u8, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { in_moves(bytes, &mut CopyChunk { target, source }) };
}

/// Copies memory. Others may access the source, the target or both. Each byte is copied atomically,
/// in no particular order.
///
/// # Safety
/// Both are resolved, have the same length, and do not overlap. Others access shared memory only
/// atomically, through `copy_shared` or by aligned words.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
pub(super) unsafe fn copy_shared(target: Memory, source: Memory) {
    let bytes = target.bytes;
    if bytes > FEW_BYTES {
        // SAFETY: the caller's promise.
        unsafe { copy_bytes(target.at, source.at, bytes) };
    } else if bytes > LINE_PAYLOAD_BYTES {
        // SAFETY: the caller's promise.
        unsafe { copy_few(target.at, source.at, bytes) };
    } else {
        // SAFETY: the caller's promise.
        unsafe { copy_shared_line(target, source) };
    }
}

/// Copies memory, as on `x86_64`.
///
/// # Safety
/// Both are resolved, have the same length, and do not overlap. Others access shared memory only
/// atomically, through `copy_shared` or by aligned words.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
pub(super) unsafe fn copy_shared(target: Memory, source: Memory) {
    // SAFETY: the caller's promise.
    unsafe { portable::copy(target, source) };
}

/// Like [`copy_shared`], for up to a line's payload. Copies word by word if both sides are aligned.
///
/// # Safety
/// Same as [`copy_shared`].
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
pub(super) unsafe fn copy_shared_line(target: Memory, source: Memory) {
    let (bytes, target, source) = (target.bytes, target.at, source.at);
    if bytes > 0 && !(target.addr() | source.addr() | bytes).is_multiple_of(8) {
        // SAFETY: the caller's promise.
        return unsafe { copy_few(target, source, bytes) };
    }
    for at in (0..bytes).step_by(8) {
        let from = source.wrapping_add(at).cast::<u64>();
        // SAFETY: an aligned word inside the source. Others access it only atomically.
        let word = unsafe { AtomicU64::from_ptr(from) }.load(Relaxed);
        let to = target.wrapping_add(at).cast::<u64>();
        // SAFETY: an aligned word inside the target. Others access it only atomically.
        unsafe { AtomicU64::from_ptr(to) }.store(word, Relaxed);
    }
}

/// Like [`copy_shared`].
///
/// # Safety
/// Same as [`copy_shared`].
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
pub(super) unsafe fn copy_shared_line(target: Memory, source: Memory) {
    // SAFETY: the caller's promise.
    unsafe { portable::copy(target, source) };
}

/// Like [`copy_shared`], but writes whole lines of the target past the caches. If a distant core
/// has read those lines, this is several times as fast, because they need not be fetched. The
/// written data is visible after the next release.
///
/// # Safety
/// Same as [`copy_shared`].
///
/// # Panics
/// When the target is not aligned to lines.
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(super) unsafe fn copy_past_caches(target: Memory, source: Memory) {
    assert!(target.at.addr().is_multiple_of(LINE), "only whole lines are written past the caches");
    let lines = target.bytes / LINE;
    if lines > 0 {
        // SAFETY: accesses `lines` lines, which the caller promises, 16 bytes at a time. The
        // registers are declared. The fence orders these writes before all later stores.
        unsafe {
            std::arch::asm!(
                "2:",
                "movups {a}, [{source}]",
                "movups {b}, [{source} + 16]",
                "movups {c}, [{source} + 32]",
                "movups {d}, [{source} + 48]",
                "movntdq [{target}], {a}",
                "movntdq [{target} + 16], {b}",
                "movntdq [{target} + 32], {c}",
                "movntdq [{target} + 48], {d}",
                "add {source}, 64",
                "add {target}, 64",
                "dec {lines}",
                "jnz 2b",
                "sfence",
                a = out(xmm_reg) _,
                b = out(xmm_reg) _,
                c = out(xmm_reg) _,
                d = out(xmm_reg) _,
                source = inout(reg) source.at => _,
                target = inout(reg) target.at => _,
                lines = inout(reg) lines => _,
                options(nostack)
            );
        }
    }
    // SAFETY: the caller's promise, for the rest of the bytes.
    unsafe { copy_shared(target.after(lines * LINE), source.after(lines * LINE)) };
}

/// Like [`copy_shared`].
///
/// # Safety
/// Same as [`copy_shared`].
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
pub(super) unsafe fn copy_past_caches(target: Memory, source: Memory) {
    // SAFETY: the caller's promise.
    unsafe { copy_shared(target, source) };
}
