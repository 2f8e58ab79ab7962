//! What rounds come to: single operations, in the order in which a PE does them.
//!
//! A plan keeps rounds, whose messages are spans of any length. A call goes through them and cuts
//! each message into chunks as it comes to it. So a plan takes no more memory, and no more time to
//! make or to refuse, for longer messages. The operations of one chunk are made at a time, in
//! memory that the next chunk uses again.
//!
//! A PE gives a sender its word some chunks before it takes what the word is for. So there are
//! three places in the rounds: of the next operation, of the next chunk to take, and of the next to
//! tell a sender of.

use std::iter::Peekable;

use consort_fabric::{Place, Rank, Slot, Span, Step};

use super::{Buffers, Keep, Message, Pass, Round, lines, sends_first};
use crate::Setting;

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Waits for the word that a chunk may be sent.
    Wait(Slot, Step),
    Send(Rank, Slot, Step, Span),
    Copy {
        target: Span,
        source: Span,
    },
    Receive(Slot, Step, Span),
    /// `target = left (op) message`.
    ReceiveCombine {
        slot: Slot,
        step: Step,
        left: Span,
        target: Span,
    },
    Combine {
        target: Span,
        left: Span,
        right: Span,
    },
    /// Tells a PE that it may send a chunk.
    Tell(Rank, Slot, Step),
}

/// One end of a message, how long it is, and how many chunks.
#[derive(Clone, Debug)]
struct Divided {
    message: Message,
    bytes: usize,
    chunks: u32,
}

/// A round with the lengths of its messages.
#[derive(Clone, Debug)]
struct Measured {
    sent: Option<Divided>,
    copied: Vec<(Span, Span)>,
    received: Option<(Divided, Keep)>,
    combined: Vec<[Span; 3]>,
    /// Whether it sends a chunk before it receives one.
    sends_first: bool,
}

impl Measured {
    fn new(setting: &Setting, buffers: &Buffers, round: Round) -> Self {
        let Round { sent, copied, received, combined } = round;
        let sends_first = match (&sent, &received) {
            (Some(sent), Some((received, _))) if !setting.capabilities.buffered => {
                sends_first(setting.rank, sent.peer, received.peer, setting.pes)
            }
            _ => true,
        };
        let divided = |message: Message| {
            let bytes = message.spans.iter().map(|span| span.bytes).sum();
            Divided { message, bytes, chunks: buffers.chunks(bytes) }
        };
        let received = received.map(|(message, keep)| (divided(message), keep));
        Self { sent: sent.map(divided), copied, received, combined, sends_first }
    }

    fn ends(&self) -> impl Iterator<Item = &Divided> {
        self.sent.iter().chain(self.received.as_ref().map(|(received, _)| received))
    }
}

/// See [`Pass`].
#[derive(Clone, Debug)]
struct Repeated {
    rounds: Box<[Measured]>,
    times: u32,
    bytes: usize,
    chunks: u32,
}

/// All rounds of one PE in a call.
#[derive(Clone, Debug)]
pub(super) struct Sequence {
    setting: Setting,
    buffers: Buffers,
    passes: Box<[Repeated]>,
}

impl Sequence {
    pub(super) fn new(setting: &Setting, buffers: &Buffers, passes: Vec<Pass>) -> Self {
        let repeated = |Pass { rounds, times, bytes, chunks }| {
            let measured = |round| Measured::new(setting, buffers, round);
            Repeated { rounds: rounds.into_iter().map(measured).collect(), times, bytes, chunks }
        };
        let passes = passes.into_iter().filter(|pass| pass.times > 0 && !pass.rounds.is_empty());
        let passes = passes.map(repeated).collect();
        let sequence = Self { setting: *setting, buffers: *buffers, passes };
        sequence.check_numbers();
        sequence
    }

    /// Panics unless chunks are numbered as [`Message::first`] says.
    fn check_numbers(&self) {
        let mut next = 0; // no chunk that comes later has a smaller number
        for Repeated { rounds, times, chunks, .. } in &self.passes {
            let later = u64::from(times - 1) * u64::from(*chunks);
            let numbers = |end: &Divided| {
                u64::from(end.message.first)..u64::from(end.message.first) + u64::from(end.chunks)
            };
            for end in rounds.iter().flat_map(Measured::ends) {
                let is_below = numbers(end).end + later <= u64::from(self.buffers.steps);
                assert!(is_below, "a chunk's number is below the number of steps");
            }
            let mut first = None;
            for (message, _) in rounds.iter().filter_map(|round| round.received.as_ref()) {
                let numbers = numbers(message);
                assert!(
                    next <= numbers.start,
                    "chunks are numbered in the order in which they are received"
                );
                first.get_or_insert(numbers.start);
                next = numbers.end;
            }
            let Some(first) = first else { continue };
            let is_apart = *times == 1 || next - first <= u64::from(*chunks);
            assert!(is_apart, "the chunks of a pass have numbers of their own each time");
            next += later;
        }
    }

    /// Whether there are no more operations than messages, copies and combinations ask for.
    pub(super) fn is_undivided(&self) -> bool {
        let is_whole = |round: &Measured| round.ends().all(|end| end.chunks == 1);
        self.passes.iter().all(|pass| pass.times == 1 && pass.rounds.iter().all(is_whole))
    }

    /// How many rounds it keeps.
    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.passes.iter().map(|pass| pass.rounds.len()).sum()
    }

    /// The pieces of chunk `index` of a message, as chunk `number` of those that its receiver
    /// takes: where they lie in the list of spans, and in its buffer.
    fn pieces<'m>(
        &'m self,
        Divided { message, bytes, .. }: &'m Divided,
        index: u32,
        number: u32,
    ) -> impl Iterator<Item = (Slot, Piece)> + 'm {
        let Buffers { chunk, lines: buffer_lines, count, words, .. } = self.buffers;
        let from = index as usize * chunk;
        let to = (from + chunk).min(*bytes);
        let (mut next, mut line) = (0, words + number % count * buffer_lines);
        // An empty message is one piece, too.
        let mut is_empty = from == to;
        message.spans.iter().enumerate().filter_map(move |(span, &Span { bytes, .. })| {
            let begin = next;
            next += bytes;
            let (at, end) = (from.max(begin), to.min(next));
            if at >= end && !std::mem::take(&mut is_empty) {
                return None;
            }
            let bytes = end.saturating_sub(at);
            let slot = self.setting.slot(line);
            line += u32::try_from(lines(bytes)).unwrap_or(u32::MAX);
            Some((slot, Piece { span, at: at - begin, bytes }))
        })
    }
}

/// A part of one of the spans of a message.
#[derive(Clone, Copy)]
struct Piece {
    span: usize,
    at: usize,
    bytes: usize,
}

/// How much further on a pass is in the caller's buffers, and in the numbers of its chunks.
#[derive(Clone, Copy)]
struct Further {
    bytes: usize,
    chunks: u32,
}

impl Further {
    fn span(self, span: Span) -> Span {
        match span.place {
            Place::Source | Place::Target => Span { at: span.at + self.bytes, ..span },
            _ => span,
        }
    }

    fn piece(self, Piece { span, at, bytes }: Piece, spans: &[Span]) -> Span {
        let whole = self.span(spans[span]);
        Span { at: whole.at + at, bytes, ..whole }
    }
}

/// A place in a sequence: a round of a pass, and how often that is behind.
#[derive(Clone, Copy)]
struct Walk<'p> {
    sequence: &'p Sequence,
    pass: usize,
    time: u32,
    round: usize,
}

impl<'p> Walk<'p> {
    fn new(sequence: &'p Sequence) -> Self {
        Self { sequence, pass: 0, time: 0, round: 0 }
    }

    fn here(&self) -> Option<(&'p Measured, Further)> {
        let &Repeated { ref rounds, bytes, chunks, .. } = self.sequence.passes.get(self.pass)?;
        let further = Further { bytes: self.time as usize * bytes, chunks: self.time * chunks };
        Some((&rounds[self.round], further))
    }

    fn go_on(&mut self) {
        let Repeated { rounds, times, .. } = &self.sequence.passes[self.pass];
        self.round += 1;
        if self.round == rounds.len() {
            (self.round, self.time) = (0, self.time + 1);
        }
        if self.time == *times {
            (self.time, self.pass) = (0, self.pass + 1);
        }
    }
}

/// A chunk to receive: its number, its sender, and the sender's word.
#[derive(Clone, Copy)]
struct Due {
    number: u32,
    from: Rank,
    word: u32,
}

/// The chunks that a PE receives, in the order in which it takes them.
struct Incoming<'p> {
    walk: Walk<'p>,
    index: u32,
}

impl Iterator for Incoming<'_> {
    type Item = Due;

    fn next(&mut self) -> Option<Due> {
        loop {
            let (round, further) = self.walk.here()?;
            if let Some((Divided { message, chunks, .. }, _)) = &round.received
                && self.index < *chunks
            {
                let number = message.first + further.chunks + self.index;
                self.index += 1;
                return Some(Due { number, from: message.peer, word: message.word });
            }
            self.walk.go_on();
            self.index = 0;
        }
    }
}

/// The operations of a sequence.
pub(super) struct Cutter<'p> {
    walk: Walk<'p>,
    /// The next chunk of the round.
    index: u32,
    has_copied: bool,
    /// What is to be received next, and whose sender is to be told next.
    awaited: Peekable<Incoming<'p>>,
    untold: Peekable<Incoming<'p>>,
    /// The operations of a chunk, and how many of them are given.
    acts: Vec<Act>,
    given: usize,
    /// Combinations that come after the chunk's send: what is combined may have to be sent before.
    combines: Vec<Act>,
}

impl Iterator for Cutter<'_> {
    type Item = Act;

    #[inline]
    fn next(&mut self) -> Option<Act> {
        loop {
            if let Some(&act) = self.acts.get(self.given) {
                self.given += 1;
                return Some(act);
            }
            if !self.go_on() {
                return None;
            }
        }
    }
}

impl<'p> Cutter<'p> {
    pub(super) fn new(sequence: &'p Sequence) -> Self {
        let walk = Walk::new(sequence);
        let incoming = || Incoming { walk, index: 0 }.peekable();
        let mut cutter = Self {
            walk,
            index: 0,
            has_copied: false,
            awaited: incoming(),
            untold: incoming(),
            acts: Vec::new(),
            given: 0,
            combines: Vec::new(),
        };
        cutter.tell();
        cutter
    }

    /// Has the operations of the next chunk, or of the end of a round, in place of those before;
    /// false when there are no more.
    #[inline(never)]
    fn go_on(&mut self) -> bool {
        self.acts.clear();
        self.given = 0;
        let Some((round, further)) = self.walk.here() else { return false };
        let chunks = |end: &Divided| end.chunks;
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
            return true;
        }
        self.index += 1;
        for is_send in [round.sends_first, !round.sends_first] {
            match (&round.sent, &round.received) {
                (Some(message), _) if is_send && index < sends => {
                    self.send(message, index, further);
                }
                (_, Some((message, keep))) if !is_send && index < receives => {
                    self.copy(round, further);
                    self.receive(message, keep, index, further, !round.sends_first);
                }
                _ => {}
            }
        }
        self.acts.append(&mut self.combines);
        true
    }

    fn copy(&mut self, round: &Measured, further: Further) {
        if std::mem::replace(&mut self.has_copied, true) {
            return;
        }
        let copy = |&(target, source): &(Span, Span)| Act::Copy {
            target: further.span(target),
            source: further.span(source),
        };
        self.acts.extend(round.copied.iter().map(copy));
    }

    fn send(&mut self, sent: &Divided, index: u32, further: Further) {
        let (sequence, message) = (self.walk.sequence, &sent.message);
        let number = message.first + further.chunks + index;
        if number >= sequence.buffers.count {
            self.acts.push(Act::Wait(sequence.setting.slot(message.word), number));
        }
        for (slot, piece) in sequence.pieces(sent, index, number) {
            let source = further.piece(piece, &message.spans);
            self.acts.push(Act::Send(message.peer, slot, number, source));
        }
    }

    fn receive(
        &mut self,
        received: &Divided,
        keep: &Keep,
        index: u32,
        further: Further,
        later: bool,
    ) {
        let (sequence, message) = (self.walk.sequence, &received.message);
        let step = message.first + further.chunks + index;
        let mut at = 0;
        for (slot, piece) in sequence.pieces(received, index, step) {
            let target = further.piece(piece, &message.spans);
            let incoming = Span { at, ..Span::incoming(target.bytes) };
            at += target.bytes;
            let (left, right) = match keep {
                Keep::Stores => {
                    self.acts.push(Act::Receive(slot, step, target));
                    continue;
                }
                Keep::After(left) if !later => {
                    let left = further.piece(piece, left);
                    self.acts.push(Act::ReceiveCombine { slot, step, left, target });
                    continue;
                }
                Keep::After(left) => (further.piece(piece, left), incoming),
                Keep::Before(right) => (incoming, further.piece(piece, right)),
            };
            self.acts.push(Act::Receive(slot, step, incoming));
            self.combines.push(Act::Combine { target, left, right });
        }
        self.awaited.next();
        self.tell();
    }

    /// Tells the senders of those chunks that may come before the next one is taken.
    fn tell(&mut self) {
        let Sequence { setting, buffers, .. } = self.walk.sequence;
        let Some(&Due { number: next, .. }) = self.awaited.peek() else { return };
        let may_come = |due: &Due| due.number - next < buffers.count;
        while let Some(Due { number, from, word }) = self.untold.next_if(may_come) {
            if number >= buffers.count {
                self.acts.push(Act::Tell(from, setting.slot(word), number));
            }
        }
    }
}
