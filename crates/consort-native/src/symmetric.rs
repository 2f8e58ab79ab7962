//! A block of symmetric memory, as one PE holds it.

#![expect(unsafe_code, reason = "clears memory that peers may already reach")]

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use crate::{
    endpoint::Endpoint,
    heap::{HeapError, Number},
    job::Job,
};

/// One PE's hold on a block: the same offset in everybody's heap. Dropping it is local; the memory
/// is used again when all PEs of the team have dropped theirs.
pub struct Block {
    job: Arc<Job>,
    number: Number,
    offset: usize,
    bytes: usize,
}

impl Block {
    /// This PE's part in a collective allocation. The caller's part is zero; the caller sees to it
    /// that no peer writes before all are here (a barrier).
    ///
    /// # Errors
    /// When the heap has no piece of that size, or a peer asked for another size.
    pub fn allocate(endpoint: &Endpoint, bytes: usize) -> Result<Self, HeapError> {
        let job = endpoint.job();
        let number = endpoint.next_allocation();
        let offset = job.heap.allocate(number, endpoint.size() as usize, bytes)?;
        let block = Self { job: Arc::clone(job), number, offset, bytes };
        let base = job.heap.base(endpoint.rank_in_world().index()).wrapping_add(offset);
        for word in 0..bytes.div_ceil(8) {
            let word = base.wrapping_add(8 * word).cast::<u64>();
            // SAFETY: inside the block, whose size is rounded up to more than words; blocks are
            // aligned to lines; shared memory is only accessed atomically.
            unsafe { AtomicU64::from_ptr(word) }.store(0, Relaxed);
        }
        Ok(block)
    }

    /// The offset in the heap, in bytes.
    #[inline]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The size on each PE, in bytes.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Block").field("offset", &self.offset).field("bytes", &self.bytes).finish()
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.job.heap.release(self.number);
    }
}
