//! Scatter by OC-BCAST's scheme: blocks go from message buffer to message buffer, down a k-ary
//! tree, chunk by chunk.
//!
//! Idea: a PE puts a chunk into its buffer; the child on the route to the chunk's destination gets
//! it from there. A buffer holds two chunks, so that one is filled while the other is read. Source:
//! Petrović 2015, section 3.1, which describes the broadcast. Blocks for the PEs furthest from the
//! root go first.
//!
//! Protocol, for each chunk of each block of this PE's subtree (`protocols/relay`); the chunks for
//! other PEs are numbered from 0:
//! 1. from chunk 2 on, wait until chunk `i - 2` is taken, whose place chunk `i` takes;
//! 2. the root copies the chunk into its buffer. Other PEs wait until the parent has the chunk, get
//!    it into their buffer, or into the target if it is for them, and signal the parent;
//! 3. notify the child on its route.
//!
//! At the end, wait until the last two chunks are taken.
//!
//! Cost: `P - 1` blocks through the root's buffer. Through the buffer of another PE goes one block
//! for each PE below it.

use consort_fabric::{
    Candidate, Channel, MachineModel, Messages, Op, Query, Rank, Rma, Span, Step,
};

use crate::{
    Algorithm, Direction, Parameter, PlanError, Setting,
    protocols::relay::{self, Relay},
};

#[derive(Hash)]
pub struct OcBcast;

/// A block that a PE receives or forwards.
#[derive(Clone, Copy, Hash)]
struct Hop {
    /// The PE that the block is for.
    rank: Rank,
    /// The number of its first chunk among those that go through the parent's buffer.
    first: Step,
    /// The child that gets it from this PE, and the channel in which the child signals that it has
    /// a chunk; `None` for this PE's own block.
    child: Option<(Rank, Channel)>,
}

/// One PE's schedule.
#[derive(Hash)]
pub struct Schedule {
    relay: Relay,
    hops: Box<[Hop]>,
    /// The channel in which the parent notifies this PE of a chunk.
    notify: Channel,
    /// The parent, and the channel in which this PE signals that it has a chunk.
    parent: Option<(Rank, Channel)>,
}

impl Algorithm for OcBcast {
    const NAME: &'static str = "oc_bcast";
    const DIRECTION: Direction = Direction::Down;
    const ROOT_ACCESS_IS_UNORDERED: bool = true;
    const PARAMETERS: &'static [Parameter] = relay::PARAMETERS;
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        Self::check_names(candidate)?;
        let relay = Relay::new::<Self>(setting, candidate)?;
        let taken = |index: u32| setting.channel(1 + index);
        let parent = relay.parent.map(|(parent, me)| (parent, taken(me)));
        // Every PE begins with the blocks of the lowest level, so its parent does too.
        let below = relay.below.iter().rev();
        let passing = below.map(|&(rank, child)| (rank, Some((child.rank, taken(child.index)))));
        let all = passing.chain([(setting.rank, None)]);
        let of_parent = (0..).zip(relay.below_parent.iter().rev());
        let me = relay.parent.map(|(_, me)| me);
        let mut mine = of_parent.filter(|(_, (_, child))| Some(child.index) == me);
        let mut hop = |(rank, child)| {
            let first = mine.next().map_or(0, |(blocks, _): (Step, _)| blocks * relay.chunks);
            Hop { rank, first, child }
        };
        let hops = all.map(&mut hop).collect();
        Ok(Schedule { hops, notify: setting.channel(0), parent, relay })
    }

    fn steps(schedule: &Schedule) -> u64 {
        schedule.relay.steps()
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        relay::cost_ns(query, candidate, model)
    }

    #[inline(always)]
    async fn run<F: Messages + Rma>(f: &F, schedule: &Schedule) -> Op {
        let Schedule { ref relay, ref hops, notify, parent } = *schedule;
        // The channels of the signals that the last two chunks in this PE's buffer are taken.
        let (mut sent, mut takers) = (0, [None; 2]);
        for &Hop { rank, first, child } in hops {
            for (index, at, bytes) in relay.pieces() {
                let mut to = Span::target(at, bytes);
                if child.is_some() {
                    if let Some(taken) = takers[sent as usize % 2] {
                        f.wait(taken, sent - 2).await?;
                    }
                    to = relay.buffer(sent, bytes);
                }
                if let Some((parent, taken)) = parent {
                    f.wait(notify, first + index).await?;
                    let data = f.reach(parent, relay.buffer(first + index, bytes));
                    f.get(&data, 0, to).await?;
                    f.signal(parent, taken, first + index).await?;
                } else {
                    f.copy(to, Span::source(rank.index() * relay.bytes + at, bytes)).await?;
                }
                if let Some((child, taken)) = child {
                    f.signal(child, notify, sent).await?;
                    takers[sent as usize % 2] = Some(taken);
                    sent += 1;
                }
            }
        }
        for number in sent.saturating_sub(2)..sent {
            if let Some(taken) = takers[number as usize % 2] {
                f.wait(taken, number).await?;
            }
        }
        Ok(())
    }
}
