//! One call's view of the job: where its inbox lies, and its buffers.

#![expect(unsafe_code, reason = "resolves spans to memory")]

use std::{
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
    task::Poll,
};

use consort_fabric::{Channel, Op, Place, Poisoned, Rank, Span, Step};

use super::operands::{Buffer, Operands};
use crate::{
    inbox::{
        geometry::{Geometry, LINE_WORDS, PAIR_WORDS, SHORT_SLOT_WORDS, VALUE_PAIR_WORDS},
        line::LineWord,
    },
    launch::job::Job,
    memory::{extent::Extent, region::Memory, word::Word},
    segment::reservation::Segment,
    state::header::PeState,
    team::group::Group,
};

/// One call's view of the job.
pub struct Call<'c> {
    pub(super) job: &'c Job,
    pub(super) group: &'c Group,
    /// The rank in the group, as all ranks here.
    pub(super) rank: Rank,
    /// The call's number modulo the window.
    pub(super) position: usize,
    /// The words of all inboxes.
    pub(super) words: &'c [LineWord],
    pub(super) word: u64,
    pub(super) scratch: &'c Segment,
    pub(super) operands: &'c Operands<'c>,
    pub(super) target_exposed: AtomicBool,
    pub(super) exposed: AtomicBool,
    /// Whether an operation drives it.
    pub(super) is_nonblocking: bool,
    /// The word of the inboxes that the pending wait waits for; `NO_WORD` if it waits for something
    /// else.
    pub(super) watched: AtomicUsize,
    /// The sequence word that it saw there.
    pub(super) seen: AtomicU64,
}

/// No word of any inbox.
pub(super) const NO_WORD: usize = usize::MAX;

// SAFETY: the buffers are borrowed for the call, and only the future that drives the call touches
// them through it; scratch belongs to the same PE's endpoint, which makes one call at a time.
unsafe impl Send for Call<'_> {}

// SAFETY: as above: all methods are called by the one future that drives the call.
unsafe impl Sync for Call<'_> {}

impl<'c> Call<'c> {
    #[inline(always)]
    pub(crate) fn new(
        job: &'c Job,
        group: &'c Group,
        position: usize,
        word: u64,
        scratch: &'c Segment,
        operands: &'c Operands<'c>,
    ) -> Self {
        Self {
            job,
            group,
            rank: group.rank(),
            position,
            words: group.words(),
            word,
            scratch,
            operands,
            target_exposed: AtomicBool::new(false),
            exposed: AtomicBool::new(false),
            is_nonblocking: false,
            watched: AtomicUsize::new(NO_WORD),
            seen: AtomicU64::new(0),
        }
    }

    /// Says that an operation drives it.
    pub(crate) fn set_nonblocking(&mut self) {
        self.is_nonblocking = true;
    }

    /// The first word of a channel's line for this call, in the inbox of a PE.
    #[inline(always)]
    pub(super) fn line_at(&self, pe: Rank, channel: Channel) -> usize {
        let Geometry { per_pe, stride, .. } = self.group.memory.geometry;
        let line = self.position * stride + channel.index() as usize;
        pe.index() * per_pe + line * LINE_WORDS
    }

    /// The words of `count` lines.
    #[inline(always)]
    pub(super) fn lines(&self, pe: Rank, channel: Channel, count: usize) -> &[LineWord] {
        let first = self.line_at(pe, channel);
        &self.words[first..first + count * LINE_WORDS]
    }

    /// The sequence word of a signal, or of a message of 8 bytes, in the inbox of a PE. The payload
    /// stands in the word before.
    ///
    /// The second signal word lies with the call before: a barrier's signal at entry thus travels
    /// with its signal at the exit of that call, which is often sent just before it.
    #[inline(always)]
    pub(super) fn short_slot_at(&self, pe: Rank, channel: Channel) -> usize {
        let Geometry { per_pe, first_short_slot, window, .. } = self.group.memory.geometry;
        let slot_at = pe.index() * per_pe
            + first_short_slot
            + channel.index() as usize * window * SHORT_SLOT_WORDS;
        if channel.is_second() {
            slot_at + (self.position.wrapping_sub(1) & (window - 1)) * SHORT_SLOT_WORDS
        } else {
            slot_at + self.position * SHORT_SLOT_WORDS + 1
        }
    }

    /// The first word of this PE's pair with `peer`: that of the lower of them.
    #[inline(always)]
    pub(super) fn pair_at(&self, peer: Rank, channel: Channel) -> usize {
        let Geometry { per_pe, first_pair, window, .. } = self.group.memory.geometry;
        let pair = channel.index() as usize * window + self.position;
        self.rank.min(peer).index() * per_pe + first_pair + pair * PAIR_WORDS
    }

    /// The sequence words of this PE and of `peer`, in a value pair. The value stands in the word
    /// before each.
    #[inline(always)]
    pub(super) fn value_pair_at(&self, peer: Rank, channel: Channel) -> (usize, usize) {
        let Geometry { per_pe, first_value_pair, window, .. } = self.group.memory.geometry;
        let pair = channel.index() as usize * window + self.position;
        let first =
            self.rank.min(peer).index() * per_pe + first_value_pair + pair * VALUE_PAIR_WORDS;
        let (low, high) = (first + 1, first + 1 + SHORT_SLOT_WORDS);
        if self.rank < peer { (low, high) } else { (high, low) }
    }

    /// What a wait's poll comes to when its word is `seen` and says nothing: the executor may watch
    /// word `watched` until it says something else.
    #[inline(always)]
    pub(super) fn pending<T>(&self, watched: usize, seen: u64) -> Poll<Op<T>> {
        if self.job.is_poisoned() {
            return Poll::Ready(Err(Poisoned));
        }
        if (watched, seen) != (self.watched.load(Relaxed), self.seen.load(Relaxed)) {
            self.watched.store(watched, Relaxed);
            self.seen.store(seen, Relaxed);
            self.group.move_on(self.is_nonblocking);
        }
        Poll::Pending
    }

    /// The same for a wait that no word of an inbox says anything of; `is_new` when it is pending
    /// for the first time.
    #[inline(always)]
    pub(super) fn pending_unwatched<T>(&self, is_new: bool) -> Poll<Op<T>> {
        if self.job.is_poisoned() {
            return Poll::Ready(Err(Poisoned));
        }
        if is_new {
            self.watched.store(NO_WORD, Relaxed);
            self.group.move_on(self.is_nonblocking);
        }
        Poll::Pending
    }

    /// What a member has whatever team it is in.
    #[inline(always)]
    pub(super) fn state(&self, pe: Rank) -> &PeState {
        &self.job.states[self.group.in_world(pe).index()]
    }

    /// The beginning of a member's heap.
    #[inline(always)]
    pub(super) fn heap(&self, pe: Rank) -> *mut u8 {
        self.job.heap(self.group.in_world(pe))
    }

    /// The beginning of a member's message buffer.
    #[inline(always)]
    pub(super) fn buffer(&self, pe: Rank) -> *mut u8 {
        self.job.buffer(self.group.in_world(pe))
    }

    #[inline(always)]
    pub(super) fn wake(&self, pe: Rank) {
        if self.job.parks() {
            self.job.wake(self.group.in_world(pe));
        }
    }

    #[inline(always)]
    pub(super) fn word_of(&self, step: Step) -> u64 {
        self.word.wrapping_add(u64::from(step))
    }

    /// Where a span of this PE lies; its bounds are checked.
    #[inline(always)]
    pub(super) fn resolve(&self, span: Span) -> Memory {
        let half = self.scratch.bytes() / 2;
        let scratch = |first: usize| (self.scratch.at(first, half), half, None);
        let words = Some(Extent::WORDS);
        let (at, bytes, shared) = match span.place {
            Place::Source => {
                let Buffer { at, bytes, symmetric, .. } = self.operands.source;
                (at, bytes, words.filter(|_| symmetric))
            }
            Place::Target => {
                let Buffer { at, bytes, symmetric, .. } = self.operands.target;
                let exposed =
                    || self.target_exposed.load(Relaxed).then(|| Extent::exposed(at, bytes));
                (at, bytes, if symmetric { words } else { exposed() })
            }
            Place::Accumulator => scratch(0),
            Place::Incoming => scratch(half),
            Place::Heap => (self.heap(self.rank), self.job.heap_bytes(), words),
            Place::Buffer => {
                (self.buffer(self.rank), self.group.capabilities().buffer_bytes, words)
            }
        };
        let inside = span.at.checked_add(span.bytes).is_some_and(|end| end <= bytes);
        assert!(inside, "a span must lie in its buffer");
        Memory { at: at.wrapping_add(span.at), bytes: span.bytes, shared }
    }

    #[inline(always)]
    pub(super) fn resolve_writable(&self, span: Span) -> Memory {
        assert!(span.place != Place::Source, "a source is never written");
        self.resolve(span)
    }

    /// `target = left (op) right` with the call's operator.
    #[inline(always)]
    pub(crate) fn combine_now(&self, target: Memory, left: Memory, right: Memory) {
        if let Some(kernel) = &self.operands.kernel {
            target.combine(kernel, left, right);
        }
    }

    /// The same on words.
    #[inline(always)]
    pub(super) fn combine_word(&self, target: Word, left: u64, mut right: u64) {
        if let Some(kernel) = &self.operands.kernel {
            let mut sum = left;
            let at = (&raw mut sum).cast::<u8>();
            // SAFETY: two distinct local words.
            unsafe { kernel.combine(at, at, (&raw mut right).cast(), 8) };
            target.store(sum);
        }
    }
}
