//! Rounds: in each round, a PE may send to one PE and receive from one PE, the same or another.
//!
//! An algorithm computes by rank arithmetic the messages of a PE in each round ([`Round`]), once
//! for many calls. A call executes the rounds ([`Rounds::run`]): it divides messages into chunks,
//! numbers the chunks, gives credits to senders, and orders operations so that PEs never wait in a
//! cycle. The rounds are the synchronous ones of Bruck et al. 1997, section 1. The flow control is
//! double buffering (Petrović 2015, section 3.1.1), with any number of buffers.
//!
//! The chunks that a PE receives in a call are numbered in the order in which it takes them,
//! message by message. Chunk `i` uses buffer `i mod N` of its inbox:
//!
//! | sender of chunk `i` | receiver |
//! | --- | --- |
//! | awaits its credit, if `i >= N` | takes chunk `i - N` and gives the sender the credit |
//! | sends into buffer `i mod N` | takes chunk `i` |
//!
//! So a call that fits the inbox needs no credits. A PE that receives nothing in a round skips the
//! round's numbers, so that all PEs use the same numbers. A skipped number counts as taken.
//!
//! Within a round, a PE alternates sends and receives, chunk by chunk, so PEs never wait in a
//! cycle. If a send waits for its receiver, some PEs must receive first; see [`sends_first`].
//!
//! A chunk with several spans is one message per span, each on its own lines of one buffer.

mod act;
mod cursor;
mod cutter;
mod sequence;

use consort_fabric::{Channel, MachineModel, Query, Rank, Span};

use crate::Setting;
pub use cursor::Rounds;

/// The smallest number of buffers that a PE receives into if messages are divided.
const BUFFERS: u32 = 4;

fn lines(bytes: usize) -> usize {
    Channel::count_for(bytes)
}

/// The division of messages into chunks, and the buffers for the chunks; the same on all PEs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Buffers {
    /// Bytes of a chunk.
    chunk: usize,
    /// Lines of a buffer.
    lines: u32,
    count: u32,
    /// The number of channels for credits, before the buffers.
    credits: u32,
    /// An upper bound of the chunk numbers, exclusive.
    steps: u32,
}

impl Buffers {
    /// Returns the buffers for calls in which a PE receives at most `messages` messages, each of at
    /// most `longest` bytes in at most `spans` spans, and in which rounds use credits below
    /// `credits`. Returns `None` if the inbox is too small, the scratch memory is too small for
    /// data that is combined, or there are more chunks than steps can number.
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
        // Data to be combined is first received into the scratch memory.
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

    /// Merges rounds that do not depend on each other, so that all sends come before all receives,
    /// if the inbox has room for all messages. Otherwise returns the rounds unchanged.
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

    /// Returns whether the inbox has room for everything that a PE receives in a call.
    #[must_use]
    pub const fn hold_all(&self) -> bool {
        self.count >= self.steps
    }

    /// Returns the number of chunks of a message of `bytes`.
    #[must_use]
    pub fn chunks(&self, bytes: usize) -> u32 {
        let chunks = if bytes <= self.chunk { 1 } else { bytes.div_ceil(self.chunk) };
        u32::try_from(chunks).unwrap_or(u32::MAX)
    }
}

/// One end of a message: the PE at the other end, and the spans on this PE. There is at least one
/// span, and the spans of both ends have the same lengths.
pub type End = (Rank, Vec<Span>);

/// The use of a received message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum OnReceive {
    /// The message is stored.
    Stores,
    /// `spans (op) message` is stored.
    After(Vec<Span>),
    /// `message (op) spans` is stored.
    Before(Vec<Span>),
}

/// The work of a PE in a round.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Round {
    /// The number of the first chunk of its messages, as the receivers number them. These numbers
    /// ascend over the messages that a PE receives.
    first: u32,
    /// The sender's credit that allows a chunk to be sent. In a call, only one receiver gives the
    /// sender this credit.
    credit: u32,
    sent: Option<End>,
    /// Targets and sources of copies. They are made between the send of a chunk and the receive of
    /// one, or at the beginning if the PE receives first.
    copied: Vec<(Span, Span)>,
    received: Option<(End, OnReceive)>,
    /// Target, left and right operand of the combinations, which are made when everything is
    /// received.
    combined: Vec<[Span; 3]>,
}

impl Round {
    /// Creates a round whose chunks are numbered from `first`, and whose senders await credit
    /// `credit`.
    #[must_use]
    pub fn at(first: u32, credit: u32) -> Self {
        Self { first, credit, ..Self::default() }
    }

    /// Sends the data of `spans` to a PE.
    #[must_use]
    pub fn send(mut self, to: Rank, spans: impl Into<Vec<Span>>) -> Self {
        self.sent = Some((to, spans.into()));
        self
    }

    /// Receives into `spans` from a PE: either the PE that the round sends to, or the PE at the
    /// same distance on the other side. The spans may overlap the sent ones only if they are
    /// combined with them.
    #[must_use]
    pub fn receive(mut self, from: Rank, spans: impl Into<Vec<Span>>, keep: OnReceive) -> Self {
        self.received = Some(((from, spans.into()), keep));
        self
    }

    /// Copies `source` to `target` before anything is received.
    #[must_use]
    pub fn copy(mut self, target: Span, source: Span) -> Self {
        self.copied.push((target, source));
        self
    }

    /// Combines two spans when everything is received.
    #[must_use]
    pub fn combine(mut self, target: Span, left: Span, right: Span) -> Self {
        self.combined.push([target, left, right]);
        self
    }

    /// Copies a span before the first receive, and after the sends that precede it.
    pub fn copy_first(rounds: &mut Vec<Self>, target: Span, source: Span) {
        match rounds.iter_mut().find(|round| round.received.is_some()) {
            Some(round) => round.copied.push((target, source)),
            None => rounds.push(Self::default().copy(target, source)),
        }
    }
}

/// Returns whether `rank` sends before it receives, if a send waits for its receiver. It sends to
/// `to`, and receives from `to` or from the PE at the same distance on the other side.
///
/// If two PEs send to each other, the lower one sends first. In a ring with steps of `d`, every
/// second PE sends first. Two neighbours do the same only where the ring closes, if its number of
/// PEs is odd. So some PE always receives.
#[must_use]
pub fn sends_first(rank: Rank, to: Rank, from: Rank, pes: u32) -> bool {
    let distance = (to.0 + pes - rank.0) % pes;
    let nearest = distance.min(pes - distance);
    if to == from { rank < to } else { (rank.0 / nearest.max(1)).is_multiple_of(2) }
}

/// Rounds that a PE repeats, each time on the next part of the caller's buffers.
#[derive(Clone, Hash)]
pub struct RoundLoop {
    /// The rounds of the first repetition.
    pub rounds: Vec<Round>,
    /// The number of repetitions.
    pub times: u32,
    /// The bytes by which the spans of the source and the target advance with each repetition.
    pub bytes: usize,
    /// The number by which the chunk numbers advance with each repetition.
    pub chunks: u32,
}

/// Returns the model's estimate for consecutive rounds, in nanoseconds, given the number of rounds
/// of each kind and the bytes of a message. It excludes combinations and copies.
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

/// Returns the model's estimate for `count` rounds at once, in nanoseconds.
#[must_use]
pub fn cost_at_once_ns(query: &Query, model: &MachineModel, count: f64, bytes: f64) -> f64 {
    let work = count * (message_ns(bytes, model) + model.next_line_ns);
    model.hops_ns(1.0, query.pes) + work * model.pes_a_core(query.pes)
}

/// Returns the model's estimate for the copies of the PEs' own blocks, in nanoseconds.
#[must_use]
pub fn own_copy_ns(query: &Query, model: &MachineModel) -> f64 {
    query.bytes as f64 / model.copy_gbps * model.pes_a_core(query.pes)
}

/// Returns the time of a PE to write the lines of one message and to read those of another.
fn message_ns(bytes: f64, model: &MachineModel) -> f64 {
    2.0 * model.later_lines_ns(bytes) + model.overhead_ns
}

#[cfg(test)]
pub(crate) mod tests;
