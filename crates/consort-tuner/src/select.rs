//! The one selector: which candidate serves a call, and why.
//!
//! A runtime that plans a call, a command that explains or checks one, and what refines choices
//! while a program runs all ask it, so they agree. In this order:
//!
//! 1. the candidate that the program names for the collective;
//! 2. what wisdom says of the call, or of the nearest team size and message size, if that can serve
//!    the call;
//! 3. of those that can, the one that the model expects to be fastest.
//!
//! Algorithms keep the order of the ranks whatever the operator, at one more message at most. So
//! what was measured with a commutative operator serves for all. Wisdom and the model speak of
//! elements of eight bytes: what cannot serve larger ones is passed over.

use std::{borrow::Cow, fmt};

use consort_fabric::{CallSpec, Candidate, OperatorClass, Query};

use crate::{
    Catalog, Confidence, Entry, Table, TransferClass, Wisdom,
    estimate::{estimated, ranked},
    query::{canonical, describe},
};

/// The model is never so wrong that a candidate is the best which it thinks so many times slower.
const HOPELESS: f64 = 8.0;
/// The most candidates besides the first that are tried while a program runs.
const MOST_CONTESTANTS: usize = 24;

/// What has been measured, if anything has.
#[derive(Clone, Copy, Debug)]
pub enum Measured<'a> {
    /// Nothing: the model chooses.
    Nothing,
    /// Wisdom, for a machine with so many usable cores.
    Wisdom(&'a Wisdom, u32),
    /// Wisdom compiled for one team.
    Table(&'a Table),
}

impl<'a> Measured<'a> {
    /// Wisdom for a machine with `cores` usable cores, if there is any.
    #[must_use]
    pub fn new(wisdom: Option<&'a Wisdom>, cores: u32) -> Self {
        wisdom.map_or(Self::Nothing, |wisdom| Self::Wisdom(wisdom, cores))
    }
}

/// Selects among the candidates of a catalogue.
#[derive(Clone, Copy, Debug)]
pub struct Selector<'a, C: ?Sized> {
    /// The candidates, and the model of what they cost.
    pub catalog: &'a C,
    /// What has been measured of them.
    pub measured: Measured<'a>,
    /// The candidate that the program names, if it does.
    pub forced: Option<&'a Candidate>,
}

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

/// The candidate for a call. Written out, it explains itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection<'a> {
    /// What was asked, in the one form.
    pub query: Query,
    /// The answer.
    pub candidate: Cow<'a, Candidate>,
    /// Where it came from.
    pub by: ChosenBy,
    /// The entry of wisdom that answers, or what the model expects, where that is known. Its own
    /// query may differ: see [`Selection::is_exact`].
    pub entry: Option<Cow<'a, Entry>>,
}

impl<'a, C: Catalog + ?Sized> Selector<'a, C> {
    /// Selects among what `catalog` has, by what is measured.
    #[must_use]
    pub const fn new(catalog: &'a C, measured: Measured<'a>) -> Self {
        Self { catalog, measured, forced: None }
    }

    /// The candidate that serves `call`. `None` only if the catalogue has none that can.
    #[must_use]
    pub fn select(&self, call: &CallSpec) -> Option<Selection<'a>> {
        let query = canonical(&call.query());
        if let Some(forced) = self.forced {
            let candidate = Cow::Borrowed(forced);
            return Some(Selection { query, candidate, by: ChosenBy::Force, entry: None });
        }
        if let Some((candidate, entry)) = self.measured_for(call) {
            let (candidate, entry) = (Cow::Borrowed(candidate), entry.map(Cow::Borrowed));
            return Some(Selection { query, candidate, by: ChosenBy::Wisdom, entry });
        }
        let entry = estimated(self.catalog, &query, |one| self.catalog.serves(call, one))?;
        let candidate = Cow::Owned(entry.choice.clone());
        Some(Selection { query, candidate, by: ChosenBy::Model, entry: Some(Cow::Owned(entry)) })
    }

    /// The candidate that serves `call`, and then those that the model does not think far slower
    /// than the best, the most promising first. None of these if the program names the first.
    #[must_use]
    pub fn contestants(&self, call: &CallSpec) -> Vec<Candidate> {
        let first = self.select(call);
        let is_forced = self.forced.is_some();
        let mut contestants: Vec<_> =
            first.into_iter().map(|first| first.candidate.into_owned()).collect();
        if !is_forced {
            let serves = |one: &Candidate| self.catalog.serves(call, one);
            let ranked = ranked(self.catalog, &canonical(&call.query()), serves);
            let best_ns = ranked.first().map_or(0.0, |(_, ns)| *ns);
            let others = ranked
                .into_iter()
                .take_while(|(_, ns)| *ns <= HOPELESS * best_ns)
                .map(|(candidate, _)| candidate)
                .filter(|candidate| contestants.first() != Some(candidate));
            let others: Vec<Candidate> = others.take(MOST_CONTESTANTS).collect();
            contestants.extend(others);
        }
        contestants
    }

    /// What wisdom says, if that can serve the call.
    fn measured_for(&self, call: &CallSpec) -> Option<(&'a Candidate, Option<&'a Entry>)> {
        let query = Query { operator: OperatorClass::Commutative, ..canonical(&call.query()) };
        let found = match self.measured {
            Measured::Nothing => None,
            Measured::Wisdom(wisdom, cores) => {
                let entry = wisdom.answer(self.catalog, &query, cores);
                entry.map(|entry| (&entry.choice, Some(entry)))
            }
            Measured::Table(table) => table.look_up(&query).map(|candidate| (candidate, None)),
        };
        found.filter(|(candidate, _)| self.catalog.serves(call, candidate))
    }
}

impl Selection<'_> {
    /// Whether the entry that answers is one for this question: it may be that of the nearest team
    /// size and message size.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        let asked = Query { operator: OperatorClass::Commutative, ..self.query };
        let is_asked = |entry: &Cow<'_, Entry>| [asked, self.query].contains(&entry.query);
        self.entry.as_ref().is_some_and(is_asked)
    }
}

impl fmt::Display for Selection<'_> {
    /// Several lines for people, without a line break at the end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", describe(&self.query), self.candidate)?;
        let Some(entry) = self.entry.as_deref() else {
            return match self.by {
                ChosenBy::Force => write!(f, "  from: the program, which names it"),
                ChosenBy::Wisdom => write!(f, "  from: wisdom"),
                ChosenBy::Model => write!(f, "  from: the model"),
            };
        };
        let made = match (entry.is_measured(), entry.ci95_ns) {
            (true, Some((low, high))) => {
                let class = match entry.class {
                    Some(TransferClass::Near) => ", cores near",
                    Some(TransferClass::Far) => ", cores far",
                    None => "",
                };
                let Entry { median_ns, rigour, .. } = entry;
                format!("{median_ns} ns (95 % interval {low} to {high}), {rigour}{class}")
            }
            _ => format!("{} ns by the model", entry.median_ns),
        };
        writeln!(f, "  expected: {made}")?;
        match (&entry.runner_up, entry.margin()) {
            (Some(second), Some(margin)) => {
                let sure = match entry.confidence {
                    Confidence::Clear => "clear: the intervals are apart",
                    Confidence::Tie => "a tie: the intervals overlap",
                    Confidence::Model => "by the model",
                    Confidence::Alone => "alone",
                };
                let (candidate, percent) = (&second.candidate, margin * 100.0);
                let second_ns = second.median_ns;
                writeln!(f, "  runner-up: {candidate}, {second_ns} ns, +{percent:.1} %, {sure}")?;
            }
            _ => writeln!(f, "  runner-up: none")?,
        }
        match self.by {
            ChosenBy::Wisdom if !self.is_exact() => {
                write!(f, "  from: the nearest wisdom, of {}", describe(&entry.query))
            }
            ChosenBy::Wisdom if entry.is_measured() => write!(f, "  from: wisdom for this query"),
            ChosenBy::Wisdom => write!(f, "  from: the model, when wisdom was made"),
            ChosenBy::Force | ChosenBy::Model => {
                write!(f, "  from: the model, as wisdom says nothing of it")
            }
        }
    }
}
