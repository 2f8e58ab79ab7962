//! Two levels: up inside each node, across between nodes, down inside each node.
//!
//! Messages inside a node cost less than messages between nodes, and the PEs of a node share its
//! connection. So one PE of each node, its *leader*, communicates for it: the PE at the same place
//! on its node as the root on the root's node, or the first PE. The candidate names the parts'
//! algorithms, as in `two_level(flat,rabenseifner,knomial(radix=4))`, or none for the default
//! ones. Each part may be any algorithm of its collective, and runs unchanged over a fabric of its
//! PEs (`Sub`). If all PEs share memory, nodes are the last-level caches.
//!
//! | | up | across | down |
//! | --- | --- | --- | --- |
//! | barrier | barrier | barrier | barrier |
//! | broadcast | | broadcast | broadcast |
//! | scatter | | scatter | scatter |
//! | gather | gather | gather | |
//! | all-gather | gather | all-gather | broadcast |
//! | all-to-all | gather | all-to-all | scatter |
//! | reduce | reduce | reduce | |
//! | all-reduce | reduce | all-reduce | broadcast |
//! | reduce-scatter | reduce | reduce-scatter | scatter |
//!
//! If parts gather or scatter, the blocks of a node go across as one block, and all nodes must have
//! the same number of PEs. If this is not the order of ranks, leaders reorder the blocks before and
//! after. In an all-gather, and in an all-reduce of more than half of the scratch memory, data that
//! has gone up is in the leader's target. Otherwise it is at the end of the accumulator, and data
//! to be scattered down is at the end of the memory for incoming messages: both fit, and move only
//! by messages. On `Nodes::InTurn`, operators must be commutative.
//!
//! The parts share the call: each has a third of the inbox, and separate counters. The first has
//! the caller's entry mode, the last its exit mode. In between, only a PE itself uses its buffers.

use std::{future::Future, marker::PhantomData, pin::Pin};

use consort_fabric::{
    CallSpec, Candidate, Capabilities, Collective, Fabric, MachineModel, Nodes, Op, OperatorClass,
    Place, Query, Rank, Ranks, SyncMode, SyncModes, Vendor,
};

use super::{
    any::{PartSchedule, part_of},
    of_whole,
    reorder::Reorder,
    sub::{Buffer, Buffers, Sub},
    volume::{Volume, by_node, by_rank},
};
use crate::{Algorithm, Parameter, PlanError, Setting, algorithm::AnySchedule};

/// Scratch memory is divided at cache lines, which suits any element.
const LINE_BYTES: usize = 64;

/// A part that does not exist.
#[derive(Hash)]
pub enum NoPart {}

impl AnySchedule for NoPart {
    const COLLECTIVE: Option<Collective> = None;

    fn new(_: &Setting, _: &Candidate) -> Result<Self, PlanError> {
        unreachable!("a part that is not there has no schedule")
    }

    fn steps(&self) -> u64 {
        match *self {}
    }

    fn cost_ns(_: &Query, _: &Candidate, _: &MachineModel) -> f64 {
        0.0
    }

    fn run<'c, F: Fabric>(&'c self, _: &'c F) -> Pin<Box<dyn Future<Output = Op> + 'c>> {
        match *self {}
    }
}

/// See [`Algorithm::cost_ns`].
type Cost = fn(&Query, &Candidate, &MachineModel) -> f64;

/// A collective in two levels, by three parts: `Up` inside nodes to the leaders, `Across` between
/// the leaders, and `Down` inside nodes from the leaders.
#[derive(Debug)]
pub struct TwoLevel<Up, Across, Down>(PhantomData<(Up, Across, Down)>);

/// The modes of each part, the size of its blocks, and the place of its buffers.
#[derive(Clone, Copy, Hash)]
struct Outline {
    sync: [SyncModes; 3],
    bytes: [usize; 3],
    buffers: [Buffers; 3],
    /// Whether the part across has its data in the leaders' targets.
    in_place: bool,
    /// The number of bytes of scratch memory that are left to the parts with buffers there.
    scratch_bytes: usize,
}

/// One PE's schedule: those of the parts that it takes part in, and the blocks that it reorders
/// before and after the part across.
#[derive(Hash)]
pub struct Schedule<Up, Across, Down> {
    up: Option<PartSchedule<Up>>,
    before: Option<Reorder>,
    across: Option<PartSchedule<Across>>,
    after: Option<Reorder>,
    down: Option<PartSchedule<Down>>,
    steps: u64,
}

impl<Up: AnySchedule, Across: AnySchedule, Down: AnySchedule> TwoLevel<Up, Across, Down> {
    const fn has(level: usize) -> bool {
        Self::PARTS[level].is_some()
    }

    fn is(level: usize, part: Collective) -> bool {
        Self::PARTS[level] == Some(part)
    }

    fn candidate(candidate: &Candidate, level: usize) -> Result<Candidate, PlanError> {
        part_of::<Self>(candidate, Self::PARTS[..level].iter().flatten().count())
    }

    /// Returns the modes of the parts. If a leader reorders its data after the last part, that part
    /// exits with mode Mine, because no peer may access the data during the reordering.
    fn sync(sync: SyncModes, reorders_after: bool) -> [SyncModes; 3] {
        std::array::from_fn(|level| {
            let is_first = Self::PARTS[..level].iter().all(Option::is_none);
            let is_last = Self::PARTS[level + 1..].iter().all(Option::is_none) && !reorders_after;
            SyncModes {
                entry: if is_first { sync.entry } else { SyncMode::Mine },
                exit: if is_last { sync.exit } else { SyncMode::Mine },
            }
        })
    }

    /// Returns what is the same for all PEs of a node, or `None` if the data does not fit.
    fn outline(setting: &Setting, volume: &Volume) -> Option<Outline> {
        let Setting { rank, call, capabilities, .. } = *setting;
        let Capabilities { nodes, scratch_bytes, .. } = capabilities;
        let gathers_all = Self::is(1, Collective::AllGather);
        // If the data is long, scratch memory would have to hold more than one copy.
        let in_place = Self::is(1, Collective::AllReduce) && call.bytes > scratch_bytes / 2;
        let is_kept = Self::has(0) && !gathers_all && !in_place || volume.rows > 0;
        let kept_blocks = if is_kept { volume.gathered } else { 0 };
        let kept = call.bytes.checked_mul(kept_blocks.max(volume.scattered))?;
        let scratch_bytes = scratch_bytes.checked_sub(kept)? / LINE_BYTES * LINE_BYTES;
        // Reordering needs some spare memory.
        (scratch_bytes > 0 || volume.rows + volume.columns == 0).then_some(())?;
        let bytes = volume.blocks.map(|blocks| blocks * call.bytes);
        let [source, target] = [Place::Source, Place::Target].map(|place| Buffer::new(place, 0));
        let [accumulator, incoming] =
            [Place::Accumulator, Place::Incoming].map(|place| Buffer::new(place, scratch_bytes));
        let own_node = nodes.node(rank.0);
        let apart = if gathers_all { bytes[1] } else { 0 };
        let gathered = if is_kept { accumulator } else { Buffer { apart, ..target } };
        let up = Buffers { source, target: gathered.on(own_node) };
        let across = Buffers {
            source: if Self::has(0) || is_kept { gathered } else { source },
            target: if Self::is(2, Collective::Scatter) { incoming } else { target },
        };
        // The root of a broadcast has no target.
        let is_at_root =
            call.collective == Collective::Broadcast && own_node == nodes.node(call.root.0);
        let down = Buffers { source: if is_at_root { source } else { across.target }, target };
        let sync = Self::sync(call.sync, volume.columns > 0);
        Some(Outline { sync, bytes, buffers: [up, across, down], in_place, scratch_bytes })
    }

    /// Returns the blocks that a leader reorders before and after its part across.
    fn reorders(setting: &Setting, volume: &Volume, outline: &Outline) -> [Option<Reorder>; 2] {
        let Setting { call: CallSpec { pes, bytes, .. }, capabilities, .. } = *setting;
        let nodes = capabilities.nodes;
        let [up, across, _] = outline.buffers;
        let from = if Self::has(0) { up.target } else { up.source };
        let run = if let Nodes::Blocks(block) = nodes { block } else { 1 };
        let rows = |rows: usize| u32::try_from(rows).ok().filter(|&rows| rows > 0 && bytes > 0);
        let reorder = |buffers, order: Vec<u32>, bytes| {
            Reorder::new(buffers, &order, bytes, outline.scratch_bytes)
        };
        let before = rows(volume.rows).map(|rows| {
            let order = by_node(nodes, pes, rows, run);
            reorder([from, across.source], order, run as usize * bytes)
        });
        let after = rows(volume.columns)
            .map(|rows| reorder([across.target; 2], by_rank(nodes, pes, rows), bytes));
        [before, after]
    }

    /// Returns the part of a level among `ranks`, and its steps. The leader is the one at index
    /// `root`. `own` is `None` for a PE that is not among them and only checks that they have a
    /// schedule.
    fn part<S: AnySchedule>(
        setting: &Setting,
        candidate: &Candidate,
        level: usize,
        outline: &Outline,
        (ranks, root, own): (Ranks, u32, Option<u32>),
    ) -> Result<(Option<PartSchedule<S>>, u64), PlanError> {
        let Some(collective) = S::COLLECTIVE else { return Ok((None, 1)) };
        let lines = setting.lines() / 3;
        let index = u32::try_from(level).unwrap_or(0);
        let first_channel = setting.first_channel + index * lines;
        let buffers = outline.buffers[level];
        let in_scratch = buffers.source.is_scratch() || buffers.target.is_scratch();
        let in_place = level == 1 && outline.in_place;
        let symmetric = setting.call.symmetric;
        let whole = setting.capabilities;
        let capabilities = Capabilities {
            inbox_channels: first_channel + lines,
            scratch_bytes: if in_scratch { outline.scratch_bytes } else { whole.scratch_bytes },
            exposes: whole.exposes && !in_scratch && !(in_place && symmetric),
            nodes: Nodes::One,
            // Vendor libraries accept no source that lies in the target.
            vendor: Vendor {
                team: whole.vendor.leaders
                    && level == 1
                    && ranks.first == 0
                    && buffers.source.place != buffers.target.place,
                leaders: false,
            },
            ..whole
        };
        let call = CallSpec {
            collective,
            pes: ranks.count,
            root: Rank(root),
            bytes: outline.bytes[level],
            sync: outline.sync[level],
            symmetric: symmetric && !in_scratch && !in_place,
            in_place,
            ..setting.call
        };
        let rank = Rank(own.unwrap_or(root));
        let counter = setting.counter + [0, 2, 6][level];
        let part = Setting {
            call,
            rank,
            capabilities,
            first_channel,
            counter,
            is_whole: false,
            ..*setting
        };
        let schedule = S::new(&part, &Self::candidate(candidate, level)?)
            .map_err(|error| of_whole::<Self>(collective, error))?;
        let steps = schedule.steps();
        Ok((own.map(|own| PartSchedule { sub: Sub { ranks, own, buffers }, schedule }), steps))
    }
}

impl<Up: AnySchedule, Across: AnySchedule, Down: AnySchedule> Algorithm
    for TwoLevel<Up, Across, Down>
{
    const NAME: &'static str = "two_level";
    const PARAMETERS: &'static [Parameter] = &[];
    const PARTS: [Option<Collective>; 3] = [Up::COLLECTIVE, Across::COLLECTIVE, Down::COLLECTIVE];
    type Schedule = Schedule<Up, Across, Down>;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Self::Schedule, PlanError> {
        Self::check_names(candidate)?;
        let (nodes, CallSpec { pes, root, class, collective, .. }) =
            (setting.capabilities.nodes, setting.call);
        let count = nodes.count(pes);
        if count == 1 || count == pes {
            return Err(Self::incapable("the PEs are on one node, or each on a separate node"));
        }
        let is_regular = nodes.members(0, pes).count * count == pes;
        let divides = Self::is(0, Collective::Gather) || Self::is(2, Collective::Scatter);
        if divides && !is_regular {
            return Err(Self::incapable("some nodes have more PEs than others"));
        }
        let is_ordered = collective.combines() && class != OperatorClass::Commutative;
        if is_ordered && matches!(nodes, Nodes::InTurn(_)) {
            return Err(Self::incapable(
                "the PEs are dealt in turn, but the operator is not commutative",
            ));
        }
        let volume = Volume::new(Self::PARTS, collective, pes, nodes);
        let Some(outline) = Self::outline(setting, &volume) else {
            return Err(Self::incapable("the data of a leader is longer than the scratch memory"));
        };
        let leader = if collective.is_rooted() { nodes.place(root.0) } else { 0 };
        let Some(leaders) = nodes.across(leader, pes) else {
            return Err(Self::incapable("a node has no PE at the root's place"));
        };
        let own = setting.rank.0;
        let members = nodes.members(nodes.node(own), pes);
        let inside = (members, leader, members.index(own));
        let between = (leaders, nodes.node(root.0), leaders.index(own));
        let (up, mut steps) = Self::part(setting, candidate, 0, &outline, inside)?;
        let (across, across_steps) = Self::part(setting, candidate, 1, &outline, between)?;
        let (down, down_steps) = Self::part(setting, candidate, 2, &outline, inside)?;
        steps = steps.max(across_steps).max(down_steps);
        // Other nodes may have more or fewer PEs: as many as the first or the last node. They must
        // have schedules too, and all PEs must count the same steps.
        let ends = [0, count - 1];
        for node in ends.into_iter().filter(|_| !is_regular) {
            let others = (nodes.members(node, pes), leader, None);
            let (_, up_there) = Self::part::<Up>(setting, candidate, 0, &outline, others)?;
            let (_, down_there) = Self::part::<Down>(setting, candidate, 2, &outline, others)?;
            steps = steps.max(up_there).max(down_there);
        }
        let has_blocks = across.is_some() && (!collective.is_rooted() || setting.rank == root);
        let [before, after] =
            if has_blocks { Self::reorders(setting, &volume, &outline) } else { [None, None] };
        Ok(Schedule { up, before, across, after, down, steps })
    }

    fn steps(schedule: &Self::Schedule) -> u64 {
        schedule.steps
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        let Some((nodes, inside)) = &model.inside else { return f64::INFINITY };
        let volume = Volume::new(Self::PARTS, query.collective, query.pes, *nodes);
        let syncs = Self::sync(query.sync, volume.columns > 0);
        let (count, members) = (nodes.count(query.pes), nodes.members(0, query.pes).count);
        let cost = |level: usize, pes, cost: Cost, model: &MachineModel| {
            let Some(collective) = Self::PARTS[level] else { return 0.0 };
            let Ok(part) = Self::candidate(candidate, level) else {
                return f64::INFINITY;
            };
            let bytes = query.bytes.saturating_mul(volume.blocks[level] as u64);
            let sync = syncs[level];
            let query = Query { collective, sync, pes, bytes, symmetric: false, ..*query };
            cost(&query, &part, model)
        };
        let copy_ns = inside.next_line_ns + query.bytes as f64 / inside.copy_gbps;
        cost(0, members, Up::cost_ns, inside)
            + cost(1, count, Across::cost_ns, model)
            + cost(2, members, Down::cost_ns, inside)
            + volume.reordered(query.pes) as f64 * copy_ns
    }

    async fn run<F: Fabric>(f: &F, schedule: &Self::Schedule) -> Op {
        let Schedule { up, before, across, after, down, .. } = schedule;
        if let Some(up) = up {
            up.run(f).await?;
        }
        if let Some(before) = before {
            before.run(f).await?;
        }
        if let Some(across) = across {
            across.run(f).await?;
        }
        if let Some(after) = after {
            after.run(f).await?;
        }
        if let Some(down) = down {
            down.run(f).await?;
        }
        Ok(())
    }
}
