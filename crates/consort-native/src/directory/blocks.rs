//! Blocks of symmetric memory. The first PE that requests a block places it; the others look it up.

use std::fmt;

use super::{
    keys::{BLOCK, EXHAUSTED, ROOM, TOO_MANY},
    lock::LockedDirectory,
    locked_words::size,
    map::{Key, Value},
    region_allocator::{Region, RegionError},
};
use crate::{launch::heap_size::heap_bytes_of, segment::memory_error::MemoryError};

/// The alignment of every block of symmetric memory, in bytes.
pub const BLOCK_ALIGN: usize = 128;

/// The key of an allocation: its group, and its number in the group.
pub(crate) type AllocationKey = (u64, u64);

/// A block of symmetric memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Allocation {
    /// The offset in each heap.
    pub(crate) at: usize,
    /// The offset at which memory begins that was never allocated before and so is zero.
    pub(crate) fresh: usize,
}

/// The reason why an allocation failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeapError {
    /// No gap is large enough.
    Exhausted {
        /// The number of bytes requested on each PE.
        requested: usize,
        /// The total number of free bytes.
        free: usize,
        /// The largest free region.
        largest: usize,
        /// The size of a PE's heap.
        heap: usize,
        /// A heap size that would have sufficed.
        larger: usize,
    },
    /// The job already has the maximum number of allocations.
    TooMany {
        /// The maximum.
        most: usize,
    },
    /// The operating system provided no memory for the job.
    System {
        /// The size of a PE's heap.
        heap: usize,
        /// The number of PEs in the job.
        pes: usize,
        /// The system call, the memory and the limit.
        reason: Box<MemoryError>,
    },
    /// The job failed in the meantime.
    Failed,
}

impl fmt::Display for HeapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exhausted { requested, free, largest, heap, larger } => write!(
                f,
                "symmetric memory exhausted: each PE asked for {requested} bytes, but {free} of \
                 {heap} bytes are free (largest region {largest}); {}",
                remedy(*larger)
            ),
            Self::TooMany { most } => write!(
                f,
                "a job has at most {most} allocations at once: drop some, or make one \
                 of several"
            ),
            Self::System { heap, pes, reason } => write!(
                f,
                "no memory for a job of {pes} PEs with symmetric heaps of {heap} \
                 bytes: {reason}"
            ),
            Self::Failed => f.write_str("the job has failed while a PE asked for memory"),
        }
    }
}

impl std::error::Error for HeapError {}

/// Returns advice for a program that needs a heap of `bytes` bytes.
fn remedy(bytes: usize) -> String {
    match heap_bytes_of("CONSORT_HEAP_BYTES", &bytes.to_string()) {
        Ok(_) => format!(
            "give the launch a larger heap, by CONSORT_HEAP_BYTES={bytes} in the environment or \
             Job::threads(n).heap_bytes({bytes}) in the program, or drop memory that the program no longer uses"
        ),
        Err(_) => "this machine does not have that much memory, so check the length".to_owned(),
    }
}

impl HeapError {
    /// Returns the error of a heap in which no gap is large enough.
    pub(crate) fn exhausted(requested: usize, free: usize, largest: usize, heap: usize) -> Self {
        let larger = heap.saturating_add(requested).checked_next_power_of_two();
        Self::Exhausted { requested, free, largest, heap, larger: larger.unwrap_or(usize::MAX) }
    }
}

impl LockedDirectory<'_> {
    /// Returns the block of allocation `number`, with `holders` holds on it. All members of the
    /// group call this. The first call places the block.
    ///
    /// # Panics
    /// When PEs request different sizes. The names of their calls must already have shown the
    /// mismatch.
    pub(crate) fn allocate(
        &self,
        number: AllocationKey,
        holders: usize,
        requested: usize,
    ) -> Result<Allocation, HeapError> {
        if requested == 0 {
            return Ok(Allocation { at: 0, fresh: 0 }); // succeeds even if the heap is full
        }
        let key = [BLOCK, number.0, number.1];
        let value = self.map.get(&key).unwrap_or_else(|| {
            let value = self.place(requested, holders);
            self.map.put(&key, &value).expect(ROOM);
            value
        });
        self.found(&key, &value, requested)
    }

    /// Returns a new entry for an allocation: the block placed for it, or the reason why there is
    /// no block.
    fn place(&self, requested: usize, holders: usize) -> Value {
        let taken = match requested.checked_next_multiple_of(BLOCK_ALIGN) {
            Some(bytes) => self.heap.take(bytes),
            None => self.heap.take(usize::MAX),
        };
        let holders = holders as u64;
        match taken {
            Ok(Region { number, fresh, .. }) => {
                [holders, number as u64, fresh as u64, requested as u64]
            }
            Err(RegionError::Exhausted { free, largest }) => {
                [holders, EXHAUSTED, free as u64, largest as u64]
            }
            Err(RegionError::TooMany { most }) => [holders, TOO_MANY, most as u64, 0],
        }
    }

    /// Returns the result that an allocation's entry holds, for one member. An entry that records a
    /// failure is removed when all members have read it.
    fn found(&self, key: &Key, value: &Value, requested: usize) -> Result<Allocation, HeapError> {
        let &[_, region, one, other] = value;
        let heap = self.directory.heap_bytes;
        let error = match region {
            EXHAUSTED => HeapError::exhausted(requested, size(one), size(other), heap),
            TOO_MANY => HeapError::TooMany { most: size(one) },
            _ => {
                assert!(
                    size(other) == requested,
                    "PEs ask for {other} and {requested} bytes at once"
                );
                let (at, _) = self.heap.region(size(region));
                return Ok(Allocation { at, fresh: size(one) });
            }
        };
        self.remove_hold(key, value);
        Err(error)
    }

    /// Frees the memory of a block, if it has any.
    fn free(&self, &[_, region, ..]: &Value) {
        if region != EXHAUSTED && region != TOO_MANY {
            self.heap.free(size(region));
        }
    }

    /// Adds a hold to the block of allocation `number`. The caller already holds it.
    pub(crate) fn hold(&self, number: AllocationKey) {
        let key = [BLOCK, number.0, number.1];
        // A block of zero bytes has no entry.
        if let Some(mut value) = self.map.get(&key) {
            value[0] += 1;
            self.map.put(&key, &value).expect(ROOM);
        }
    }

    /// Removes a hold from the block of allocation `number`. Removing the last hold frees the
    /// block.
    pub(crate) fn release(&self, number: AllocationKey) {
        let key = [BLOCK, number.0, number.1];
        let Some(value) = self.map.get(&key) else { return };
        if self.remove_hold(&key, &value) {
            self.free(&value);
        }
    }
}
