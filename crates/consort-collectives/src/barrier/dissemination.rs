//! Dissemination barrier of radix k.
//!
//! Idea: in each round everyone tells `k - 1` others and hears from as many; after
//! `ceil(log_k P)` rounds everyone has heard of everyone, directly or not. Sources: Hensgen, Finkel
//! and Manber 1988; Mellor-Crummey and Scott 1991, section 3.3; other radices as in Nishtala and
//! Yelick 2009.
//!
//! Protocol, for each round: signal the round's peers, each in a slot of its own; wait for as many
//! signals.
//!
//! Cost: `(k - 1) ceil(log_k P)` messages a PE, `ceil(log_k P)` transfers on the critical path.

use consort_fabric::{Candidate, Fabric, MachineModel, Op, Query, Rank, Slot};

use crate::{Algorithm, Parameter, PlanError, Setting, patterns::dissemination::rounds};

/// See the head of this file.
#[derive(Debug)]
pub struct Dissemination;

/// Whom a PE signals, and where; as many signals come in, in the same slots.
#[derive(Debug)]
pub struct Schedule {
    /// The partner, where there is one round with one: they meet.
    only: Option<(Rank, Slot)>,
    rounds: Vec<Box<[(Rank, Slot)]>>,
}

impl Algorithm for Dissemination {
    const NAME: &'static str = "dissemination";
    const PARAMETERS: &'static [Parameter] =
        &[Parameter { name: "radix", values: &[2, 4, 8], range: (2, 1 << 16) }];
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        Self::check_names(candidate)?;
        let radix = u32::try_from(Self::parameter(candidate, 0)?).unwrap_or(u32::MAX);
        let mut slot = 0;
        let mut in_slot = |rank| {
            slot += 1;
            (rank, setting.slot(slot - 1))
        };
        let rounds: Vec<Box<[_]>> = rounds(setting.rank, setting.pes, radix)
            .into_iter()
            .map(|round| round.to.into_iter().map(&mut in_slot).collect())
            .collect();
        let only = match rounds.as_slice() {
            // A barrier beside another would find its words.
            [round] if round.len() == 1 && !setting.beside => Some(round[0]),
            _ => None,
        };
        Ok(Schedule { only, rounds })
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        let radix = candidate.parameter("radix").unwrap_or(2).max(2) as f64;
        let rounds = f64::from(query.pes).log(radix).ceil();
        let more = (radix - 2.0).min(f64::from(query.pes) - 2.0).max(0.0) * model.next_line_ns;
        model.hops_ns(rounds, query.pes) + rounds * more + model.overhead_ns
    }

    #[inline(always)]
    async fn run<F: Fabric>(f: &F, schedule: &Schedule) -> Op {
        if let Some((peer, slot)) = schedule.only {
            return f.meet(peer, slot, 0).await;
        }
        for round in &schedule.rounds {
            for &(peer, slot) in round {
                f.signal(peer, slot, 0).await?;
            }
            for &(_, slot) in round {
                f.wait(slot, 0).await?;
            }
        }
        Ok(())
    }
}
