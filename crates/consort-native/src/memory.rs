//! Memory on this PE, and copying it while others may be writing it.
//!
//! A racing `memcpy` is undefined behaviour, and a loop over relaxed atomics is not vectorized by
//! the compiler. On `x86_64` the copy is therefore an assembly block: it does what a sequence of
//! relaxed atomic byte accesses could do, so a race yields some mixture of old and new bytes and
//! nothing worse. Elsewhere, and in Miri, the atomic operations of `portable` do it, which access
//! each byte in one size. Tests run those on every machine.

#![expect(unsafe_code, reason = "copies between raw addresses")]

#[cfg(any(test, not(target_arch = "x86_64"), miri))]
mod portable;

#[cfg(all(target_arch = "x86_64", not(miri)))]
use std::sync::atomic::AtomicU64;
use std::{mem::MaybeUninit, sync::atomic::Ordering::Relaxed};

use consort_fabric::{Kernel, LINE_PAYLOAD_BYTES};

use crate::line::{Line, LineWord, PAYLOAD_WORDS};

/// Bytes that are combined at a time where an operand must be copied first.
const BOUNCE_BYTES: usize = 2048;

/// Where memory that others may access begins and ends: in it, not in the part that is copied, lie
/// the words by which `portable` accesses it. The assembly block needs no such thing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    #[cfg(any(test, not(target_arch = "x86_64"), miri))]
    begin: usize,
    #[cfg(any(test, not(target_arch = "x86_64"), miri))]
    end: usize,
}

#[cfg(any(test, not(target_arch = "x86_64"), miri))]
impl Extent {
    /// Of symmetric memory and message buffers, which begin aligned and are whole words.
    pub(crate) const WORDS: Self = Self { begin: 0, end: usize::MAX };

    /// Of a slice that is lent: all of it, also if a part is.
    pub(crate) fn lent(at: *mut u8, bytes: usize) -> Self {
        Self { begin: at.addr(), end: at.addr() + bytes }
    }

    /// Tells it with a loan, in words that are left of its line.
    pub(crate) fn show(self, line: &Line, first: usize) {
        line.write(first, self.begin as u64);
        line.write(first + 1, self.end as u64);
    }

    /// What is told with a loan.
    pub(crate) fn shown(line: &Line, first: usize) -> Self {
        // Both come from a `usize`.
        let address = |index| usize::try_from(line.read(index)).unwrap_or(0);
        Self { begin: address(first), end: address(first + 1) }
    }
}

#[cfg(not(any(test, not(target_arch = "x86_64"), miri)))]
impl Extent {
    /// Of symmetric memory and message buffers.
    pub(crate) const WORDS: Self = Self {};

    /// Of a slice that is lent.
    #[inline(always)]
    pub(crate) fn lent(_: *mut u8, _: usize) -> Self {
        Self {}
    }

    /// Tells it with a loan.
    #[inline(always)]
    pub(crate) fn show(self, _: &Line, _: usize) {}

    /// What is told with a loan.
    #[inline(always)]
    pub(crate) fn shown(_: &Line, _: usize) -> Self {
        Self {}
    }
}

/// Copies `bytes` from `source` to `target`; each byte atomically, in no order.
///
/// # Safety
/// `source` is readable and `target` writable for `bytes` during the call, and they do not
/// overlap. Others may access both meanwhile, but only atomically or through this function.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
unsafe fn copy_bytes(target: *mut u8, source: *const u8, bytes: usize) {
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

/// Copies memory of which others may access one or both; each byte atomically, in no order.
///
/// # Safety
/// Both are resolved, of equal length, and do not overlap. Others access what is shared only
/// atomically, and through `copy_shared` or by aligned words.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
unsafe fn copy_shared(target: Memory, source: Memory) {
    let bytes = target.bytes;
    if bytes > LINE_PAYLOAD_BYTES {
        // SAFETY: the caller's promise.
        unsafe { copy_bytes(target.at, source.at, bytes) };
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
unsafe fn copy_shared(target: Memory, source: Memory) {
    // SAFETY: the caller's promise.
    unsafe { portable::copy(target, source) };
}

/// As [`copy_shared`], for the few bytes of a line: word by word where both sides are aligned.
///
/// # Safety
/// As [`copy_shared`].
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
unsafe fn copy_shared_line(target: Memory, source: Memory) {
    let (bytes, target, source) = (target.bytes, target.at, source.at);
    if bytes > 0 && !(target.addr() | source.addr() | bytes).is_multiple_of(8) {
        // SAFETY: the caller's promise.
        return unsafe { copy_bytes(target, source, bytes) };
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
unsafe fn copy_shared_line(target: Memory, source: Memory) {
    // SAFETY: the caller's promise.
    unsafe { portable::copy(target, source) };
}

/// A piece of memory on this PE, resolved.
#[derive(Clone, Copy)]
pub(crate) struct Memory {
    pub(crate) at: *mut u8,
    pub(crate) bytes: usize,
    /// Of what it is a part, if others may access it now: only `copy_shared` and atomics may then.
    pub(crate) shared: Option<Extent>,
}

impl Memory {
    /// What line `index` of a message carries of it.
    #[inline(always)]
    pub(crate) fn line(self, index: usize) -> Self {
        let at = index * LINE_PAYLOAD_BYTES;
        let bytes = (self.bytes - at).min(LINE_PAYLOAD_BYTES);
        Self { at: self.at.wrapping_add(at), bytes, shared: self.shared }
    }

    /// Whether others may access it now.
    #[inline(always)]
    pub(crate) fn is_shared(self) -> bool {
        self.shared.is_some()
    }

    /// The same as a word.
    ///
    /// # Panics
    /// When it has more than 8 bytes, or fewer.
    #[inline(always)]
    pub(crate) fn word(self) -> Word {
        assert!(self.bytes == 8, "a word is 8 bytes");
        Word(self)
    }

    /// All of a private buffer.
    #[inline(always)]
    fn private(buffer: *mut u8, bytes: usize) -> Self {
        Self { at: buffer, bytes, shared: None }
    }

    /// What one line of a message carries: up to 56 bytes, padded with zeros.
    ///
    /// # Panics
    /// When there are more.
    #[inline(always)]
    pub(crate) fn pack(self) -> [u64; PAYLOAD_WORDS] {
        assert!(self.bytes <= LINE_PAYLOAD_BYTES, "a line carries at most 56 bytes");
        let mut words = [0_u64; PAYLOAD_WORDS];
        let to = words.as_mut_ptr().cast::<u8>();
        if self.is_shared() {
            // SAFETY: at most 56 bytes are readable, and `words` has 56.
            unsafe { copy_shared_line(Self::private(to, self.bytes), self) };
        } else {
            // SAFETY: as above, and nobody writes them meanwhile.
            unsafe { std::ptr::copy_nonoverlapping(self.at, to, self.bytes) };
        }
        words
    }

    /// Copies the payload of one line that has arrived.
    ///
    /// # Panics
    /// When it does not have so many bytes.
    #[inline(always)]
    pub(crate) fn unpack(self, line: &[LineWord]) {
        assert!(self.bytes <= LINE_PAYLOAD_BYTES, "a line carries at most 56 bytes");
        if self.bytes == 8 {
            return self.word().store(line[0].load(Relaxed));
        }
        let words: [u64; PAYLOAD_WORDS] = std::array::from_fn(|index| line[index].load(Relaxed));
        let from = words.as_ptr().cast::<u8>();
        if self.is_shared() {
            // SAFETY: at most 56 bytes are writable, and `words` has 56.
            unsafe { copy_shared_line(self, Self::private(from.cast_mut(), self.bytes)) };
        } else {
            // SAFETY: as above, and nobody else accesses them.
            unsafe { std::ptr::copy_nonoverlapping(from, self.at, self.bytes) };
        }
    }

    /// Copies between any two memories.
    ///
    /// # Panics
    /// When they differ in length, or others reach them and they overlap.
    #[inline(always)]
    pub(crate) fn copy_from(self, source: Self) {
        assert!(self.bytes == source.bytes, "a copy is as long as what is copied");
        if self.bytes == 8 {
            self.word().store(source.word().load());
        } else if !(self.is_shared() || source.is_shared()) {
            // SAFETY: both are resolved, of equal length, and nobody else accesses either.
            unsafe { std::ptr::copy(source.at, self.at, self.bytes) };
        } else {
            let apart = self.at.addr().abs_diff(source.at.addr());
            assert!(apart >= self.bytes, "what others reach is not copied over itself");
            // SAFETY: both are resolved, of equal length, and do not overlap.
            unsafe { copy_shared(self, source) };
        }
    }

    /// Whether it is the same memory, or shares no byte, of two as long.
    fn is_same_or_apart(self, other: Self) -> bool {
        let apart = self.at.addr().abs_diff(other.at.addr());
        apart == 0 || apart >= self.bytes
    }

    /// Becomes `left (op) right`, through bounce buffers where others may access an operand.
    ///
    /// # Panics
    /// When the three differ in length, or the target shares some bytes of an operand but not all.
    pub(crate) fn combine(self, kernel: &Kernel<'_>, left: Self, right: Self) {
        let target = self;
        for operand in [left, right] {
            assert!(target.bytes == operand.bytes, "what is combined is of one length");
            assert!(target.is_same_or_apart(operand), "a target is an operand, or apart from it");
        }
        if !(target.is_shared() || left.is_shared() || right.is_shared()) {
            // SAFETY: resolved, private to this PE, of equal length; the areas are distinct
            // buffers, or the target is one of the operands.
            unsafe { kernel.combine(target.at, left.at, right.at, target.bytes) };
            return;
        }
        if target.bytes == 8 {
            let (mut a, b) = (left.word().load(), right.word().load());
            let sum = (&raw mut a).cast::<u8>();
            // SAFETY: two distinct local words.
            unsafe { kernel.combine(sum, sum, (&raw const b).cast(), 8) };
            return target.word().store(a);
        }
        if target.bytes <= LINE_PAYLOAD_BYTES {
            let (mut a, b) = (left.pack(), right.pack());
            let sum = a.as_mut_ptr().cast::<u8>();
            // SAFETY: two distinct local buffers of at least the target's length.
            unsafe { kernel.combine(sum, sum, b.as_ptr().cast(), target.bytes) };
            return target.copy_from(Memory::private(sum, target.bytes));
        }
        let whole = BOUNCE_BYTES / kernel.element_bytes().max(1) * kernel.element_bytes();
        if whole == 0 {
            return target.combine_large(kernel, left, right);
        }
        let mut bounces = [const { MaybeUninit::<[u8; BOUNCE_BYTES]>::uninit() }; 2];
        let [a, b] = bounces.each_mut().map(|bounce| bounce.as_mut_ptr().cast::<u8>());
        let mut done = 0;
        while done < target.bytes {
            let bytes = whole.min(target.bytes - done);
            let part =
                |memory: Memory| Memory { at: memory.at.wrapping_add(done), bytes, ..memory };
            // A private operand is read where it is.
            let near = |operand: Memory, bounce| {
                let operand = part(operand);
                if !operand.is_shared() {
                    return operand.at;
                }
                Memory::private(bounce, bytes).copy_from(operand);
                bounce
            };
            let (left, right) = (near(left, a), near(right, b));
            let sum = if target.is_shared() { a } else { part(target).at };
            // SAFETY: each is a private buffer, or a local one, of at least `bytes`; the sum is one
            // of the operands or distinct from both.
            unsafe { kernel.combine(sum, left, right, bytes) };
            if target.is_shared() {
                part(target).copy_from(Memory::private(a, bytes));
            }
            done += bytes;
        }
    }

    /// Elements larger than a bounce buffer.
    #[cold]
    fn combine_large(self, kernel: &Kernel<'_>, left: Self, right: Self) {
        let target = self;
        let mut buffers = [vec![0_u8; target.bytes], vec![0; target.bytes], vec![0; target.bytes]];
        let [a, b, c] =
            buffers.each_mut().map(|buffer| Memory::private(buffer.as_mut_ptr(), target.bytes));
        a.copy_from(left);
        b.copy_from(right);
        // SAFETY: three distinct buffers of this length.
        unsafe { kernel.combine(c.at, a.at, b.at, target.bytes) };
        target.copy_from(c);
    }
}

/// A piece of memory that is 8 bytes long.
#[derive(Clone, Copy)]
pub(crate) struct Word(Memory);

impl Word {
    /// # Safety
    /// Each memory has 8 bytes.
    #[inline(always)]
    pub(crate) unsafe fn of_eight_bytes<const N: usize>(memories: [Memory; N]) -> [Self; N] {
        debug_assert!(memories.iter().all(|memory| memory.bytes == 8));
        memories.map(Self)
    }

    #[inline(always)]
    pub(crate) fn load(self) -> u64 {
        let Self(memory) = self;
        if !memory.is_shared() {
            // SAFETY: 8 bytes are readable, and nobody writes them meanwhile.
            return unsafe { memory.at.cast::<u64>().read_unaligned() };
        }
        let mut word = 0_u64;
        // SAFETY: 8 bytes are readable, and `word` has 8.
        unsafe { copy_shared_line(Memory::private((&raw mut word).cast(), 8), memory) };
        word
    }

    #[inline(always)]
    pub(crate) fn store(self, mut word: u64) {
        let Self(memory) = self;
        if memory.is_shared() {
            // SAFETY: 8 bytes are writable, and `word` has 8.
            unsafe { copy_shared_line(memory, Memory::private((&raw mut word).cast(), 8)) };
        } else {
            // SAFETY: 8 bytes are writable, and nobody else accesses them.
            unsafe { memory.at.cast::<u64>().write_unaligned(word) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_fabric::Sum;

    /// What an algorithm may get wrong: it is safe code, and is told.
    mod lengths_that_differ {
        use super::*;

        /// Parts of one allocation of 256 bytes, others' or private.
        fn parts<const N: usize>(is_shared: bool, spans: [(usize, usize); N]) -> [Memory; N] {
            let memory = Box::leak(Box::new([0_u64; 32])).as_mut_ptr().cast::<u8>();
            let shared = is_shared.then_some(Extent::WORDS);
            spans.map(|(at, bytes)| Memory { at: memory.wrapping_add(at), bytes, shared })
        }

        fn combine(is_shared: bool, spans: [(usize, usize); 3]) {
            let [target, left, right] = parts(is_shared, spans);
            target.combine(&Kernel::new::<u64, _>(&Sum), left, right);
        }

        #[test]
        #[should_panic(expected = "a copy is as long as what is copied")]
        fn a_copy() {
            let [target, source] = parts(false, [(0, 16), (64, 24)]);
            target.copy_from(source);
        }

        #[test]
        #[should_panic(expected = "what others reach is not copied over itself")]
        fn a_copy_that_overlaps() {
            let [target, source] = parts(true, [(0, 64), (8, 64)]);
            target.copy_from(source);
        }

        #[test]
        #[should_panic(expected = "a word is 8 bytes")]
        fn a_word() {
            parts(true, [(0, 4)])[0].word();
        }

        #[test]
        #[should_panic(expected = "a line carries at most 56 bytes")]
        fn a_line() {
            parts(true, [(0, 64)])[0].pack();
        }

        #[test]
        #[should_panic(expected = "what is combined is of one length")]
        fn operands() {
            combine(true, [(0, 16), (64, 128), (32, 16)]);
        }

        #[test]
        #[should_panic(expected = "a target is an operand, or apart from it")]
        fn operands_that_overlap() {
            combine(false, [(8, 16), (0, 16), (64, 16)]);
        }

        #[test]
        fn what_may_be_combined() {
            for is_shared in [false, true] {
                combine(is_shared, [(0, 16), (0, 16), (64, 16)]);
                combine(is_shared, [(64, 16), (0, 16), (64, 16)]);
                combine(is_shared, [(16, 16), (0, 16), (32, 16)]);
            }
        }
    }

    #[test]
    fn every_length_arrives() {
        let mut source: Vec<u8> = (0..=255).cycle().take(1000).collect();
        for bytes in [0, 1, 7, 8, 55, 56, 57, 63, 64, 65, 1000] {
            let mut target = vec![0; 1000];
            let from = Memory {
                shared: Some(Extent::WORDS),
                ..Memory::private(source.as_mut_ptr(), bytes)
            };
            // SAFETY: two distinct buffers of 1000 bytes, owned here.
            unsafe { copy_shared(Memory::private(target.as_mut_ptr(), bytes), from) };
            assert_eq!(target[..bytes], source[..bytes]);
            assert!(target[bytes..].iter().all(|&byte| byte == 0));
        }
    }
}
