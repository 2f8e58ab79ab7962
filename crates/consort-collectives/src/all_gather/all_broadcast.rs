//! All broadcast: each PE broadcasts its block down its own k-nomial tree.
//!
//! A composition of `P` unchanged broadcasts `knomial`, one from each PE (Nishtala, Zheng, Hargrove
//! and Yelick 2011, section 3.5). The target of the broadcast from root `s` is block `s` of every
//! PE's target. Each broadcast has its own share of the inbox's lines.
//!
//! Protocol: a PE runs the broadcasts in the order of the distance of their roots: first its own,
//! then those of the PEs before it. So all PEs first send their own blocks, and in turn `i` PE `r`
//! is node `i` of the tree rooted at `r - i`. Its parent in this tree is a node with a lower
//! number, which forwards the block in an earlier turn, so PEs never wait in a cycle. This holds
//! only if a send does not wait for its receiver. A send waits if the fabric does not buffer
//! messages, or if the inbox has no room for all chunks of a block. In that case, all PEs run the
//! broadcasts one after the other in rank order.
//!
//! Cost: each PE sends and receives `P - 1` messages with any radix. The critical path is the depth
//! of the tree. Radix 1 is `ring`, and a radix of at least `P` is `flat`. In the model, `flat` is
//! never more expensive. The composition is kept because the source describes it.

use consort_fabric::{
    CallSpec, Candidate, Capabilities, Collective, Fabric, Local, MachineModel, Op, Query, Rank,
    Span, SyncMode, SyncModes,
};

use crate::{
    Algorithm, Parameter, PlanError, Setting,
    broadcast::Knomial,
    compose::{PartFabric, SequentialParts, of_whole},
    protocols::exchange,
    rank_math::tree::Shape,
};

#[derive(Hash)]
pub struct AllBroadcast;

/// One PE's schedule.
#[derive(Hash)]
pub struct Schedule {
    /// The length of a block, in bytes.
    bytes: usize,
    /// The broadcasts in order, each with its root.
    turns: Box<[(Rank, <Knomial as Algorithm>::Schedule)]>,
}

fn tree(candidate: &Candidate) -> Candidate {
    Candidate::new(Knomial::NAME).with("radix", candidate.parameter("radix").unwrap_or(0))
}

/// Returns the setting of turn `turn`, the broadcast from `root`.
fn part(setting: &Setting, turn: u32, root: Rank) -> Setting {
    let Setting { call: CallSpec { pes, sync, .. }, .. } = *setting;
    // Between two turns only this PE uses its buffers.
    let entry = if turn == 0 { sync.entry } else { SyncMode::Mine };
    let exit = if turn + 1 == pes { sync.exit } else { SyncMode::Mine };
    let share = setting.lines() / pes;
    let first_channel = setting.first_channel + root.0 * share;
    let capabilities =
        Capabilities { inbox_channels: first_channel + share, ..setting.capabilities };
    let sync = SyncModes { entry, exit };
    let call = CallSpec { collective: Collective::Broadcast, root, sync, ..setting.call };
    Setting { call, first_channel, capabilities, is_whole: false, ..*setting }
}

impl Algorithm for AllBroadcast {
    const NAME: &'static str = "all_broadcast";
    const PARAMETERS: &'static [Parameter] =
        &[Parameter { name: "radix", values: &[2, 4, 8], range: (1, 1 << 16) }];
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        Self::check_names(candidate)?;
        Self::parameter(candidate, 0)?;
        let Setting { rank, capabilities, call: CallSpec { pes, bytes, .. }, .. } = *setting;
        let (first, broadcast) = (part(setting, 0, Rank(0)), tree(candidate));
        let refused = |error| of_whole(Self::NAME, Collective::Broadcast, error);
        let first = Knomial::schedule(&first, &broadcast).map_err(refused)?;
        // Up to two chunks have one buffer each, so they are sent without acknowledgements.
        let at_once = capabilities.buffered && Knomial::steps(&first) <= 2;
        let turn = |turn: u32| {
            let root =
                if at_once { rank.plus((pes - turn) as usize, pes as usize) } else { Rank(turn) };
            let broadcast = Knomial::schedule(&part(setting, turn, root), &broadcast);
            Ok((root, broadcast.map_err(refused)?))
        };
        Ok(Schedule { bytes, turns: (0..pes).map(turn).collect::<Result<_, PlanError>>()? })
    }

    fn steps(schedule: &Schedule) -> u64 {
        schedule.turns.iter().map(|(_, broadcast)| Knomial::steps(broadcast)).max().unwrap_or(1)
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        let (bytes, others) = (query.bytes as f64, f64::from(query.pes) - 1.0);
        let radix = candidate.parameter("radix").and_then(|radix| u32::try_from(radix).ok());
        let depth = Shape::Knomial(radix.unwrap_or(2)).depth(query.pes);
        let passed_on = exchange::cost_ns(query, model, [(f64::from(depth) - 1.0, bytes)]).max(0.0);
        exchange::own_copy_ns(query, model)
            + exchange::cost_at_once_ns(query, model, others, bytes)
            + passed_on
    }

    #[inline(always)]
    async fn run<F: Fabric>(f: &F, schedule: &Schedule) -> Op {
        let Schedule { bytes, ref turns } = *schedule;
        for (root, broadcast) in turns {
            let block = PartFabric::new(
                f,
                SequentialParts::<false>::new(f.rank(), root.index() * bytes, 0),
            );
            Knomial::run(&block, broadcast).await?;
            if *root == f.rank() {
                // The root of a broadcast leaves its data in the source, but an all-gather needs it
                // in the target too.
                block.copy(Span::target(0, bytes), Span::source(0, bytes)).await?;
            }
        }
        Ok(())
    }
}
