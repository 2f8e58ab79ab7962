//! The rounds of a PE with the lengths of their messages, and positions among them.

use consort_fabric::{Channel, Place, Span};

use super::{Buffers, End, OnReceive, Round, RoundLoop, lines, sends_first};
use crate::Setting;

/// One end of a message, its length, and its number of chunks.
#[derive(Clone, Hash)]
pub(super) struct DividedMessage {
    pub(super) end: End,
    /// See [`Round::at`].
    pub(super) first: u32,
    pub(super) credit: u32,
    pub(super) bytes: usize,
    pub(super) chunks: u32,
}

/// A round with the lengths of its messages.
#[derive(Clone, Hash)]
pub(super) struct MeasuredRound {
    pub(super) sent: Option<DividedMessage>,
    pub(super) copied: Vec<(Span, Span)>,
    pub(super) received: Option<(DividedMessage, OnReceive)>,
    pub(super) combined: Vec<[Span; 3]>,
    /// Whether the PE sends a chunk before it receives one.
    pub(super) sends_first: bool,
    /// Whether the messages are a pairwise exchange with one PE.
    pub(super) is_exchange: bool,
}

impl MeasuredRound {
    fn new(setting: &Setting, buffers: &Buffers, round: Round) -> Self {
        let Round { first, credit, sent, copied, received, combined } = round;
        let sends_first = match (&sent, &received) {
            (Some(sent), Some((received, _))) if !setting.capabilities.buffered => {
                sends_first(setting.rank, sent.0, received.0, setting.call.pes)
            }
            _ => true,
        };
        let divided = |end: End| {
            let bytes = end.1.iter().map(|span| span.bytes).sum();
            DividedMessage { end, first, credit, bytes, chunks: buffers.chunks(bytes) }
        };
        let is_exchange = match (&sent, &received) {
            (Some(sent), Some((received, _))) => {
                let short = |(_, spans): &End| is_short(setting, buffers, spans);
                let are_short = short(sent) && short(received);
                let fits = first < buffers.count && setting.capabilities.buffered;
                // Copies come before the exchange, and must not change the data that it sends.
                let is_kept = copied.is_empty() || sent.1[0].place == Place::Source;
                sent.0 == received.0 && are_short && fits && is_kept && !setting.call.nonblocking
            }
            _ => false,
        };
        let received = received.map(|(end, keep)| (divided(end), keep));
        Self { sent: sent.map(divided), copied, received, combined, sends_first, is_exchange }
    }

    fn ends(&self) -> impl Iterator<Item = &DividedMessage> {
        self.sent.iter().chain(self.received.as_ref().map(|(received, _)| received))
    }
}

/// Returns whether a message of these spans is sent in a pairwise exchange.
fn is_short(setting: &Setting, buffers: &Buffers, spans: &[Span]) -> bool {
    matches!(spans, [span] if setting.is_pairwise(span.bytes) && buffers.chunks(span.bytes) == 1)
}

/// See [`RoundLoop`].
#[derive(Clone, Hash)]
pub(super) struct MeasuredLoop {
    rounds: Box<[MeasuredRound]>,
    times: u32,
    bytes: usize,
    chunks: u32,
}

/// All rounds of one PE in a call.
#[derive(Clone, Hash)]
pub(super) struct Sequence {
    pub(super) setting: Setting,
    pub(super) buffers: Buffers,
    pub(super) passes: Box<[MeasuredLoop]>,
}

impl Sequence {
    pub(super) fn new(setting: &Setting, buffers: &Buffers, passes: Vec<RoundLoop>) -> Self {
        let repeated = |RoundLoop { rounds, times, bytes, chunks }| {
            let measured = |round| {
                let measured = MeasuredRound::new(setting, buffers, round);
                // Chunks of later repetitions have other numbers.
                MeasuredRound { is_exchange: measured.is_exchange && times == 1, ..measured }
            };
            MeasuredLoop {
                rounds: rounds.into_iter().map(measured).collect(),
                times,
                bytes,
                chunks,
            }
        };
        let passes = passes.into_iter().filter(|pass| pass.times > 0 && !pass.rounds.is_empty());
        let passes = passes.map(repeated).collect();
        let sequence = Self { setting: *setting, buffers: *buffers, passes };
        sequence.check_numbers();
        sequence
    }

    /// Panics unless chunks are numbered as [`Round::at`] requires.
    fn check_numbers(&self) {
        let mut next = 0; // no later chunk has a smaller number
        for MeasuredLoop { rounds, times, chunks, .. } in &self.passes {
            let later = u64::from(times - 1) * u64::from(*chunks);
            let numbers = |end: &DividedMessage| {
                u64::from(end.first)..u64::from(end.first) + u64::from(end.chunks)
            };
            for end in rounds.iter().flat_map(MeasuredRound::ends) {
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
            assert!(is_apart, "the numbers of the chunks of a pass do not repeat");
            next += later;
        }
    }

    /// Returns whether no message is divided and no pass is repeated.
    pub(super) fn is_undivided(&self) -> bool {
        let is_whole = |round: &MeasuredRound| round.ends().all(|end| end.chunks == 1);
        self.passes.iter().all(|pass| pass.times == 1 && pass.rounds.iter().all(is_whole))
    }

    #[cfg(test)]
    pub(super) fn stored_len(&self) -> usize {
        self.passes.iter().map(|pass| pass.rounds.len()).sum()
    }

    /// Returns the parts of chunk `index` of a message, which is chunk `number` of its receiver:
    /// for each part, its channel in the receiver's buffer and its place in the list of spans.
    pub(super) fn parts<'m>(
        &'m self,
        DividedMessage { end: (_, spans), bytes, .. }: &'m DividedMessage,
        index: u32,
        number: u32,
    ) -> impl Iterator<Item = (Channel, SpanPart)> + 'm {
        let Buffers { chunk, lines: buffer_lines, count, credits, .. } = self.buffers;
        let from = index as usize * chunk;
        let to = (from + chunk).min(*bytes);
        let (mut next, mut line) = (0, credits + number % count * buffer_lines);
        // An empty message also has one part.
        let mut is_empty = from == to;
        spans.iter().enumerate().filter_map(move |(span, &Span { bytes, .. })| {
            let begin = next;
            next += bytes;
            let (at, end) = (from.max(begin), to.min(next));
            if at >= end && !std::mem::take(&mut is_empty) {
                return None;
            }
            let bytes = end.saturating_sub(at);
            let channel = self.setting.channel(line);
            line += u32::try_from(lines(bytes)).unwrap_or(u32::MAX);
            Some((channel, SpanPart { span, at: at - begin, bytes }))
        })
    }
}

/// A part of one of the spans of a message.
#[derive(Clone, Copy)]
pub(super) struct SpanPart {
    span: usize,
    at: usize,
    bytes: usize,
}

/// How far a repetition is ahead of the first one, in the caller's buffers and in chunk numbers.
#[derive(Clone, Copy)]
pub(super) struct LoopOffset {
    bytes: usize,
    pub(super) chunks: u32,
}

impl LoopOffset {
    pub(super) fn span(self, span: Span) -> Span {
        match span.place {
            Place::Source | Place::Target => Span { at: span.at + self.bytes, ..span },
            _ => span,
        }
    }

    pub(super) fn part(self, SpanPart { span, at, bytes }: SpanPart, spans: &[Span]) -> Span {
        let whole = self.span(spans[span]);
        Span { at: whole.at + at, bytes, ..whole }
    }
}

/// A position in a sequence: a pass, its repetition, and a round of the pass.
#[derive(Clone, Copy)]
pub(super) struct SequenceCursor<'p> {
    pub(super) sequence: &'p Sequence,
    pub(super) pass: usize,
    pub(super) time: u32,
    pub(super) round: usize,
}

impl<'p> SequenceCursor<'p> {
    pub(super) fn new(sequence: &'p Sequence) -> Self {
        Self { sequence, pass: 0, time: 0, round: 0 }
    }

    pub(super) fn here(&self) -> Option<(&'p MeasuredRound, LoopOffset)> {
        let &MeasuredLoop { ref rounds, bytes, chunks, .. } =
            self.sequence.passes.get(self.pass)?;
        let further = LoopOffset { bytes: self.time as usize * bytes, chunks: self.time * chunks };
        Some((&rounds[self.round], further))
    }

    pub(super) fn go_on(&mut self) {
        let MeasuredLoop { rounds, times, .. } = &self.sequence.passes[self.pass];
        self.round += 1;
        if self.round == rounds.len() {
            (self.round, self.time) = (0, self.time + 1);
        }
        if self.time == *times {
            (self.time, self.pass) = (0, self.pass + 1);
        }
    }
}
