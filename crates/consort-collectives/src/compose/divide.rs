//! The plan of a collective in levels: which PEs run which part, one part after the other.
//!
//! A part among some PEs that are divided again is a collective in two levels of these PEs. So the
//! plan is a list of parts that are not divided further, each with the view of its PEs of the whole
//! call. All of this is independent of the types of algorithms, and compiled once.
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
//! The parts share the call. Those that are not divided further have equal shares of the inbox. The
//! parts of the whole call have separate counters, and parts of parts have none. The first part has
//! the caller's entry mode, the last its exit mode. In between, only a PE itself uses its buffers.

use consort_fabric::{
    CallSpec, Candidate, Capabilities, Collective, MachineModel, Nodes, OperatorClass, Place,
    Query, Rank, Ranks, SyncMode, SyncModes, Vendor,
};

use super::{
    any::part_of,
    of_whole,
    reorder::Reorder,
    sub::{Buffer, Buffers, Sub},
    volume::{Volume, by_node, by_rank},
};
use crate::{PlanError, Setting};

/// The name of a division, of the whole call or of a part.
pub(super) const NAME: &str = "two_level";

/// Scratch memory is divided at cache lines, which suits any element.
const LINE_BYTES: usize = 64;

/// A stage of a call.
pub(super) enum Stage {
    /// A part that is not divided further.
    Part(Box<Part>),
    /// A leader reorders blocks.
    Reorder(Reorder),
}

/// A part that is not divided further.
pub(super) struct Part {
    pub(super) setting: Setting,
    pub(super) candidate: Candidate,
    /// The calling PE's view. `None` if it only checks that other PEs have a schedule.
    pub(super) sub: Option<Sub>,
}

/// The parts of a collective in two levels: up inside nodes to their leaders, across between the
/// leaders, and down inside nodes from their leaders.
#[derive(Clone, Copy)]
pub(super) struct Parts(pub(super) [Option<Collective>; 3]);

/// The modes of each part, the size of its blocks, and the place of its buffers.
#[derive(Clone, Copy)]
struct Outline {
    sync: [SyncModes; 3],
    bytes: [usize; 3],
    buffers: [Buffers; 3],
    /// Whether the part up or across has its data in the leaders' targets.
    in_place: [bool; 3],
    /// The number of bytes of scratch memory that are left to the parts with buffers there.
    scratch_bytes: usize,
}

/// PEs that take part in a part, by their ranks in the divided call: the leader is at index `root`.
/// `own` is `None` for a PE that is not among them and only checks that they have a schedule.
#[derive(Clone, Copy)]
struct Members {
    ranks: Ranks,
    root: u32,
    own: Option<u32>,
}

fn incapable(why: impl Into<std::borrow::Cow<'static, str>>) -> PlanError {
    PlanError::Incapable { algorithm: NAME, why: why.into() }
}

impl Parts {
    /// Returns the parts of a collective.
    pub(super) const fn of(collective: Collective) -> Self {
        use Collective as C;
        Self(match collective {
            C::Barrier => [Some(C::Barrier); 3],
            C::Broadcast => [None, Some(C::Broadcast), Some(C::Broadcast)],
            C::Scatter => [None, Some(C::Scatter), Some(C::Scatter)],
            C::Gather => [Some(C::Gather), Some(C::Gather), None],
            C::AllGather => [Some(C::Gather), Some(C::AllGather), Some(C::Broadcast)],
            C::AllToAll => [Some(C::Gather), Some(C::AllToAll), Some(C::Scatter)],
            C::Reduce => [Some(C::Reduce), Some(C::Reduce), None],
            C::AllReduce => [Some(C::Reduce), Some(C::AllReduce), Some(C::Broadcast)],
            C::ReduceScatter => [Some(C::Reduce), Some(C::ReduceScatter), Some(C::Scatter)],
            _ => [None; 3],
        })
    }

    fn has(self, level: usize) -> bool {
        self.0[level].is_some()
    }

    fn is(self, level: usize, part: Collective) -> bool {
        self.0[level] == Some(part)
    }

    fn candidate(self, candidate: &Candidate, level: usize) -> Result<Candidate, PlanError> {
        part_of(NAME, self.0, candidate, self.0[..level].iter().flatten().count())
    }

    /// Returns the shares of the inbox of each level: one for each part that is not divided.
    fn shares(self, candidate: &Candidate) -> Result<[u32; 3], PlanError> {
        let mut shares = [1; 3];
        for (level, share) in shares.iter_mut().enumerate() {
            let Some(collective) = self.0[level] else { continue };
            let part = self.candidate(candidate, level)?;
            if part.algorithm == NAME {
                *share = Self::of(collective).shares(&part)?.iter().sum();
            }
        }
        Ok(shares)
    }

    /// Returns the modes of the parts. If a leader reorders its data after the last part, that part
    /// exits with mode Mine, because no peer may access the data during the reordering.
    fn sync(self, sync: SyncModes, reorders_after: bool) -> [SyncModes; 3] {
        std::array::from_fn(|level| {
            let is_first = self.0[..level].iter().all(Option::is_none);
            let is_last = self.0[level + 1..].iter().all(Option::is_none) && !reorders_after;
            SyncModes {
                entry: if is_first { sync.entry } else { SyncMode::Mine },
                exit: if is_last { sync.exit } else { SyncMode::Mine },
            }
        })
    }

    /// Returns what is the same for all PEs of a node, or `None` if the data does not fit.
    fn outline(self, setting: &Setting, volume: &Volume) -> Option<Outline> {
        let Setting { rank, call, capabilities, .. } = *setting;
        let Capabilities { nodes, scratch_bytes, .. } = capabilities;
        let gathers_all = self.is(1, Collective::AllGather);
        // If the data is long, scratch memory would have to hold more than one copy.
        let in_place = self.is(1, Collective::AllReduce) && call.bytes > scratch_bytes / 2;
        let is_kept = self.has(0) && !gathers_all && !in_place || volume.rows > 0;
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
            source: if self.has(0) || is_kept { gathered } else { source },
            target: if self.is(2, Collective::Scatter) { incoming } else { target },
        };
        // The root of a broadcast has no target.
        let is_at_root =
            call.collective == Collective::Broadcast && own_node == nodes.node(call.root.0);
        let down = Buffers { source: if is_at_root { source } else { across.target }, target };
        let sync = self.sync(call.sync, volume.columns > 0);
        let in_place = [in_place && call.in_place, in_place, false];
        Some(Outline { sync, bytes, buffers: [up, across, down], in_place, scratch_bytes })
    }

    /// Returns the blocks that a leader reorders before and after its part across.
    fn reorders(
        self,
        setting: &Setting,
        volume: &Volume,
        outline: &Outline,
        view: &Sub,
    ) -> [Option<Reorder>; 2] {
        let Setting { rank, call: CallSpec { pes, bytes, .. }, capabilities, .. } = *setting;
        let nodes = capabilities.nodes;
        let [up, across, _] = outline.buffers;
        let from = if self.has(0) { up.target } else { up.source };
        let run = if let Nodes::Blocks(block) = nodes { block } else { 1 };
        let rows = |rows: usize| u32::try_from(rows).ok().filter(|&rows| rows > 0 && bytes > 0);
        let alone = Ranks { first: rank.0, stride: 1, count: 1 };
        let reorder = |buffers: [Buffer; 2], order: Vec<u32>, bytes| {
            let buffers = buffers.map(|buffer| view.buffer(buffer, alone).on(0));
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
}

/// A division of a call among some PEs.
struct Division<'d> {
    setting: &'d Setting,
    candidate: &'d Candidate,
    /// The view of these PEs of the whole call.
    view: &'d Sub,
    parts: Parts,
    outline: Outline,
    shares: [u32; 3],
}

impl Division<'_> {
    /// Adds the stages of a level among some PEs.
    fn level(
        &self,
        level: usize,
        members: Members,
        stages: &mut Vec<Stage>,
    ) -> Result<(), PlanError> {
        let Self { setting, view, outline, shares, .. } = self;
        let Some(collective) = self.parts.0[level] else { return Ok(()) };
        let candidate = self.parts.candidate(self.candidate, level)?;
        let is_divided = candidate.algorithm == NAME;
        let share = setting.lines() / shares.iter().sum::<u32>();
        let first_channel = setting.first_channel + share * shares[..level].iter().sum::<u32>();
        // Barriers need at most a channel for each PE, and do not check that they have it.
        if collective == Collective::Barrier && share * shares[level] < members.ranks.count {
            return Err(incapable("the inbox is too small"));
        }
        let buffers = outline.buffers[level];
        let in_scratch = buffers.source.is_scratch() || buffers.target.is_scratch();
        let in_place = outline.in_place[level];
        let symmetric = setting.call.symmetric;
        let whole = setting.capabilities;
        let Members { ranks, root, own } = members;
        let (nodes, levels) =
            if level == 1 { whole.levels.of_leaders() } else { whole.levels.of_node() };
        let capabilities = Capabilities {
            inbox_channels: first_channel + share * shares[level],
            scratch_bytes: if in_scratch { outline.scratch_bytes } else { whole.scratch_bytes },
            exposes: whole.exposes && !in_scratch && !(in_place && symmetric),
            // A call has counters for one division only.
            counts: whole.counts && !is_divided,
            nodes,
            levels,
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
        let part = Setting {
            call,
            rank,
            capabilities,
            first_channel,
            counter: setting.counter + [0, 2, 6][level],
            is_whole: false,
            ..**setting
        };
        let sub = view.part(ranks, rank.0, buffers);
        if is_divided {
            return divide(&part, &candidate, (&sub, own.is_some()), stages)
                .map_err(|error| of_whole(NAME, collective, error));
        }
        let sub = own.map(|_| sub);
        stages.push(Stage::Part(Box::new(Part { setting: part, candidate, sub })));
        Ok(())
    }
}

/// Adds the stages of a call among some PEs, with their view of the whole call. If the calling PE
/// does not take part, it only checks that they have schedules.
///
/// # Errors
/// If the PEs cannot be divided, or their data does not fit.
pub(super) fn divide(
    setting: &Setting,
    candidate: &Candidate,
    (view, takes_part): (&Sub, bool),
    stages: &mut Vec<Stage>,
) -> Result<(), PlanError> {
    if let Some((parameter, _)) = candidate.parameters().first() {
        let (name, known) = (parameter.clone(), "none".to_owned());
        return Err(PlanError::UnknownParameter { algorithm: NAME, name, known });
    }
    let (nodes, CallSpec { pes, root, class, collective, .. }) =
        (setting.capabilities.nodes, setting.call);
    let parts = Parts::of(collective);
    let count = nodes.count(pes);
    if count == 1 || count == pes {
        return Err(incapable("the PEs are on one node, or each on a separate node"));
    }
    let is_regular = nodes.members(0, pes).count * count == pes;
    let divides = parts.is(0, Collective::Gather) || parts.is(2, Collective::Scatter);
    if divides && !is_regular {
        return Err(incapable("some nodes have more PEs than others"));
    }
    let is_ordered = collective.combines() && class != OperatorClass::Commutative;
    if is_ordered && matches!(nodes, Nodes::InTurn(_)) {
        return Err(incapable("the PEs are dealt in turn, but the operator is not commutative"));
    }
    let volume = Volume::new(parts.0, collective, pes, nodes);
    let Some(outline) = parts.outline(setting, &volume) else {
        return Err(incapable("the data of a leader is longer than the scratch memory"));
    };
    let leader = if collective.is_rooted() { nodes.place(root.0) } else { 0 };
    let Some(leaders) = nodes.across(leader, pes) else {
        return Err(incapable("a node has no PE at the root's place"));
    };
    let own = setting.rank.0;
    let members = nodes.members(nodes.node(own), pes);
    let if_here = |index: Option<u32>| index.filter(|_| takes_part);
    let inside = Members { ranks: members, root: leader, own: if_here(members.index(own)) };
    let between =
        Members { ranks: leaders, root: nodes.node(root.0), own: if_here(leaders.index(own)) };
    let has_blocks = between.own.is_some() && (!collective.is_rooted() || setting.rank == root);
    let [before, after] =
        if has_blocks { parts.reorders(setting, &volume, &outline, view) } else { [None, None] };
    let shares = parts.shares(candidate)?;
    let division = Division { setting, candidate, view, parts, outline, shares };
    division.level(0, inside, stages)?;
    stages.extend(before.map(Stage::Reorder));
    division.level(1, between, stages)?;
    stages.extend(after.map(Stage::Reorder));
    division.level(2, inside, stages)?;
    // Other nodes may have more or fewer PEs: as many as the first or the last node. They must have
    // schedules too, and all PEs must count the same steps.
    for node in [0, count - 1].into_iter().filter(|_| !is_regular) {
        let others = Members { ranks: nodes.members(node, pes), root: leader, own: None };
        division.level(0, others, stages)?;
        division.level(2, others, stages)?;
    }
    Ok(())
}

/// Returns the model's estimate of a call, in nanoseconds, given that of the parts that are not
/// divided further.
pub(super) fn cost_ns(
    query: &Query,
    candidate: &Candidate,
    model: &MachineModel,
    of_part: &dyn Fn(&Query, &Candidate, &MachineModel) -> f64,
) -> f64 {
    let Some((nodes, inside)) = &model.inside else { return f64::INFINITY };
    let parts = Parts::of(query.collective);
    let volume = Volume::new(parts.0, query.collective, query.pes, *nodes);
    let syncs = parts.sync(query.sync, volume.columns > 0);
    let (count, members) = (nodes.count(query.pes), nodes.members(0, query.pes).count);
    let cost = |level: usize, pes, model: &MachineModel| {
        let Some(collective) = parts.0[level] else { return 0.0 };
        let Ok(part) = parts.candidate(candidate, level) else {
            return f64::INFINITY;
        };
        let bytes = query.bytes.saturating_mul(volume.blocks[level] as u64);
        let sync = syncs[level];
        let query = Query { collective, sync, pes, bytes, symmetric: false, ..*query };
        if part.algorithm != NAME {
            return of_part(&query, &part, model);
        }
        let of_leaders = (level == 1).then(|| model.of_leaders());
        cost_ns(&query, &part, of_leaders.as_ref().unwrap_or(model), of_part)
    };
    let copy_ns = inside.next_line_ns + query.bytes as f64 / inside.copy_gbps;
    cost(0, members, inside)
        + cost(1, count, model)
        + cost(2, members, inside)
        + volume.reordered(query.pes) as f64 * copy_ns
}
