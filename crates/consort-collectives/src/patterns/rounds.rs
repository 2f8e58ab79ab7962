//! Rounds: in each a PE sends to one PE and receives from one, which may be another, or neither.
//!
//! An algorithm says for a PE what each round sends and receives ([`Round`]), by rank arithmetic
//! alone, once for many calls. A call makes single operations of that (`cut`); where messages are
//! not divided they are made once, too. Synchronous rounds as of Bruck et al. 1997, section 1; the
//! flow control is double buffering (Petrović 2015, chapter 4) over any number of buffers.
//!
//! The chunks that a PE receives in a call are numbered in the order in which it takes them,
//! message after message. Chunk `i` uses buffer `i mod N` of its inbox:
//!
//! | sender of chunk `i` | receiver |
//! | --- | --- |
//! | waits for its word, if `i >= N` | takes chunk `i - N` and gives the sender its word |
//! | sends into buffer `i mod N` | takes chunk `i` |
//!
//! So a call that fits the inbox needs no word back. Numbers may be left out: a chunk counts as
//! taken when the next one may come. All PEs then can count alike, whoever takes part in a round.
//!
//! Within a round a PE sends and receives by turns, chunk by chunk, so nobody waits in a ring.
//! Where a send lasts until it is received, not all may send first; see [`sends_first`].
//!
//! A chunk that lies in several spans is as many messages, on lines of their own in one buffer.

mod cut;

use std::slice;

use consort_fabric::{Fabric, LINE_PAYLOAD_BYTES, MachineModel, Op, Query, Rank, Span};

use crate::Setting;
use cut::{Act, Cutter, Sequence};

/// Buffers that a PE receives into at least where messages are divided.
const BUFFERS: u32 = 4;

fn lines(bytes: usize) -> usize {
    bytes.div_ceil(LINE_PAYLOAD_BYTES).max(1)
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
    /// The senders' words, in the slots before the buffers.
    words: u32,
    /// More than the largest number of a chunk.
    steps: u32,
}

impl Buffers {
    /// For calls in which a PE receives at most `messages`, of at most `longest` bytes each, in at
    /// most `spans` spans each, and in which messages name words below `words`. `None` if the inbox
    /// is too small, or there are more chunks than steps can number.
    #[must_use]
    pub fn new(
        setting: &Setting,
        messages: u32,
        longest: usize,
        spans: u32,
        words: u32,
    ) -> Option<Self> {
        let (room, cuts) = (setting.lines(), spans.saturating_sub(1));
        let of_buffer = |bytes: usize| u32::try_from(lines(bytes)).ok()?.checked_add(cuts);
        let combines = setting.collective.combines();
        // What is combined is received into the scratch memory first.
        let most = if combines { setting.capabilities.scratch_bytes } else { usize::MAX };
        let all = of_buffer(longest).and_then(|lines| lines.checked_mul(messages));
        if longest <= most && all.is_some_and(|all| all <= room) {
            let (lines, count) = (of_buffer(longest)?, messages.max(1));
            return Some(Self { chunk: longest, lines, count, words: 0, steps: count });
        }
        let room = room.checked_sub(words)?;
        let whole = if combines { setting.element_bytes.max(1) } else { 1 };
        let wanted = (room / BUFFERS).saturating_sub(cuts) as usize * LINE_PAYLOAD_BYTES;
        let chunk = (wanted.min(most).min(longest) / whole).max(1) * whole;
        let lines = of_buffer(chunk)?;
        let count = room / lines;
        let steps = u32::try_from(longest.div_ceil(chunk).max(1)).ok()?.checked_mul(messages)?;
        let fits = chunk <= most && count >= 2;
        fits.then_some(Self { chunk, lines, count, words, steps })
    }

    /// Rounds that do not depend on each other, at once: all that is sent and then all that is
    /// received, where the inbox has a place for all; else as they are.
    #[must_use]
    pub fn at_once(&self, setting: &Setting, rounds: Vec<Round>) -> Vec<Round> {
        if !setting.capabilities.buffered || !self.hold_all() {
            return rounds;
        }
        let (mut sends, mut receives) = (Vec::new(), Vec::new());
        for Round { sent, copied, received, combined } in rounds {
            sends.push(Round { sent, copied, ..Round::default() });
            receives.push(Round { received, combined, ..Round::default() });
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

/// One end of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The PE at the other end.
    pub peer: Rank,
    /// Where it lies on this PE: at least one span, as long as those of the other end.
    pub spans: Vec<Span>,
    /// The number of its first chunk among those that the receiver takes. Of the messages that a PE
    /// receives each has larger ones than those before.
    pub first: u32,
    /// Which of the sender's words says that a chunk may be sent: one that no other receiver uses
    /// in this call.
    pub word: u32,
}

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
    /// What it sends.
    pub sent: Option<Message>,
    /// What it copies: targets and sources. It does so when it has sent a chunk, before it receives
    /// one; or first of all, where it receives first.
    pub copied: Vec<(Span, Span)>,
    /// What it receives, from the same PE or from one as far away on the other side. It may take
    /// the place of what is sent only if it is combined with that.
    pub received: Option<(Message, Keep)>,
    /// What it combines when it has received all: target, left and right operand.
    pub combined: Vec<[Span; 3]>,
}

impl Round {
    /// The round of a PE in a call in which all have as many rounds, with as many chunks in each:
    /// the one after rounds with `first` chunks in all, as number `word`. What is sent or received
    /// is a PE and spans.
    #[must_use]
    pub fn alike(
        first: u32,
        word: u32,
        sent: Option<(Rank, Vec<Span>)>,
        received: Option<(Rank, Vec<Span>, Keep)>,
    ) -> Self {
        let message = |peer, spans| Message { peer, spans, first, word };
        Self {
            sent: sent.map(|(to, spans)| message(to, spans)),
            copied: Vec::new(),
            received: received.map(|(from, spans, keep)| (message(from, spans), keep)),
            combined: Vec::new(),
        }
    }

    /// Has a PE copy something before it receives anything, when it has sent what it can.
    pub fn copy_first(rounds: &mut Vec<Self>, target: Span, source: Span) {
        match rounds.iter_mut().find(|round| round.received.is_some()) {
            Some(round) => round.copied.push((target, source)),
            None => rounds.push(Self { copied: vec![(target, source)], ..Self::default() }),
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

/// What one PE does in a call.
#[derive(Clone, Debug)]
pub struct Program {
    parts: Parts,
    steps: u32,
}

/// What a program is kept as, which is no larger for longer messages.
#[derive(Clone, Debug)]
enum Parts {
    /// Where no message is divided: the operations.
    Listed(Box<[Act]>),
    /// Else what a call cuts into operations.
    Cut(Box<Sequence>),
}

impl Program {
    /// The program of the PE that has these rounds.
    #[must_use]
    pub fn new(setting: &Setting, buffers: &Buffers, rounds: Vec<Round>) -> Self {
        Self::of_passes(setting, buffers, vec![Pass { rounds, times: 1, bytes: 0, chunks: 0 }])
    }

    /// The program of the PE that makes these passes, one after the other.
    #[must_use]
    pub fn of_passes(setting: &Setting, buffers: &Buffers, passes: Vec<Pass>) -> Self {
        let sequence = Sequence::new(setting, buffers, passes);
        let parts = if sequence.is_undivided() {
            Parts::Listed(Cutter::new(&sequence).collect())
        } else {
            Parts::Cut(Box::new(sequence))
        };
        Self { parts, steps: buffers.steps }
    }

    /// Steps of a call.
    #[must_use]
    pub fn steps(&self) -> u64 {
        u64::from(self.steps)
    }

    /// The operations, in their order.
    #[inline(always)]
    fn acts(&self) -> Acts<'_> {
        match &self.parts {
            Parts::Listed(acts) => Acts::Listed(acts.iter()),
            Parts::Cut(sequence) => Acts::Cut(Box::new(Cutter::new(sequence))),
        }
    }
}

/// The operations of a program.
enum Acts<'p> {
    Listed(slice::Iter<'p, Act>),
    Cut(Box<Cutter<'p>>),
}

impl Iterator for Acts<'_> {
    type Item = Act;

    #[inline(always)]
    fn next(&mut self) -> Option<Act> {
        match self {
            Self::Listed(acts) => acts.next().copied(),
            Self::Cut(cutter) => cutter.next(),
        }
    }
}

/// The protocol.
#[inline(always)]
pub async fn run<F: Fabric>(f: &F, program: &Program) -> Op {
    for act in program.acts() {
        match act {
            Act::Wait(slot, step) => f.wait(slot, step).await?,
            Act::Send(to, slot, step, source) => f.send(to, slot, step, source).await?,
            Act::Copy { target, source } => f.copy(target, source).await?,
            Act::Receive(slot, step, target) => f.receive(slot, step, target).await?,
            Act::ReceiveCombine { slot, step, left, target } => {
                f.receive_combine(slot, step, left, target).await?;
            }
            Act::Combine { target, left, right } => f.combine(target, left, right).await?,
            Act::Tell(to, slot, step) => f.signal(to, slot, step).await?,
        }
    }
    Ok(())
}

/// What rounds cost by the model, one after the other: of each kind, how many there are and the
/// bytes of a message. What a PE combines or copies besides is not in it.
#[must_use]
pub fn cost_ns(
    query: &Query,
    model: &MachineModel,
    rounds: impl IntoIterator<Item = (f64, f64)>,
) -> f64 {
    let turns = turns(query, model);
    let round =
        |(count, bytes)| count * (model.hops_ns(1.0, query.pes) + message_ns(bytes, model) * turns);
    rounds.into_iter().map(round).sum()
}

/// What `count` rounds cost by the model that are made at once.
#[must_use]
pub fn cost_at_once_ns(query: &Query, model: &MachineModel, count: f64, bytes: f64) -> f64 {
    let work = count * (message_ns(bytes, model) + model.next_line_ns);
    model.hops_ns(1.0, query.pes) + work * turns(query, model)
}

/// How often a core works, where PEs outnumber cores: their work is done one after the other.
fn turns(query: &Query, model: &MachineModel) -> f64 {
    f64::from(query.pes) / f64::from(model.cores.min(query.pes).max(1))
}

/// The work of a PE that writes the lines of one message and reads those of another.
fn message_ns(bytes: f64, model: &MachineModel) -> f64 {
    let lines = (bytes / LINE_PAYLOAD_BYTES as f64).ceil().max(1.0);
    2.0 * (lines - 1.0) * model.next_line_ns + model.overhead_ns
}

#[cfg(test)]
pub(crate) mod play;
