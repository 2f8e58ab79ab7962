//! Wisdom: the results of tuning one machine, with one entry per query.
//!
//! 1. `mod.rs`: entries, and merging.
//! 2. `identity.rs`: the machine and algorithms of wisdom, and the reasons to refuse it elsewhere;
//!    `revisions.rs`: the revisions, by which changed algorithms are recognized.
//! 3. `format.rs`: the text; each error has its line.
//! 4. `file.rs`: finding, loading and saving it.
//!
//! Wisdom belongs to one machine. Wisdom that does not fit is refused, never used silently. Later
//! releases of the library can use it: each algorithm has a revision, and entries whose algorithms
//! have another revision are left out.

mod file;
mod format;
mod identity;
mod revisions;

use std::collections::{BTreeMap, BTreeSet};

use consort_fabric::{Candidate, OperatorClass, Query, statistics::Gain};

pub use file::{WisdomError, default_path, replace_file};
pub use format::FORMAT;
pub use identity::{Identity, IdentityMismatch};
pub use revisions::Revisions;

use crate::{
    Confidence, Rigour, Sample, TransferClass,
    query::canonical,
    times::{TIMES_NS, rounded_ns},
};
use identity::fingerprint;

/// The largest number of contenders of an entry.
pub(crate) const MOST_CONTENDERS: usize = 8;

/// The second-best candidate of an entry.
#[derive(Clone, Debug, PartialEq)]
pub struct RunnerUp {
    /// The algorithm and its parameters.
    pub candidate: Candidate,
    /// Its median, or its estimate, in nanoseconds per call; at least that of the choice, unless
    /// measurement does not distinguish the two.
    pub median_ns: f64,
}

/// The result of tuning one query, and how it was won.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The query.
    pub query: Query,
    /// The candidate that serves the query's calls: the one that was clearly the fastest, or the one
    /// that served them before.
    pub choice: Candidate,
    /// Its median, or its estimate at [`Rigour::Estimate`], in nanoseconds per call.
    pub median_ns: f64,
    /// The 95 % confidence interval of the median; `None` at [`Rigour::Estimate`].
    pub ci95_ns: Option<(f64, f64)>,
    /// The second-best candidate, from the same run.
    pub runner_up: Option<RunnerUp>,
    /// Further candidates that came near, the fastest first. Refinement at run time tries these and
    /// the runner-up.
    pub contenders: Vec<Candidate>,
    /// How far apart the cores were, if known.
    pub class: Option<TransferClass>,
    /// How certain it is that the choice beats the runner-up.
    pub confidence: Confidence,
    /// How hard the tuner searched.
    pub rigour: Rigour,
    /// The share of the blocks during which others did not use the cores, as far as the system
    /// reports it: 0 to 1.
    pub undisturbed: f64,
    /// The disturbances of the measurement, in one line; `None` on an idle machine.
    pub busy: Option<String>,
}

impl Entry {
    /// Returns a measured choice without a runner-up, whose interval extends from its median by a
    /// tenth to either side.
    #[must_use]
    pub fn alone(query: Query, choice: Candidate, median_ns: f64) -> Self {
        Self {
            query,
            choice,
            median_ns,
            ci95_ns: Some((0.9 * median_ns, 1.1 * median_ns)),
            runner_up: None,
            contenders: Vec::new(),
            class: None,
            confidence: Confidence::Alone,
            rigour: Rigour::Measure,
            undisturbed: 1.0,
            busy: None,
        }
    }

    /// Returns the relative slowdown of the runner-up against the choice: 0.25 for a quarter. It may
    /// be negative in a tie.
    #[must_use]
    pub fn margin(&self) -> Option<f64> {
        self.runner_up.as_ref().map(|runner_up| runner_up.median_ns / self.median_ns - 1.0)
    }

    /// Returns the candidates that tuning kept besides the choice, the fastest first.
    pub fn alternatives(&self) -> impl Iterator<Item = &Candidate> {
        self.runner_up.iter().map(|second| &second.candidate).chain(&self.contenders)
    }

    /// Returns whether the entry was measured, not only estimated.
    #[must_use]
    pub fn is_measured(&self) -> bool {
        self.rigour > Rigour::Estimate
    }

    /// Returns whether the entry was measured in enough launches to compare its candidates.
    #[must_use]
    pub fn is_decided(&self) -> bool {
        self.is_measured() && self.confidence != Confidence::Open
    }

    /// Returns whether the entry is a single time, which has no interval: repeated measurements
    /// have an interval of some width.
    #[must_use]
    pub fn is_one_sample(&self) -> bool {
        self.ci95_ns.is_some_and(|(low, high)| low >= high)
    }

    /// Returns the entry after its choice was measured again, next to a `rival`. `own` and `sample`
    /// are their times. Returns `None` unless the rival was faster beyond both intervals, in enough
    /// launches, with the cores as near or far as when the choice was won. An entry that is not
    /// decided does not change: the search measures it again, with more candidates.
    #[must_use]
    pub fn beaten_by(&self, rival: &Candidate, sample: &Sample, own: &Sample) -> Option<Self> {
        let is_faster = sample.ci95_ns.1 < own.ci95_ns.0;
        let is_sure = sample.launches.min(own.launches) as usize >= Gain::SURE_LAUNCHES;
        let is_alike = [sample.class, own.class] == [self.class; 2];
        if !self.is_decided() || !is_faster || !is_sure || !is_alike || *rival == self.choice {
            return None;
        }
        let (candidate, median_ns) = (self.choice.clone(), rounded_ns(own.median_ns));
        let contenders = self.alternatives().filter(|one| *one != rival).take(MOST_CONTENDERS);
        Some(Self {
            choice: rival.clone(),
            median_ns: rounded_ns(sample.median_ns),
            ci95_ns: Some((rounded_ns(sample.ci95_ns.0), rounded_ns(sample.ci95_ns.1))),
            runner_up: Some(RunnerUp { candidate, median_ns }),
            contenders: contenders.cloned().collect(),
            confidence: Confidence::Clear,
            rigour: Rigour::Measure,
            ..self.clone()
        })
    }

    /// Returns the width of the confidence interval as a share of the median.
    fn spread(&self) -> f64 {
        let interval = self.ci95_ns.filter(|_| !self.is_one_sample());
        interval.map_or(f64::INFINITY, |(low, high)| (high - low) / self.median_ns)
    }

    /// Returns whether this entry is more reliable than `other`. Higher rigour decides, then an
    /// idle machine, then the narrower interval.
    fn outranks(&self, other: &Self) -> bool {
        let worth = |entry: &Self| (entry.rigour, entry.busy.is_none());
        worth(self) > worth(other) || worth(self) == worth(other) && self.spread() < other.spread()
    }

    /// Returns an error in the entry, as the end of a sentence; `None` for a sound entry.
    pub(crate) fn flaw(&self) -> Option<&'static str> {
        let is_time = |time_ns: f64| TIMES_NS.contains(&time_ns);
        let holds = |(low, high): (f64, f64)| {
            is_time(low) && is_time(high) && (low..=high).contains(&self.median_ns)
        };
        if self.query.pes == 0 {
            return Some("pes must be at least 1");
        }
        if self.query != canonical(&self.query) {
            return Some("its query has properties that its collective ignores");
        }
        if !is_time(self.median_ns) {
            return Some("median_ns must be a time from 0.1 to 1e15");
        }
        if !self.ci95_ns.is_none_or(holds) {
            return Some("ci95_ns must be two times, low and high, around the median");
        }
        if self.ci95_ns.is_some() != self.is_measured() {
            return Some("ci95_ns belongs only to measured entries, not to estimates");
        }
        if (self.confidence == Confidence::Model) == self.is_measured() {
            return Some("confidence must be `model` for estimates, and only for them");
        }
        if !(0.0..=1.0).contains(&self.undisturbed) {
            return Some("undisturbed must be a share from 0 to 1");
        }
        if let Some(busy) = &self.busy {
            if !self.is_measured() {
                return Some("busy belongs only to measured entries, not to estimates");
            }
            if busy.trim().is_empty() || busy.contains(char::is_control) {
                return Some("busy must be one line of text");
            }
        }
        if !self.contenders.is_empty() && self.runner_up.is_none() {
            return Some("contenders need a runner-up");
        }
        if self.contenders.len() > MOST_CONTENDERS {
            return Some("there are too many contenders");
        }
        match &self.runner_up {
            Some(second) if !is_time(second.median_ns) => {
                Some("runner_up_ns must be a time from 0.1 to 1e15")
            }
            Some(second)
                if second.median_ns < self.median_ns && !self.confidence.is_undecided() =>
            {
                Some(
                    "runner_up_ns must be no less than median_ns, unless they are not distinguished",
                )
            }
            Some(_) if self.confidence == Confidence::Alone => {
                Some("confidence cannot be `alone` where there is a runner-up")
            }
            None if matches!(self.confidence, Confidence::Clear | Confidence::Tie) => {
                Some("confidence must be `alone` or `model` where there is no runner-up")
            }
            _ => None,
        }
    }
}

/// The wisdom of one machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Wisdom {
    identity: Identity,
    entries: BTreeMap<Query, Entry>,
    /// The number of entries left out because their algorithms have changed.
    outdated: usize,
}

impl Wisdom {
    /// Creates empty wisdom of this identity.
    #[must_use]
    pub fn new(identity: Identity) -> Self {
        Self { identity, entries: BTreeMap::new(), outdated: 0 }
    }

    /// Returns the machine, library and candidates to which the wisdom belongs.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Returns the number of entries that were left out during loading, because their algorithms
    /// have changed since they were measured or no longer exist.
    #[must_use]
    pub fn outdated(&self) -> usize {
        self.outdated
    }

    fn algorithms(&self) -> BTreeSet<String> {
        let named = |entry: &Entry| {
            let all = std::iter::once(&entry.choice).chain(entry.alternatives());
            let names = |one| Revisions::names(entry.query.collective, one);
            all.flat_map(names).collect::<Vec<String>>()
        };
        self.entries().flat_map(named).collect()
    }

    /// Returns the part that may be used under another identity: the entries whose choices have the
    /// same revision there. A runner-up with another revision is dropped.
    ///
    /// # Errors
    /// If the wisdom does not fit, or none of its entries may be used.
    fn fitted(self, identity: &Identity) -> Result<Self, IdentityMismatch> {
        identity.admit(&self.identity)?;
        let mut fitted = Self::new(identity.clone());
        for (query, mut entry) in self.entries {
            let is_same = |one: &Candidate| {
                identity.revisions.agree(&self.identity.revisions, query.collective, one)
            };
            if !is_same(&entry.choice) {
                fitted.outdated += 1;
                continue;
            }
            if entry.runner_up.as_ref().is_some_and(|second| !is_same(&second.candidate)) {
                entry.runner_up = None;
                entry.contenders.clear();
                if entry.is_measured() {
                    entry.confidence = Confidence::Alone;
                }
            }
            entry.contenders.retain(is_same);
            fitted.entries.insert(query, entry);
        }
        if fitted.entries.is_empty() && fitted.outdated > 0 {
            let Identity { library: theirs, .. } = self.identity;
            return Err(IdentityMismatch::OtherAlgorithms { theirs });
        }
        Ok(fitted)
    }

    /// Returns all entries, by collective, then modes, team size and bytes.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = &Entry> {
        self.entries.values()
    }

    /// Returns the entries with the collective and the modes of `query`, by team size.
    pub(crate) fn of_modes(&self, query: &Query) -> impl Iterator<Item = &Entry> {
        let Query { collective, sync, .. } = *query;
        let (pes, bytes, operator, symmetric) = (0, 0, OperatorClass::Commutative, false);
        let first = Query { collective, sync, pes, bytes, operator, symmetric };
        let all = self.entries.range(first..).map(|(_, entry)| entry);
        all.take_while(move |entry| {
            (entry.query.collective, entry.query.sync) == (collective, sync)
        })
    }

    /// Returns the entry for exactly this query.
    #[must_use]
    pub fn entry(&self, query: &Query) -> Option<&Entry> {
        self.entries.get(&canonical(query))
    }

    /// Inserts `entry`, and replaces an entry for the same query.
    ///
    /// # Panics
    /// If the entry is not sound: a time is not from 0.1 to 1e15 ns, the interval does not contain
    /// the median, the runner-up is faster than the choice, the team has no PE, the query is not
    /// canonical, the confidence or the interval does not match the rigour, or `busy` is not one
    /// line.
    pub fn insert(&mut self, entry: Entry) {
        let flaw = entry.flaw();
        assert!(flaw.is_none(), "unsound entry: {}: {entry:?}", flaw.unwrap_or_default());
        self.entries.insert(entry.query, entry);
    }

    /// Marks the measured entries for `queries` as measured on a busy machine. `why` is one line
    /// that describes the disturbance.
    ///
    /// # Panics
    /// If `why` is empty or more than one line.
    pub fn mark_busy<'q>(&mut self, queries: impl IntoIterator<Item = &'q Query>, why: &str) {
        for query in queries {
            let entry = self.entry(query).filter(|entry| entry.is_measured()).cloned();
            if let Some(entry) = entry {
                self.insert(Entry { busy: Some(why.to_owned()), ..entry });
            }
        }
    }

    /// Takes the better entries of `other`: higher rigour wins, then an idle machine over a busy
    /// one, then the narrower confidence interval. Returns how many entries it took.
    ///
    /// # Errors
    /// If `other` is of another machine or arrival, or none of its entries may be used. Then
    /// nothing is taken.
    pub fn merge(&mut self, other: Self) -> Result<usize, IdentityMismatch> {
        let other = other.fitted(&self.identity)?;
        let mut taken_count = 0;
        for (query, entry) in other.entries {
            if self.entries.get(&query).is_none_or(|own| entry.outranks(own)) {
                self.entries.insert(query, entry);
                taken_count += 1;
            }
        }
        Ok(taken_count)
    }

    /// Returns a hash of the whole content, with which processes check that they use the same
    /// wisdom.
    #[must_use]
    pub fn digest(&self) -> u64 {
        fingerprint([self.to_string().as_str()])
    }
}
