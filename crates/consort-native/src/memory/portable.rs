//! Copies of shared memory by atomic operations, for targets without inline assembly for it.
//!
//! The memory model forbids racing atomic accesses of different sizes to the same memory. So all
//! PEs must access a given byte in the same way. The byte's address and the [`Extent`] of its
//! memory decide how:
//!
//! | byte | access |
//! | --- | --- |
//! | in an aligned 64-bit word that is wholly in the memory | with the whole word |
//! | in another word, at either end of the memory | the byte alone |
//!
//! To store a part of a word, a PE does a compare-exchange of the whole word.
//!
//! **Symmetric heaps and message buffers** begin aligned and consist of whole words. So all
//! accesses to their bytes are accesses to words: those of this module, of atomic operations and
//! waits on heap words, of lines in a heap, and of the clearing of a new block. A word may hold the
//! ends of two regions. A PE that stores to one region preserves the other, even if the other
//! changes at the same time.
//!
//! **A slice that its PE exposes** as a target may begin and end anywhere, and its neighbours may
//! be accessed in any way. So a word that is only partly in the slice is never accessed as a word,
//! and no byte outside of the slice is accessed at all. A word wholly in the slice belongs to the
//! call, which has borrowed the slice. The exposure carries the extent of the whole slice, even if
//! only a part is exposed, so that the owner and its peers access the same words. From the first
//! exposure on, the owner uses these functions too. The owner's earlier accesses happen before a
//! peer's accesses, and these happen before the owner's accesses after the last detach.
//!
//! No PE writes an exposed source, so it is read like private memory.

#![expect(unsafe_code, reason = "copies between raw addresses")]

use std::{
    ptr,
    sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed},
};

use super::{extent::SharedExtent, region::Memory};

const WORD: usize = size_of::<u64>();

enum ByteAccess {
    /// With the aligned word at `at`. The byte has index `index` in that word.
    Word { at: *mut u8, index: usize },
    /// Alone.
    Byte,
}

impl SharedExtent {
    fn access(self, byte: *mut u8) -> ByteAccess {
        let index = byte.addr() % WORD;
        let at = byte.wrapping_sub(index);
        let is_inside = at.addr() >= self.begin && self.end - at.addr() >= WORD;
        if is_inside { ByteAccess::Word { at, index } } else { ByteAccess::Byte }
    }
}

/// Copies `source` to `target`, which has the same length.
///
/// # Safety
/// Both are resolved and do not overlap. Nothing else accesses private memory during the call.
/// Others access shared memory only through this function, or by aligned words that are wholly in
/// it.
pub(super) unsafe fn copy(target: Memory, source: Memory) {
    let mut at = 0;
    while at < target.bytes {
        // The part of the rest that lies in one word of the target.
        let in_word = WORD - target.at.wrapping_add(at).addr() % WORD;
        let count = in_word.min(target.bytes - at);
        // SAFETY: inside the source. The rest is the caller's promise.
        let bytes = unsafe { load(source, at, count) };
        // SAFETY: inside the target, and in one word. The rest is the caller's promise.
        unsafe { store(target, at, &bytes[..count]) };
        at += count;
    }
}

/// Loads `count` bytes (at most 8) of `source`, starting at offset `at`.
///
/// # Safety
/// Same as [`copy`]. The bytes lie in `source`.
unsafe fn load(source: Memory, at: usize, count: usize) -> [u8; WORD] {
    let mut bytes = [0; WORD];
    let first = source.at.wrapping_add(at);
    let Some(extent) = source.shared else {
        // SAFETY: readable, and nothing writes them meanwhile, by the caller's promise.
        unsafe { ptr::copy_nonoverlapping(first, bytes.as_mut_ptr(), count) };
        return bytes;
    };
    let mut done = 0;
    while done < count {
        let from = first.wrapping_add(done);
        done += match extent.access(from) {
            ByteAccess::Word { at, index } => {
                let taken = (WORD - index).min(count - done);
                // SAFETY: aligned, inside the memory, and accessed by whole words only.
                let word = unsafe { AtomicU64::from_ptr(at.cast()) }.load(Relaxed).to_ne_bytes();
                bytes[done..done + taken].copy_from_slice(&word[index..index + taken]);
                taken
            }
            ByteAccess::Byte => {
                // SAFETY: inside the memory, and accessed by bytes only.
                bytes[done] = unsafe { AtomicU8::from_ptr(from) }.load(Relaxed);
                1
            }
        };
    }
    bytes
}

/// Stores bytes to `target`, starting at offset `at`. They must be in one word of the memory.
///
/// # Safety
/// Same as [`copy`]. The bytes lie in `target`.
unsafe fn store(target: Memory, at: usize, bytes: &[u8]) {
    let first = target.at.wrapping_add(at);
    let Some(extent) = target.shared else {
        // SAFETY: writable, and nothing else accesses them meanwhile, by the caller's promise.
        return unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), first, bytes.len()) };
    };
    let ByteAccess::Word { at, index } = extent.access(first) else {
        for (place, &byte) in bytes.iter().enumerate() {
            // SAFETY: inside the memory, and accessed only by bytes, like all bytes of this word.
            unsafe { AtomicU8::from_ptr(first.wrapping_add(place)) }.store(byte, Relaxed);
        }
        return;
    };
    // SAFETY: aligned, inside the memory, and accessed by whole words only.
    let word = unsafe { AtomicU64::from_ptr(at.cast()) };
    if let Ok(whole) = bytes.try_into() {
        return word.store(u64::from_ne_bytes(whole), Relaxed);
    }
    let mut before = word.load(Relaxed);
    loop {
        let mut after = before.to_ne_bytes();
        after[index..index + bytes.len()].copy_from_slice(bytes);
        let after = u64::from_ne_bytes(after);
        match word.compare_exchange_weak(before, after, Relaxed, Relaxed) {
            Ok(_) => return,
            Err(now) => before = now,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{sync::Barrier, thread};

    const BLOCK: usize = 80;

    /// An aligned block of bytes, in which test data may begin at any alignment.
    #[repr(align(64))]
    struct Block([u8; BLOCK]);

    impl Block {
        /// Returns a block whose bytes differ from one another and from those of other blocks.
        fn of(first: u8) -> Self {
            let byte = |at: usize| first.wrapping_add(u8::try_from(at).expect("a small block"));
            Self(std::array::from_fn(byte))
        }

        fn memory(&mut self, at: usize, bytes: usize, shared: Option<SharedExtent>) -> Memory {
            assert!(at + bytes <= BLOCK);
            Memory { at: self.0.as_mut_ptr().wrapping_add(at), bytes, shared }
        }

        /// Returns the extents of private memory, of a heap, and of an exposed slice: exactly these
        /// bytes, a few more, or the whole block.
        fn sharings(&mut self, at: usize, bytes: usize) -> [Option<SharedExtent>; 5] {
            let exposed = |block: &mut Self, first: usize, end: usize| {
                let begin = block.0.as_mut_ptr().wrapping_add(first);
                Some(SharedExtent::exposed(begin, end - first))
            };
            [
                None,
                Some(SharedExtent::WORDS),
                exposed(self, at, at + bytes),
                exposed(self, at - 3, at + bytes + 5),
                exposed(self, 0, BLOCK),
            ]
        }
    }

    #[test]
    fn portable_copy_matches_a_plain_copy() {
        for (to, from) in (0..8).flat_map(|to| (0..8).map(move |from| (8 + to, 8 + from))) {
            for bytes in 0..=40 {
                let sharings = Block::of(0).sharings(to, bytes).len();
                for kind in 0..sharings * sharings {
                    let (mut target, mut source) = (Block::of(100), Block::of(7));
                    let mut expected = target.0;
                    expected[to..to + bytes].copy_from_slice(&source.0[from..from + bytes]);
                    let of_target = target.sharings(to, bytes)[kind % sharings];
                    let of_source = source.sharings(from, bytes)[kind / sharings];
                    let written = target.memory(to, bytes, of_target);
                    // SAFETY: both are owned here, and nothing else accesses them.
                    unsafe { copy(written, source.memory(from, bytes, of_source)) };
                    assert_eq!(target.0, expected, "{bytes} from {from} to {to}, {kind}");
                    assert_eq!(source.0, Block::of(7).0);
                }
            }
        }
    }

    /// Returns the bytes of a slice of a block that are accessed by words.
    fn by_words(block: &mut Block, first: usize, end: usize) -> Vec<usize> {
        let begin = block.0.as_mut_ptr();
        let extent = SharedExtent::exposed(begin.wrapping_add(first), end - first);
        let is_word =
            |&at: &usize| matches!(extent.access(begin.wrapping_add(at)), ByteAccess::Word { .. });
        (first..end).filter(is_word).collect()
    }

    #[test]
    fn word_access_stays_inside_the_memory() {
        let mut block = Block::of(0);
        let whole = |words: std::ops::Range<usize>| (8 * words.start..8 * words.end).collect();
        for first in 0..8 {
            for end in first..BLOCK {
                let words: Vec<usize> = whole(first.div_ceil(8)..(end / 8).max(first.div_ceil(8)));
                assert_eq!(by_words(&mut block, first, end), words, "{first}..{end}");
            }
        }
        let byte = block.0.as_mut_ptr().wrapping_add(13);
        assert!(matches!(SharedExtent::WORDS.access(byte), ByteAccess::Word { index: 5, .. }));
    }

    /// Threads that store to different parts of the same words read back what they stored.
    #[test]
    fn parts_of_a_word_survive_adjacent_stores() {
        const ROUNDS: u32 = 1_000_000;
        // Three parts of two words, with a gap, all in one heap.
        let parts = [(0, 3), (3, 9), (13, 3)];
        let mut block = Block::of(0);
        let pointers = parts.map(|(at, bytes)| {
            let Memory { at, .. } = block.memory(at, bytes, None);
            (at.expose_provenance(), bytes)
        });
        let all_here = Barrier::new(parts.len());
        thread::scope(|scope| {
            for (at, bytes) in pointers {
                let all_here = &all_here;
                scope.spawn(move || {
                    let at = ptr::with_exposed_provenance_mut(at);
                    let shared = Memory { at, bytes, shared: Some(SharedExtent::WORDS) };
                    all_here.wait();
                    for round in (1..=ROUNDS).rev() {
                        let (mut given, mut found) = ([round.to_le_bytes()[0]; 9], [0; 9]);
                        let private = |at| Memory { at, bytes, shared: None };
                        // SAFETY: local memory, and a part of a block that outlives the threads;
                        // all threads access the block by words.
                        unsafe { copy(shared, private(given.as_mut_ptr())) };
                        // SAFETY: as above.
                        unsafe { copy(private(found.as_mut_ptr()), shared) };
                        assert_eq!(found[..bytes], given[..bytes]);
                    }
                });
            }
        });
        let mut expected = Block::of(0).0;
        parts.iter().for_each(|&(at, bytes)| expected[at..at + bytes].fill(1));
        assert_eq!(block.0, expected);
    }
}
