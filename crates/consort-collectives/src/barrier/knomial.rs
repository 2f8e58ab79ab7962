//! Barrier over a k-nomial tree: once up, once down.
//!
//! Idea: a PE tells its parent when its whole subtree has arrived, and the root's answer comes down
//! the same tree. Radix 1 is the chain, 2 the binomial tree. Source: Nishtala and Yelick 2009,
//! section 2.2; Mellor-Crummey and Scott 1991, section 3.5.
//!
//! Protocol:
//! 1. wait for a signal from each child, in the slots from 1 on;
//! 2. signal the parent; wait for its answer in slot 0;
//! 3. signal each child.
//!
//! Cost: `2 (P - 1)` messages, twice the tree's depth on the critical path.

use consort_fabric::{Candidate, Fabric, MachineModel, Op, Query, Rank, Slot};

use crate::{Algorithm, Parameter, PlanError, Setting, patterns::tree::Shape};

/// See the head of this file.
#[derive(Debug)]
pub struct Knomial;

/// Where a PE stands in the tree.
#[derive(Debug)]
pub struct Schedule {
    /// The parent, and where it hears of this subtree.
    parent: Option<(Rank, Slot)>,
    /// The children, and where each is heard of.
    children: Box<[(Rank, Slot)]>,
    /// Where the answer comes.
    answer: Slot,
}

impl Schedule {
    /// The place of the setting's PE in a tree of this shape, rooted at 0.
    pub(super) fn new(setting: &Setting, shape: Shape) -> Self {
        let node = shape.node(setting.rank, Rank(0), setting.pes);
        Self {
            parent: node.parent.map(|(parent, index)| (parent, setting.slot(1 + index))),
            children: (1..)
                .map(|index| setting.slot(index))
                .zip(node.children)
                .map(|(slot, child)| (child, slot))
                .collect(),
            answer: setting.slot(0),
        }
    }
}

/// What a barrier over a tree costs by the model.
pub(super) fn cost_ns(shape: Shape, query: &Query, model: &MachineModel) -> f64 {
    let hops = 2.0 * f64::from(shape.depth(query.pes));
    let fan = f64::from(shape.fan(query.pes));
    model.hops_ns(hops, query.pes) + 2.0 * (fan - 1.0).max(0.0) * model.next_line_ns
}

impl Algorithm for Knomial {
    const NAME: &'static str = "knomial";
    const PARAMETERS: &'static [Parameter] =
        &[Parameter { name: "radix", values: &[1, 2, 4, 8, 16], range: (1, 1 << 16) }];
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        Self::check_names(candidate)?;
        let radix = u32::try_from(Self::parameter(candidate, 0)?).unwrap_or(u32::MAX);
        Ok(Schedule::new(setting, Shape::Knomial(radix)))
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        let radix = candidate.parameter("radix").and_then(|radix| u32::try_from(radix).ok());
        cost_ns(Shape::Knomial(radix.unwrap_or(2)), query, model)
    }

    #[inline(always)]
    async fn run<F: Fabric>(f: &F, schedule: &Schedule) -> Op {
        for &(_, slot) in &schedule.children {
            f.wait(slot, 0).await?;
        }
        if let Some((parent, slot)) = schedule.parent {
            f.signal(parent, slot, 0).await?;
            f.wait(schedule.answer, 0).await?;
        }
        for &(child, _) in &schedule.children {
            f.signal(child, schedule.answer, 0).await?;
        }
        Ok(())
    }
}
