//! Two levels: up inside each node, across between nodes, down inside each node.
//!
//! Messages inside a node cost less than those between nodes, and PEs of a node share what connects
//! it. So one PE of each node, its *leader*, speaks for it: those that have the root's place on
//! their nodes, or the first of each. The candidate names the parts' algorithms, as in
//! `two_level(flat,recursive_doubling,knomial(radix=4))`, or none for the usual ones. Each of the
//! three parts may be any algorithm of its collective, and runs unchanged over a fabric of the PEs
//! that take part in it (`Sub`).
//!
//! | | up | across | down |
//! | --- | --- | --- | --- |
//! | barrier | barrier | barrier | barrier |
//! | broadcast | | broadcast | broadcast |
//! | reduce | reduce | reduce | |
//! | all-reduce | reduce | all-reduce | broadcast |
//!
//! What goes up lies in the upper half of the leaders' accumulator, so it is at most that long, and
//! moves by messages only. PEs that are dealt to nodes in turn are combined out of the order of
//! their ranks: such operators commute.
//!
//! The parts share the call: each has a third of the inbox, and counters of its own. The first has
//! the caller's entry mode and the last its exit mode; between them a PE's buffers are its own.

use std::{fmt::Debug, marker::PhantomData};

use consort_fabric::{
    CallSpec, Candidate, Capabilities, Collective, Fabric, MachineModel, Nodes, Op, OperatorClass,
    Place, Query, Rank, Ranks, SyncMode, SyncModes, Vendor,
};

use super::{
    Part, of_whole,
    sub::{Buffers, Sub},
};
use crate::{Algorithm, Parameter, PlanError, Setting, algorithm::AnySchedule};

/// The algorithm of a part for which none is given.
pub(crate) fn usual(collective: Collective) -> Candidate {
    match collective {
        Collective::AllReduce => Candidate::new("recursive_doubling"),
        Collective::Barrier => Candidate::new("dissemination").with("radix", 2),
        _ => Candidate::new("knomial").with("radix", 2),
    }
}

/// The parts of a collective in two levels.
pub trait Levels: 'static {
    /// The collectives of the parts; `None` for one that is not there.
    const PARTS: [Option<Collective>; 3];
    /// Inside nodes, to the leaders.
    type Up: AnySchedule;
    /// Between the leaders.
    type Across: AnySchedule;
    /// Inside nodes, from the leaders.
    type Down: AnySchedule;
}

/// See [`Algorithm::cost_ns`].
type Cost = fn(&Query, &Candidate, &MachineModel) -> f64;

/// A collective in two levels.
#[derive(Debug)]
pub struct TwoLevel<L>(PhantomData<L>);

/// One PE's part on a level: what it sees, and its schedule.
#[derive(Debug)]
struct Level<S> {
    sub: Sub,
    schedule: S,
}

impl<S: AnySchedule> Level<S> {
    async fn run<F: Fabric>(&self, f: &F) -> Op {
        self.schedule.run(&Part::new(f, self.sub)).await
    }
}

/// One PE's schedule: those of the parts that it takes part in.
#[derive(Debug)]
pub struct Schedule<L: Levels> {
    up: Option<Level<L::Up>>,
    across: Option<Level<L::Across>>,
    down: Option<Level<L::Down>>,
    steps: u64,
}

impl<L: Levels + Debug> TwoLevel<L> {
    const fn has(level: usize) -> bool {
        L::PARTS[level].is_some()
    }

    /// The candidate of a part: the usual one if none is given.
    fn candidate(
        candidate: &Candidate,
        level: usize,
        collective: Collective,
    ) -> Result<Candidate, PlanError> {
        if candidate.parts.is_empty() {
            return Ok(usual(collective));
        }
        let index = L::PARTS[..level].iter().flatten().count();
        let wanted = L::PARTS.iter().flatten().count();
        let part = candidate.parts.get(index).filter(|_| candidate.parts.len() == wanted);
        part.cloned().ok_or_else(|| {
            let parts: Vec<String> =
                L::PARTS.iter().flatten().map(|part| format!("an algorithm of {part}")).collect();
            Self::incapable(format!("its parts are {}", parts.join(", ")))
        })
    }

    /// The modes of a part.
    fn sync(sync: SyncModes, level: usize) -> SyncModes {
        let is_first = L::PARTS[..level].iter().all(Option::is_none);
        let is_last = L::PARTS[level + 1..].iter().all(Option::is_none);
        SyncModes {
            entry: if is_first { sync.entry } else { SyncMode::Mine },
            exit: if is_last { sync.exit } else { SyncMode::Mine },
        }
    }

    /// The part of a level among `ranks`, of which the leader is the `root`th, and its steps. `own`
    /// is `None` for a PE that is not among them: it finds out whether the others have a schedule.
    fn part<S: AnySchedule>(
        setting: &Setting,
        candidate: &Candidate,
        level: usize,
        (ranks, root, own): (Ranks, u32, Option<u32>),
        buffers: Buffers,
    ) -> Result<(Option<Level<S>>, u64), PlanError> {
        let Some(collective) = L::PARTS[level] else { return Ok((None, 1)) };
        let lines = setting.lines() / 3;
        let index = u32::try_from(level).unwrap_or(0);
        let first_channel = setting.first_channel + index * lines;
        let is_up =
            buffers.source.0 == Place::Accumulator || buffers.target.0 == Place::Accumulator;
        let half = setting.capabilities.scratch_bytes / 2;
        let capabilities = Capabilities {
            inbox_channels: first_channel + lines,
            scratch_bytes: if is_up { half } else { setting.capabilities.scratch_bytes },
            exposes: setting.capabilities.exposes && !is_up,
            nodes: Nodes::One,
            vendor: Vendor {
                team: setting.capabilities.vendor.leaders && level == 1 && ranks.first == 0,
                leaders: false,
            },
            ..setting.capabilities
        };
        let call = CallSpec {
            collective,
            pes: ranks.count,
            root: Rank(root),
            sync: Self::sync(setting.call.sync, level),
            symmetric: setting.call.symmetric && !is_up,
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
        let schedule = S::new(&part, &Self::candidate(candidate, level, collective)?)
            .map_err(|error| of_whole::<Self>(collective, error))?;
        let steps = schedule.steps();
        Ok((own.map(|own| Level { sub: Sub { ranks, own, buffers }, schedule }), steps))
    }
}

impl<L: Levels + Debug> Algorithm for TwoLevel<L> {
    const NAME: &'static str = "two_level";
    const PARAMETERS: &'static [Parameter] = &[];
    const PARTS: [Option<Collective>; 3] = L::PARTS;
    type Schedule = Schedule<L>;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule<L>, PlanError> {
        Self::check_names(candidate)?;
        let (nodes, CallSpec { pes, root, bytes, class, collective, .. }) =
            (setting.capabilities.nodes, setting.call);
        let count = nodes.count(pes);
        if count == 1 || count == pes {
            return Err(Self::incapable("the PEs are on one node, or each on a node of its own"));
        }
        if collective.combines() {
            if matches!(nodes, Nodes::InTurn(_)) && class != OperatorClass::Commutative {
                return Err(Self::incapable("the PEs are dealt in turn, and operands keep order"));
            }
            if bytes > setting.capabilities.scratch_bytes / 2 {
                return Err(Self::incapable("the data is longer than half of the scratch memory"));
            }
        }
        let leader = if collective.is_rooted() { nodes.place(root.0) } else { 0 };
        let Some(leaders) = nodes.across(leader, pes) else {
            return Err(Self::incapable("a node has no PE at the root's place"));
        };
        let (own, root_node) = (setting.rank.0, nodes.node(root.0));
        let members = nodes.members(nodes.node(own), pes);
        let inside = (members, leader, members.index(own));
        let upper = (Place::Accumulator, setting.capabilities.scratch_bytes / 2);
        let has_up = Self::has(0);
        let source = (Place::Source, 0);
        let target = (Place::Target, 0);
        let up = Buffers { source, target: upper };
        let across = Buffers { source: if has_up && bytes > 0 { upper } else { source }, target };
        let is_at_root = !has_up && nodes.node(own) == root_node;
        let down = Buffers { source: if is_at_root { source } else { target }, target };
        // Other nodes may have more PEs or fewer: as many as the first or the last. They must have
        // schedules too, and all PEs count the same steps.
        let mut steps = 1;
        for node in [0, count - 1] {
            let others = (nodes.members(node, pes), leader, None);
            let (_, up_there) = Self::part::<L::Up>(setting, candidate, 0, others, up)?;
            let (_, down_there) = Self::part::<L::Down>(setting, candidate, 2, others, down)?;
            steps = steps.max(up_there).max(down_there);
        }
        let between = (leaders, root_node, leaders.index(own));
        let (up, _) = Self::part(setting, candidate, 0, inside, up)?;
        let (across, across_steps) = Self::part(setting, candidate, 1, between, across)?;
        let (down, _) = Self::part(setting, candidate, 2, inside, down)?;
        Ok(Schedule { up, across, down, steps: steps.max(across_steps) })
    }

    fn steps(schedule: &Schedule<L>) -> u64 {
        schedule.steps
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        let Some((nodes, inside)) = &model.inside else { return f64::INFINITY };
        let of = |level: usize, pes| -> Option<(Query, Candidate)> {
            let collective = L::PARTS[level]?;
            let sync = Self::sync(query.sync, level);
            let part = Self::candidate(candidate, level, collective).ok()?;
            Some((Query { collective, sync, pes, symmetric: false, ..*query }, part))
        };
        let (count, members) = (nodes.count(query.pes), nodes.members(0, query.pes).count);
        let cost = |part: Option<(Query, Candidate)>, cost: Cost, model: &MachineModel| {
            part.map_or(0.0, |(query, candidate)| cost(&query, &candidate, model))
        };
        cost(of(0, members), L::Up::cost_ns, inside)
            + cost(of(1, count), L::Across::cost_ns, model)
            + cost(of(2, members), L::Down::cost_ns, inside)
    }

    async fn run<F: Fabric>(f: &F, Schedule { up, across, down, .. }: &Schedule<L>) -> Op {
        if let Some(up) = up {
            up.run(f).await?;
        }
        if let Some(across) = across {
            across.run(f).await?;
        }
        if let Some(down) = down {
            down.run(f).await?;
        }
        Ok(())
    }
}
