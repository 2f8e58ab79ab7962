//! The answer to a query, and where it came from.

use std::{borrow::Cow, fmt};

use consort_fabric::Query;

use crate::{
    Catalog, Confidence, Entry, TransferClass, Wisdom,
    estimate::estimated,
    query::{canonical, describe},
    row::spans,
};

/// Where an answer came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// From an entry for exactly this query.
    Exact,
    /// From the entry for the nearest team size and message size.
    Nearest,
    /// From the model, as wisdom has nothing near.
    Model,
}

/// The candidate for a query. Written out, it explains itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice<'a> {
    /// What was asked, in the one form.
    pub query: Query,
    /// The entry that answers, whose `choice` is the candidate to use. Its own query differs
    /// where the origin is [`Origin::Nearest`].
    pub entry: Cow<'a, Entry>,
    /// Where the entry came from.
    pub origin: Origin,
}

impl Wisdom {
    /// What to use for `query` on a machine with `cores` usable cores: `None` if wisdom says
    /// nothing of it. Collective, modes, operator class and kind of memory must be those of an
    /// entry; the team size and the bytes may be the nearest, if the choice can serve them.
    #[must_use]
    pub fn choose<C: Catalog + ?Sized>(
        &self,
        catalog: &C,
        query: &Query,
        cores: u32,
    ) -> Option<Choice<'_>> {
        let query = canonical(query);
        let spans = spans(self, catalog, &query, cores);
        let span = spans
            .into_iter()
            .find(|span| (span.first_bytes..=span.last_bytes).contains(&query.bytes))?;
        let exact = span.entry.query == query;
        let origin = if exact { Origin::Exact } else { Origin::Nearest };
        Some(Choice { query, entry: Cow::Borrowed(span.entry), origin })
    }
}

/// What to use for `query`: wisdom's answer, or the model's where there is no wisdom or it says
/// nothing. `None` only if `catalog` has no candidate.
#[must_use]
pub fn choose_or_estimate<'a, C: Catalog + ?Sized>(
    wisdom: Option<&'a Wisdom>,
    catalog: &C,
    query: &Query,
    cores: u32,
) -> Option<Choice<'a>> {
    wisdom.and_then(|wisdom| wisdom.choose(catalog, query, cores)).or_else(|| {
        let query = canonical(query);
        let entry = Cow::Owned(estimated(catalog, &query)?);
        Some(Choice { query, entry, origin: Origin::Model })
    })
}

impl fmt::Display for Choice<'_> {
    /// Several lines for people, without a line break at the end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entry = &*self.entry;
        writeln!(f, "{}: {}", describe(&self.query), entry.choice)?;
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
        match self.origin {
            Origin::Exact if entry.is_measured() => write!(f, "  from: wisdom for this query"),
            Origin::Exact => write!(f, "  from: the model, when wisdom was made"),
            Origin::Nearest => {
                write!(f, "  from: the nearest wisdom, of {}", describe(&entry.query))
            }
            Origin::Model => write!(f, "  from: the model, as wisdom says nothing of it"),
        }
    }
}
