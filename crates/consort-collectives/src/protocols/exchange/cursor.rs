//! The cursor of a call: where it is among its rounds, and what it does next.
//!
//! A plan keeps rounds, whose messages are spans of any length. A call goes through them and cuts
//! each message into chunks as it comes to it. So a plan takes no more memory, and no more time to
//! make or to refuse, for longer messages. The operations of one chunk are made at a time, in
//! memory that the next chunk uses again. Where no message is divided they are made once, by the
//! plan.
//!
//! A PE gives a sender its credit some chunks before it takes what the credit is for. So there are
//! three places in the rounds: of the next operation, of the next chunk to take, and of the next to
//! give credit for.

use std::{iter::Peekable, ops::Range};

use consort_fabric::{Channel, Messages, Op, Place, Rank, Span, Step};

use super::{Buffers, End, Keep, Pass, Round, lines, sends_first};
use crate::Setting;

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Waits for the credit to send a chunk.
    AwaitCredit(Channel, Step),
    Send(Rank, Channel, Step, Span),
    Copy {
        target: Span,
        source: Span,
    },
    Receive(Channel, Step, Span),
    /// `target = left (op) message`.
    ReceiveCombine {
        channel: Channel,
        step: Step,
        left: Span,
        target: Span,
    },
    Combine {
        target: Span,
        left: Span,
        right: Span,
    },
    /// Gives a PE credit to send a chunk.
    Credit(Rank, Channel, Step),
}

impl Act {
    #[inline(always)]
    async fn run<F: Messages>(self, f: &F) -> Op {
        match self {
            Self::AwaitCredit(channel, step) => f.wait(channel, step).await,
            Self::Send(to, channel, step, source) => f.send(to, channel, step, source).await,
            Self::Copy { target, source } => f.copy(target, source).await,
            Self::Receive(channel, step, target) => f.receive(channel, step, target).await,
            Self::ReceiveCombine { channel, step, left, target } => {
                f.receive_combine(channel, step, left, target).await
            }
            Self::Combine { target, left, right } => f.combine(target, left, right).await,
            Self::Credit(to, channel, step) => f.signal(to, channel, step).await,
        }
    }
}

/// The rounds of one PE in a call.
#[derive(Clone, Debug)]
pub struct Rounds {
    kept: Kept,
    steps: u32,
}

/// What rounds are kept as, which is no larger for longer messages.
#[derive(Clone, Debug)]
pub(super) enum Kept {
    /// Where no message is divided: the operations, and where those of each round end.
    Listed(Box<[Act]>, Box<[usize]>),
    /// Else what a call cuts into operations.
    Divided(Box<Sequence>),
}

impl Rounds {
    /// These rounds.
    #[must_use]
    pub fn new(setting: &Setting, buffers: &Buffers, rounds: Vec<Round>) -> Self {
        Self::of_passes(setting, buffers, vec![Pass { rounds, times: 1, bytes: 0, chunks: 0 }])
    }

    /// The rounds of these passes, one after the other.
    #[must_use]
    pub fn of_passes(setting: &Setting, buffers: &Buffers, passes: Vec<Pass>) -> Self {
        let sequence = Sequence::new(setting, buffers, passes);
        let kept = if sequence.is_undivided() {
            let (acts, ends) = listed(&sequence);
            Kept::Listed(acts.into(), ends.into())
        } else {
            Kept::Divided(Box::new(sequence))
        };
        Self { kept, steps: buffers.steps }
    }

    /// Steps of a call.
    #[must_use]
    pub fn steps(&self) -> u64 {
        u64::from(self.steps)
    }

    /// The numbers of the rounds, in their order.
    #[inline(always)]
    #[must_use]
    pub fn numbers(&self) -> Range<usize> {
        match &self.kept {
            Kept::Listed(_, ends) => 0..ends.len(),
            Kept::Divided(sequence) => 0..sequence.count(),
        }
    }

    /// What they are kept as.
    #[cfg(test)]
    pub(super) fn kept(&self) -> &Kept {
        &self.kept
    }

    /// All operations of a call.
    #[cfg(test)]
    pub(super) fn acts(&self) -> Vec<Act> {
        match &self.kept {
            Kept::Listed(acts, _) => acts.to_vec(),
            Kept::Divided(sequence) => listed(sequence).0,
        }
    }

    /// The cursor of a call, before the first round.
    #[inline(always)]
    #[must_use]
    pub fn begin(&self) -> Cursor<'_> {
        Cursor(match &self.kept {
            Kept::Listed(acts, ends) => At::Listed { acts, ends, at: 0 },
            Kept::Divided(sequence) => At::Divided(Box::new(Cutter::new(sequence))),
        })
    }
}

/// All operations of a sequence, and where those of each round end.
fn listed(sequence: &Sequence) -> (Vec<Act>, Vec<usize>) {
    let (mut acts, mut ends) = (Vec::new(), Vec::new());
    let mut cutter = Cutter::new(sequence);
    for _ in 0..sequence.count() {
        while cutter.cut() {
            acts.append(&mut cutter.acts);
        }
        acts.append(&mut cutter.acts);
        ends.push(acts.len());
    }
    (acts, ends)
}

/// Where a call is among its rounds.
#[derive(Debug)]
pub struct Cursor<'p>(At<'p>);

#[derive(Debug)]
enum At<'p> {
    Listed { acts: &'p [Act], ends: &'p [usize], at: usize },
    Divided(Box<Cutter<'p>>),
}

impl Cursor<'_> {
    /// Makes the next round, which is number `round`.
    ///
    /// # Errors
    /// When the job has failed.
    #[inline(always)]
    pub async fn exchange<F: Messages>(&mut self, f: &F, round: usize) -> Op {
        match &mut self.0 {
            At::Listed { acts, ends, at } => {
                for act in &acts[*at..ends[round]] {
                    act.run(f).await?;
                }
                *at = ends[round];
            }
            At::Divided(cutter) => loop {
                let goes_on = cutter.cut();
                for act in &cutter.acts {
                    act.run(f).await?;
                }
                if !goes_on {
                    break;
                }
            },
        }
        Ok(())
    }
}

/// One end of a message, how long it is, and how many chunks.
#[derive(Clone, Debug)]
struct Divided {
    end: End,
    /// See [`Round::at`].
    first: u32,
    credit: u32,
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
        let Round { first, credit, sent, copied, received, combined } = round;
        let sends_first = match (&sent, &received) {
            (Some(sent), Some((received, _))) if !setting.capabilities.buffered => {
                sends_first(setting.rank, sent.0, received.0, setting.call.pes)
            }
            _ => true,
        };
        let divided = |end: End| {
            let bytes = end.1.iter().map(|span| span.bytes).sum();
            Divided { end, first, credit, bytes, chunks: buffers.chunks(bytes) }
        };
        let received = received.map(|(end, keep)| (divided(end), keep));
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

    /// Panics unless chunks are numbered as [`Round::at`] says.
    fn check_numbers(&self) {
        let mut next = 0; // no chunk that comes later has a smaller number
        for Repeated { rounds, times, chunks, .. } in &self.passes {
            let later = u64::from(times - 1) * u64::from(*chunks);
            let numbers =
                |end: &Divided| u64::from(end.first)..u64::from(end.first) + u64::from(end.chunks);
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

    /// How many rounds a call makes.
    fn count(&self) -> usize {
        self.passes.iter().map(|pass| pass.rounds.len() * pass.times as usize).sum()
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
        Divided { end: (_, spans), bytes, .. }: &'m Divided,
        index: u32,
        number: u32,
    ) -> impl Iterator<Item = (Channel, Piece)> + 'm {
        let Buffers { chunk, lines: buffer_lines, count, credits, .. } = self.buffers;
        let from = index as usize * chunk;
        let to = (from + chunk).min(*bytes);
        let (mut next, mut line) = (0, credits + number % count * buffer_lines);
        // An empty message is one piece, too.
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
            Some((channel, Piece { span, at: at - begin, bytes }))
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
#[derive(Clone, Copy, Debug)]
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

/// A chunk to receive: its number, its sender, and the sender's credit.
#[derive(Clone, Copy, Debug)]
struct Due {
    number: u32,
    from: Rank,
    credit: u32,
}

/// The chunks that a PE receives, in the order in which it takes them.
#[derive(Debug)]
struct Incoming<'p> {
    walk: Walk<'p>,
    index: u32,
}

impl Iterator for Incoming<'_> {
    type Item = Due;

    fn next(&mut self) -> Option<Due> {
        loop {
            let (round, further) = self.walk.here()?;
            if let Some((Divided { end: (from, _), first, credit, chunks, .. }, _)) =
                &round.received
                && self.index < *chunks
            {
                let number = first + further.chunks + self.index;
                self.index += 1;
                return Some(Due { number, from: *from, credit: *credit });
            }
            self.walk.go_on();
            self.index = 0;
        }
    }
}

/// Cuts the messages of a sequence into chunks, round by round.
#[derive(Debug)]
struct Cutter<'p> {
    walk: Walk<'p>,
    /// The next chunk of the round.
    index: u32,
    has_begun: bool,
    has_copied: bool,
    /// What is to be received next, and whose sender is to be given credit next.
    awaited: Peekable<Incoming<'p>>,
    uncredited: Peekable<Incoming<'p>>,
    /// The operations of a chunk.
    acts: Vec<Act>,
    /// Combinations that come after the chunk's send: what is combined may have to be sent before.
    combines: Vec<Act>,
}

impl<'p> Cutter<'p> {
    fn new(sequence: &'p Sequence) -> Self {
        let walk = Walk::new(sequence);
        let incoming = || Incoming { walk, index: 0 }.peekable();
        let mut cutter = Self {
            walk,
            index: 0,
            has_begun: false,
            has_copied: false,
            awaited: incoming(),
            uncredited: incoming(),
            acts: Vec::new(),
            combines: Vec::new(),
        };
        cutter.give_credit();
        cutter
    }

    /// Has the operations of the next chunk, or of the end of the round, in place of those before;
    /// false when it is the end.
    #[inline(never)]
    fn cut(&mut self) -> bool {
        // What is there before the first chunk is for the first round.
        if self.has_begun {
            self.acts.clear();
        }
        self.has_begun = true;
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
            return false;
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
        let Divided { end: (to, spans), first, credit, .. } = sent;
        let (sequence, number) = (self.walk.sequence, first + further.chunks + index);
        if number >= sequence.buffers.count {
            self.acts.push(Act::AwaitCredit(sequence.setting.channel(*credit), number));
        }
        for (channel, piece) in sequence.pieces(sent, index, number) {
            let source = further.piece(piece, spans);
            self.acts.push(Act::Send(*to, channel, number, source));
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
        let Divided { end: (_, spans), first, .. } = received;
        let (sequence, step) = (self.walk.sequence, first + further.chunks + index);
        let mut at = 0;
        for (channel, piece) in sequence.pieces(received, index, step) {
            let target = further.piece(piece, spans);
            let incoming = Span { at, ..Span::incoming(target.bytes) };
            at += target.bytes;
            let (left, right) = match keep {
                Keep::Stores => {
                    self.acts.push(Act::Receive(channel, step, target));
                    continue;
                }
                Keep::After(left) if !later => {
                    let left = further.piece(piece, left);
                    self.acts.push(Act::ReceiveCombine { channel, step, left, target });
                    continue;
                }
                Keep::After(left) => (further.piece(piece, left), incoming),
                Keep::Before(right) => (incoming, further.piece(piece, right)),
            };
            self.acts.push(Act::Receive(channel, step, incoming));
            self.combines.push(Act::Combine { target, left, right });
        }
        self.awaited.next();
        self.give_credit();
    }

    /// Gives credit to the senders of those chunks that may come before the next one is taken.
    fn give_credit(&mut self) {
        let Sequence { setting, buffers, .. } = self.walk.sequence;
        let Some(&Due { number: next, .. }) = self.awaited.peek() else { return };
        let may_come = |due: &Due| due.number - next < buffers.count;
        while let Some(Due { number, from, credit }) = self.uncredited.next_if(may_come) {
            if number >= buffers.count {
                self.acts.push(Act::Credit(from, setting.channel(credit), number));
            }
        }
    }
}
