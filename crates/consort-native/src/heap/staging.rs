//! Staging: copies of private buffers in memory that other processes can access.
//!
//! Before a PE exposes a private buffer to PEs of other processes, it copies the buffer here. Peers
//! use the copy of a target until all have detached it; then the PE copies it back.
//!
//! Each PE has a part of the segment for these copies and manages it alone: peers only get offsets.
//! When the part is full, the PE appends an extent to the job's file. Peers map the extent when
//! they first attach a buffer in it. Blocks have sizes of powers of two, and are reused. Large free
//! blocks are returned to the system.

#![expect(unsafe_code, reason = "clears memory that nothing uses")]

use std::{
    collections::HashMap,
    ops::Range,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use consort_fabric::{Place, Span};

use crate::segment::{
    backing::Backing,
    memory_error::{MemoryError, out_of_memory, sparing},
    page::PAGE,
    reservation::Segment,
};

/// The minimum size of a free block that the system takes back.
const LARGE: usize = 64 << 20;

/// The size of the first extent, unless a block is larger.
const FIRST: usize = 4 << 20;
/// The number of further extents that are twice as large as their predecessor.
const DOUBLINGS: usize = 8;

/// The name of extents in errors.
const COPIES: &str = "copies of private buffers that other processes read or write";

/// A call that stages buffers: the number of its group, and its window position.
pub(crate) type CallKey = (u64, usize);

/// The extents with staged buffers that this process has mapped, by their offsets in the file.
pub(crate) struct StagingExtents {
    backing: Backing,
    /// Whether the extents should have large pages.
    are_large: bool,
    mapped: Mutex<HashMap<u64, Arc<Segment>>>,
}

impl StagingExtents {
    pub(crate) fn new(backing: Backing, are_large: bool) -> Self {
        Self { backing, are_large, mapped: Mutex::default() }
    }

    fn mapped(&self) -> MutexGuard<'_, HashMap<u64, Arc<Segment>>> {
        self.mapped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn advise(&self, segment: &Segment) {
        match self.are_large {
            true => segment.let_pages_be_large(0..segment.bytes()),
            false => segment.keep_pages_small(0..segment.bytes()),
        }
    }

    fn append(&self, bytes: usize) -> Result<(Arc<Segment>, u64), Box<MemoryError>> {
        let made = self.backing.extend(bytes, COPIES)?;
        self.advise(&made.segment);
        let segment = Arc::new(made.segment);
        self.mapped().insert(made.file_at, Arc::clone(&segment));
        Ok((segment, made.file_at))
    }

    /// Returns the extent of `bytes` at offset `file_at` of the file.
    ///
    /// # Errors
    /// When this process cannot map the extent.
    pub(crate) fn find(
        &self,
        file_at: u64,
        bytes: usize,
    ) -> Result<Arc<Segment>, Box<MemoryError>> {
        let mut mapped = self.mapped();
        if let Some(found) = mapped.get(&file_at) {
            return Ok(Arc::clone(found));
        }
        let segment = self.backing.map(file_at, bytes, COPIES)?;
        self.advise(&segment);
        Ok(Arc::clone(mapped.entry(file_at).or_insert(Arc::new(segment))))
    }
}

/// A staged private buffer, or a staged part of one.
#[derive(Clone, Debug)]
pub(crate) struct StagedBuffer {
    pub(crate) span: Span,
    pub(crate) block: StagedBlock,
    block_bytes: usize,
}

/// The place of a copy, in the job's segment or in an extent.
#[derive(Clone, Debug)]
pub(crate) struct StagedBlock {
    segment: Arc<Segment>,
    offset: usize,
    /// The extent's offset in the file; `None` for the job's segment.
    pub(crate) file_at: Option<u64>,
}

impl StagedBlock {
    /// Returns the place at an offset of the job's segment.
    pub(crate) fn in_segment(segment: &Arc<Segment>, offset: usize) -> Self {
        Self { segment: Arc::clone(segment), offset, file_at: None }
    }

    /// Returns the address of the first `bytes` of the block.
    pub(crate) fn at(&self, bytes: usize) -> *mut u8 {
        self.segment.at(self.offset, bytes)
    }

    /// Returns the offset of an address in the block, counted from the beginning of its segment.
    pub(crate) fn offset_of(&self, at: *mut u8) -> usize {
        self.segment.offset_of(at)
    }

    /// Returns the size of the block's segment in bytes.
    pub(crate) fn segment_bytes(&self) -> usize {
        self.segment.bytes()
    }
}

pub(crate) struct Staging {
    extents: Arc<StagingExtents>,
    state: Mutex<StagingState>,
}

struct StagingState {
    areas: Vec<UnusedArea>,
    /// Free blocks, by the power of two that is their size.
    free: [Vec<StagedBlock>; usize::BITS as usize],
    staged: HashMap<CallKey, Vec<StagedBuffer>>,
}

/// Consecutive memory, some of which has never been used.
struct UnusedArea {
    unused: Range<usize>,
    segment: Arc<Segment>,
    file_at: Option<u64>,
}

impl UnusedArea {
    fn take(&mut self, bytes: usize) -> Option<StagedBlock> {
        let offset = self.unused.start;
        (bytes <= self.unused.len()).then(|| {
            self.unused.start += bytes;
            StagedBlock { segment: Arc::clone(&self.segment), offset, file_at: self.file_at }
        })
    }
}

/// Returns which power of two the size of a block is.
const fn power(block_bytes: usize) -> usize {
    block_bytes.ilog2() as usize
}

impl Staging {
    /// Returns staging in these bytes of the segment, which nothing else uses, and in extents.
    pub(crate) fn new(
        segment: &Arc<Segment>,
        unused: Range<usize>,
        extents: &Arc<StagingExtents>,
    ) -> Self {
        let first = UnusedArea { unused, segment: Arc::clone(segment), file_at: None };
        let free = [const { Vec::new() }; _];
        let state = StagingState { areas: vec![first], free, staged: HashMap::new() };
        Self { extents: Arc::clone(extents), state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, StagingState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the staged copy that contains the whole span in a call, if there is one.
    pub(crate) fn find(&self, call: CallKey, span: Span) -> Option<StagedBuffer> {
        let same = |staged: &&StagedBuffer| {
            let whole = staged.span;
            let end = |span: Span| span.at + span.bytes;
            whole.place == span.place && whole.at <= span.at && end(span) <= end(whole)
        };
        self.state().staged.get(&call)?.iter().find(same).cloned()
    }

    /// Takes memory for a copy of a span.
    ///
    /// # Errors
    /// When the system refuses another extent.
    pub(crate) fn stage(
        &self,
        call: CallKey,
        span: Span,
    ) -> Result<StagedBuffer, Box<MemoryError>> {
        let block_bytes = span
            .bytes
            .max(PAGE)
            .checked_next_power_of_two()
            .ok_or_else(|| MemoryError::of("mmap", COPIES, span.bytes, &out_of_memory()))?;
        let mut state = self.state();
        let block = match state.free[power(block_bytes)].pop() {
            Some(block) => block,
            None => self.take(&mut state.areas, block_bytes)?,
        };
        let staged = StagedBuffer { span, block, block_bytes };
        state.staged.entry(call).or_default().push(staged.clone());
        Ok(staged)
    }

    /// Takes a block that was never used before.
    fn take(
        &self,
        areas: &mut Vec<UnusedArea>,
        bytes: usize,
    ) -> Result<StagedBlock, Box<MemoryError>> {
        if let Some(block) = areas.iter_mut().find_map(|area| area.take(bytes)) {
            return Ok(block);
        }
        let doubled = FIRST << (areas.len() - 1).min(DOUBLINGS);
        let most = sparing(bytes, doubled).next_multiple_of(PAGE);
        let made = self.extents.append(most).or_else(|_| self.extents.append(bytes))?;
        let (segment, file_at) = made;
        let mut area = UnusedArea { unused: 0..segment.bytes(), segment, file_at: Some(file_at) };
        let block = area.take(bytes);
        areas.push(area);
        block.ok_or_else(|| MemoryError::of("mmap", COPIES, bytes, &out_of_memory()))
    }

    /// Frees the copies of a call, after it has called `copy_back` for each copy of a target.
    pub(crate) fn release(&self, call: CallKey, copy_back: impl Fn(&StagedBuffer)) {
        let all = self.state().staged.remove(&call).unwrap_or_default();
        for staged in all {
            if staged.span.place == Place::Target {
                copy_back(&staged);
            }
            let StagedBuffer { block, block_bytes, .. } = staged;
            if block_bytes >= LARGE {
                let StagedBlock { segment, offset, .. } = &block;
                // SAFETY: only this PE used the block, and all peers have detached it.
                unsafe { segment.clear(*offset..offset + block_bytes) };
            }
            self.state().free[power(block_bytes)].push(block);
        }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // The file may outlive the job.
        for area in &self.state().areas {
            if area.file_at.is_some() && !area.segment.is_copy() {
                // SAFETY: only this PE used the area, and its calls have ended. No peer has
                // anything in it attached, or the job has failed, and then its contents do not
                // matter.
                unsafe { area.segment.clear(0..area.segment.bytes()) };
            }
        }
    }
}
