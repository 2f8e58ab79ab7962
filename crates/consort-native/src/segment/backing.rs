//! Extents: shared memory that a job gets when its initial memory is full.
//!
//! In a job of one process, an extent is a mapping of this process. In a job of several processes,
//! it is a part of the file that they share. One process appends it at the end of the file, and the
//! others map it when they first need it. An extent lives as long as the job.

use std::{
    fs::File,
    panic::{RefUnwindSafe, UnwindSafe},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use super::{
    memory_error::{MemoryError, out_of_memory},
    origin::Origin,
    page::LARGE_PAGE,
    reservation::Segment,
};
use crate::system::process as system;

/// A file that several processes share and that grows at its end.
pub(crate) trait GrowableFile: Send + Sync + UnwindSafe + RefUnwindSafe {
    /// Returns whether the calling process shares the file and is not a forked child of a process
    /// that does.
    fn is_current(&self) -> bool;

    fn file(&self) -> &Arc<File>;

    /// Returns the offset in the file at which the used part ends. The processes share this number.
    fn end(&self) -> &AtomicU64;
}

/// The source of a job's extents.
#[derive(Clone)]
pub(crate) enum Backing {
    /// New mappings in this process.
    Process(Origin),
    /// The end of a file.
    File(Arc<dyn GrowableFile>),
}

/// A new extent, and its offset in the file (0 without a file).
pub(crate) struct NewExtent {
    pub(crate) segment: Segment,
    pub(crate) file_at: u64,
}

impl Backing {
    /// Makes an extent of `bytes` zeros, a whole number of pages, for `object`.
    ///
    /// # Errors
    /// When the system does not provide the memory.
    pub(crate) fn extend(&self, bytes: usize, object: &str) -> Result<NewExtent, Box<MemoryError>> {
        match self {
            Self::Process(origin) => {
                Ok(NewExtent { segment: Segment::reserve(bytes, *origin, object)?, file_at: 0 })
            }
            Self::File(shared) => {
                let file_at = append(&**shared, bytes, object)?;
                Ok(NewExtent { segment: self.map(file_at, bytes, object)?, file_at })
            }
        }
    }

    /// Maps an extent of `bytes` that another process has made.
    ///
    /// # Errors
    /// When the system does not map the extent.
    pub(crate) fn map(
        &self,
        file_at: u64,
        bytes: usize,
        object: &str,
    ) -> Result<Segment, Box<MemoryError>> {
        match self {
            Self::File(shared) => {
                ensure_own(&**shared, "mmap", object, bytes)?;
                let at = usize::try_from(file_at).unwrap_or(usize::MAX);
                Segment::map(shared.file(), at, bytes, object, None)
            }
            Self::Process(_) => Err(MemoryError::of("mmap", object, bytes, &out_of_memory())),
        }
    }
}

/// Fails in a forked child, because the file belongs to the parent.
fn ensure_own(
    shared: &dyn GrowableFile,
    call: &'static str,
    object: &str,
    bytes: usize,
) -> Result<(), Box<MemoryError>> {
    match shared.is_current() {
        true => Ok(()),
        false => Err(MemoryError::in_child(call, object, bytes)),
    }
}

/// Extends a shared file by `bytes` for `object`. Returns the offset of the new bytes in the file.
/// It is aligned to large pages, so that the system can map large pages.
///
/// # Errors
/// When the file cannot be that long, and in a forked child. The bytes are then free again, unless
/// another process has also extended the file.
pub(crate) fn append(
    shared: &dyn GrowableFile,
    bytes: usize,
    object: &str,
) -> Result<u64, Box<MemoryError>> {
    ensure_own(shared, "ftruncate", object, bytes)?;
    let refused = |error| MemoryError::of("ftruncate", object, bytes, &error);
    let place = |end: u64| {
        let at = end.checked_next_multiple_of(LARGE_PAGE as u64)?;
        Some((at, at.checked_add(bytes as u64)?))
    };
    let grow = |end| place(end).map(|(_, new)| new);
    // The processes share only this number here, so it needs no ordering.
    let before = shared.end().fetch_update(Relaxed, Relaxed, grow);
    let placed = before.ok().and_then(|before| Some((before, place(before)?)));
    let (before, (at, end)) = placed.ok_or_else(|| refused(out_of_memory()))?;
    if let Err(error) = system::extend(shared.file(), end) {
        // If the end has changed in the meantime, these bytes stay unused.
        let _ = shared.end().compare_exchange(end, before, Relaxed, Relaxed);
        return Err(refused(error));
    }
    Ok(at)
}
