//! Selects the candidate that serves a call: forced, by wisdom, or by the model.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use consort_collectives::{
    Algorithm,
    barrier::{Dissemination, Synchronizer},
};
use consort_fabric::{CallSpec, Candidate, Collective};
use consort_native::Group;
use consort_tuner::{Arrival, ChosenBy, Entry, Measurements, Selector, Table};

use super::{making::Outside, profiling::Profiler, recording::Recorder, wisdom::Source};
use crate::{Result, algorithms::Algorithms};

/// The settings by which a job chooses among the algorithms of a collective; the same on all PEs.
#[derive(Clone, Debug)]
pub(crate) struct Choices {
    algorithms: &'static Algorithms,
    forced: HashMap<Collective, Candidate>,
    /// The algorithms of forced candidates that are not in the registry.
    outside: HashMap<Collective, Outside>,
    wisdom: Option<Arc<Table>>,
    /// The share of the time in calls that refinement may cost, if enabled.
    online: Option<f64>,
    /// The recorder of the program's calls, if enabled.
    recorder: Option<Arc<Recorder>>,
    /// The profile of the job, if enabled.
    profiler: Option<Arc<Profiler>>,
    /// The wisdom for teams of all sizes, shared by all PEs.
    source: Arc<Launched>,
}

/// The wisdom of a launch. The first PE that needs the table for a team size loads it for all PEs.
#[derive(Debug)]
struct Launched {
    source: Source,
    arrival: Arrival,
    /// Whether this process prints the warnings of the job.
    warns: bool,
    tables: Mutex<HashMap<u32, Option<Arc<Table>>>>,
}

impl Choices {
    /// Creates choices among these algorithms for teams of `pes` with this arrival at calls: by the
    /// wisdom of `source` where it has an entry, by the model elsewhere. One process of the job
    /// `warns`.
    ///
    /// # Errors
    /// When the program named a file and it cannot be used.
    pub(crate) fn new(
        algorithms: &'static Algorithms,
        source: Source,
        arrival: Arrival,
        pes: u32,
        warns: bool,
    ) -> Result<Self> {
        let wisdom = source.table(algorithms, pes, arrival, warns)?;
        let recorder = match source {
            Source::Nothing => None,
            _ => Recorder::of_environment(warns),
        };
        let profiler = Profiler::of_environment(algorithms.fabric(), pes, warns);
        let tables = Mutex::new(HashMap::from([(pes, wisdom.clone())]));
        let source = Arc::new(Launched { source, arrival, warns, tables });
        let (forced, outside) = (HashMap::new(), HashMap::new());
        let online = None;
        Ok(Self { algorithms, forced, outside, wisdom, online, recorder, profiler, source })
    }

    /// Returns the algorithms to choose among.
    pub(crate) fn algorithms(&self) -> &'static Algorithms {
        self.algorithms
    }

    /// Returns the choices for another team, whose size and nodes may differ. All PEs get the same
    /// wisdom, even if the file changes while they load it. Without a usable file, the model
    /// chooses.
    pub(crate) fn of_group(&self, group: &Group) -> Self {
        let (pes, nodes) = (u32::try_from(group.size()).unwrap_or(u32::MAX), group.nodes());
        let Launched { source, arrival, warns, tables } = &*self.source;
        let mut tables = tables.lock().unwrap_or_else(PoisonError::into_inner);
        let algorithms = self.algorithms.on(nodes, pes).without_vendor();
        if algorithms.is_of_part() {
            // Wisdom is for teams that are placed on the processes like a world.
            return Self { algorithms, wisdom: None, ..self.clone() };
        }
        let table = || source.table(algorithms, pes, *arrival, *warns).ok().flatten();
        let wisdom = tables.entry(pes).or_insert_with(table);
        Self { algorithms, wisdom: wisdom.clone(), ..self.clone() }
    }

    /// Refines choices while the program runs, at the cost of at most this share of the time in
    /// calls.
    pub(crate) fn refine(&mut self, share: f64) {
        self.online = Some(share);
    }

    /// Adds the results of refinement to the wisdom of the launch. Returns how many entries are new
    /// or have another choice, or the reason why none can be stored.
    pub(crate) fn keep_found(&self, found: Vec<Entry>) -> Result<usize, String> {
        let Launched { source, arrival, .. } = &*self.source;
        source.keep(self.algorithms, *arrival, found)
    }

    /// Returns the recorder of the job's calls, if there is one.
    pub(crate) fn recorder(&self) -> Option<&Recorder> {
        self.recorder.as_deref()
    }

    /// Returns the profile of the job's calls, if there is one.
    pub(crate) fn profiler(&self) -> Option<&Profiler> {
        self.profiler.as_deref()
    }

    /// Returns the share of the time that refinement may cost, if enabled.
    pub(crate) fn online(&self) -> Option<f64> {
        self.online
    }

    /// Forces `candidate` for calls of `collective`, which fail if it cannot serve them; `None`
    /// ends that.
    pub(crate) fn force(&mut self, collective: Collective, candidate: Option<Candidate>) {
        self.outside.remove(&collective);
        match candidate {
            Some(candidate) => self.forced.insert(collective, candidate),
            None => self.forced.remove(&collective),
        };
    }

    /// Forces an algorithm that is not in the registry.
    pub(crate) fn force_outside(
        &mut self,
        collective: Collective,
        candidate: Candidate,
        outside: Outside,
    ) {
        self.force(collective, Some(candidate));
        self.outside.insert(collective, outside);
    }

    /// Returns whether the forced algorithm of `collective` is not in the registry.
    pub(crate) fn is_forced_outside(&self, collective: Collective) -> bool {
        self.outside.contains_key(&collective)
    }

    /// Returns the program's own algorithm that a candidate names.
    pub(crate) fn outside(&self, collective: Collective, candidate: &Candidate) -> Option<Outside> {
        let registered = self.algorithms.own(collective, &candidate.algorithm);
        self.outside.get(&collective).or(registered).copied()
    }

    /// Selects an algorithm of the library for calls that the library makes for itself: entry and
    /// exit barriers, and calls that create and free teams and allocate memory. A forced algorithm
    /// that cannot serve such a call is skipped; an unknown one is an error of the plan.
    pub(crate) fn select_within_library(&self, call: &CallSpec) -> Candidate {
        let mut selector = self.selector(call.collective, false);
        let is_known = |forced: &Candidate| self.is_known(call.collective, forced);
        let serves = |forced: &Candidate| selector.catalog.serves(call, forced);
        let is_ours = !self.is_forced_outside(call.collective);
        selector.forced = selector.forced.filter(|one| is_ours && (serves(one) || !is_known(one)));
        Self::selected(&selector, call).0
    }

    /// Returns whether the algorithm of a candidate exists.
    fn is_known(&self, collective: Collective, candidate: &Candidate) -> bool {
        self.algorithms.describe(collective, &candidate.algorithm).is_ok()
    }

    /// Selects the entry and exit barriers of calls of a team of `pes`: the barrier that is
    /// suitable and expected to be the fastest.
    pub(crate) fn select_around(&self, pes: u32) -> Candidate {
        let call = CallSpec::barrier(pes);
        let first = self.select_within_library(&call);
        if Synchronizer::can_be(&first) || !self.is_known(call.collective, &first) {
            return first; // an unknown algorithm is an error of the plan
        }
        let mut selector = self.selector(call.collective, false);
        selector.forced = None;
        let mut others = selector.contestants(&call).into_iter();
        let usual = || Candidate::new(Dissemination::NAME).with("radix", 2);
        others.find(Synchronizer::can_be).unwrap_or_else(usual)
    }

    /// Returns the candidate that serves a call, and the origin of that choice. `may_be_own` allows
    /// the program's own algorithms.
    pub(crate) fn select(&self, call: &CallSpec, may_be_own: bool) -> (Candidate, ChosenBy) {
        Self::selected(&self.selector(call.collective, may_be_own), call)
    }

    fn selected(selector: &Selector<'_>, call: &CallSpec) -> (Candidate, ChosenBy) {
        let selected = selector.select(call);
        // If no candidate can serve the call, creating the plan of this one returns the error.
        let none = || (Candidate::new("direct"), ChosenBy::Model);
        selected.map_or_else(none, |selected| (selected.candidate.into_owned(), selected.by))
    }

    /// Returns the candidate that serves a call, and then those worth trying while the program
    /// runs, the most promising first.
    pub(crate) fn contestants(&self, call: &CallSpec, may_be_own: bool) -> Vec<Candidate> {
        let contestants = self.selector(call.collective, may_be_own).contestants(call);
        if contestants.is_empty() { vec![self.select(call, may_be_own).0] } else { contestants }
    }

    /// Selects among all algorithms, or only those of the library.
    fn selector(&self, collective: Collective, may_be_own: bool) -> Selector<'_> {
        let catalog = if may_be_own { self.algorithms } else { self.algorithms.without_own() };
        let measured = self.wisdom.as_deref().map_or(Measurements::Nothing, Measurements::Table);
        let forced = self.forced.get(&collective);
        Selector { catalog, measured, forced }
    }
}
