//! Two levels: up inside each node, across between nodes, down inside each node.
//!
//! Messages inside a node cost less than messages between nodes, and the PEs of a node share its
//! connection. So one PE of each node, its *leader*, communicates for it: the PE at the same place
//! on its node as the root on the root's node, or the first PE. The candidate names the parts'
//! algorithms, as in `two_level(flat,rabenseifner,knomial(radix=4))`, or none for the default
//! ones. Each part may be any algorithm of its collective, and runs unchanged over a fabric of its
//! PEs (`Sub`). If all PEs share memory, nodes are the last-level caches.
//!
//! A part may be `two_level` again if its PEs have further levels (`Levels`): the part across, if
//! nodes are grouped, or the parts up and down, if nodes are divided. On caches in packages,
//! `two_level(flat,two_level(flat,flat,flat),flat)` goes across caches of a package, and then
//! across packages. So a plan has any number of levels. It is one list of the parts that are not
//! divided further; `divide` has it, and the parts of each collective.

use std::{future::Future, marker::PhantomData, pin::Pin};

use consort_fabric::{Candidate, Collective, Fabric, MachineModel, Op, Query};

use super::{
    any::PartSchedule,
    divide::{self, Parts, divide},
    of_whole,
    reorder::Reorder,
    sub::Sub,
};
use crate::{Algorithm, Parameter, PlanError, Setting, algorithm::AnySchedule};

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

/// A collective in two levels, by three parts: `Up` inside nodes to the leaders, `Across` between
/// the leaders, and `Down` inside nodes from the leaders.
#[derive(Debug)]
pub struct TwoLevel<Up, Across, Down>(PhantomData<(Up, Across, Down)>);

/// A stage of one PE: its share of a part, or the blocks that it reorders. A part of a part has one
/// of the same three collectives.
#[derive(Hash)]
enum Stage<Up, Across, Down> {
    /// Inside nodes, to their leaders.
    Up(PartSchedule<Up>),
    /// Between leaders.
    Across(PartSchedule<Across>),
    /// Inside nodes, from their leaders.
    Down(PartSchedule<Down>),
    /// Between parts.
    Reorder(Reorder),
}

/// One PE's schedule: its stages, one after the other.
#[derive(Hash)]
pub struct Schedule<Up, Across, Down> {
    stages: Box<[Stage<Up, Across, Down>]>,
    steps: u64,
}

impl<Up: AnySchedule, Across: AnySchedule, Down: AnySchedule> Schedule<Up, Across, Down> {
    /// Adds a part, if this PE takes part in it.
    fn add<S: AnySchedule>(
        &mut self,
        part: &divide::Part,
        stages: &mut Vec<Stage<Up, Across, Down>>,
        stage: impl Fn(PartSchedule<S>) -> Stage<Up, Across, Down>,
    ) -> Result<(), PlanError> {
        let schedule = S::new(&part.setting, &part.candidate)?;
        self.steps = self.steps.max(schedule.steps());
        stages.extend(part.sub.map(|sub| stage(PartSchedule { sub, schedule })));
        Ok(())
    }
}

impl<Up: AnySchedule, Across: AnySchedule, Down: AnySchedule> Algorithm
    for TwoLevel<Up, Across, Down>
{
    const NAME: &'static str = divide::NAME;
    const PARAMETERS: &'static [Parameter] = &[];
    const PARTS: [Option<Collective>; 3] = match Across::COLLECTIVE {
        Some(collective) => Parts::of(collective).0,
        None => [None; 3],
    };
    type Schedule = Schedule<Up, Across, Down>;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Self::Schedule, PlanError> {
        let mut planned = Vec::new();
        let whole = Sub::whole(setting.rank, setting.call.pes);
        divide(setting, candidate, (&whole, true), &mut planned)?;
        let (mut stages, mut schedule) =
            (Vec::new(), Schedule { stages: Box::default(), steps: 1 });
        for stage in planned {
            let part = match stage {
                divide::Stage::Part(part) => part,
                divide::Stage::Reorder(reorder) => {
                    stages.push(Stage::Reorder(reorder));
                    continue;
                }
            };
            let collective = part.setting.call.collective;
            let is = |one: Option<Collective>| one == Some(collective);
            let added = if is(Across::COLLECTIVE) {
                schedule.add(&part, &mut stages, Stage::Across)
            } else if is(Up::COLLECTIVE) {
                schedule.add(&part, &mut stages, Stage::Up)
            } else {
                schedule.add(&part, &mut stages, Stage::Down)
            };
            added.map_err(|error| of_whole(Self::NAME, collective, error))?;
        }
        Ok(Schedule { stages: stages.into(), ..schedule })
    }

    fn steps(schedule: &Self::Schedule) -> u64 {
        schedule.steps
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        divide::cost_ns(query, candidate, model, &|query, part, model| {
            let collective = Some(query.collective);
            let cost_ns = if collective == Across::COLLECTIVE {
                Across::cost_ns
            } else if collective == Up::COLLECTIVE {
                Up::cost_ns
            } else {
                Down::cost_ns
            };
            cost_ns(query, part, model)
        })
    }

    async fn run<F: Fabric>(f: &F, schedule: &Self::Schedule) -> Op {
        for stage in &schedule.stages {
            match stage {
                Stage::Up(part) => part.run(f).await?,
                Stage::Across(part) => part.run(f).await?,
                Stage::Down(part) => part.run(f).await?,
                Stage::Reorder(reorder) => reorder.run(f).await?,
            }
        }
        Ok(())
    }
}
