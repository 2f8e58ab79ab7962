//! The cutter: cuts messages into chunks, round by round, and chunks into operations.
//!
//! A PE gives the credit for a chunk some chunks before it takes that chunk. So the cutter has
//! three positions in the rounds: that of the next operation, that of the next chunk to take, and
//! that of the next credit to give.

use std::iter::Peekable;

use consort_fabric::{Rank, Span};

use super::{
    OnReceive,
    act::Act,
    sequence::{DividedMessage, LoopOffset, MeasuredRound, Sequence, SequenceCursor},
};

/// A chunk to receive: its number, its sender, and the sender's credit.
#[derive(Clone, Copy)]
struct DueChunk {
    number: u32,
    from: Rank,
    credit: u32,
}

/// The chunks that a PE receives, in order.
struct IncomingChunks<'p> {
    walk: SequenceCursor<'p>,
    index: u32,
}

impl Iterator for IncomingChunks<'_> {
    type Item = DueChunk;

    fn next(&mut self) -> Option<DueChunk> {
        loop {
            let (round, further) = self.walk.here()?;
            if let Some((DividedMessage { end: (from, _), first, credit, chunks, .. }, _)) =
                &round.received
                && self.index < *chunks
            {
                let number = first + further.chunks + self.index;
                self.index += 1;
                return Some(DueChunk { number, from: *from, credit: *credit });
            }
            self.walk.go_on();
            self.index = 0;
        }
    }
}

/// Cuts the messages of a sequence into chunks, round by round.
pub(super) struct Cutter<'p> {
    walk: SequenceCursor<'p>,
    /// The index of the next chunk of the round.
    index: u32,
    has_copied: bool,
    /// The next chunk to receive, and the next chunk to give a credit for.
    awaited: Peekable<IncomingChunks<'p>>,
    uncredited: Peekable<IncomingChunks<'p>>,
    /// The operations of the current chunk.
    acts: Vec<Act>,
    /// The index of the next operation in `acts`.
    at: usize,
    /// Combinations that follow the chunk's send, because an operand may have to be sent first.
    combines: Vec<Act>,
}

impl<'p> Cutter<'p> {
    pub(super) fn new(sequence: &'p Sequence) -> Self {
        let walk = SequenceCursor::new(sequence);
        let incoming = || IncomingChunks { walk, index: 0 }.peekable();
        let mut cutter = Self {
            walk,
            index: 0,
            has_copied: false,
            awaited: incoming(),
            uncredited: incoming(),
            acts: Vec::new(),
            at: 0,
            combines: Vec::new(),
        };
        cutter.give_credit();
        cutter
    }

    pub(super) fn next(&mut self) -> Option<&Act> {
        while self.at == self.acts.len() {
            let (round, further) = self.walk.here()?;
            self.at = 0;
            self.acts.clear();
            self.cut(round, further);
        }
        self.at += 1;
        Some(&self.acts[self.at - 1])
    }

    /// Replaces the operations by those of the next chunk or of the end of the round.
    #[inline(never)]
    fn cut(&mut self, round: &MeasuredRound, further: LoopOffset) {
        let chunks = |end: &DividedMessage| end.chunks;
        let sends = round.sent.as_ref().map_or(0, chunks);
        let receives = round.received.as_ref().map_or(0, |(message, _)| chunks(message));
        let index = self.index;
        if index == sends.max(receives) {
            self.copy(round, further);
            let combine = |&spans: &[Span; 3]| {
                let [target, left, right] = spans.map(|span| further.span(span));
                Act::Combine { target, left, right }
            };
            self.acts.extend(round.combined.iter().map(combine));
            self.walk.go_on();
            (self.index, self.has_copied) = (0, false);
            return;
        }
        self.index += 1;
        if let (Some(sent), Some((message, keep)), true) =
            (&round.sent, &round.received, round.is_exchange)
        {
            self.copy(round, further);
            self.receive(message, keep, index, further, true, Some((sent.end.0, sent.end.1[0])));
            self.acts.append(&mut self.combines);
            return;
        }
        for is_send in [round.sends_first, !round.sends_first] {
            match (&round.sent, &round.received) {
                (Some(message), _) if is_send && index < sends => {
                    self.send(message, index, further);
                }
                (_, Some((message, keep))) if !is_send && index < receives => {
                    self.copy(round, further);
                    self.receive(message, keep, index, further, !round.sends_first, None);
                }
                _ => {}
            }
        }
        self.acts.append(&mut self.combines);
    }

    fn copy(&mut self, round: &MeasuredRound, further: LoopOffset) {
        if std::mem::replace(&mut self.has_copied, true) {
            return;
        }
        let copy = |&(target, source): &(Span, Span)| Act::Copy {
            target: further.span(target),
            source: further.span(source),
        };
        self.acts.extend(round.copied.iter().map(copy));
    }

    fn send(&mut self, sent: &DividedMessage, index: u32, further: LoopOffset) {
        let DividedMessage { end: (to, spans), first, credit, .. } = sent;
        let (sequence, number) = (self.walk.sequence, first + further.chunks + index);
        if number >= sequence.buffers.count {
            self.acts.push(Act::AwaitCredit(sequence.setting.channel(*credit), number));
        }
        for (channel, part) in sequence.parts(sent, index, number) {
            let source = further.part(part, spans);
            self.acts.push(Act::Send(*to, channel, number, source));
        }
    }

    /// Receives chunk `index`. In an exchange, `own` is the peer and this PE's data.
    fn receive(
        &mut self,
        received: &DividedMessage,
        keep: &OnReceive,
        index: u32,
        further: LoopOffset,
        later: bool,
        own: Option<(Rank, Span)>,
    ) {
        let take = |channel, step, target| match own {
            Some((peer, own)) => Act::Exchange { peer, channel, step, own, target },
            None => Act::Receive(channel, step, target),
        };
        let DividedMessage { end: (_, spans), first, .. } = received;
        let (sequence, step) = (self.walk.sequence, first + further.chunks + index);
        let mut at = 0;
        for (channel, part) in sequence.parts(received, index, step) {
            let target = further.part(part, spans);
            let incoming = Span { at, ..Span::incoming(target.bytes) };
            at += target.bytes;
            let (left, right) = match keep {
                OnReceive::Stores => {
                    self.acts.push(take(channel, step, target));
                    continue;
                }
                OnReceive::After(left) if !later => {
                    let left = further.part(part, left);
                    self.acts.push(Act::ReceiveCombine { channel, step, left, target });
                    continue;
                }
                OnReceive::After(left) => (further.part(part, left), incoming),
                OnReceive::Before(right) => (incoming, further.part(part, right)),
            };
            self.acts.push(take(channel, step, incoming));
            self.combines.push(Act::Combine { target, left, right });
        }
        self.awaited.next();
        self.give_credit();
    }

    /// Gives the credits for all chunks that may arrive before the next one is taken.
    fn give_credit(&mut self) {
        let Sequence { setting, buffers, .. } = self.walk.sequence;
        let Some(&DueChunk { number: next, .. }) = self.awaited.peek() else { return };
        let may_come = |due: &DueChunk| due.number - next < buffers.count;
        while let Some(DueChunk { number, from, credit }) = self.uncredited.next_if(may_come) {
            if number >= buffers.count {
                self.acts.push(Act::Credit(from, setting.channel(credit), number));
            }
        }
    }
}
