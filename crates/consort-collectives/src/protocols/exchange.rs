//! Rounds: in each a PE sends to one PE and receives from one, which may be another, or neither.
//!
//! An algorithm says for a PE what each round sends and receives ([`Round`]), by rank arithmetic
//! alone, once for many calls. A call goes through the rounds in a loop and makes each by
//! [`Cursor::exchange`], which divides messages into chunks, numbers these, gives senders credit,
//! and orders what it does such that nobody waits in a ring. Synchronous rounds as of Bruck et al.
//! 1997, section 1; the flow control is double buffering (Petrović 2015, chapter 4) over any number
//! of buffers.
//!
//! The chunks that a PE receives in a call are numbered in the order in which it takes them,
//! message after message. Chunk `i` uses buffer `i mod N` of its inbox:
//!
//! | sender of chunk `i` | receiver |
//! | --- | --- |
//! | waits for its credit, if `i >= N` | takes chunk `i - N` and gives the sender credit |
//! | sends into buffer `i mod N` | takes chunk `i` |
//!
//! So a call that fits the inbox needs no credit. Numbers may be left out: a chunk counts as taken
//! when the next one may come. All PEs then can count alike, whoever takes part in a round.
//!
//! Within a round a PE sends and receives by turns, chunk by chunk, so nobody waits in a ring.
//! Where a send lasts until it is received, not all may send first; see [`sends_first`].
//!
//! A chunk that lies in several spans is as many messages, on lines of their own in one buffer.

mod act;
mod cursor;
mod cutter;
mod sequence;

use consort_fabric::{Channel, MachineModel, Query, Rank, Span};

use crate::Setting;
pub use cursor::{Cursor, Rounds};

/// Buffers that a PE receives into at least where messages are divided.
const BUFFERS: u32 = 4;

fn lines(bytes: usize) -> usize {
    Channel::count_for(bytes)
}

/// How messages are divided, and the buffers they go to; the same on all PEs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffers {
    /// Bytes of a chunk.
    chunk: usize,
    /// Lines of a buffer.
    lines: u32,
    /// How many there are.
    count: u32,
    /// Channels for senders' credits, before the buffers.
    credits: u32,
    /// More than the largest number of a chunk.
    steps: u32,
}

impl Buffers {
    /// For calls in which a PE receives at most `messages`, of at most `longest` bytes each, in at
    /// most `spans` spans each, and in which rounds name credits below `credits`. `None` if the
    /// inbox is too small, or there are more chunks than steps can number.
    #[must_use]
    pub fn new(
        setting: &Setting,
        messages: u32,
        longest: usize,
        spans: u32,
        credits: u32,
    ) -> Option<Self> {
        let (room, cuts) = (setting.lines(), spans.saturating_sub(1));
        let of_buffer = |bytes: usize| u32::try_from(lines(bytes)).ok()?.checked_add(cuts);
        let combines = setting.call.collective.combines();
        // What is combined is received into the scratch memory first.
        let most = if combines { setting.capabilities.scratch_bytes } else { usize::MAX };
        let all = of_buffer(longest).and_then(|lines| lines.checked_mul(messages));
        if longest <= most && all.is_some_and(|all| all <= room) {
            let (lines, count) = (of_buffer(longest)?, messages.max(1));
            return Some(Self { chunk: longest, lines, count, credits: 0, steps: count });
        }
        let room = room.checked_sub(credits)?;
        let whole = if combines { setting.call.element_bytes.max(1) } else { 1 };
        let wanted = Channel::capacity_of((room / BUFFERS).saturating_sub(cuts) as usize);
        let chunk = (wanted.min(most).min(longest) / whole).max(1) * whole;
        let lines = of_buffer(chunk)?;
        let count = room / lines;
        let steps = u32::try_from(longest.div_ceil(chunk).max(1)).ok()?.checked_mul(messages)?;
        let fits = chunk <= most && count >= 2;
        fits.then_some(Self { chunk, lines, count, credits, steps })
    }

    /// Rounds that do not depend on each other, at once: all that is sent and then all that is
    /// received, where the inbox has a place for all; else as they are.
    #[must_use]
    pub fn at_once(&self, setting: &Setting, rounds: Vec<Round>) -> Vec<Round> {
        if !setting.capabilities.buffered || !self.hold_all() {
            return rounds;
        }
        let (mut sends, mut receives) = (Vec::new(), Vec::new());
        for Round { first, credit, sent, copied, received, combined } in rounds {
            let only = Round::at(first, credit);
            sends.push(Round { sent, copied, ..only.clone() });
            receives.push(Round { received, combined, ..only });
        }
        sends.append(&mut receives);
        sends
    }

    /// Whether there is a place for all that a PE receives in a call.
    #[must_use]
    pub const fn hold_all(&self) -> bool {
        self.count >= self.steps
    }

    /// How many chunks a message is.
    #[must_use]
    pub fn chunks(&self, bytes: usize) -> u32 {
        let chunks = if bytes <= self.chunk { 1 } else { bytes.div_ceil(self.chunk) };
        u32::try_from(chunks).unwrap_or(u32::MAX)
    }
}

/// One end of a message: the PE at the other end, and where it lies on this one. There is at least
/// one span, and those of both ends are of the same lengths.
pub type End = (Rank, Vec<Span>);

/// What becomes of a message that is received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keep {
    /// It is stored.
    Stores,
    /// What is kept is what lies in these spans, combined with the message after it.
    After(Vec<Span>),
    /// What is kept is the message, combined with what lies in these spans after it.
    Before(Vec<Span>),
}

/// What a PE does in a round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// The number of the first chunk of its messages among those that their receivers take. Of the
    /// messages that a PE receives each has larger ones than those before.
    first: u32,
    /// Which of a sender's credits says that a chunk may be sent: one that no other receiver gives
    /// it in this call.
    credit: u32,
    sent: Option<End>,
    /// Targets and sources. Copied when it has sent a chunk, before it receives one; or first of
    /// all, where it receives first.
    copied: Vec<(Span, Span)>,
    received: Option<(End, Keep)>,
    /// Target, left and right operand of what is combined when all is received.
    combined: Vec<[Span; 3]>,
}

impl Round {
    /// A round whose chunks have numbers from `first` on, and in which senders get credit number
    /// `credit`.
    #[must_use]
    pub fn at(first: u32, credit: u32) -> Self {
        Self { first, credit, ..Self::default() }
    }

    /// Sends what lies in `spans` to a PE.
    #[must_use]
    pub fn send(mut self, to: Rank, spans: impl Into<Vec<Span>>) -> Self {
        self.sent = Some((to, spans.into()));
        self
    }

    /// Receives into `spans` from a PE: from the one that it sends to, or from one as far away on
    /// the other side. It may take the place of what is sent only if it is combined with that.
    #[must_use]
    pub fn receive(mut self, from: Rank, spans: impl Into<Vec<Span>>, keep: Keep) -> Self {
        self.received = Some(((from, spans.into()), keep));
        self
    }

    /// Copies `source` to `target`, before it receives anything.
    #[must_use]
    pub fn copy(mut self, target: Span, source: Span) -> Self {
        self.copied.push((target, source));
        self
    }

    /// Combines two spans when all is received.
    #[must_use]
    pub fn combine(mut self, target: Span, left: Span, right: Span) -> Self {
        self.combined.push([target, left, right]);
        self
    }

    /// Has a PE copy something before it receives anything, when it has sent what it can.
    pub fn copy_first(rounds: &mut Vec<Self>, target: Span, source: Span) {
        match rounds.iter_mut().find(|round| round.received.is_some()) {
            Some(round) => round.copied.push((target, source)),
            None => rounds.push(Self::default().copy(target, source)),
        }
    }
}

/// Whether `rank`, which sends to `to` and receives from the PE as far away on the other side, or
/// from `to` itself, sends before it receives, where a send lasts until it is received.
///
/// Of two PEs that send to each other the lower one does. Of those that send round a ring with
/// steps of `d` each second one does, as far as that comes out even; so somebody always receives.
#[must_use]
pub fn sends_first(rank: Rank, to: Rank, from: Rank, pes: u32) -> bool {
    let distance = (to.0 + pes - rank.0) % pes;
    let nearest = distance.min(pes - distance);
    if to == from { rank < to } else { (rank.0 / nearest.max(1)).is_multiple_of(2) }
}

/// Rounds that a PE makes several times, each time for what follows in the caller's buffers.
#[derive(Clone, Debug)]
pub struct Pass {
    /// The rounds, as they are the first time.
    pub rounds: Vec<Round>,
    /// How often it makes them.
    pub times: u32,
    /// How much further on their spans of the source and the target are each time, in bytes.
    pub bytes: usize,
    /// By how much the numbers of their chunks are larger each time.
    pub chunks: u32,
}

/// What rounds cost by the model, one after the other: of each kind, how many there are and the
/// bytes of a message. What a PE combines or copies besides is not in it.
#[must_use]
pub fn cost_ns(
    query: &Query,
    model: &MachineModel,
    rounds: impl IntoIterator<Item = (f64, f64)>,
) -> f64 {
    let turns = model.pes_a_core(query.pes);
    let round =
        |(count, bytes)| count * (model.hops_ns(1.0, query.pes) + message_ns(bytes, model) * turns);
    rounds.into_iter().map(round).sum()
}

/// What `count` rounds cost by the model that are made at once.
#[must_use]
pub fn cost_at_once_ns(query: &Query, model: &MachineModel, count: f64, bytes: f64) -> f64 {
    let work = count * (message_ns(bytes, model) + model.next_line_ns);
    model.hops_ns(1.0, query.pes) + work * model.pes_a_core(query.pes)
}

/// The work of a PE that writes the lines of one message and reads those of another.
fn message_ns(bytes: f64, model: &MachineModel) -> f64 {
    2.0 * model.later_lines_ns(bytes) + model.overhead_ns
}

#[cfg(test)]
pub(crate) mod tests;
