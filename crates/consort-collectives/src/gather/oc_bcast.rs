//! Gather by OC-BCAST's scheme: blocks go from message buffer to message buffer, up a k-ary tree,
//! chunk by chunk.
//!
//! Idea: a PE puts the chunks of its own block into its buffer, and then those of the PEs below it,
//! which it gets from the buffers of its children. A buffer holds two chunks, so that one is filled
//! while the other is read. Source: Petrović 2015, section 3.1, which describes the broadcast; this
//! is the reverse. The blocks of the PEs furthest from the root come last.
//!
//! Protocol, for each chunk of each block of this PE's subtree, numbered from 0
//! (`protocols/relay`):
//! 1. from chunk 2 on, wait until the parent has taken chunk `i - 2`, whose place chunk `i` takes;
//! 2. if the chunk is of this PE's block, copy it into the buffer. Otherwise wait until the child
//!    on its route has it, get it from there, and signal the child. The root writes directly to its
//!    target;
//! 3. notify the parent.
//!
//! At the end, wait until the parent has taken the last chunk.
//!
//! Cost: the root gets `P - 1` blocks; any other PE gets one block for each PE below it.

use consort_fabric::{
    Candidate, Channel, MachineModel, Messages, Op, Query, Rank, Rma, Span, Step,
};

use crate::{
    Algorithm, Direction, Parameter, PlanError, Setting,
    protocols::relay::{self, Relay},
};

#[derive(Hash)]
pub struct OcBcast;

/// A block that a PE contributes or forwards.
#[derive(Clone, Copy, Hash)]
struct Hop {
    rank: Rank,
    /// The child whose buffer has it, the channel in which the child signals a chunk, and the
    /// number of its first chunk among the child's; `None` for this PE's own block.
    child: Option<(Rank, Channel, Step)>,
}

/// One PE's schedule.
#[derive(Hash)]
pub struct Schedule {
    relay: Relay,
    hops: Box<[Hop]>,
    /// The channel in which the parent signals that it has taken a chunk.
    taken: Channel,
    /// The parent, and the channel in which this PE notifies it of a chunk.
    parent: Option<(Rank, Channel)>,
}

impl Algorithm for OcBcast {
    const NAME: &'static str = "oc_bcast";
    const DIRECTION: Direction = Direction::Up;
    const ROOT_ACCESS_IS_UNORDERED: bool = true;
    const PARAMETERS: &'static [Parameter] = relay::PARAMETERS;
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        Self::check_names(candidate)?;
        let relay = Relay::new::<Self>(setting, candidate)?;
        let ready = |index: u32| setting.channel(1 + index);
        let parent = relay.parent.map(|(parent, me)| (parent, ready(me)));
        let mut firsts = vec![0; setting.call.pes as usize];
        let passing = relay.below.iter().map(|&(rank, child)| {
            let next = &mut firsts[child.index as usize];
            let first = std::mem::replace(next, *next + relay.chunks);
            Hop { rank, child: Some((child.rank, ready(child.index), first)) }
        });
        let own = Hop { rank: setting.rank, child: None };
        let hops = [own].into_iter().chain(passing).collect();
        Ok(Schedule { hops, taken: setting.channel(0), parent, relay })
    }

    fn steps(schedule: &Schedule) -> u64 {
        schedule.relay.steps()
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        relay::cost_ns(query, candidate, model)
    }

    #[inline(always)]
    async fn run<F: Messages + Rma>(f: &F, schedule: &Schedule) -> Op {
        let Schedule { ref relay, ref hops, taken, parent } = *schedule;
        let mut sent: Step = 0;
        for &Hop { rank, child } in hops {
            for (index, at, bytes) in relay.pieces() {
                let mut to = Span::target(rank.index() * relay.bytes + at, bytes);
                if parent.is_some() {
                    if let Some(earlier) = sent.checked_sub(2) {
                        f.wait(taken, earlier).await?;
                    }
                    to = relay.buffer(sent, bytes);
                }
                if let Some((child, ready, first)) = child {
                    f.wait(ready, first + index).await?;
                    let data = f.reach(child, relay.buffer(first + index, bytes));
                    f.get(&data, 0, to).await?;
                    f.signal(child, taken, first + index).await?;
                } else {
                    f.copy(to, Span::source(at, bytes)).await?;
                }
                if let Some((parent, ready)) = parent {
                    f.signal(parent, ready, sent).await?;
                    sent += 1;
                }
            }
        }
        match sent.checked_sub(1) {
            Some(last) => f.wait(taken, last).await,
            None => Ok(()),
        }
    }
}
