//! Algorithms whose protocol consists of the rounds of an exchange.

use consort_fabric::{Candidate, Fabric, MachineModel, Op, Query};

use super::exchange::Rounds;
use crate::{Algorithm, Parameter, PlanError, Setting};

/// An algorithm that is defined by the rounds of each PE and their cost.
pub(crate) trait InRounds: 'static {
    /// See [`Algorithm::NAME`].
    const NAME: &'static str;
    /// See [`Algorithm::IN_PLACE`].
    const IN_PLACE: bool = false;
    /// See [`Algorithm::PARAMETERS`].
    const PARAMETERS: &'static [Parameter] = &[];
    /// See [`Algorithm::REVISION`].
    const REVISION: u32 = 1;

    /// Returns the rounds of one PE. Succeeds on all PEs of a team or on none.
    ///
    /// # Errors
    /// If the algorithm cannot serve the setting.
    fn rounds(setting: &Setting, candidate: &Candidate) -> Result<Rounds, PlanError>;

    /// See [`Algorithm::cost_ns`].
    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64;
}

impl<A: InRounds> Algorithm for A {
    const NAME: &'static str = <A as InRounds>::NAME;
    const IN_PLACE: bool = <A as InRounds>::IN_PLACE;
    const PARAMETERS: &'static [Parameter] = <A as InRounds>::PARAMETERS;
    const REVISION: u32 = <A as InRounds>::REVISION;
    type Schedule = Rounds;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Rounds, PlanError> {
        Self::check_names(candidate)?;
        A::rounds(setting, candidate)
    }

    fn steps(rounds: &Rounds) -> u64 {
        rounds.steps()
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        <A as InRounds>::cost_ns(query, candidate, model)
    }

    #[inline(always)]
    fn run<F: Fabric>(f: &F, rounds: &Rounds) -> impl Future<Output = Op> {
        rounds.run(f)
    }
}
