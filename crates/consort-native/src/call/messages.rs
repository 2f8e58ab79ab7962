//! Messages and signals: stores into a peer's inbox, and waits on the PE's own inbox.

use std::{
    future::{Future, ready},
    sync::atomic::Ordering::{Relaxed, Release},
};

use consort_fabric::{Channel, LINE_PAYLOAD_BYTES, Messages, Op, Rank, Span, Step};

use super::{
    view::CallView,
    waits::{PairwiseCombine, PairwiseExchange, Receive, ReceiveCombine, Wait},
};
use crate::{
    inbox::{geometry::LINE_WORDS, line::PAYLOAD_WORDS},
    memory::region::Memory,
};

impl CallView<'_> {
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
