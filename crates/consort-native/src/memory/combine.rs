//! Combining regions of memory with an operator.

#![expect(unsafe_code, reason = "operators work on raw addresses")]

use std::mem::MaybeUninit;

use consort_fabric::{Kernel, LINE_PAYLOAD_BYTES};

use super::region::Memory;

/// The number of bytes that are combined at a time if an operand must first be copied.
const BOUNCE_BYTES: usize = 2048;

impl Memory {
    /// Returns whether two regions of equal length are the same, or do not overlap.
    fn is_same_or_apart(self, other: Self) -> bool {
        let apart = self.at.addr().abs_diff(other.at.addr());
        apart == 0 || apart >= self.bytes
    }

    /// Computes `left (op) right` into this region. If the kernel has no loop for memory that
    /// others may access, such operands go through bounce buffers.
    ///
    /// # Panics
    /// When the lengths of the three differ, or the target partly overlaps an operand.
    pub(crate) fn combine(self, kernel: &Kernel<'_>, left: Self, right: Self) {
        let target = self;
        for operand in [left, right] {
            assert!(target.bytes == operand.bytes, "what is combined is of one length");
            assert!(target.is_same_or_apart(operand), "a target is an operand, or apart from it");
        }
        if !(target.is_shared() || left.is_shared() || right.is_shared()) {
            // SAFETY: resolved and of equal length. No region is shared, so nothing else accesses
            // the target or writes an operand. They are distinct, or the target is an operand.
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
        // SAFETY: resolved and of equal length. Others access shared regions only atomically, and
        // private regions not at all. The target is an operand, or does not overlap either.
        let done = unsafe { kernel.combine_racing(target.at, left.at, right.at, target.bytes) };
        if done > 0 {
            let [target, left, right] = [target, left, right].map(|memory| memory.after(done));
            return target.combine(kernel, left, right);
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
            // A private operand is read in place.
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
            // SAFETY: each is a private or a local buffer of at least `bytes`. The sum is one of
            // the operands or distinct from both.
            unsafe { kernel.combine(sum, left, right, bytes) };
            if target.is_shared() {
                part(target).copy_from(Memory::private(a, bytes));
            }
            done += bytes;
        }
    }

    /// Combines elements that are larger than a bounce buffer.
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
