//! Barriers: no PE leaves before all have entered. The registry of their algorithms.

use consort_fabric::{Candidate, Fabric, Op};

use crate::{Algorithm, PlanError, Setting, algorithm::registry};

registry! {
    central: Central,
    dissemination: Dissemination,
    flat: Flat,
    knomial: Knomial,
}

/// Any of the barriers, ready to run: what brackets an operation that all PEs enter, or leave,
/// together.
#[derive(Debug)]
pub enum Synchronizer {
    /// See [`Central`].
    Central(<Central as Algorithm>::Schedule),
    /// See [`Dissemination`].
    Dissemination(<Dissemination as Algorithm>::Schedule),
    /// See [`Flat`] and [`Knomial`].
    Tree(<Knomial as Algorithm>::Schedule),
}

impl Synchronizer {
    /// The barrier that `candidate` names, in the slots and with the counter of `setting`.
    ///
    /// # Errors
    /// When there is none, or its parameters are wrong.
    pub fn new(setting: &Setting, candidate: &Candidate) -> Result<Self, PlanError> {
        match candidate.algorithm.as_str() {
            Central::NAME => Central::schedule(setting, candidate).map(Self::Central),
            Flat::NAME => Flat::schedule(setting, candidate).map(Self::Tree),
            Knomial::NAME => Knomial::schedule(setting, candidate).map(Self::Tree),
            Dissemination::NAME => {
                Dissemination::schedule(setting, candidate).map(Self::Dissemination)
            }
            name => Err(PlanError::UnknownAlgorithm {
                collective: consort_fabric::Collective::Barrier,
                name: name.to_owned(),
                known: NAMES.join(", "),
            }),
        }
    }

    /// Waits until all PEs are here.
    ///
    /// # Errors
    /// When the job has failed.
    #[inline(always)]
    pub async fn run<F: Fabric>(&self, f: &F) -> Op {
        match self {
            Self::Central(schedule) => Central::run(f, schedule).await,
            Self::Dissemination(schedule) => Dissemination::run(f, schedule).await,
            Self::Tree(schedule) => Knomial::run(f, schedule).await,
        }
    }
}
