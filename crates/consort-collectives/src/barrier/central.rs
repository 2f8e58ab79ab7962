//! Central barrier: PEs count their arrivals, and the last one to arrive releases the others.
//!
//! Idea: the sense-reversing barrier of Mellor-Crummey and Scott 1991, section 3.1, with the
//! counter at PE 0. There are two differences. The call's number replaces the sense. And each PE
//! waits on its own word instead of a shared word, because a fabric need not offer waits on a
//! peer's memory. So the release is `P - 1` signals.
//!
//! Protocol: add 1 to the counter; the PE that finds `P - 1` resets it to 0 and signals the others,
//! which wait in channel 0.
//!
//! Cost: `P` atomic additions to one line, `P - 1` messages. If PEs outnumber cores, it needs the
//! fewest time slices: each PE runs once.

use consort_fabric::{Candidate, Channel, Counters, MachineModel, Messages, Op, Query, Rank};

use crate::{Algorithm, Parameter, PlanError, Setting};

#[derive(Hash)]
pub struct Central;

/// One PE's schedule: the PEs to release.
#[derive(Hash)]
pub struct Schedule {
    others: Box<[Rank]>,
    counter: u32,
    release: Channel,
}

impl Algorithm for Central {
    const NAME: &'static str = "central";
    const PARAMETERS: &'static [Parameter] = &[];
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        Self::check_names(candidate)?;
        Self::need_counters(setting)?;
        let others = (0..setting.call.pes).map(Rank).filter(|&rank| rank != setting.rank).collect();
        Ok(Schedule { others, counter: setting.counter, release: setting.channel(0) })
    }

    fn cost_ns(query: &Query, _: &Candidate, model: &MachineModel) -> f64 {
        let pes = f64::from(query.pes);
        if model.is_shared(query.pes) {
            model.hops_ns(1.0, query.pes)
        } else {
            // Each addition moves the line away from the PE that added before.
            (pes + 1.0) * model.transfer_ns + pes * model.next_line_ns
        }
    }

    #[inline(always)]
    async fn run<F: Messages + Counters>(f: &F, schedule: &Schedule) -> Op {
        let Schedule { others, counter, release } = schedule;
        let pes = others.len() as u64 + 1;
        if !f.arrive(Rank(0), *counter, pes).await? {
            return f.wait(*release, 0).await;
        }
        for &peer in others {
            f.signal(peer, *release, 0).await?;
        }
        Ok(())
    }
}
