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
    directory::blocks::{HeapError, Number, Taken},
    endpoint::identity::Endpoint,
    launch::job::Job,
};

/// A hold on a block, which is at the same offset in every PE's heap. Each PE of the team gets one
/// hold by the allocation, and may take more. Dropping a hold is local. The block's entry in the
/// directory counts the holds of all PEs; the memory is freed when none is left.
pub struct Block {
    job: Arc<Job>,
    /// The allocation's key; `None` for a hold that is not counted, taken after the job had failed.
    number: Option<Number>,
    offset: usize,
    bytes: usize,
}

impl Block {
    /// This PE's part in a collective allocation. The first PE to call places the block; this PE
    /// then clears the part of it that was used before, on its own heap. The caller ensures, by
    /// barriers, that all PEs of the team have already dropped what they drop before this
    /// allocation, and that no peer writes to the block before all PEs have returned.
    ///
    /// # Errors
    /// When the heap has no region of that size.
    ///
    /// # Panics
    /// When a peer requests another size.
    pub fn allocate(endpoint: &Endpoint, bytes: usize) -> Result<Self, HeapError> {
        let job = endpoint.job();
        let number = endpoint.next_allocation();
        let holders = endpoint.size() as usize;
        let taken = match job.far() {
            Some(far) => job.allocate_far(far, number, holders, bytes)?,
            None => job.directory().ok_or(HeapError::Failed)?.allocate(number, holders, bytes)?,
        };
        let Taken { at: offset, fresh } = taken;
        let block = Self { job: Arc::clone(job), number: Some(number), offset, bytes };
        let heap = job.heap(endpoint.rank_in_world());
        for at in (offset..fresh.min(offset + bytes)).step_by(8) {
            let word = heap.wrapping_add(at).cast::<u64>();
            // SAFETY: inside the block, whose size is rounded up to more than words; blocks are
            // aligned to lines; shared memory is only accessed atomically.
            unsafe { AtomicU64::from_ptr(word) }.store(0, Relaxed);
        }
        if fresh < offset + bytes {
            job.put_in_cores(endpoint.rank_in_world(), fresh..offset + bytes);
        }
        Ok(block)
    }

    /// Another hold on the same block.
    #[must_use]
    pub fn hold(&self) -> Self {
        let Self { offset, bytes, .. } = *self;
        let number = self.number.filter(|&number| {
            if let Some(far) = self.job.far() {
                self.job.hold_far(far, number, true);
                return true;
            }
            let directory = self.job.directory();
            directory.is_some_and(|directory| {
                directory.hold(number);
                true
            })
        });
        Self { job: Arc::clone(&self.job), number, offset, bytes }
    }

    /// The job that the memory belongs to.
    #[inline]
    pub fn job(&self) -> &Arc<Job> {
        &self.job
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
        // Once the job has failed, the memory may stay allocated.
        let Some(number) = self.number else { return };
        if let Some(far) = self.job.far() {
            self.job.hold_far(far, number, false);
        } else if let Some(directory) = self.job.directory() {
            directory.release(number);
        }
    }
}
