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
    directory::blocks::{HeapError, Number, Taken},
    endpoint::identity::Endpoint,
    launch::job::Job,
};

/// A hold on a block: the same offset in everybody's heap. Each PE of the team has one from the
/// beginning, and may take more. Dropping one is local; the memory is used again when all holds of
/// all PEs are gone, which the block's entry in the directory counts.
pub struct Block {
    job: Arc<Job>,
    /// None of a hold that is not counted: it was taken in a job that had failed.
    number: Option<Number>,
    offset: usize,
    bytes: usize,
}

impl Block {
    /// This PE's part in a collective allocation. The first PE to come here places it, and what is
    /// zero before need not be cleared. The caller sees to it that all PEs of the team have dropped
    /// by now what they drop before, and that no peer writes before all are here (barriers).
    ///
    /// # Errors
    /// When the heap has no region of that size.
    ///
    /// # Panics
    /// When a peer asked for another size.
    pub fn allocate(endpoint: &Endpoint, bytes: usize) -> Result<Self, HeapError> {
        let job = endpoint.job();
        let number = endpoint.next_allocation();
        let failed = HeapError::System { heap: job.heap_bytes(), pes: endpoint.size() as usize };
        let directory = job.directory().ok_or(failed)?;
        let taken = directory.allocate(number, endpoint.size() as usize, bytes)?;
        drop(directory);
        let Taken { at: offset, fresh } = taken;
        let block = Self { job: Arc::clone(job), number: Some(number), offset, bytes };
        let heap = job.heap(endpoint.rank_in_world());
        for at in (offset..fresh.min(offset + bytes)).step_by(8) {
            let word = heap.wrapping_add(at).cast::<u64>();
            // SAFETY: inside the block, whose size is rounded up to more than words; blocks are
            // aligned to lines; shared memory is only accessed atomically.
            unsafe { AtomicU64::from_ptr(word) }.store(0, Relaxed);
        }
        Ok(block)
    }

    /// Another hold on the same block.
    #[must_use]
    pub fn hold(&self) -> Self {
        let Self { offset, bytes, .. } = *self;
        let number = self.number.filter(|&number| {
            let directory = self.job.directory();
            directory.is_some_and(|directory| {
                directory.hold(number);
                true
            })
        });
        Self { job: Arc::clone(&self.job), number, offset, bytes }
    }

    /// The job whose memory it is.
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
        // In a job that has failed it does not matter that the memory is never used again.
        if let Some(number) = self.number
            && let Some(directory) = self.job.directory()
        {
            directory.release(number);
        }
    }
}
