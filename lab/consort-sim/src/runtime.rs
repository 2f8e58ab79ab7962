//! The runtime of simulated PEs: makes plans for collectives, and makes calls with them.
//!
//! [`Simulation::plan`] makes a plan for each PE before a simulation runs, so it returns an error
//! if a candidate cannot serve. A [`Caller`] makes the calls of one PE: before a call it gives and
//! awaits the credits that [`flow`](consort_collectives::flow) requires. It reports when the PE
//! entered and left.

use std::{future::Future, pin::Pin};

use consort_collectives::{Algorithm, Plan, PlanError, Setting, Visitor, flow::Flow, visit};
use consort_fabric::{CallSpec, Candidate, Local, Op, Rank};

use crate::{
    fabric::Call,
    job::{Pe, Simulation, SimulationError},
    operands::Operands,
};

/// A plan of one PE, for any algorithm.
trait Run {
    fn run<'c>(&'c self, call: &'c Call<'c>) -> Pin<Box<dyn Future<Output = Op> + 'c>>;
}

impl<A: Algorithm> Run for Plan<A> {
    fn run<'c>(&'c self, call: &'c Call<'c>) -> Pin<Box<dyn Future<Output = Op> + 'c>> {
        Self::run(self, call)
    }
}

/// The plans of all PEs for one kind of call.
pub struct Plans {
    by_rank: Box<[Box<dyn Run>]>,
    synchronizes: bool,
}

impl Plans {
    /// Makes the PE's part of a call that it has begun.
    ///
    /// # Errors
    /// When the job has failed.
    pub async fn run(&self, call: &Call<'_>) -> Op {
        self.by_rank[call.rank().index()].run(call).await
    }
}

/// Makes the plans of an algorithm that is given by name.
struct Maker<'m> {
    setting: Setting,
    candidate: &'m Candidate,
    barrier: &'m Candidate,
}

impl Visitor for Maker<'_> {
    type Output = Result<Plans, PlanError>;

    fn visit<A: Algorithm>(self) -> Self::Output {
        let Self { setting, candidate, barrier } = self;
        let plan = |rank| -> Result<Box<dyn Run>, PlanError> {
            Ok(Box::new(Plan::<A>::new(&setting.at(Rank(rank)), candidate, barrier)?))
        };
        let by_rank = (0..setting.call.pes).map(plan).collect::<Result<_, _>>()?;
        Ok(Plans { by_rank, synchronizes: setting.call.synchronizes() })
    }
}

impl Simulation {
    /// Plans calls that use the algorithm `candidate`. PEs enter or leave them together by
    /// `barrier`.
    ///
    /// # Errors
    /// When the machine has fewer PEs, the candidate does not exist, or it cannot serve the call.
    pub fn plan(
        &self,
        call: &CallSpec,
        candidate: &Candidate,
        barrier: &Candidate,
    ) -> Result<Plans, SimulationError> {
        let maker = self.maker(call, candidate, barrier)?;
        Ok(visit(call.collective, &candidate.algorithm, maker)??)
    }

    /// Plans calls that use an algorithm which may be missing from the registry.
    ///
    /// # Errors
    /// As [`Simulation::plan`].
    pub fn plan_with<A: Algorithm>(
        &self,
        call: &CallSpec,
        candidate: &Candidate,
        barrier: &Candidate,
    ) -> Result<Plans, SimulationError> {
        Ok(self.maker(call, candidate, barrier)?.visit::<A>()?)
    }

    fn maker<'m>(
        &self,
        call: &CallSpec,
        candidate: &'m Candidate,
        barrier: &'m Candidate,
    ) -> Result<Maker<'m>, SimulationError> {
        let setting = Setting::of(*call, self.capabilities()?);
        Ok(Maker { setting, candidate, barrier })
    }
}

/// A call that a PE has left.
#[derive(Clone, Debug, PartialEq)]
pub struct Done {
    /// The content of the target, if it is the PE's own memory.
    pub received: Vec<u8>,
    /// When the PE entered, in nanoseconds of virtual time.
    pub entered_ns: f64,
    /// When it left.
    pub left_ns: f64,
}

/// Makes the calls of one PE. Every PE makes the same calls, one after the other.
pub struct Caller<'p, 'w> {
    pe: &'p Pe<'w>,
    flow: Flow,
    /// Whether all PEs have entered or left some call of this quarter of the window together.
    synchronized: bool,
}

impl<'p, 'w> Caller<'p, 'w> {
    /// Returns a caller for a PE that has made no call yet.
    #[must_use]
    pub fn new(pe: &'p Pe<'w>) -> Self {
        // No call is in progress before the first one.
        Self { pe, flow: Flow::new(pe.window(), pe.size() as usize), synchronized: true }
    }

    /// Makes a call.
    ///
    /// # Errors
    /// When the job has failed.
    ///
    /// # Panics
    /// When a buffer is still exposed at the end of the call.
    pub async fn call(&mut self, plans: &Plans, operands: Operands<'_>) -> Op<Done> {
        let (number, entered_ns) = (self.pe.calls(), self.pe.now_ns());
        let call = self.pe.begin(operands).await;
        if number & self.flow.quarter_mask() == 0 {
            let turn = self.flow.turn(std::mem::take(&mut self.synchronized));
            turn.run(&call).await?;
        }
        plans.run(&call).await?;
        self.synchronized |= plans.synchronizes;
        let left_ns = self.pe.now_ns();
        Ok(Done { received: call.finish(), entered_ns, left_ns })
    }
}
