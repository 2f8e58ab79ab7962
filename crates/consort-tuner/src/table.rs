//! Wisdom compiled for one team: a look-up by the number of a row and the sizes in it.
//!
//! A row is a collective, modes, operator class and kind of memory. Its number gives the position
//! of its entries. A query is served by the first entry of its row whose last size is not less than
//! the query's. The look-up counts the smaller sizes, of which a row has some twenty at most: no
//! step of that waits for the one before. A binary search takes half as long again. An entry takes
//! 16 bytes; candidates are stored once, beside the entries.

use std::collections::{BTreeMap, BTreeSet};

use consort_fabric::{Candidate, Query, SyncModes};

use crate::{
    Catalog, Entry, Wisdom,
    query::{canonical, row_of},
    row::spans,
};

/// The choice for the sizes up to the last one.
#[derive(Clone, Copy, Debug)]
struct TableEntry {
    last_bytes: u64,
    /// The index of the candidate; `None` where wisdom has no entry.
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
    candidates: Vec<Candidate>,
}

impl Table {
    /// Compiles the entries of `wisdom` for teams of `pes` PEs on `cores` usable cores.
    #[must_use]
    pub fn new<C: Catalog + ?Sized>(wisdom: &Wisdom, catalog: &C, pes: u32, cores: u32) -> Self {
        // Modes without entries may be served by those of others.
        let in_one_mode =
            |entry: &Entry| Query { pes, sync: SyncModes::STRICT, ..row_of(&entry.query) };
        let in_every_mode =
            |row: Query| SyncModes::every().map(move |sync| canonical(&Query { sync, ..row }));
        let rows: BTreeSet<Query> = wisdom.entries().map(in_one_mode).collect();
        let mut rows: Vec<Query> = rows.into_iter().flat_map(in_every_mode).collect();
        rows.sort_unstable_by_key(row_number);
        rows.dedup();
        let mut indices = BTreeMap::new();
        let mut table =
            Self { pes, starts: Vec::new(), entries: Vec::new(), candidates: Vec::new() };
        let index_of = |len: usize| u32::try_from(len).unwrap_or(u32::MAX);
        for row in rows {
            table.starts.resize(row_number(&row) + 1, index_of(table.entries.len()));
            let mut covered_bytes = 0;
            for span in spans(wisdom, catalog, &row, cores) {
                if span.first_bytes > covered_bytes {
                    let last_bytes = span.first_bytes - 1;
                    table.entries.push(TableEntry { last_bytes, candidate: None });
                }
                let choice = &span.entry.choice;
                let index = *indices.entry(choice).or_insert_with(|| {
                    table.candidates.push(choice.clone());
                    table.candidates.len() - 1
                });
                let candidate = u32::try_from(index).ok();
                table.entries.push(TableEntry { last_bytes: span.last_bytes, candidate });
                covered_bytes = span.last_bytes + 1;
            }
        }
        table.starts.push(index_of(table.entries.len()));
        table.starts.shrink_to_fit();
        table.entries.shrink_to_fit();
        table.candidates.shrink_to_fit();
        table
    }

    /// The number of entries. Neighbouring sizes of a row with one choice are one entry.
    #[must_use]
    pub const fn entry_count(&self) -> usize {
        self.entries.len()
    }

    /// The size of the table in bytes, with its candidates.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let candidates: usize = self.candidates.iter().map(candidate_bytes).sum();
        size_of::<Self>()
            + self.starts.capacity() * size_of::<u32>()
            + self.entries.capacity() * size_of::<TableEntry>()
            + candidates
    }

    /// The candidate for `query`; `None` if wisdom has no entry for it, or its team has another
    /// size.
    #[inline]
    #[must_use]
    pub fn look_up(&self, query: &Query) -> Option<&Candidate> {
        let query = canonical(query);
        if query.pes != self.pes {
            return None;
        }
        let row = row_number(&query);
        let &[start, end] = self.starts.get(row..row + 2)? else { return None };
        let row = self.entries.get(start as usize..end as usize)?;
        let smaller_count = row.iter().filter(|entry| entry.last_bytes < query.bytes).count();
        let entry = row.get(smaller_count)?;
        self.candidates.get(entry.candidate? as usize)
    }
}

/// The row of a query as a number below 2^10.
#[inline]
fn row_number(query: &Query) -> usize {
    let modes = query.sync.entry as usize * 3 + query.sync.exit as usize;
    let operator = query.operator as usize;
    (query.collective as usize) << 6 | modes << 2 | operator << 1 | usize::from(query.symmetric)
}

/// The bytes that a candidate takes. Its parameters are in one node of a tree.
fn candidate_bytes(candidate: &Candidate) -> usize {
    const NODE_PLACES: usize = 11;
    let names: usize = candidate.parameters.keys().map(String::capacity).sum();
    let node = NODE_PLACES * size_of::<(String, u64)>() + size_of::<(usize, u32)>();
    let nodes = candidate.parameters.len().div_ceil(NODE_PLACES);
    size_of::<Candidate>() + candidate.algorithm.capacity() + names + nodes * node
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_small() {
        assert!(size_of::<TableEntry>() <= 16);
    }
}
