//! Staging: copies of private buffers in memory that other processes reach.
//!
//! A PE that exposes a private buffer to PEs of other processes copies it here first. A target is
//! used here until all peers have detached it, and is then copied back.
//!
//! Each process has a part of the segment for this, and divides it alone: peers get offsets. Blocks
//! have sizes of powers of two, and serve again; the system takes back large ones.

#![expect(unsafe_code, reason = "clears memory that nothing uses")]

use std::{
    collections::{BTreeMap, HashMap},
    ops::Range,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use consort_fabric::{Place, Span};

use crate::segment::{page::PAGE, reservation::Segment};

/// The size from which on the system takes back a block that is free.
const LARGE: usize = 64 << 20;

/// A call in which buffers are staged: the number of its group, and its window position.
pub(crate) type CallKey = (u64, usize);

/// A private buffer, or a part of one, that is staged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Staged {
    pub(crate) span: Span,
    /// The offset of its copy in the segment.
    pub(crate) offset: usize,
    block_bytes: usize,
}

/// The memory of a process for staging.
pub(crate) struct Staging {
    segment: Arc<Segment>,
    range: Range<usize>,
    parts: Mutex<Parts>,
}

#[derive(Default)]
struct Parts {
    /// Bytes that have ever been used.
    used: usize,
    /// Free blocks, by size.
    free: BTreeMap<usize, Vec<usize>>,
    staged: HashMap<CallKey, Vec<Staged>>,
}

impl Staging {
    /// Staging in these bytes of the segment, which nothing else uses.
    pub(crate) fn new(segment: &Arc<Segment>, range: Range<usize>) -> Self {
        Self { segment: Arc::clone(segment), range, parts: Mutex::default() }
    }

    fn parts(&self) -> MutexGuard<'_, Parts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The copy of a span that is staged in a call, as a whole, if it is.
    pub(crate) fn find(&self, call: CallKey, span: Span) -> Option<Staged> {
        let same = |staged: &&Staged| {
            let Staged { span: whole, .. } = **staged;
            let end = |span: Span| span.at + span.bytes;
            whole.place == span.place && whole.at <= span.at && end(span) <= end(whole)
        };
        self.parts().staged.get(&call)?.iter().find(same).copied()
    }

    /// Memory for a copy of a span. `None` if there is no more.
    pub(crate) fn stage(&self, call: CallKey, span: Span) -> Option<Staged> {
        let block_bytes = span.bytes.max(PAGE).checked_next_power_of_two()?;
        let mut parts = self.parts();
        let free = parts.free.get_mut(&block_bytes).and_then(Vec::pop);
        let offset = free.or_else(|| {
            let at = self.range.start + parts.used;
            let fits = block_bytes <= self.range.end - at;
            parts.used += if fits { block_bytes } else { 0 };
            fits.then_some(at)
        })?;
        let staged = Staged { span, offset, block_bytes };
        parts.staged.entry(call).or_default().push(staged);
        Some(staged)
    }

    /// Frees the copies of a call, after `copy_back` of each of a target.
    pub(crate) fn release(&self, call: CallKey, copy_back: impl Fn(Staged)) {
        let all = self.parts().staged.remove(&call).unwrap_or_default();
        for staged in all {
            if staged.span.place == Place::Target {
                copy_back(staged);
            }
            let Staged { offset, block_bytes, .. } = staged;
            if block_bytes >= LARGE {
                // SAFETY: the block was this PE's alone, and all peers have detached it.
                unsafe { self.segment.clear(offset..offset + block_bytes) };
            }
            self.parts().free.entry(block_bytes).or_default().push(offset);
        }
    }
}
