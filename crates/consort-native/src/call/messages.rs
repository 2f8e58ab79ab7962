//! Messages and signals: stores into a peer's inbox, and waits on the PE's own inbox.

use std::{
    future::{Future, ready},
    sync::atomic::Ordering::{Relaxed, Release},
};

use consort_fabric::{Channel, LINE_PAYLOAD_BYTES, Messages, Op, PAIRWISE_BYTES, Rank, Span, Step};

use super::{
    view::{CallView, UNSENT},
    waits::{PairwiseCombine, PairwiseExchange, Receive, ReceiveCombine, Wait},
};
use crate::{
    inbox::{
        geometry::{Geometry, LINE_WORDS, SEQUENCE_BITS, SHORT_SLOT_WORDS},
        line::{LineWord, PAYLOAD_WORDS},
    },
    memory::region::Memory,
};

impl<'c> CallView<'c> {
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
    fn short_slot_at(&self, pe: Rank, channel: Channel) -> usize {
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
    fn word_for(&self, pe: Rank, at: usize) -> &'c LineWord {
        self.words.get(at).unwrap_or_else(|| self.refuse(pe))
    }

    /// Panics because no inbox contains the place of a message for `pe`.
    #[cold]
    #[inline(never)]
    fn refuse(&self, pe: Rank) -> ! {
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
    fn pair_at(
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

    #[inline(always)]
    fn word_of(&self, step: Step) -> u64 {
        self.word.wrapping_add(u64::from(step))
    }

    /// Writes a message's data, at most a wide slot, before its sequence word `at`.
    #[inline(always)]
    fn write_before(&self, at: usize, data: Memory) {
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

    /// Returns the words that hold `bytes` bytes of data in the slot that ends with the sequence
    /// word `at`.
    pub(super) fn words_before(&self, at: usize, bytes: usize) -> &[LineWord] {
        assert!(
            bytes <= PAIRWISE_BYTES,
            "a pairwise exchange is of at most {PAIRWISE_BYTES} bytes"
        );
        &self.words[at - bytes.div_ceil(8)..at]
    }

    /// Notifies a peer of words that were stored for it, if necessary; see `Group::notify`. If
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
    fn send_now(&self, to: Rank, channel: Channel, step: Step, source: Span) {
        let memory = self.resolve(source);
        let word = self.word_of(step);
        if memory.bytes == 8 {
            let at = self.short_slot_at(to, channel);
            let sequence = self.word_for(to, at);
            self.words[at - 1].store(memory.word().load(), Relaxed);
            sequence.store(word, Release); // pairs with the acquire in `Receive`
            self.notify(to, at - 1, 2);
        } else {
            self.send_lines(to, channel, word, memory);
        }
    }

    fn send_lines(&self, to: Rank, channel: Channel, word: u64, memory: Memory) {
        let count = memory.bytes.div_ceil(LINE_PAYLOAD_BYTES).max(1);
        let (first, words) = (self.line_at(to, channel), count * LINE_WORDS);
        let Some(lines) = self.words.get(first..first + words) else { self.refuse(to) };
        for (index, line) in lines.chunks_exact(LINE_WORDS).enumerate() {
            let part = memory.line(index);
            let words = part.pack();
            let used = part.bytes.div_ceil(8);
            for (place, &value) in line.iter().zip(&words[..used]) {
                place.store(value, Relaxed);
            }
            line[PAYLOAD_WORDS].store(word, Release); // pairs with the acquire in `Receive`
        }
        self.notify(to, first, words);
    }

    #[inline(always)]
    fn receive_into(&self, channel: Channel, step: Step, target: Memory) -> Receive<'_> {
        let (at, count) = if target.bytes == 8 {
            (self.short_slot_at(self.rank, channel), 0)
        } else {
            let count = target.bytes.div_ceil(LINE_PAYLOAD_BYTES).max(1);
            (self.line_at(self.rank, channel) + PAYLOAD_WORDS, count)
        };
        self.begin_receive();
        Receive { call: self, at, word: self.word_of(step), target, done: 0, count }
    }
}

impl Messages for CallView<'_> {
    #[inline(always)]
    fn send(
        &self,
        to: Rank,
        channel: Channel,
        step: Step,
        source: Span,
    ) -> impl Future<Output = Op> {
        self.send_now(to, channel, step, source);
        ready(Ok(()))
    }

    #[inline(always)]
    fn receive(&self, channel: Channel, step: Step, target: Span) -> impl Future<Output = Op> {
        self.receive_into(channel, step, self.resolve_writable(target))
    }

    #[inline(always)]
    fn receive_combine(
        &self,
        channel: Channel,
        step: Step,
        left: Span,
        target: Span,
    ) -> impl Future<Output = Op> {
        let (left, target) = (self.resolve(left), self.resolve_writable(target));
        assert!(left.bytes == target.bytes, "what is combined is of one length");
        // A message of 8 bytes is combined from its slot. A longer message is first received into
        // scratch memory.
        let into =
            if target.bytes == 8 { target } else { self.resolve(Span::incoming(target.bytes)) };
        let received = self.receive_into(channel, step, into);
        ReceiveCombine { received, left, target }
    }

    #[inline(always)]
    fn signal(&self, to: Rank, channel: Channel, step: Step) -> impl Future<Output = Op> {
        let at = self.short_slot_at(to, channel);
        let sequence = self.word_for(to, at);
        sequence.store(self.word_of(step), Release); // pairs with the acquire in `Wait`
        self.notify(to, at, 1);
        ready(Ok(()))
    }

    #[inline(always)]
    fn wait(&self, channel: Channel, step: Step) -> impl Future<Output = Op> {
        Wait { call: self, at: self.short_slot_at(self.rank, channel), word: self.word_of(step) }
    }

    #[inline(always)]
    fn pairwise_exchange(
        &self,
        peer: Rank,
        channel: Channel,
        step: Step,
        own: Option<Span>,
        target: Option<Span>,
    ) -> impl Future<Output = Op> {
        let no_value = own.is_none() && target.is_none();
        debug_assert!(no_value || !channel.is_second(), "a second signal word has no value");
        let own = own.map(|own| self.resolve(own));
        let target = target.map(|target| {
            self.begin_receive();
            self.resolve_writable(target)
        });
        let is_wide = [own, target].into_iter().flatten().any(|memory| memory.bytes > 8);
        let (mine, theirs, word) = self.pair_at(peer, channel, step, is_wide);
        let sequence = self.word_for(peer, mine);
        if let Some(own) = own {
            self.write_before(mine, own);
        }
        sequence.store(word, Release); // pairs with the acquire in `PairwiseExchange`
        let before = own.map_or(0, |own| own.bytes.div_ceil(8));
        self.notify(peer, mine - before, before + 1);
        PairwiseExchange { call: self, at: theirs, word, target }
    }

    #[inline(always)]
    fn pairwise_combine(
        &self,
        peer: Rank,
        channel: Channel,
        step: Step,
        own: Span,
        target: Span,
    ) -> impl Future<Output = Op> {
        debug_assert!(!channel.is_second(), "a second signal word has no value");
        let (own, target) = (self.resolve(own).word().load(), self.resolve_writable(target).word());
        self.begin_receive();
        let (mine, theirs, word) = self.pair_at(peer, channel, step, false);
        let sequence = self.word_for(peer, mine);
        self.words[mine - 1].store(own, Relaxed);
        sequence.store(word, Release); // pairs with the acquire in `PairwiseCombine`
        self.notify(peer, mine - 1, 2);
        PairwiseCombine { call: self, at: theirs, word, own, is_left: self.rank < peer, target }
    }
}
