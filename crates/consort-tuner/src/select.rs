//! The selector: decides which candidate serves a call, and explains why.
//!
//! A runtime that plans a call, a command that explains or checks a choice, and the refinement of
//! choices at run time all use it, so they agree. It selects the first of these:
//!
//! 1. the candidate that the program forces for the collective;
//! 2. wisdom's choice for the call, or for the nearest modes, team size and message size, if that
//!    candidate can serve the call;
//! 3. the candidate with the model's best estimate among those that can serve the call.
//!
//! All algorithms keep rank order with any operator, at the cost of at most one more message. So
//! measurements with a commutative operator are used for all operators. Wisdom and the model assume
//! elements of eight bytes; a candidate that cannot serve larger elements is skipped.

use std::{borrow::Cow, fmt};

use consort_fabric::{
    CallSpec, Candidate, OperatorClass, Query,
    units::{size, time},
};

use crate::{
    Catalog, Confidence, Entry, Table, TransferClass, Wisdom,
    estimate::{distinct, estimated, ranked},
    query::canonical,
};

/// A candidate is never the best if the model estimates it this many times slower than the best.
const HOPELESS: f64 = 8.0;
/// The largest number of candidates besides the first that are tried while a program runs.
const MOST_CONTESTANTS: usize = 24;

/// The measurements that a selector uses.
#[derive(Clone, Copy, Debug)]
pub enum Measurements<'a> {
    /// None: the model chooses.
    Nothing,
    /// Wisdom, for a machine with this many usable cores.
    Wisdom(&'a Wisdom, usize),
    /// Wisdom compiled for one team.
    Table(&'a Table),
}

impl<'a> Measurements<'a> {
    /// Returns wisdom for a machine with `cores` usable cores, if there is any.
    #[must_use]
    pub fn new(wisdom: Option<&'a Wisdom>, cores: usize) -> Self {
        wisdom.map_or(Self::Nothing, |wisdom| Self::Wisdom(wisdom, cores))
    }
}

/// Selects among the candidates of a catalogue.
#[derive(Clone, Copy)]
pub struct Selector<'a> {
    /// The candidates, and the model that estimates them.
    pub catalog: &'a dyn Catalog,
    /// The measurements of them.
    pub measured: Measurements<'a>,
    /// The candidate that the program forces, if any.
    pub forced: Option<&'a Candidate>,
}

/// The origin of a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChosenBy {
    /// The program forced the algorithm.
    Force,
    /// It was measured on this machine.
    Wisdom,
    /// It was estimated by a model of a typical machine.
    Model,
}

/// The candidate for a call. Its `Display` explains the choice.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection<'a> {
    /// The canonical query.
    pub query: Query,
    /// The choice.
    pub candidate: Cow<'a, Candidate>,
    /// Its origin.
    pub by: ChosenBy,
    /// The entry of wisdom, or the model's estimate, that decided, if known. Its query may differ
    /// from this one: see [`Selection::is_exact`].
    pub entry: Option<Cow<'a, Entry>>,
    /// The team sizes for which calls of this collective, in these modes and kind of memory, were
    /// measured; empty if unknown.
    pub measured_pes: Vec<u32>,
}

impl<'a> Selector<'a> {
    /// Creates a selector among the candidates of `catalog`, by these measurements.
    #[must_use]
    pub const fn new(catalog: &'a dyn Catalog, measured: Measurements<'a>) -> Self {
        Self { catalog, measured, forced: None }
    }

    /// Returns the candidate that serves `call`; `None` only if the catalogue has none that can.
    #[must_use]
    pub fn select(&self, call: &CallSpec) -> Option<Selection<'a>> {
        let query = canonical(&call.query());
        if let Some(forced) = self.forced {
            let (candidate, measured_pes) = (Cow::Borrowed(forced), Vec::new());
            let by = ChosenBy::Force;
            return Some(Selection { query, candidate, by, entry: None, measured_pes });
        }
        let measured_pes = match self.measured {
            Measurements::Wisdom(wisdom, _) => wisdom.measured_pes(&lookup_query(call)),
            Measurements::Nothing | Measurements::Table(_) => Vec::new(),
        };
        if let Some((candidate, entry)) = self.wisdom_choice(call) {
            let (candidate, entry) = (Cow::Borrowed(candidate), entry.map(Cow::Borrowed));
            let by = ChosenBy::Wisdom;
            return Some(Selection { query, candidate, by, entry, measured_pes });
        }
        let entry = estimated(self.catalog, &query, |one| self.catalog.serves(call, one))?;
        let (candidate, entry) = (Cow::Owned(entry.choice.clone()), Some(Cow::Owned(entry)));
        Some(Selection { query, candidate, by: ChosenBy::Model, entry, measured_pes })
    }

    /// Returns the candidate that serves `call`, and then those worth trying, the most promising
    /// first: those that tuning kept besides it, or, if it kept none, those whose estimates are not
    /// far above the best. Equivalent candidates appear once. If the program forces a candidate, it
    /// is the only one.
    #[must_use]
    pub fn contestants(&self, call: &CallSpec) -> Vec<Candidate> {
        let first = self.select(call);
        let first = first.map(|first| first.candidate.into_owned());
        if self.forced.is_some() {
            return first.into_iter().collect();
        }
        let query = canonical(&call.query());
        let alternatives: Vec<Candidate> = self
            .alternatives_for(call)
            .into_iter()
            .filter(|one| self.catalog.serves(call, one))
            .collect();
        if !alternatives.is_empty() {
            let all: Vec<Candidate> = first.into_iter().chain(alternatives).collect();
            return distinct(self.catalog, &query, all).collect();
        }
        let ranked = ranked(self.catalog, &query, |one| self.catalog.serves(call, one));
        let best_ns = ranked.first().map_or(0.0, |(_, ns)| *ns);
        let hopeful = ranked.into_iter().take_while(|(_, ns)| *ns <= HOPELESS * best_ns);
        let others = hopeful.map(|(one, _)| one).filter(|one| first.as_ref() != Some(one));
        let all: Vec<Candidate> = first.iter().cloned().chain(others).collect();
        distinct(self.catalog, &query, all).take(1 + MOST_CONTESTANTS).collect()
    }

    /// Returns the expected time of a selected candidate, in nanoseconds: that of its entry, scaled
    /// by the model's estimates if the entry is for another query. `None` for a candidate without
    /// an entry.
    #[must_use]
    pub fn expected_ns(&self, selection: &Selection<'_>) -> Option<f64> {
        let entry = selection.entry.as_deref()?;
        let estimate_ns = |query| self.catalog.estimate_ns(query, &selection.candidate);
        let ratio = estimate_ns(&selection.query) / estimate_ns(&entry.query);
        let is_sound = ratio.is_finite() && ratio > 0.0 && !selection.is_exact();
        Some(entry.median_ns * if is_sound { ratio } else { 1.0 })
    }

    /// Returns the candidates that tuning measured and kept besides wisdom's choice.
    fn alternatives_for(&self, call: &CallSpec) -> Vec<Candidate> {
        let query = lookup_query(call);
        match self.measured {
            Measurements::Nothing => Vec::new(),
            Measurements::Wisdom(wisdom, cores) => {
                let entry = wisdom.answer(self.catalog, &query, cores);
                let measured = entry.filter(|entry| entry.is_measured());
                measured.into_iter().flat_map(Entry::alternatives).cloned().collect()
            }
            Measurements::Table(table) => table.alternatives(&query).cloned().collect(),
        }
    }

    /// Returns wisdom's choice, if it can serve the call.
    fn wisdom_choice(&self, call: &CallSpec) -> Option<(&'a Candidate, Option<&'a Entry>)> {
        let query = lookup_query(call);
        let found = match self.measured {
            Measurements::Nothing => None,
            Measurements::Wisdom(wisdom, cores) => {
                let entry = wisdom.answer(self.catalog, &query, cores);
                entry.map(|entry| (&entry.choice, Some(entry)))
            }
            Measurements::Table(table) => table.look_up(&query).map(|candidate| (candidate, None)),
        };
        found.filter(|(candidate, _)| self.catalog.serves(call, candidate))
    }
}

/// Returns the query with which a call is looked up in wisdom.
pub(crate) fn lookup_query(call: &CallSpec) -> Query {
    Query { operator: OperatorClass::Commutative, ..canonical(&call.query()) }
}

impl Selection<'_> {
    /// Returns whether the entry is for exactly this query. If not, it is for the nearest modes,
    /// team size and message size.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        let lookup_query = Query { operator: OperatorClass::Commutative, ..self.query };
        let is_asked = |entry: &Cow<'_, Entry>| [lookup_query, self.query].contains(&entry.query);
        self.entry.as_ref().is_some_and(is_asked)
    }

    /// Describes what was measured instead of this query.
    fn measured_instead(&self) -> String {
        let Query { pes, sync, .. } = self.query;
        let entry = self.entry.as_ref().map_or(self.query, |entry| entry.query);
        match self.measured_pes.as_slice() {
            _ if entry.sync != sync => format!("measured in modes {}", entry.sync),
            known if !known.contains(&pes) => {
                let known: Vec<String> = known.iter().map(u32::to_string).collect();
                format!("measured for {} PEs", known.join(" and "))
            }
            _ => format!("measured for {}", size(entry.bytes)),
        }
    }
}

impl fmt::Display for Selection<'_> {
    /// Explains the choice in several readable lines, without a line break at the end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.query, self.candidate)?;
        let Some(entry) = self.entry.as_deref() else {
            return match self.by {
                ChosenBy::Force => write!(f, "  from: the program, which names it"),
                ChosenBy::Wisdom => write!(f, "  from: wisdom"),
                ChosenBy::Model => write!(f, "  from: the model"),
            };
        };
        match (entry.is_measured(), entry.ci95_ns) {
            (true, Some((low, high))) => {
                // A time measured in another call is not a promise.
                if !self.is_exact() {
                    writeln!(f, "  expected: not known, {}", self.measured_instead())?;
                }
                let class = match entry.class {
                    Some(TransferClass::Near) => ", cores near",
                    Some(TransferClass::Far) => ", cores far",
                    None => "",
                };
                let word = if self.is_exact() { "expected" } else { "there" };
                let Entry { median_ns, rigour, .. } = entry;
                let interval = match entry.is_one_sample() {
                    true => "one sample".to_owned(),
                    false => format!("95 % interval {} to {}", time(low), time(high)),
                };
                writeln!(f, "  {word}: {} ({interval}), {rigour}{class}", time(*median_ns))?;
            }
            _ => writeln!(f, "  model: {}", time(entry.median_ns))?,
        }
        match (&entry.runner_up, entry.margin()) {
            (Some(second), Some(margin)) => {
                let sure = match entry.confidence {
                    Confidence::Clear | Confidence::Tie if entry.is_one_sample() => "of one sample",
                    Confidence::Clear => "clear",
                    Confidence::Tie => "not distinguished",
                    Confidence::Open => "measured too seldom to tell",
                    Confidence::Model => "by the model",
                    Confidence::Alone => "alone",
                };
                let (candidate, percent) = (&second.candidate, margin * 100.0);
                let second = time(second.median_ns);
                writeln!(f, "  runner-up: {candidate}, {second}, +{percent:.1} %, {sure}")?;
            }
            _ => writeln!(f, "  runner-up: none")?,
        }
        match self.by {
            ChosenBy::Wisdom if !self.is_exact() => {
                write!(f, "  from: the nearest wisdom, of {}", entry.query)
            }
            ChosenBy::Wisdom if entry.is_measured() => write!(f, "  from: wisdom for this query"),
            ChosenBy::Wisdom => write!(f, "  from: the model, when wisdom was made"),
            ChosenBy::Force | ChosenBy::Model => {
                write!(f, "  from: the model, as wisdom has no entry for it")
            }
        }
    }
}
