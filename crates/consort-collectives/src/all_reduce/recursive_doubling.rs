//! All-reduce by recursive doubling: the distance of partners doubles in each round.
//!
//! Source: Thakur, Rabenseifner and Gropp 2005, "Optimization of collective communication
//! operations in MPICH", section 4.5. Neighbours are the first partners, so that each PE has the
//! sum of consecutive ranks and combines in rank order.
//!
//! Protocol, for `P = 2^n + e`:
//! 1. among the first `2 e` PEs, each odd one sends its data to the PE before it, and waits;
//! 2. the other `2^n` PEs exchange their partial results with the PE at distance 1, 2, 4, ...;
//! 3. the waiting PEs receive the result.
//!
//! Cost: `log2 P` transfers, two more if `P` is not a power of two.

use consort_fabric::{CallSpec, Candidate, Channel, MachineModel, Messages, Op, Query, Rank, Span};

use super::flat::message_lines;
use crate::{Algorithm, Parameter, PlanError, Setting};

#[derive(Hash)]
pub struct RecursiveDoubling;

/// One PE's schedule.
#[derive(Hash)]
pub struct Schedule {
    bytes: usize,
    role: Role,
    fold: Channel,
    /// Whether both partners send before they receive; otherwise only the one with the lower ranks
    /// does.
    both_send: bool,
}

#[derive(Hash)]
enum Role {
    /// Sends its data to a PE, and receives the result from it.
    Waits(Rank),
    /// Exchanges partial results.
    Works {
        /// The waiting PE whose data it combines with its own.
        folded: Option<Rank>,
        /// Per round: the partner, whether its ranks are lower, and the channel.
        rounds: Box<[(Rank, bool, Channel)]>,
    },
}

impl Algorithm for RecursiveDoubling {
    const NAME: &'static str = "recursive_doubling";
    const PARAMETERS: &'static [Parameter] = &[];
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        Self::check_names(candidate)?;
        let Setting { rank: Rank(rank), call: CallSpec { pes, bytes, .. }, .. } = *setting;
        let rounds = pes.ilog2();
        let Some(lines) = message_lines(setting, rounds + 1) else {
            return Err(Self::incapable("the messages do not fit the inbox or the scratch memory"));
        };
        let folded = pes - (1 << rounds);
        // The PEs that exchange are renumbered in rank order.
        let rank_of = |node: u32| Rank(if node < folded { 2 * node } else { node + folded });
        let role = if rank < 2 * folded && rank % 2 == 1 {
            Role::Waits(Rank(rank - 1))
        } else {
            let node = if rank < 2 * folded { rank / 2 } else { rank - folded };
            let with = |round: u32| {
                let other = node ^ (1 << round);
                (rank_of(other), other < node, setting.channel((1 + round) * lines))
            };
            Role::Works {
                folded: (rank < 2 * folded).then_some(Rank(rank + 1)),
                rounds: (0..rounds).map(with).collect(),
            }
        };
        let both_send = setting.capabilities.buffered;
        Ok(Schedule { bytes, role, fold: setting.channel(0), both_send })
    }

    fn cost_ns(query: &Query, _: &Candidate, model: &MachineModel) -> f64 {
        let bytes = query.bytes as f64;
        let work = 2.0 * model.lines_ns(bytes) + bytes / model.copy_gbps;
        let extra = if query.pes.is_power_of_two() { 0.0 } else { 2.0 };
        let rounds = f64::from(query.pes.max(1).ilog2()) + extra;
        let turns = model.pes_a_core(query.pes);
        rounds * (model.hops_ns(1.0, query.pes) + work * turns)
    }

    #[inline(always)]
    async fn run<F: Messages>(f: &F, schedule: &Schedule) -> Op {
        let Schedule { bytes, ref role, fold, both_send } = *schedule;
        let (own, sum) = (Span::source(0, bytes), Span::target(0, bytes));
        let (folded, rounds) = match role {
            Role::Waits(worker) => {
                f.send(*worker, fold, 0, own).await?;
                return f.receive(fold, 0, sum).await;
            }
            Role::Works { folded, rounds } => (folded, rounds),
        };
        let mut so_far = own;
        if folded.is_some() {
            f.receive_combine(fold, 0, own, sum).await?;
            so_far = sum;
        }
        for &(partner, is_before, channel) in rounds {
            let theirs = Span::incoming(bytes);
            if both_send || !is_before {
                f.send(partner, channel, 0, so_far).await?;
            }
            if is_before {
                f.receive(channel, 0, theirs).await?;
                if !both_send {
                    f.send(partner, channel, 0, so_far).await?;
                }
                f.combine(sum, theirs, so_far).await?;
            } else {
                f.receive_combine(channel, 0, so_far, sum).await?;
            }
            so_far = sum;
        }
        if so_far == own {
            f.copy(sum, own).await?;
        }
        match folded {
            Some(waiting) => f.send(*waiting, fold, 0, sum).await,
            None => Ok(()),
        }
    }
}
