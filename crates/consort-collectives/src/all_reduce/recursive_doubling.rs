//! All-reduce by recursive doubling, or multiplying: each round multiplies the number of PEs whose
//! data a PE has combined by the radix.
//!
//! Sources: Thakur, Rabenseifner and Gropp 2005, "Optimization of collective communication
//! operations in MPICH", section 4.5, for radix 2; Ruefenacht, Bull and Booth 2017, "Generalisation
//! of recursive doubling for AllReduce", for others. Neighbours are the first partners, so that
//! each PE has the sum of consecutive ranks and combines in rank order. All members of a group
//! combine in the same order, so that sums of floating-point numbers are equal on all PEs.
//!
//! Protocol for radix `k`, for `P = m k^n + e` with `m < k` and `e < k^n` (`rank_math/groups`):
//! 1. among the first `2 e` PEs, each odd one sends its data to the PE before it, and waits;
//! 2. in `n` rounds, the other `m k^n` PEs exchange their partial results in groups of `k` at
//!    distance 1, `k`, `k^2`, ...; if `m > 1`, they do so once more in groups of `m`;
//! 3. the waiting PEs receive the result.
//!
//! Because the last groups may be smaller, each PE that works has at most one waiting PE, so steps
//! 1 and 3 are those of radix 2. A count such as 192 needs no waiting PEs: with radix 4, three
//! rounds have groups of 4 and one has groups of 3. Groups of the factors of `P` would be more
//! general, but primes would need waiting PEs all the same.
//!
//! Cost: at most `ceil(log_k P)` transfers of `k - 1` messages per PE, and two more transfers if
//! `e > 0`. A larger radix has fewer rounds, but each PE receives the messages of a round one after
//! the other: it is faster where a message takes much longer than the work of sending it.

use consort_fabric::{CallSpec, Candidate, Channel, MachineModel, Messages, Op, Query, Rank, Span};

use super::flat::message_lines;
use crate::{
    Algorithm, Parameter, PlanError, Setting,
    rank_math::groups::{Group, groups, sizes},
};

#[derive(Hash)]
pub struct RecursiveDoubling;

/// One PE's schedule.
#[derive(Hash)]
pub struct Schedule {
    bytes: usize,
    role: Role,
    fold: Channel,
    /// Whether all partners send before they receive; otherwise each one sends when it has received
    /// from those with lower ranks.
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
        rounds: Box<[Round]>,
    },
}

#[derive(Hash)]
struct Round {
    /// The partners, in rank order.
    partners: Box<[Partner]>,
    /// How many of them have lower ranks.
    lower: usize,
}

#[derive(Clone, Copy, Hash)]
struct Partner {
    rank: Rank,
    /// The channels of the message to it and of the message from it.
    channels: (Channel, Channel),
}

impl Algorithm for RecursiveDoubling {
    const NAME: &'static str = "recursive_doubling";
    const PARAMETERS: &'static [Parameter] =
        &[Parameter { name: "radix", values: &[2, 4], range: (2, 1 << 16) }];
    const REVISION: u32 = 2;
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        Self::check_names(candidate)?;
        let radix = u32::try_from(Self::parameter(candidate, 0)?).unwrap_or(u32::MAX);
        let Setting { rank: Rank(rank), call: CallSpec { pes, bytes, .. }, .. } = *setting;
        let sizes = sizes(pes, radix);
        let messages: u32 = sizes.iter().map(|size| size - 1).sum();
        let Some(lines) = message_lines(setting, 1 + messages) else {
            return Err(Self::incapable("the messages do not fit the inbox or the scratch memory"));
        };
        let folded = pes - sizes.iter().product::<u32>();
        // The PEs that exchange are renumbered in rank order.
        let rank_of = |node: u32| Rank(if node < folded { 2 * node } else { node + folded });
        let role = if rank < 2 * folded && rank % 2 == 1 {
            Role::Waits(Rank(rank - 1))
        } else {
            let node = if rank < 2 * folded { rank / 2 } else { rank - folded };
            let mut first = 1;
            let round = |(Group { others, lower }, size): (Group, &u32)| {
                // The channels of the messages from the other members of a group, in rank order.
                let channel = |index: u32| setting.channel((first + index) * lines);
                let partner = |(index, node)| {
                    let to = if index < lower { lower - 1 } else { lower };
                    Partner { rank: rank_of(node), channels: (channel(to), channel(index)) }
                };
                let partners = (0..).zip(others).map(partner).collect();
                first += size - 1;
                Round { partners, lower: lower as usize }
            };
            Role::Works {
                folded: (rank < 2 * folded).then_some(Rank(rank + 1)),
                rounds: groups(node, &sizes).into_iter().zip(&sizes).map(round).collect(),
            }
        };
        let both_send = setting.capabilities.buffered;
        Ok(Schedule { bytes, role, fold: setting.channel(0), both_send })
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        let radix = candidate.parameter("radix").and_then(|radix| u32::try_from(radix).ok());
        let sizes = sizes(query.pes, radix.unwrap_or(2).max(2));
        let bytes = query.bytes as f64;
        let work = 2.0 * model.lines_ns(bytes) + bytes / model.copy_gbps;
        let folds = if sizes.iter().product::<u32>() == query.pes { 0.0 } else { 2.0 };
        let rounds = sizes.len() as f64 + folds;
        let messages = sizes.iter().map(|size| f64::from(size - 1)).sum::<f64>() + folds;
        let turns = model.pes_a_core(query.pes);
        // A PE reads the lines of a round one after the other, and a read is half a transfer.
        let later = (messages - rounds) * (model.transfer_ns / 2.0 + model.overhead_ns);
        rounds * model.hops_ns(1.0, query.pes) + (messages * work + later) * turns
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
        for &Round { ref partners, lower } in rounds {
            let (before, after) = partners.split_at(lower);
            let below = Span::accumulator(bytes);
            for sends in [both_send, !both_send] {
                if sends {
                    for &Partner { rank, channels: (to, _) } in after.iter().chain(before) {
                        f.send(rank, to, 0, so_far).await?;
                    }
                    continue;
                }
                for (index, &Partner { channels: (_, from), .. }) in before.iter().enumerate() {
                    if index == 0 {
                        f.receive(from, 0, below).await?;
                    } else {
                        f.receive_combine(from, 0, below, below).await?;
                    }
                }
            }
            if !before.is_empty() {
                f.combine(sum, below, so_far).await?;
                so_far = sum;
            }
            for &Partner { channels: (_, from), .. } in after {
                f.receive_combine(from, 0, so_far, sum).await?;
                so_far = sum;
            }
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
