//! A PE's hold on a block of symmetric memory.

#![expect(unsafe_code, reason = "clears memory that peers may already reach")]

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use crate::{
    directory::blocks::{Allocation, AllocationKey, HeapError},
    endpoint::identity::Endpoint,
    launch::job::Job,
};

/// A hold on a block, which is at the same offset in every PE's heap. The allocation gives each PE
/// of the team one hold, and a PE may take more. Dropping a hold is local. The block's entry in the
/// directory counts the holds of all PEs. The memory is freed when no hold is left.
pub struct Block {
    job: Arc<Job>,
    /// The allocation's key. `None` for a hold that is not counted, because it was taken after the
    /// job had failed.
    number: Option<AllocationKey>,
    offset: usize,
    bytes: usize,
}

impl Block {
    /// Takes part in a collective allocation. The first PE that calls this places the block. This
    /// PE then clears the part of it that was used before, in its own heap. The caller must use
    /// barriers to ensure two things: all PEs of the team call this after their earlier drops, and
    /// no peer writes to the block before all PEs have returned.
    ///
    /// # Errors
    /// When the heap has no region of that size.
    ///
    /// # Panics
    /// When a peer requests a different size.
    pub fn allocate(endpoint: &Endpoint, bytes: usize) -> Result<Self, HeapError> {
        let job = endpoint.job();
        let number = endpoint.next_allocation();
        let holders = endpoint.size() as usize;
        let Allocation { at: offset, fresh } = job.allocate_block(number, holders, bytes)?;
        let block = Self { job: Arc::clone(job), number: Some(number), offset, bytes };
        let heap = job.heap(endpoint.rank_in_world());
        for at in (offset..fresh.min(offset + bytes)).step_by(8) {
            let word = heap.wrapping_add(at).cast::<u64>();
            // SAFETY: inside the block, whose size is rounded up to a multiple of words. Blocks are
            // aligned to lines. Shared memory is only accessed atomically.
            unsafe { AtomicU64::from_ptr(word) }.store(0, Relaxed);
        }
        if fresh < offset + bytes {
            job.put_in_cores(endpoint.rank_in_world(), fresh..offset + bytes);
        }
        Ok(block)
    }

    /// Takes another hold on the same block.
    #[must_use]
    pub fn hold(&self) -> Self {
        let Self { offset, bytes, .. } = *self;
        let number = self.number.filter(|&number| self.job.hold_block(number));
        Self { job: Arc::clone(&self.job), number, offset, bytes }
    }

    /// Returns the job that the memory belongs to.
    #[inline]
    pub fn job(&self) -> &Arc<Job> {
        &self.job
    }

    /// Returns the offset in the heap, in bytes.
    #[inline]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the size on each PE, in bytes.
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
        if let Some(number) = self.number {
            self.job.release_block(number);
        }
    }
}
