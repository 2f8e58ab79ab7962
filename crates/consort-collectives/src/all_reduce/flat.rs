//! Flat all-reduce: every PE sends its data to every other PE.
//!
//! Idea: for one line of data, nothing is faster than one transfer, after which each PE combines
//! all contributions. The work grows with the number of PEs, so this is for few PEs.
//!
//! Protocol:
//! 1. send this PE's data to every other PE, into the channel of the sender's rank;
//! 2. combine the data of all PEs in rank order.
//!
//! Two PEs with one word each use a pairwise combine, like the pairwise exchange of the barrier
//! `dissemination`. If the data is only a little longer, they use a pairwise exchange.
//!
//! Cost: one transfer, `P - 1` messages per PE. A scheme in which each PE writes one line and reads
//! all others costs the same. Here a PE waits only for words in its own memory, so each PE writes a
//! copy of its line to every other PE. If the data has 8 bytes, the copy is a short slot instead of
//! a line.
//!
//! Source: a dissemination of radix `P`, which sends the same messages as a flat exchange
//! (Nishtala, Zheng, Hargrove and Yelick 2011, section 3.4).

use consort_fabric::{
    CallSpec, Candidate, Channel, MachineModel, Messages, Op, OperatorClass, Query, Rank, Span,
};

use crate::{Algorithm, Parameter, PlanError, Setting};

#[derive(Hash)]
pub struct Flat;

/// One PE's schedule.
#[derive(Hash)]
pub struct Schedule {
    bytes: usize,
    /// The schedule for a team of two.
    pair: Option<Pair>,
    /// The channel of each PE's message, by rank; this PE's entry is not used.
    channels: Box<[Channel]>,
}

/// The schedule of one PE of two.
#[derive(Clone, Copy, Hash)]
struct Pair {
    peer: Rank,
    /// The channels of this PE's message and of the peer's.
    channels: (Channel, Channel),
    /// Whether this PE's data is the left operand.
    is_left: bool,
    passing: Passing,
}

/// How two PEs exchange their data.
#[derive(Clone, Copy, Hash)]
enum Passing {
    /// By a pairwise combine, if the data is one word.
    Combine(Channel),
    /// By a pairwise exchange, if the data is short.
    Exchange(Channel),
    /// By messages.
    Messages,
}

impl Algorithm for Flat {
    const NAME: &'static str = "flat";
    const PARAMETERS: &'static [Parameter] = &[];
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        Self::check_names(candidate)?;
        let Setting { call: CallSpec { pes, bytes, .. }, .. } = *setting;
        if !setting.capabilities.buffered {
            return Err(Self::incapable("the fabric's sends wait for their receivers"));
        }
        let Some(lines) = message_lines(setting, pes) else {
            return Err(Self::incapable("the messages do not fit the inbox or the scratch memory"));
        };
        let channel = |rank: u32| setting.channel(rank * lines);
        let me = setting.rank.0;
        let pair = (pes == 2).then(|| Pair {
            peer: Rank(1 - me),
            channels: (channel(me), channel(1 - me)),
            is_left: me == 0 || setting.call.class == OperatorClass::Commutative,
            passing: match bytes {
                8 => Passing::Combine(channel(0)),
                _ if setting.is_pairwise(bytes) => Passing::Exchange(channel(0)),
                _ => Passing::Messages,
            },
        });
        Ok(Schedule { bytes, pair, channels: (0..pes).map(channel).collect() })
    }

    fn cost_ns(query: &Query, _: &Candidate, model: &MachineModel) -> f64 {
        let (others, bytes) = (f64::from(query.pes) - 1.0, query.bytes as f64);
        let message = model.lines_ns(bytes) + bytes / model.copy_gbps;
        let work = (others - 1.0).max(0.0) * (message + model.overhead_ns) + message;
        let turns = model.pes_a_core(query.pes);
        model.hops_ns(1.0, query.pes) + work * turns
    }

    #[inline(always)]
    async fn run<F: Messages>(f: &F, schedule: &Schedule) -> Op {
        let Schedule { bytes, pair, ref channels } = *schedule;
        let (own, sum) = (Span::source(0, bytes), Span::target(0, bytes));
        if let Some(Pair { peer, channels: (to, from), is_left, passing }) = pair {
            match passing {
                Passing::Combine(channel) => {
                    return f.pairwise_combine(peer, channel, 0, own, sum).await;
                }
                Passing::Exchange(channel) => {
                    let message = Span::incoming(bytes);
                    f.pairwise_exchange(peer, channel, 0, Some(own), Some(message)).await?;
                    let (left, right) = if is_left { (own, message) } else { (message, own) };
                    return f.combine(sum, left, right).await;
                }
                Passing::Messages => {}
            }
            f.send(peer, to, 0, own).await?;
            if is_left {
                return f.receive_combine(from, 0, own, sum).await;
            }
            f.receive(from, 0, sum).await?;
            return f.combine(sum, sum, own).await;
        }
        let me = f.rank();
        for peer in (0..f.size()).map(Rank).filter(|&peer| peer != me) {
            f.send(peer, channels[me.index()], 0, own).await?;
        }
        let mut so_far = None;
        for (rank, &channel) in channels.iter().enumerate() {
            match (so_far, rank == me.index()) {
                (None, true) => {
                    so_far = Some(own);
                    continue;
                }
                (None, false) => f.receive(channel, 0, sum).await?,
                (Some(left), true) => f.combine(sum, left, own).await?,
                (Some(left), false) => f.receive_combine(channel, 0, left, sum).await?,
            }
            so_far = Some(sum);
        }
        if so_far == Some(own) { f.copy(sum, own).await } else { Ok(()) }
    }
}

/// Returns the number of lines of a message that holds all of the data. `None` unless `messages` of
/// them fit the inbox and one fits the scratch memory.
pub(super) fn message_lines(setting: &Setting, messages: u32) -> Option<u32> {
    let lines = u32::try_from(Channel::count_for(setting.call.bytes)).ok()?;
    let fits = lines.checked_mul(messages).is_some_and(|all| all <= setting.lines());
    (fits && setting.call.bytes <= setting.capabilities.scratch_bytes).then_some(lines)
}
