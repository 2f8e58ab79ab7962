//! Wisdom compiled for one team: a look-up by the number of a row and the sizes in it.
//!
//! A row is a collective, modes, operator class and kind of memory. Its number gives the position
//! of its entries. Each entry has the largest size that it serves. A look-up selects the first
//! entry of the row whose largest size is at least the query's size. To find it, the look-up counts
//! the smaller sizes. A row has at most about twenty sizes, and the comparisons do not depend on
//! each other. So this is faster than a binary search, which takes 1.5 times as long. An entry
//! takes 16 bytes. Candidates, and the other data that tuning kept for each choice, are stored
//! separately, each once.

use std::collections::BTreeMap;

use consort_fabric::{Candidate, Query, SyncModes};

use crate::{
    Catalog, Entry, Wisdom,
    query::{canonical, row_of},
    row::spans,
};

/// The choice for the sizes up to `last_bytes`.
#[derive(Clone, Copy, Debug)]
struct TableEntry {
    last_bytes: u64,
    /// The index of the candidate; `None` if wisdom has no entry.
    candidate: Option<u32>,
}

/// The choices of wisdom for teams of one size: the same as those of [`Wisdom::answer`].
#[derive(Clone, Debug)]
pub struct Table {
    pes: u32,
    /// The position of the first entry of each row, and at the end the number of entries.
    starts: Vec<u32>,
    /// The entries, by row and then by size.
    entries: Vec<TableEntry>,
    /// The candidates that tuning kept besides the choice of each entry.
    alternatives: Vec<Box<[u32]>>,
    candidates: Vec<Candidate>,
}

impl Table {
    /// Compiles the entries of `wisdom` for teams of `pes` PEs on `cores` usable cores.
    #[must_use]
    pub fn new(wisdom: &Wisdom, catalog: &dyn Catalog, pes: u32, cores: usize) -> Self {
        // Entries in other modes may serve modes without entries.
        let in_one_mode =
            |entry: &Entry| Query { pes, sync: SyncModes::STRICT, ..row_of(&entry.query) };
        let in_every_mode =
            |row: Query| SyncModes::every().map(move |sync| canonical(&Query { sync, ..row }));
        let rows = wisdom.entries().map(in_one_mode);
        let mut rows: Vec<Query> = rows.flat_map(in_every_mode).collect();
        rows.sort_unstable_by_key(row_number);
        rows.dedup();
        let mut indices = BTreeMap::new();
        let (starts, entries, alternatives, candidates) = Default::default();
        let mut table = Self { pes, starts, entries, alternatives, candidates };
        let index_of = |len: usize| u32::try_from(len).unwrap_or(u32::MAX);
        for row in rows {
            table.starts.resize(row_number(&row) + 1, index_of(table.entries.len()));
            let mut covered_bytes = 0;
            for span in spans(wisdom, catalog, &row, cores) {
                if span.first_bytes > covered_bytes {
                    let last_bytes = span.first_bytes - 1;
                    table.entries.push(TableEntry { last_bytes, candidate: None });
                    table.alternatives.push(Box::default());
                }
                let mut index = |candidate| {
                    *indices.entry(candidate).or_insert_with(|| {
                        table.candidates.push(Candidate::clone(candidate));
                        index_of(table.candidates.len() - 1)
                    })
                };
                let candidate = Some(index(&span.entry.choice));
                let alternatives = span.entry.alternatives().filter(|_| span.entry.is_measured());
                table.alternatives.push(alternatives.map(&mut index).collect());
                table.entries.push(TableEntry { last_bytes: span.last_bytes, candidate });
                covered_bytes = span.last_bytes + 1;
            }
        }
        table.starts.push(index_of(table.entries.len()));
        table.starts.shrink_to_fit();
        table.entries.shrink_to_fit();
        table.alternatives.shrink_to_fit();
        table.candidates.shrink_to_fit();
        table
    }

    /// Returns the number of entries. Neighbouring sizes of a row with the same choice are one
    /// entry.
    #[must_use]
    pub const fn entry_count(&self) -> usize {
        self.entries.len()
    }

    /// Returns the size of the table in bytes, with its candidates.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let candidates: usize = self.candidates.iter().map(candidate_bytes).sum();
        let alternatives: usize =
            self.alternatives.iter().map(|alternatives| size_of_val(&**alternatives)).sum();
        size_of::<Self>()
            + self.starts.capacity() * size_of::<u32>()
            + self.entries.capacity() * size_of::<TableEntry>()
            + self.alternatives.capacity() * size_of::<Box<[u32]>>()
            + alternatives
            + candidates
    }

    /// Returns the candidate for `query`; `None` if wisdom has no entry for it, or its team has
    /// another size.
    #[inline]
    #[must_use]
    pub fn look_up(&self, query: &Query) -> Option<&Candidate> {
        let index = self.find(query)?;
        self.candidates.get(self.entries[index].candidate? as usize)
    }

    /// Returns the candidates that tuning kept besides the one for `query`, the fastest first.
    pub fn alternatives(&self, query: &Query) -> impl Iterator<Item = &Candidate> {
        let alternatives = self.find(query).map(|index| self.alternatives[index].iter());
        alternatives.into_iter().flatten().filter_map(|&index| self.candidates.get(index as usize))
    }

    #[inline]
    fn find(&self, query: &Query) -> Option<usize> {
        let query = canonical(query);
        if query.pes != self.pes {
            return None;
        }
        let row = row_number(&query);
        let &[start, end] = self.starts.get(row..row + 2)? else { return None };
        let row = self.entries.get(start as usize..end as usize)?;
        let smaller_count = row.iter().filter(|entry| entry.last_bytes < query.bytes).count();
        (smaller_count < row.len()).then_some(start as usize + smaller_count)
    }
}

/// Returns the row of a query as a number below 2^10.
#[inline]
fn row_number(query: &Query) -> usize {
    let modes = query.sync.entry as usize * 3 + query.sync.exit as usize;
    let operator = query.operator as usize;
    (query.collective as usize) << 6 | modes << 2 | operator << 1 | usize::from(query.symmetric)
}

/// Returns the size of a candidate in bytes.
fn candidate_bytes(candidate: &Candidate) -> usize {
    let parameters = candidate.parameters();
    let names: usize = parameters.iter().map(|(name, _)| name.capacity()).sum();
    size_of::<Candidate>() + candidate.algorithm.capacity() + names + size_of_val(parameters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_takes_at_most_16_bytes() {
        assert!(size_of::<TableEntry>() <= 16);
    }
}
