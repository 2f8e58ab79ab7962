//! Which algorithm serves a call: forced, by wisdom, or by the model.

use std::{collections::HashMap, sync::Arc};

use consort_collectives::{Setting, serves};
use consort_fabric::{Candidate, Capabilities, Collective, OperatorClass, Query};
use consort_tuner::{Catalog, Table};

use crate::Algorithms;

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
pub(crate) struct Choices {
    forced: HashMap<Collective, Candidate>,
    wisdom: Option<Arc<Table>>,
}

impl Choices {
    /// Choices by `wisdom` where it says anything, by the model elsewhere.
    pub(crate) fn new(wisdom: Option<Arc<Table>>) -> Self {
        Self { forced: HashMap::new(), wisdom }
    }

    /// The same, but calls of `collective` are served by `candidate`, or fail.
    pub(crate) fn force(&mut self, collective: Collective, candidate: Option<Candidate>) {
        match candidate {
            Some(candidate) => self.forced.insert(collective, candidate),
            None => self.forced.remove(&collective),
        };
    }

    /// The candidate for a query, and where it came from. Wisdom knows elements of eight bytes:
    /// what cannot serve larger ones is passed over.
    pub(crate) fn choose(
        &self,
        query: &Query,
        element_bytes: usize,
        capabilities: Capabilities,
    ) -> (Candidate, ChosenBy) {
        if let Some(candidate) = self.forced.get(&query.collective) {
            return (candidate.clone(), ChosenBy::Force);
        }
        let setting = Setting { element_bytes, ..Setting::of(query, capabilities) };
        let able = |candidate: &Candidate| serves(query.collective, &setting, candidate);
        // Algorithms keep the order of the ranks whatever the operator, at one more message at
        // most; so what was measured with a commutative one serves for all.
        let measured = Query { operator: OperatorClass::Commutative, ..*query };
        let wise = self.wisdom.as_ref().and_then(|table| table.look_up(&measured));
        if let Some(candidate) = wise.filter(|candidate| able(candidate)) {
            return (candidate.clone(), ChosenBy::Wisdom);
        }
        let algorithms = Algorithms::here();
        let mut ranked: Vec<(f64, Candidate)> = algorithms
            .candidates(query)
            .into_iter()
            .filter(able)
            .map(|candidate| (algorithms.estimate_ns(query, &candidate), candidate))
            .collect();
        ranked.sort_by(|(one_ns, one), (other_ns, other)| {
            one_ns.total_cmp(other_ns).then_with(|| one.cmp(other))
        });
        let cheapest = ranked.into_iter().next().map(|(_, candidate)| candidate);
        (cheapest.unwrap_or_else(|| Candidate::new("direct")), ChosenBy::Model)
    }
}
