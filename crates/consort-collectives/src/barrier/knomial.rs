//! Barriers up and down a tree: `flat` and `knomial`.
//!
//! Idea: a PE signals its parent when its whole subtree has arrived, and the release by the root
//! goes down the same tree. Radix 1 is the chain, radix 2 the binomial tree. Source: Nishtala and
//! Yelick 2009, section 2.2; Mellor-Crummey and Scott 1991, section 3.5.
//!
//! Protocol:
//! 1. wait for a signal from each child, in channels 1 and up;
//! 2. signal the parent; wait for its release in channel 0;
//! 3. signal each child.
//!
//! Cost: `2 (P - 1)` messages, twice the tree's depth on the critical path.

use std::marker::PhantomData;

use consort_fabric::{Candidate, Channel, MachineModel, Messages, Op, Query, Rank};

use crate::{
    Algorithm, Parameter, PlanError, Setting,
    rank_math::tree::Shape,
    trees::{self, Tree},
};

/// A barrier over a tree.
#[derive(Debug)]
pub struct OverTree<T>(PhantomData<T>);

/// All PEs signal PE 0, which releases them.
pub type Flat = OverTree<trees::Flat>;
/// A barrier over a k-nomial tree.
pub type Knomial = OverTree<trees::Knomial>;

/// One PE's schedule: its neighbours in the tree.
#[derive(Hash)]
pub struct Schedule {
    /// The parent, and the channel in which this PE signals that its subtree has arrived.
    parent: Option<(Rank, Channel)>,
    /// The children, and the channel in which each of them signals.
    children: Box<[(Rank, Channel)]>,
    /// The channel of the release.
    answer: Channel,
}

impl Schedule {
    /// Returns the schedule of the setting's PE in a tree of this shape, rooted at 0.
    fn new(setting: &Setting, shape: Shape) -> Self {
        let node = shape.node(setting.rank, Rank(0), setting.call.pes);
        Self {
            parent: node.parent.map(|(parent, index)| (parent, setting.channel(1 + index))),
            children: (1..)
                .map(|index| setting.channel(index))
                .zip(node.children)
                .map(|(channel, child)| (child, channel))
                .collect(),
            answer: setting.channel(0),
        }
    }

    /// Runs the protocol. It is compiled once for all trees.
    #[inline(always)]
    async fn run<F: Messages>(&self, f: &F) -> Op {
        for &(_, channel) in &self.children {
            f.wait(channel, 0).await?;
        }
        if let Some((parent, channel)) = self.parent {
            f.signal(parent, channel, 0).await?;
            f.wait(self.answer, 0).await?;
        }
        for &(child, _) in &self.children {
            f.signal(child, self.answer, 0).await?;
        }
        Ok(())
    }
}

impl<T: Tree> Algorithm for OverTree<T> {
    const NAME: &'static str = T::NAME;
    const PARAMETERS: &'static [Parameter] = T::PARAMETERS;
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        Self::check(candidate)?;
        Ok(Schedule::new(setting, T::of(candidate).0))
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        let (shape, _) = T::of(candidate);
        let hops = 2.0 * f64::from(shape.depth(query.pes));
        let fan = f64::from(shape.fan(query.pes));
        model.hops_ns(hops, query.pes) + 2.0 * (fan - 1.0).max(0.0) * model.next_line_ns
    }

    #[inline(always)]
    fn run<F: Messages>(f: &F, schedule: &Schedule) -> impl Future<Output = Op> {
        schedule.run(f)
    }
}
