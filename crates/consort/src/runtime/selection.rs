//! Which algorithm serves a call: forced, by wisdom, or by the model.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use consort_fabric::{CallSpec, Candidate, Collective};
use consort_tuner::{Arrival, ChosenBy, Measured, Selector, Table};

use super::{making::Outside, wisdom::Source};
use crate::{Algorithms, Result};

/// How a job chooses among the algorithms of a collective. The same on all PEs.
#[derive(Clone, Debug)]
pub(crate) struct Choices {
    forced: HashMap<Collective, Candidate>,
    /// Those of the forced candidates that are no algorithms of the registry.
    outside: HashMap<Collective, Outside>,
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
        Ok(Self { forced: HashMap::new(), outside: HashMap::new(), wisdom, online: None, source })
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
        self.outside.remove(&collective);
        match candidate {
            Some(candidate) => self.forced.insert(collective, candidate),
            None => self.forced.remove(&collective),
        };
    }

    /// The same, by an algorithm that the registry does not know.
    pub(crate) fn force_outside(
        &mut self,
        collective: Collective,
        candidate: Candidate,
        outside: Outside,
    ) {
        self.force(collective, Some(candidate));
        self.outside.insert(collective, outside);
    }

    /// The algorithm that serves calls of `collective`, where the registry does not know it.
    pub(crate) fn outside(&self, collective: Collective) -> Option<Outside> {
        self.outside.get(&collective).copied()
    }

    /// The barrier by which a team of `pes` enters and leaves its calls: one of the registry.
    pub(crate) fn select_entry_and_exit_barrier(&self, pes: u32) -> Candidate {
        let mut selector = self.selector(Collective::Barrier);
        if self.outside.contains_key(&Collective::Barrier) {
            selector.forced = None;
        }
        Self::selected(&selector, &CallSpec::barrier(pes)).0
    }

    /// The candidate that serves a call, and where it came from.
    pub(crate) fn select(&self, call: &CallSpec) -> (Candidate, ChosenBy) {
        Self::selected(&self.selector(call.collective), call)
    }

    fn selected(selector: &Selector<'_, Algorithms>, call: &CallSpec) -> (Candidate, ChosenBy) {
        let selected = selector.select(call);
        // Where nothing can serve a call, that is what the plan of this one says.
        let none = || (Candidate::new("direct"), ChosenBy::Model);
        selected.map_or_else(none, |selected| (selected.candidate.into_owned(), selected.by))
    }

    /// The candidate that serves a call, and then those that are worth trying while the program
    /// runs, the most promising first.
    pub(crate) fn contestants(&self, call: &CallSpec) -> Vec<Candidate> {
        let contestants = self.selector(call.collective).contestants(call);
        if contestants.is_empty() { vec![self.select(call).0] } else { contestants }
    }

    fn selector(&self, collective: Collective) -> Selector<'_, Algorithms> {
        let measured = self.wisdom.as_deref().map_or(Measured::Nothing, Measured::Table);
        let forced = self.forced.get(&collective);
        Selector { catalog: Algorithms::here(), measured, forced }
    }
}
