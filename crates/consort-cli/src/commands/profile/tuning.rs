//! The gain that tuning would bring to the calls of a profile.

use std::path::PathBuf;

use anyhow::Result;
use consort::{
    launch::Fabric,
    tune::{Algorithms, Arrival},
};
use consort_bench::wisdom::{advised, usable};
use consort_fabric::CallSpec;
use consort_tuner::{
    CallProfile, Catalog, ChosenBy, Entry, Measurements, Origin, Selector, Wisdom, same,
};
use serde::Serialize;

use super::joined::{JobProfile, JoinedCall};
use crate::wisdom_file;

/// How tuning would change the calls of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "tuning")]
pub(super) enum Tuning {
    /// Wisdom's choice served them.
    Tuned,
    /// No measurement says which candidate is the fastest.
    NotTuned,
    /// Wisdom has a faster candidate.
    Gain {
        /// The candidate.
        faster: String,
        /// The time that it would save in all calls of a PE, in nanoseconds.
        saved_ns: f64,
    },
    /// The calls are not the program's, or are of a kind that is not tuned.
    Fixed,
}

/// A job, and how tuning would change its calls.
pub(super) struct AdvisedJob {
    pub(super) job: JobProfile,
    pub(super) tuning: Vec<Tuning>,
}

/// The wisdom for jobs of one kind of PEs.
pub(super) struct Advisor {
    algorithms: &'static Algorithms,
    wisdom: Option<Wisdom>,
}

impl Advisor {
    /// Loads the named wisdom, or that which such jobs use.
    ///
    /// # Errors
    /// When the named file cannot be used.
    pub(super) fn new(named: Option<&PathBuf>, fabric: Fabric) -> Result<Self> {
        let algorithms = Algorithms::of(fabric);
        let path = wisdom_file::path(named, Arrival::Together, fabric)?;
        let identity = algorithms.identity().clone().with(Arrival::Together);
        let wisdom = match named {
            Some(_) => Some(Wisdom::load(&path, &identity).map_err(advised)?),
            None => usable(&path, &identity),
        };
        Ok(Self { algorithms, wisdom })
    }

    /// Returns a job with what tuning would change for its calls.
    pub(super) fn advised(&self, job: JobProfile) -> AdvisedJob {
        let tuning = job.calls.iter().map(|call| self.advise(call)).collect();
        AdvisedJob { job, tuning }
    }

    /// Returns what tuning would change for these calls.
    fn advise(&self, call: &JoinedCall) -> Tuning {
        let CallProfile { query, algorithm: used, origin, is_blocking, .. } = &call.all;
        if matches!(origin, None | Some(Origin::Refinement)) || query.collective.is_vector() {
            return Tuning::Fixed;
        }
        let cores = self.algorithms.cores();
        let measured = Measurements::new(self.wisdom.as_ref(), cores);
        let spec = CallSpec { nonblocking: !is_blocking, ..CallSpec::from(query) };
        let selected = Selector::new(self.algorithms, measured).select(&spec);
        let Some(selected) = selected.filter(|one| one.by == ChosenBy::Wisdom) else {
            return Tuning::NotTuned;
        };
        let best = &*selected.candidate;
        if same(self.algorithms, &selected.query, best, used) {
            return Tuning::Tuned;
        }
        let estimate_ns = |candidate| self.algorithms.estimate_ns(&selected.query, candidate);
        let measured = |entry: &Entry| {
            let second = entry.runner_up.as_ref().filter(|second| second.candidate == *used)?;
            Some(second.median_ns / entry.median_ns)
        };
        // Where tuning has not kept the candidate's time, the model compares the two.
        let entry = selected.entry.as_deref();
        let ratio = entry.and_then(measured).unwrap_or(estimate_ns(used) / estimate_ns(best));
        let best_ns = entry.map_or_else(|| estimate_ns(best), |entry| entry.median_ns);
        match (ratio - 1.0) * best_ns * call.count as f64 {
            saved_ns if saved_ns > 0.0 => Tuning::Gain { faster: best.to_string(), saved_ns },
            _ => Tuning::Tuned,
        }
    }
}
