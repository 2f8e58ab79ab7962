//! Wisdom compiled for one team: an answer in a binary search over packed keys.
//!
//! | bits of a key | what |
//! | --- | --- |
//! | 52 and above | the row: collective, modes, operator class, kind of memory |
//! | 0 to 51 | the last size of a span |
//!
//! The first key that is not less than a query's own is that of its span, if it is of its row.
//! An entry takes 16 bytes; candidates are kept once, beside the entries.

use std::collections::BTreeMap;

use consort_fabric::{Candidate, Query};

use crate::{
    Catalog, Wisdom,
    query::{MAX_BYTES, canonical, row_of},
    row::spans,
};

/// Where the row begins in a key.
const ROW_SHIFT: u32 = 52;

/// Sizes up to the last one of the key have this answer.
#[derive(Clone, Copy, Debug)]
struct TableEntry {
    key: u64,
    /// The index of the candidate; `None` where wisdom says nothing.
    candidate: Option<u32>,
}

/// The answers of wisdom for the teams of one size: the same as [`Wisdom::choose`] gives.
#[derive(Clone, Debug)]
pub struct Table {
    pes: u32,
    entries: Vec<TableEntry>,
    candidates: Vec<Candidate>,
}

impl Table {
    /// Compiles what `wisdom` says of teams of `pes` PEs on `cores` usable cores.
    #[must_use]
    pub fn new<C: Catalog + ?Sized>(wisdom: &Wisdom, catalog: &C, pes: u32, cores: u32) -> Self {
        let mut rows: Vec<Query> =
            wisdom.entries().map(|entry| Query { pes, ..row_of(&entry.query) }).collect();
        rows.sort_unstable();
        rows.dedup();
        let mut indices = BTreeMap::new();
        let mut table = Self { pes, entries: Vec::new(), candidates: Vec::new() };
        for row in rows {
            let base = row_code(&row) << ROW_SHIFT;
            let mut covered_bytes = 0;
            for span in spans(wisdom, catalog, &row, cores) {
                if span.first_bytes > covered_bytes {
                    let key = base | (span.first_bytes - 1);
                    table.entries.push(TableEntry { key, candidate: None });
                }
                let choice = &span.entry.choice;
                let index = *indices.entry(choice).or_insert_with(|| {
                    table.candidates.push(choice.clone());
                    table.candidates.len() - 1
                });
                let candidate = u32::try_from(index).ok();
                table.entries.push(TableEntry { key: base | span.last_bytes, candidate });
                covered_bytes = span.last_bytes + 1;
            }
        }
        table.entries.sort_unstable_by_key(|entry| entry.key);
        table.entries.shrink_to_fit();
        table.candidates.shrink_to_fit();
        table
    }

    /// How many entries there are: sizes of a row that have one answer are one.
    #[must_use]
    pub const fn entry_count(&self) -> usize {
        self.entries.len()
    }

    /// The bytes that it takes in all, with the candidates.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let candidates: usize = self.candidates.iter().map(candidate_bytes).sum();
        size_of::<Self>() + self.entries.capacity() * size_of::<TableEntry>() + candidates
    }

    /// The candidate for `query`; `None` if wisdom says nothing of it, or it is of a team of
    /// another size.
    #[inline]
    #[must_use]
    pub fn look_up(&self, query: &Query) -> Option<&Candidate> {
        let query = canonical(query);
        if query.pes != self.pes {
            return None;
        }
        let row = row_code(&query);
        let wanted = row << ROW_SHIFT | query.bytes;
        let entry = self.entries.get(self.entries.partition_point(|entry| entry.key < wanted))?;
        let index = entry.candidate.filter(|_| entry.key >> ROW_SHIFT == row)?;
        self.candidates.get(index as usize)
    }
}

/// The row of a query as a number of at most 12 bits.
#[inline]
fn row_code(query: &Query) -> u64 {
    const { assert!(MAX_BYTES < 1 << ROW_SHIFT) };
    let collective = query.collective as u64;
    let modes = query.sync.entry as u64 * 3 + query.sync.exit as u64;
    let operator = query.operator as u64;
    (collective << 6) | (modes << 2) | (operator << 1) | u64::from(query.symmetric)
}

/// The bytes that a candidate takes; its parameters are in one node of a tree.
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
