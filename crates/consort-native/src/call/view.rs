//! One call's view of the job: the position of its inbox, and its buffers.

#![expect(unsafe_code, reason = "resolves spans to memory")]

use std::{
    sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed},
    task::Poll,
};

use consort_fabric::{Channel, Op, PAIRWISE_BYTES, Place, Poisoned, Rank, Span, Step};

use super::operands::{Buffer, Operands};
use crate::{
    inbox::{
        geometry::{BUFFER_BYTES, Geometry, LINE_WORDS, SEQUENCE_BITS, SHORT_SLOT_WORDS},
        line::{LineWord, PAYLOAD_WORDS},
    },
    launch::job::Job,
    memory::{extent::SharedExtent, region::Memory, word::Word},
    segment::reservation::Segment,
    state::header::PeState,
    team::group::Group,
};

/// One call's view of the job.
pub struct CallView<'c> {
    pub(super) job: &'c Job,
    pub(super) group: &'c Group,
    /// The rank in the group, like all ranks here.
    pub(super) rank: Rank,
    /// The window position: the call's number modulo the window.
    pub(super) position: usize,
    /// The words of all inboxes.
    pub(super) words: &'c [LineWord],
    pub(super) word: u64,
    pub(super) scratch: &'c Segment,
    pub(super) operands: &'c Operands<'c>,
    /// Reasons to check something at the end of the call: the kinds of buffers that this PE has
    /// exposed (`SOURCE`, `TARGET`, `SYMMETRIC`, `STAGED`), `UNSENT`, and an `UNDER_WAY` for each
    /// operation on far memory that has not ended.
    pub(super) marks: AtomicU32,
    /// The number of receives that have begun but not ended.
    pub(super) receiving: AtomicUsize,
    /// Whether an operation drives the call.
    pub(super) is_nonblocking: bool,
    /// The index of the word that the pending wait watches, or `NO_WORD` if it watches none.
    pub(super) watched: AtomicUsize,
    /// The value of that word when it was last polled.
    pub(super) seen: AtomicU64,
}

/// Marks in [`CallView::exposed`].
pub(super) const SOURCE: u32 = 1;
pub(super) const TARGET: u32 = 2;
pub(super) const SYMMETRIC: u32 = 4;
/// The call uses the staged copy of the target.
pub(super) const STAGED: u32 = 8;

/// Packets for far PEs may still have to be sent.
pub(super) const UNSENT: u32 = 16;

/// An operation on far memory, which may access the call's buffers. The highest of the marks.
pub(super) const UNDER_WAY: u32 = 32;

/// The index that means no word.
pub(super) const NO_WORD: usize = usize::MAX;

// SAFETY: the buffers are borrowed for the call, and only the future that drives the call accesses
// them through it. The scratch memory belongs to this PE's endpoint, which makes one call at a
// time.
unsafe impl Send for CallView<'_> {}

// SAFETY: as above: only the one future that drives the call invokes its methods.
unsafe impl Sync for CallView<'_> {}

impl<'c> CallView<'c> {
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
            words: group.inboxes(),
            word,
            scratch,
            operands,
            marks: AtomicU32::new(0),
            receiving: AtomicUsize::new(0),
            is_nonblocking: false,
            watched: AtomicUsize::new(NO_WORD),
            seen: AtomicU64::new(0),
        }
    }

    /// Returns the index of the word that the pending wait watches, if it watches one. If the word
    /// has changed, the wait is over.
    #[cold]
    pub(crate) fn awaited_word(&self) -> Option<usize> {
        let at = self.watched.load(Relaxed);
        let word = self.group.word_at(at)?;
        (word.load(Relaxed) == self.seen.load(Relaxed)).then_some(at)
    }

    pub(crate) fn set_nonblocking(&mut self) {
        self.is_nonblocking = true;
    }

    /// Returns the index of the first word of a channel's line for this call, in the inbox of `pe`.
    #[inline(always)]
    pub(super) fn line_at(&self, pe: Rank, channel: Channel) -> usize {
        let Geometry { per_pe, stride, .. } = self.group.memory.geometry;
        let line = self.position * stride + channel.index() as usize;
        pe.index() * per_pe + line * LINE_WORDS
    }

    /// Returns the index of the sequence word of a short slot in the inbox of `pe`, for a signal or
    /// for a message of 8 bytes. The payload of a message is in the word before it.
    ///
    /// The second signal word shares a short slot with the previous call. So the entry signal of a
    /// barrier travels with the exit signal of the previous call, which is often sent just before
    /// it.
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

    /// Returns the word at an index in the inbox of `pe`.
    #[inline(always)]
    pub(super) fn word_for(&self, pe: Rank, at: usize) -> &'c LineWord {
        self.words.get(at).unwrap_or_else(|| self.refuse(pe))
    }

    /// Panics because no inbox contains the place of a message for `pe`.
    #[cold]
    #[inline(never)]
    pub(super) fn refuse(&self, pe: Rank) -> ! {
        if pe.index() >= self.group.size() {
            self.group.refuse(pe);
        }
        panic!("an algorithm uses a channel that the inbox of PE {pe} does not have")
    }

    /// Returns the indices of the sequence words of this PE and of `peer` in their next pairwise
    /// operation, and the word that both store. The data comes before each sequence word: one word,
    /// or up to three if `is_wide`.
    ///
    /// Blocking calls use the pair's lines. Nonblocking calls may be far ahead of the peer, so they
    /// use the channel's short slots or lines.
    #[inline(always)]
    pub(super) fn pair_at(
        &self,
        peer: Rank,
        channel: Channel,
        step: Step,
        is_wide: bool,
    ) -> (usize, usize, u64) {
        let word = self.word_of(step);
        if self.is_nonblocking {
            let [mine, others] = [peer, self.rank].map(|pe| {
                if is_wide {
                    self.line_at(pe, channel) + PAYLOAD_WORDS
                } else {
                    self.short_slot_at(pe, channel)
                }
            });
            return (mine, others, word);
        }
        let (mine, others, turn) = self.group.pair(peer).next(is_wide);
        // A call may have several operations with the same step. The turn distinguishes an earlier
        // operation from a later one in the same slot.
        (mine, others, word.wrapping_add((turn as u64) << SEQUENCE_BITS))
    }

    /// Writes a message's data, at most a wide slot, before its sequence word `at`.
    #[inline(always)]
    pub(super) fn write_before(&self, at: usize, data: Memory) {
        if data.bytes == 8 {
            return self.words[at - 1].store(data.word().load(), Relaxed);
        }
        self.write_words_before(at, data);
    }

    #[inline(never)]
    fn write_words_before(&self, at: usize, data: Memory) {
        let words = self.words_before(at, data.bytes);
        if data.bytes.is_multiple_of(8) {
            for (index, place) in words.iter().enumerate() {
                place.store(data.word_at(index).load(), Relaxed);
            }
        } else {
            for (place, value) in words.iter().zip(data.pack()) {
                place.store(value, Relaxed);
            }
        }
    }

    /// Copies the data before the sequence word `at` to `target`.
    #[inline(always)]
    pub(super) fn read_before(&self, at: usize, target: Memory) {
        if target.bytes == 8 {
            return target.word().store(self.words[at - 1].load(Relaxed));
        }
        self.read_words_before(at, target);
    }

    #[inline(never)]
    fn read_words_before(&self, at: usize, target: Memory) {
        let words = self.words_before(at, target.bytes);
        if target.bytes.is_multiple_of(8) {
            for (index, word) in words.iter().enumerate() {
                target.word_at(index).store(word.load(Relaxed));
            }
        } else {
            target.unpack(words);
        }
    }

    /// Returns the words that hold `bytes` bytes of data in the slot that ends with the sequence
    /// word `at`.
    fn words_before(&self, at: usize, bytes: usize) -> &[LineWord] {
        assert!(
            bytes <= PAIRWISE_BYTES,
            "a pairwise exchange is of at most {PAIRWISE_BYTES} bytes"
        );
        &self.words[at - bytes.div_ceil(8)..at]
    }

    /// Returns the poll result of a wait that is not over after it saw the value `seen` in word
    /// `watched`. The executor may spin until this word has another value.
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

    /// Like [`Self::pending`], for a wait that watches no inbox word. `is_new` means that it is
    /// pending for the first time.
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

    /// Returns a member's state that does not depend on the team.
    #[inline(always)]
    pub(super) fn state(&self, pe: Rank) -> &PeState {
        &self.job.states[self.group.in_world(pe).index()]
    }

    #[inline(always)]
    pub(super) fn heap(&self, pe: Rank) -> *mut u8 {
        self.job.heap(self.group.in_world(pe))
    }

    #[inline(always)]
    pub(super) fn buffer(&self, pe: Rank) -> *mut u8 {
        self.job.buffer(self.group.in_world(pe))
    }

    /// Notifies a peer of words that were stored for it, if necessary; see [`Group::notify`]. If
    /// the peer is far, the end of the call ensures that they are sent.
    #[inline(always)]
    pub(super) fn notify(&self, to: Rank, at: usize, words: usize) {
        if self.job.must_notify() {
            self.notify_now(to, at, words);
        }
    }

    #[cold]
    #[inline(never)]
    fn notify_now(&self, to: Rank, at: usize, words: usize) {
        if self.group.notify(to, at, words) {
            self.marks.store(self.marks.load(Relaxed) | UNSENT, Relaxed);
        }
    }

    #[inline(always)]
    pub(super) fn word_of(&self, step: Step) -> u64 {
        self.word.wrapping_add(u64::from(step))
    }

    /// Returns the memory of a span of this PE. Panics if the span reaches beyond its buffer.
    #[inline(always)]
    pub(super) fn resolve(&self, span: Span) -> Memory {
        let half = self.scratch.bytes() / 2;
        let scratch = |first: usize| (self.scratch.at(first, half), half, None);
        let words = Some(SharedExtent::WORDS);
        let (at, bytes, shared) = match span.place {
            Place::Source => {
                let Buffer { at, bytes, symmetric, .. } = self.operands.source;
                (at, bytes, words.filter(|_| symmetric))
            }
            Place::Target => {
                let Buffer { at, bytes, symmetric, .. } = self.operands.target;
                let is_exposed = || self.marks.load(Relaxed) & (TARGET | STAGED) != 0;
                if !symmetric && is_exposed() {
                    self.exposed_target()
                } else {
                    (at, bytes, words.filter(|_| symmetric))
                }
            }
            Place::Accumulator => scratch(0),
            Place::Incoming => scratch(half),
            Place::Heap => (self.heap(self.rank), self.job.heap_bytes(), words),
            Place::Buffer => (self.buffer(self.rank), BUFFER_BYTES, words),
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

    /// Counts a receive that begins. Its memory is resolved now.
    #[inline(always)]
    pub(super) fn begin_receive(&self) {
        self.receiving.store(self.receiving.load(Relaxed) + 1, Relaxed);
    }

    /// Counts a receive that has ended. A later poll finds no word to wait for and panics.
    #[inline(always)]
    pub(super) fn end_receive(&self, at: &mut usize) {
        *at = NO_WORD;
        self.receiving.store(self.receiving.load(Relaxed) - 1, Relaxed);
    }

    /// Counts the end of a receive of data from a far PE.
    pub(super) fn end_far_receive(&self) {
        self.receiving.store(self.receiving.load(Relaxed) - 1, Relaxed);
    }

    /// Computes `target = left (op) right` with the call's operator.
    #[inline(always)]
    pub(crate) fn combine_now(&self, target: Memory, left: Memory, right: Memory) {
        if let Some(kernel) = &self.operands.kernel {
            target.combine(kernel, left, right);
        }
    }

    /// Computes `target = left (op) right` on 8-byte words.
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
