//! Copies of memory that others may write at the same time.
//!
//! A racing `memcpy` is undefined behaviour, and compilers do not vectorize a loop over relaxed
//! atomics. On `x86_64` the copy is therefore an assembly block: it does only what a sequence of
//! relaxed atomic byte accesses could do, so a race yields a mixture of old and new bytes and
//! nothing worse. Elsewhere, and in Miri, `portable` copies by atomic operations and accesses each
//! byte in one size only. Its tests run on every machine.

#![expect(unsafe_code, reason = "copies between raw addresses")]

#[cfg(all(target_arch = "x86_64", not(miri)))]
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

#[cfg(all(target_arch = "x86_64", not(miri)))]
use consort_fabric::LINE_PAYLOAD_BYTES;

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
use super::portable;
use super::region::Memory;

/// The longest copy that is done in vectors, since `rep movsb` takes some 15 ns to begin.
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(super) const FEW_BYTES: usize = 384;

/// Copies `bytes` from `source` to `target`: each byte atomically, in no order.
///
/// # Safety
/// `source` is readable and `target` writable for `bytes` during the call, and they do not
/// overlap. Others may access both meanwhile, but only atomically or through this function.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
unsafe fn copy_bytes(target: *mut u8, source: *const u8, bytes: usize) {
    // SAFETY: `rep movsb` accesses exactly the `bytes` that the caller promises; the direction flag
    // is clear on entry, as the ABI demands; the registers are declared.
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

/// Bytes of a cache line.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const LINE: usize = 64;

/// A way to move a few bytes at a place of a copy.
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(super) trait Move {
    /// Moves 16, 8, 4, 2 or 1 `BYTES`, by one load and one store.
    ///
    /// # Safety
    /// They are within the copy, from `at` on.
    unsafe fn once<const BYTES: usize>(&mut self, at: usize);
}

/// The places of a copy of a few bytes. Each byte is moved once, since another PE may change a word
/// as soon as it is there.
///
/// # Safety
/// `copy` is of `bytes`.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
pub(super) unsafe fn in_moves(bytes: usize, copy: &mut impl Move) {
    let mut at = 0;
    while bytes - at >= 16 {
        // SAFETY: so many bytes are left.
        unsafe { copy.once::<16>(at) };
        at += 16;
    }
    if bytes & 8 != 0 {
        // SAFETY: less than 16 bytes are left, and their number has this bit.
        unsafe { copy.once::<8>(at) };
        at += 8;
    }
    if bytes & 4 != 0 {
        // SAFETY: as above, of less than 8.
        unsafe { copy.once::<4>(at) };
        at += 4;
    }
    if bytes & 2 != 0 {
        // SAFETY: as above, of less than 4.
        unsafe { copy.once::<2>(at) };
        at += 2;
    }
    if bytes & 1 != 0 {
        // SAFETY: one byte is left.
        unsafe { copy.once::<1>(at) };
    }
}

/// A copy from memory to memory.
#[cfg(all(target_arch = "x86_64", not(miri)))]
struct Copy {
    target: *mut u8,
    source: *const u8,
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
impl Move for Copy {
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

/// As [`copy_bytes`], for up to [`FEW_BYTES`].
///
/// # Safety
/// As [`copy_bytes`].
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(never)]
unsafe fn copy_few(target: *mut u8, source: *const u8, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { in_moves(bytes, &mut Copy { target, source }) };
}

/// Copies memory; others may access source, target or both. Each byte is copied atomically, in no
/// order.
///
/// # Safety
/// Both are resolved, of equal length, and do not overlap. Others access what is shared only
/// atomically, and through `copy_shared` or by aligned words.
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

/// As on `x86_64`.
///
/// # Safety
/// Both are resolved, of equal length, and do not overlap. Others access what is shared only
/// atomically, and through `copy_shared` or by aligned words.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
pub(super) unsafe fn copy_shared(target: Memory, source: Memory) {
    // SAFETY: the caller's promise.
    unsafe { portable::copy(target, source) };
}

/// As [`copy_shared`], for up to a line's payload: word by word if both sides are aligned.
///
/// # Safety
/// As [`copy_shared`].
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
        // SAFETY: an aligned word inside the source; others access it atomically only.
        let word = unsafe { AtomicU64::from_ptr(from) }.load(Relaxed);
        let to = target.wrapping_add(at).cast::<u64>();
        // SAFETY: an aligned word inside the target; others access it atomically only.
        unsafe { AtomicU64::from_ptr(to) }.store(word, Relaxed);
    }
}

/// As [`copy_shared`].
///
/// # Safety
/// As [`copy_shared`].
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
pub(super) unsafe fn copy_shared_line(target: Memory, source: Memory) {
    // SAFETY: the caller's promise.
    unsafe { portable::copy(target, source) };
}

/// As [`copy_shared`], with whole lines of the target written past the caches. To lines that a core
/// far away has read, that is several times as fast: they need not be fetched. What was written is
/// visible with the next release.
///
/// # Safety
/// As [`copy_shared`].
///
/// # Panics
/// When the target is not aligned to lines.
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(super) unsafe fn copy_past_caches(target: Memory, source: Memory) {
    assert!(target.at.addr().is_multiple_of(LINE), "only whole lines are written past the caches");
    let lines = target.bytes / LINE;
    if lines > 0 {
        // SAFETY: it accesses so many lines, which the caller promises, each 16 bytes at once; the
        // registers are declared. The fence orders what it wrote before all later stores.
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
    // SAFETY: the caller's promise, for the rest.
    unsafe { copy_shared(target.after(lines * LINE), source.after(lines * LINE)) };
}

/// As [`copy_shared`].
///
/// # Safety
/// As [`copy_shared`].
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
pub(super) unsafe fn copy_past_caches(target: Memory, source: Memory) {
    // SAFETY: the caller's promise.
    unsafe { copy_shared(target, source) };
}
