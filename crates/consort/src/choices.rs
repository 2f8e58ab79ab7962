//! Which algorithm serves a call: forced, by wisdom, or by the model.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use consort_collectives::{Setting, serves};
use consort_fabric::{Candidate, Capabilities, Collective, OperatorClass, Query};
use consort_tuner::{Arrival, Catalog, Table};

use crate::{Algorithms, Result, wisdom::Source};

/// The model is never so wrong that a candidate is the best which it thinks so many times slower.
const HOPELESS: f64 = 8.0;
/// The most candidates besides the first that are tried while a program runs.
const MOST_CONTESTANTS: usize = 24;

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
    /// The share of the time in calls that refining them may cost, if they are refined.
    online: Option<f64>,
    /// By team size, as the first PE to ask found it.
    source: Arc<Launched>,
}

/// The wisdom of a launch, for teams of all sizes.
#[derive(Debug)]
struct Launched {
    source: Source,
    arrival: Arrival,
    tables: Mutex<HashMap<u32, Option<Arc<Table>>>>,
}

impl Choices {
    /// Choices by the wisdom of `source` for teams of `pes` that come to calls like this where it
    /// says anything, by the model elsewhere.
    ///
    /// # Errors
    /// If the program named a file and it cannot be used.
    pub(crate) fn new(source: Source, arrival: Arrival, pes: u32) -> Result<Self> {
        let wisdom = source.table(pes, arrival)?;
        let tables = Mutex::new(HashMap::from([(pes, wisdom.clone())]));
        let source = Arc::new(Launched { source, arrival, tables });
        Ok(Self { forced: HashMap::new(), wisdom, online: None, source })
    }

    /// The same for a team of another size. The wisdom is the same on all PEs, whatever becomes of
    /// the file meanwhile: without a file the model chooses.
    pub(crate) fn of_team(&self, pes: u32) -> Self {
        let Launched { source, arrival, tables } = &*self.source;
        let mut tables = tables.lock().unwrap_or_else(PoisonError::into_inner);
        let table = || source.table(pes, *arrival).ok().flatten();
        let wisdom = tables.entry(pes).or_insert_with(table);
        Self { wisdom: wisdom.clone(), ..self.clone() }
    }

    /// The same, refined while the program runs, at the cost of at most this share of the time.
    pub(crate) fn refine(&mut self, share: f64) {
        self.online = Some(share);
    }

    /// What refining may cost, if it is done.
    pub(crate) fn online(&self) -> Option<f64> {
        self.online
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
        let cheapest = ranked(query, able).into_iter().next().map(|(_, candidate)| candidate);
        (cheapest.unwrap_or_else(|| Candidate::new("direct")), ChosenBy::Model)
    }

    /// The candidate for a query, and then those that the model does not think far slower than the
    /// best, the most promising first. None of these if the caller has named the algorithm.
    pub(crate) fn contestants(
        &self,
        query: &Query,
        element_bytes: usize,
        capabilities: Capabilities,
    ) -> Vec<Candidate> {
        let (first, by) = self.choose(query, element_bytes, capabilities);
        let mut contestants = vec![first];
        if by != ChosenBy::Force {
            let setting = Setting { element_bytes, ..Setting::of(query, capabilities) };
            let ranked = ranked(query, |one| serves(query.collective, &setting, one));
            let best_ns = ranked.first().map_or(0.0, |(ns, _)| *ns);
            let others = ranked
                .into_iter()
                .take_while(|(ns, _)| *ns <= HOPELESS * best_ns)
                .map(|(_, candidate)| candidate)
                .filter(|candidate| *candidate != contestants[0]);
            let others: Vec<Candidate> = others.take(MOST_CONTESTANTS).collect();
            contestants.extend(others);
        }
        contestants
    }
}

/// What can serve a query, with the model's estimates, the most promising first.
fn ranked(query: &Query, able: impl Fn(&Candidate) -> bool) -> Vec<(f64, Candidate)> {
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
    ranked
}
