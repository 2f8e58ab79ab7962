//! Dissemination barrier of radix k.
//!
//! Idea: in each round every PE signals `k - 1` others and waits for `k - 1` signals. After
//! `ceil(log_k P)` rounds, every PE depends on the arrival of every other PE, directly or not.
//! Sources: Hensgen, Finkel and Manber 1988; Mellor-Crummey and Scott 1991, section 3.3; other
//! radices as in Nishtala, Zheng, Hargrove and Yelick 2011, section 3.4 (there for exchanges of
//! data).
//!
//! Protocol, for each round: signal the round's peers, each in its own channel; wait for the same
//! number of signals.
//!
//! Cost: at most `(k - 1) ceil(log_k P)` messages per PE, `ceil(log_k P)` transfers on the critical
//! path.

use consort_fabric::{Candidate, Channel, MachineModel, Messages, Op, Query, Rank};

use crate::{
    Algorithm, Parameter, PlanError, Setting,
    rank_math::dissemination::{round_count, rounds},
};

#[derive(Hash)]
pub struct Dissemination;

/// One PE's schedule: the peers to signal, with the channels. The PE awaits the same number of
/// signals in the same channels.
#[derive(Hash)]
pub struct Schedule {
    /// The partner of a pairwise exchange, if there is only one round with one peer.
    only: Option<(Rank, Channel)>,
    rounds: Vec<Box<[(Rank, Channel)]>>,
}

impl Algorithm for Dissemination {
    const NAME: &'static str = "dissemination";
    const PARAMETERS: &'static [Parameter] =
        &[Parameter { name: "radix", values: &[2, 4, 8], range: (2, 1 << 16) }];
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        Self::check_names(candidate)?;
        let radix = u32::try_from(Self::parameter(candidate, 0)?).unwrap_or(u32::MAX);
        let mut channel = 0;
        let mut in_channel = |rank| {
            channel += 1;
            (rank, setting.channel(channel - 1))
        };
        let rounds: Vec<Box<[_]>> = rounds(setting.rank, setting.call.pes, radix)
            .into_iter()
            .map(|round| round.to.into_iter().map(&mut in_channel).collect())
            .collect();
        let only = match rounds.as_slice() {
            [round] if round.len() == 1 => Some(round[0]),
            _ => None,
        };
        Ok(Schedule { only, rounds })
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        let radix = candidate.parameter("radix").and_then(|radix| u32::try_from(radix).ok());
        let radix = radix.unwrap_or(2).max(2);
        let rounds = round_count(query.pes, radix) as f64;
        let more =
            (f64::from(radix) - 2.0).min(f64::from(query.pes) - 2.0).max(0.0) * model.next_line_ns;
        model.hops_ns(rounds, query.pes) + rounds * more + model.overhead_ns
    }

    #[inline(always)]
    async fn run<F: Messages>(f: &F, schedule: &Schedule) -> Op {
        if let Some((peer, channel)) = schedule.only {
            return f.pairwise_exchange(peer, channel, 0, None, None).await;
        }
        for round in &schedule.rounds {
            for &(peer, channel) in round {
                f.signal(peer, channel, 0).await?;
            }
            for &(_, channel) in round {
                f.wait(channel, 0).await?;
            }
        }
        Ok(())
    }
}
