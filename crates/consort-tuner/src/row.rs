//! Rows of wisdom: entries that differ only in size, and the sizes for which each is used.
//!
//! An entry is used for the sizes that are nearest to its size on a logarithmic scale: the ranges
//! of two neighbours meet at their geometric mean. It is used only for sizes that are at most
//! [`REACH_BYTES`] times larger or smaller than its own, and only if its choice can serve the call.
//! If the choice of one neighbour cannot serve the call, the other neighbour is used. All
//! arithmetic is on integers, so that every PE gets the same limits.
//!
//! Calls in unmeasured modes use the choice that was measured in the nearest modes. It is likely to
//! be good, because entry and exit barriers cost the same with any algorithm. The alternative would
//! be the model, which does not know the machine.

use consort_fabric::{CallSpec, Query, SyncMode, SyncModes};

use crate::{
    Catalog, Confidence, Entry, Wisdom,
    query::{MAX_BYTES, canonical, row_of},
};

/// An entry is not used for messages more than this many times larger or smaller than its own.
const REACH_BYTES: u64 = 64;
/// An entry is not used for teams more than this many times larger or smaller than its own.
const REACH_PES: u64 = 4;

/// The sizes for which an entry is used, both ends included.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntrySpan<'a> {
    pub(crate) first_bytes: u64,
    pub(crate) last_bytes: u64,
    pub(crate) entry: &'a Entry,
}

impl Wisdom {
    /// Returns the entry for `query` on a machine with `cores` usable cores; `None` if wisdom has
    /// none. Its collective, operator class and kind of memory are those of the query. Its team
    /// size and bytes may be the nearest ones, if its choice can serve those of the query. If no
    /// entry was measured in the query's modes, returns an entry that was measured in the nearest
    /// modes. If there is no such entry either, returns an estimate for the query's modes.
    #[must_use]
    pub fn answer(&self, catalog: &dyn Catalog, query: &Query, cores: usize) -> Option<&Entry> {
        let query = canonical(query);
        let mut spans = spans(self, catalog, &query, cores).into_iter();
        let span = spans.find(|span| (span.first_bytes..=span.last_bytes).contains(&query.bytes));
        span.map(|span| span.entry)
    }

    /// Returns the team sizes for which calls like `query` were measured, ascending, whatever the
    /// bytes.
    #[must_use]
    pub fn measured_pes(&self, query: &Query) -> Vec<u32> {
        let measured = entries_of(self, &row_of(query), Entry::is_measured);
        let mut pes: Vec<u32> = measured.iter().map(|entry| entry.query.pes).collect();
        pes.dedup();
        pes
    }
}

/// Returns the spans of the entries that are used for `query`, ascending and disjoint. There may be
/// none.
pub(crate) fn spans<'a>(
    wisdom: &'a Wisdom,
    catalog: &dyn Catalog,
    query: &Query,
    cores: usize,
) -> Vec<EntrySpan<'a>> {
    let query = canonical(query);
    let of = |sync, is_decided| {
        let entries = nearest_row(wisdom, &Query { sync, ..query }, is_decided, cores);
        spans_of(&entries, catalog, &query)
    };
    let mut spans = open_points(wisdom, catalog, &query);
    fill(&mut spans, of(query.sync, true));
    for sync in nearest_modes(query.sync) {
        fill(&mut spans, of(sync, true));
    }
    fill(&mut spans, of(query.sync, false));
    spans
}

/// Returns the sizes at which the row of `query` has open entries. An open entry serves its own
/// query only, because a choice that has won nothing says nothing about others.
fn open_points<'a>(wisdom: &'a Wisdom, catalog: &dyn Catalog, query: &Query) -> Vec<EntrySpan<'a>> {
    let row = row_of(query);
    let is_point = |entry: &&Entry| {
        entry.confidence == Confidence::Open
            && row_of(&entry.query) == row
            && catalog.serves(&CallSpec::from(&entry.query), &entry.choice)
    };
    let point = |entry: &'a Entry| {
        let bytes = entry.query.bytes;
        EntrySpan { first_bytes: bytes, last_bytes: bytes, entry }
    };
    let mut points: Vec<EntrySpan<'_>> =
        wisdom.of_modes(&row).filter(is_point).map(point).collect();
    points.sort_by_key(|point| point.first_bytes);
    points
}

/// Returns the other modes, the most similar first, by the number of steps between them. If two are
/// equally far, the exit mode decides, because it determines whether calls overlap.
fn nearest_modes(sync: SyncModes) -> Vec<SyncModes> {
    let steps = |one: SyncMode, other: SyncMode| (one as u8).abs_diff(other as u8);
    let mut others: Vec<SyncModes> = SyncModes::every().filter(|&other| other != sync).collect();
    others.sort_by_key(|other| {
        let exit = steps(sync.exit, other.exit);
        (steps(sync.entry, other.entry) + exit, exit)
    });
    others
}

/// Adds the parts of `more` that `spans` do not cover. Both are ascending and disjoint.
fn fill<'a>(spans: &mut Vec<EntrySpan<'a>>, more: Vec<EntrySpan<'a>>) {
    for new in more {
        let mut first_bytes = new.first_bytes;
        let mut parts = Vec::new();
        for known in spans.iter().filter(|known| known.last_bytes >= new.first_bytes) {
            if known.first_bytes > new.last_bytes {
                break;
            }
            if known.first_bytes > first_bytes {
                parts.push(EntrySpan { first_bytes, last_bytes: known.first_bytes - 1, ..new });
            }
            first_bytes = known.last_bytes.saturating_add(1);
        }
        if first_bytes <= new.last_bytes {
            parts.push(EntrySpan { first_bytes, ..new });
        }
        for part in parts {
            let at = spans.partition_point(|span| span.first_bytes < part.first_bytes);
            spans.insert(at, part);
        }
    }
}

/// Returns the spans of the entries of a row for calls like `query`.
fn spans_of<'a>(entries: &[&'a Entry], catalog: &dyn Catalog, query: &Query) -> Vec<EntrySpan<'a>> {
    let mut spans: Vec<EntrySpan<'a>> = Vec::new();
    for &entry in entries {
        let Some((first, last)) = served(catalog, query, entry) else { continue };
        let mut span = EntrySpan { first_bytes: first, last_bytes: last, entry };
        if let Some(below) = spans.last_mut() {
            let mean = geometric_mean(below.entry.query.bytes, entry.query.bytes);
            let below_ends = below.last_bytes;
            below.last_bytes = below_ends.min(mean.max(first.saturating_sub(1)));
            span.first_bytes = first.max((mean + 1).min(below_ends + 1));
        }
        spans.push(span);
    }
    spans
}

/// Returns the entries of a row that `counts` holds for, by team size, then by size.
fn entries_of<'a>(
    wisdom: &'a Wisdom,
    row: &Query,
    counts: impl Fn(&Entry) -> bool,
) -> Vec<&'a Entry> {
    let in_row = |entry: &&Entry| row_of(&entry.query) == Query { pes: entry.query.pes, ..*row };
    wisdom.of_modes(row).filter(in_row).filter(|entry| counts(entry)).collect()
}

/// Returns the entries of the row of `query`, decided or estimated, by size, for the nearest team
/// size: within reach, and on the same side of oversubscription. If two are equally near, the
/// smaller one is used.
fn nearest_row<'a>(
    wisdom: &'a Wisdom,
    query: &Query,
    is_decided: bool,
    cores: usize,
) -> Vec<&'a Entry> {
    let row = row_of(query);
    let counts = |entry: &Entry| if is_decided { entry.is_decided() } else { !entry.is_measured() };
    let entries = entries_of(wisdom, &row, counts);
    let is_oversubscribed = |pes: u32| pes as usize > cores;
    let fits = |pes| is_oversubscribed(pes) == is_oversubscribed(query.pes);
    let wanted = u64::from(query.pes);
    let larger_and_smaller = |pes: u32| {
        let pes = u64::from(pes);
        (pes.max(wanted), pes.min(wanted))
    };
    let nearest = entries
        .iter()
        .map(|entry| entry.query.pes)
        .filter(|&pes| fits(pes))
        .filter(|&pes| {
            let (larger, smaller) = larger_and_smaller(pes);
            larger <= smaller * REACH_PES
        })
        .min_by(|&a, &b| {
            let ((a_larger, a_smaller), (b_larger, b_smaller)) =
                (larger_and_smaller(a), larger_and_smaller(b));
            (a_larger * b_smaller).cmp(&(b_larger * a_smaller)).then(a.cmp(&b))
        });
    entries.into_iter().filter(|entry| Some(entry.query.pes) == nearest).collect()
}

/// Returns the sizes within reach of `entry` that its choice can serve for `query`'s team; `None`
/// if it cannot serve even the size of the entry there.
fn served(catalog: &dyn Catalog, query: &Query, entry: &Entry) -> Option<(u64, u64)> {
    let serves = |bytes| catalog.serves(&CallSpec::from(&Query { bytes, ..*query }), &entry.choice);
    let own = entry.query.bytes;
    if !serves(own) {
        return None;
    }
    let lowest = own / REACH_BYTES;
    let highest = own.saturating_mul(REACH_BYTES).min(MAX_BYTES);
    Some((furthest(own, lowest, serves), furthest(own, highest, serves)))
}

/// Returns the size furthest from `own`, towards `limit`, that satisfies `serves`, by bisection.
fn furthest(own: u64, limit: u64, serves: impl Fn(u64) -> bool) -> u64 {
    if serves(limit) {
        return limit;
    }
    let (mut good, mut bad) = (own, limit);
    while good.abs_diff(bad) > 1 {
        let middle = good.midpoint(bad);
        if serves(middle) {
            good = middle;
        } else {
            bad = middle;
        }
    }
    good
}

/// Returns the largest size that is at least as near to `low` as to `high`.
fn geometric_mean(low: u64, high: u64) -> u64 {
    let mean = (u128::from(low) * u128::from(high)).isqrt();
    u64::try_from(mean).unwrap_or(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bisection_finds_the_last_size_served() {
        assert_eq!(furthest(8, 512, |bytes| bytes <= 56), 56);
        assert_eq!(furthest(8, 512, |_| true), 512);
        assert_eq!(furthest(4096, 64, |bytes| bytes >= 1000), 1000);
        assert_eq!(furthest(8, 9, |bytes| bytes == 8), 8);
    }

    #[test]
    fn the_mean_divides_a_logarithmic_scale() {
        assert_eq!(geometric_mean(8, 64), 22);
        assert_eq!(geometric_mean(0, 0), 0);
        assert_eq!(geometric_mean(MAX_BYTES, MAX_BYTES), MAX_BYTES);
    }
}
