//! The coverage of the cases run so far, which shows which cases are still needed.

use std::{
    collections::BTreeSet,
    hash::{DefaultHasher, Hash, Hasher},
};

use consort_fabric::{Rank, SyncModes};

use crate::Case;

/// The features of algorithms that cases have shown, as hashes: there are millions of cases.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    shown: BTreeSet<u64>,
}

impl Coverage {
    /// Adds cases on a team of `pes`.
    pub fn note(&mut self, pes: u32, cases: &[Case]) {
        self.shown.extend(cases.iter().flat_map(|case| shows(pes, case)));
    }

    /// Adds a case on a team of `pes` if it can be run and shows something new; returns whether it
    /// does.
    pub fn note_if_new(
        &mut self,
        pes: u32,
        case: &Case,
        can_be: impl FnOnce(&Case) -> bool,
    ) -> bool {
        let is_new = shows(pes, case).any(|one| !self.shown.contains(&one)) && can_be(case);
        if is_new {
            self.shown.extend(shows(pes, case));
        }
        is_new
    }
}

/// Returns a hash of each feature that a case shows: its candidate with its size, its kind of
/// memory, its modes, and the first, a middle or the last PE as root; its algorithm with the number
/// of PEs and the root, and in the named modes with most sizes.
fn shows(pes: u32, case: &Case) -> impl Iterator<Item = u64> {
    /// Longer messages are shown in any mode.
    const LONG_BYTES: usize = 100_000;
    let Case { kind, sync, size, root, symmetric, .. } = case;
    let place = match *root {
        Rank(0) => 0,
        Rank(rank) if rank + 1 == pes => 1,
        Rank(_) => 2,
    };
    let class = (kind.collective, kind.is_ordered, kind.in_place);
    let name = hash(&(class, &kind.candidate));
    let algorithm = hash(&(class, kind.algorithm()));
    let is_named = [SyncModes::STRICT, SyncModes::LOOSE, SyncModes::MINE].contains(sync);
    let shown = [
        Some(hash(&("size", name, size))),
        Some(hash(&("memory", name, symmetric))),
        Some(hash(&("modes", name, sync))),
        Some(hash(&("root", name, place))),
        Some(hash(&("PEs", algorithm, pes))),
        Some(hash(&("PEs and root", algorithm, pes, root))),
        is_named.then(|| hash(&("modes and memory", algorithm, sync, symmetric))),
        (is_named && *size < LONG_BYTES).then(|| hash(&("modes and size", algorithm, sync, size))),
    ];
    shown.into_iter().flatten()
}

fn hash(shown: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    shown.hash(&mut hasher);
    hasher.finish()
}
