//! Which algorithm serves a call: forced, by wisdom, or by the model.

use std::collections::HashMap;

use consort_collectives::{candidates, estimate_ns};
use consort_fabric::{Candidate, Capabilities, Collective, MachineModel, Query};

/// Where a choice came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChosenBy {
    /// The caller named the algorithm.
    Force,
    /// Measured on this machine.
    Wisdom,
    /// Estimated from a model of a typical machine.
    Model,
}

/// How a job chooses among the algorithms of a collective. The same on all PEs.
#[derive(Clone, Debug)]
pub struct Choices {
    model: MachineModel,
    forced: HashMap<Collective, Candidate>,
}

impl Choices {
    /// Choices by the model alone, for so many usable cores.
    #[must_use]
    pub fn by_model(cores: u32) -> Self {
        Self { model: MachineModel::typical(cores), forced: HashMap::new() }
    }

    /// The same, but calls of `collective` are served by `candidate`, or fail.
    pub fn force(&mut self, collective: Collective, candidate: Option<Candidate>) {
        match candidate {
            Some(candidate) => self.forced.insert(collective, candidate),
            None => self.forced.remove(&collective),
        };
    }

    /// The candidate for a query, and where it came from.
    #[must_use]
    pub fn choose(&self, query: &Query, capabilities: Capabilities) -> (Candidate, ChosenBy) {
        if let Some(candidate) = self.forced.get(&query.collective) {
            return (candidate.clone(), ChosenBy::Force);
        }
        let cost = |candidate: &Candidate| estimate_ns(query, candidate, &self.model);
        let cheapest = candidates(query, capabilities)
            .into_iter()
            .min_by(|one, other| cost(one).total_cmp(&cost(other)));
        (cheapest.unwrap_or_else(|| Candidate::new("direct")), ChosenBy::Model)
    }
}
