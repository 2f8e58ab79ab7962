//! The symmetric heap: the same offsets in one region of memory a PE.
//!
//! Allocation is collective, on some team. The first PE to arrive at allocation number `n` of the
//! team places it, first fit, and the others find it placed; so all agree without a message. The
//! piece is taken on every PE of the job. Dropping is local: a block is free again when all PEs of
//! its team have dropped it. The regions live as long as the job.

#![expect(unsafe_code, reason = "owns raw memory that all PEs reach")]

use std::{
    alloc::{Layout, alloc_zeroed, dealloc},
    collections::{BTreeMap, HashMap},
    ptr::NonNull,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Every block begins at a multiple of this, in bytes.
pub const BLOCK_ALIGN: usize = 128;

/// Where regions begin, so that each lies with the PE that touches it first.
const PAGE: usize = 4096;

/// Why memory could not be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeapError {
    /// No gap is large enough.
    #[error(
        "symmetric memory exhausted: {asked} bytes a PE asked, {free} of {heap} bytes free \
         (largest piece {largest}); give the launch a larger heap, as in \
         Pes::threads(n).heap_bytes({larger}), or drop what is no longer used"
    )]
    Exhausted {
        /// Bytes asked for on each PE.
        asked: usize,
        /// Bytes free in all.
        free: usize,
        /// The largest free piece.
        largest: usize,
        /// The size of a PE's heap.
        heap: usize,
        /// A size of heap that would have done.
        larger: usize,
    },
    /// The operating system gave no memory for the heap.
    #[error("the system gave no memory for a symmetric heap of {heap} bytes on each of {pes} PEs")]
    System {
        /// The size of a PE's heap.
        heap: usize,
        /// PEs in the job.
        pes: usize,
    },
    /// PEs asked for different sizes in one collective allocation.
    #[error("PEs asked for {first} and {other} bytes in the same allocation")]
    Mismatched {
        /// What the first PE asked for.
        first: usize,
        /// What the caller asked for.
        other: usize,
    },
}

#[derive(Clone, Copy)]
struct Block {
    at: usize,
    asked: usize,
    bytes: usize,
    holders: usize,
}

/// The number of the group that an allocation is of, and of the allocation in that group.
pub(crate) type Number = (u64, u64);

struct Books {
    /// Free pieces: offset to length, never adjacent.
    free: BTreeMap<usize, usize>,
    blocks: HashMap<Number, Result<Block, HeapError>>,
}

/// The symmetric heap of a job.
pub(crate) struct Heap {
    /// What was allocated for each PE; its region begins at the next page.
    regions: Box<[NonNull<u8>]>,
    bytes: usize,
    books: Mutex<Books>,
}

// SAFETY: the regions are reached by atomic accesses and `copy_shared` alone, from any thread.
unsafe impl Send for Heap {}
// SAFETY: as above; the books are behind a mutex.
unsafe impl Sync for Heap {}

impl Heap {
    pub(crate) fn new(pes: usize, bytes: usize) -> Result<Self, HeapError> {
        let system = HeapError::System { heap: bytes, pes };
        let bytes = bytes.checked_next_multiple_of(BLOCK_ALIGN).ok_or(system)?;
        let layout = layout(bytes).ok_or(system)?;
        let mut heap = Self {
            regions: Box::default(),
            bytes,
            books: Mutex::new(Books { free: BTreeMap::from([(0, bytes)]), blocks: HashMap::new() }),
        };
        let mut regions = Vec::with_capacity(pes);
        for _ in 0..pes {
            // SAFETY: the layout's size is a page at least.
            match NonNull::new(unsafe { alloc_zeroed(layout) }) {
                Some(region) => regions.push(region),
                None => {
                    heap.regions = regions.into(); // freed by Drop
                    return Err(system);
                }
            }
        }
        heap.regions = regions.into();
        Ok(heap)
    }

    /// The beginning of a PE's region.
    #[inline(always)]
    pub(crate) fn base(&self, pe: usize) -> *mut u8 {
        let region = self.regions[pe].as_ptr();
        region.wrapping_add(region.align_offset(PAGE))
    }

    /// The size of a PE's region, in bytes.
    #[inline(always)]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The offset of the block of allocation `number`, held by so many PEs from now on.
    pub(crate) fn allocate(
        &self,
        number: Number,
        holders: usize,
        asked: usize,
    ) -> Result<usize, HeapError> {
        let mut books = self.books();
        let books = &mut *books;
        let block = *books
            .blocks
            .entry(number)
            .or_insert_with(|| place(&mut books.free, asked, self.bytes, holders));
        match block {
            Ok(block) if block.asked != asked => {
                Err(HeapError::Mismatched { first: block.asked, other: asked })
            }
            Ok(block) => Ok(block.at),
            Err(error) => Err(error),
        }
    }

    /// One PE is done with the block of allocation `number`.
    pub(crate) fn release(&self, number: Number) {
        let mut books = self.books();
        let Some(Ok(block)) = books.blocks.get_mut(&number) else { return };
        block.holders -= 1;
        if block.holders > 0 {
            return;
        }
        let Block { mut at, mut bytes, .. } = *block;
        books.blocks.remove(&number);
        if let Some((&before, &length)) = books.free.range(..at).next_back()
            && before + length == at
        {
            books.free.remove(&before);
            at = before;
            bytes += length;
        }
        if let Some(length) = books.free.remove(&(at + bytes)) {
            bytes += length;
        }
        if bytes > 0 {
            books.free.insert(at, bytes);
        }
    }
}

/// First fit.
fn place(
    free: &mut BTreeMap<usize, usize>,
    asked: usize,
    heap: usize,
    holders: usize,
) -> Result<Block, HeapError> {
    let fits = asked.checked_next_multiple_of(BLOCK_ALIGN).and_then(|bytes| {
        let fitting = free.iter().find(|&(_, &length)| length >= bytes);
        let nothing = (bytes == 0).then_some((0, 0)); // fits into a full heap
        let (at, length) = fitting.map(|(&at, &length)| (at, length)).or(nothing)?;
        Some((at, length, bytes))
    });
    let Some((at, length, bytes)) = fits else {
        let total: usize = free.values().sum();
        return Err(HeapError::Exhausted {
            asked,
            free: total,
            largest: free.values().copied().max().unwrap_or(0),
            heap,
            larger: heap.saturating_add(asked).checked_next_power_of_two().unwrap_or(usize::MAX),
        });
    };
    if bytes > 0 {
        free.remove(&at);
        if length > bytes {
            free.insert(at + bytes, length - bytes);
        }
    }
    Ok(Block { at, asked, bytes, holders })
}

/// One page more than asked, since regions begin on a page: the allocator gives large pieces of
/// small alignment without touching them, so that memory is had only as it is used.
fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes.checked_add(PAGE)?, 16).ok()
}

impl Drop for Heap {
    fn drop(&mut self) {
        let Some(layout) = layout(self.bytes) else { return };
        for region in &self.regions {
            // SAFETY: allocated in `new` with this layout, freed once, here.
            unsafe { dealloc(region.as_ptr(), layout) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_reused_only_when_all_have_dropped_it() {
        let heap = Heap::new(2, 1024).expect("1 kB");
        assert_eq!(heap.allocate((0, 0), 2, 512), Ok(0));
        assert_eq!(heap.allocate((0, 0), 2, 512), Ok(0));
        assert_eq!(heap.allocate((0, 1), 2, 500), Ok(512));
        assert!(matches!(heap.allocate((0, 2), 2, 1), Err(HeapError::Exhausted { free: 0, .. })));
        heap.release((0, 0));
        assert!(heap.allocate((0, 3), 2, 1).is_err(), "the other PE still holds it");
        heap.release((0, 0));
        assert_eq!(heap.allocate((0, 4), 2, 128), Ok(0));
        heap.release((0, 1));
        heap.release((0, 1));
        heap.release((0, 4));
        heap.release((0, 4));
        assert_eq!(heap.allocate((0, 5), 2, 1024), Ok(0), "pieces are joined again");
    }

    #[test]
    fn sizes_must_match_and_absurd_ones_are_errors() {
        let heap = Heap::new(2, 1024).expect("1 kB");
        assert_eq!(heap.allocate((0, 0), 2, 8), Ok(0));
        assert_eq!(
            heap.allocate((0, 0), 2, 16),
            Err(HeapError::Mismatched { first: 8, other: 16 })
        );
        assert!(heap.allocate((0, 1), 2, usize::MAX).is_err());
        assert_eq!(heap.allocate((0, 2), 2, 0), Ok(128));
        assert!(Heap::new(2, usize::MAX - 4).is_err());
        assert!(Heap::new(1, 0).is_ok());
    }
}
