//! What the cases that were played show, so that those left out can be found.

use std::collections::BTreeSet;

use consort_fabric::SyncModes;

use crate::Case;

/// What cases have shown of their algorithms.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    shown: BTreeSet<String>,
}

impl Coverage {
    /// Notes cases on a team of `pes`.
    pub fn note(&mut self, pes: u32, cases: &[Case]) {
        self.shown.extend(cases.iter().flat_map(|case| shows(pes, case)));
    }

    /// Notes a case on a team of `pes`; whether it shows anything that those before have not.
    pub fn is_new(&mut self, pes: u32, case: &Case) -> bool {
        shows(pes, case).into_iter().filter(|one| self.shown.insert(one.clone())).count() > 0
    }
}

/// Each candidate at every size, in memory of both kinds, in all nine modes, and with the first, a
/// middle and the last PE as root; each algorithm on every number of PEs with every root, and in
/// the modes that have names of their own at most sizes.
fn shows(pes: u32, case: &Case) -> Vec<String> {
    /// Longer messages are shown in any mode.
    const LONG_BYTES: usize = 100_000;
    let Case { kind, sync, size, root, symmetric, .. } = case;
    let class = match (kind.is_ordered, kind.in_place) {
        (false, false) => "",
        (true, false) => "ordered",
        (false, true) => "in place",
        (true, true) => "ordered in place",
    };
    let candidate = kind.candidate.as_ref().map(ToString::to_string).unwrap_or_default();
    let name = format!("{} {candidate} {class}", kind.collective);
    let algorithm = format!("{} {} {class}", kind.collective, kind.algorithm());
    let mut shown = vec![
        format!("{name}, {size} B"),
        format!("{name}, symmetric: {symmetric}"),
        format!("{name}, {sync}"),
        format!(
            "{name}, root {}",
            if root.0 == 0 {
                "first"
            } else if root.0 + 1 == pes {
                "last"
            } else {
                "middle"
            }
        ),
        format!("{algorithm} on {pes} PEs"),
        format!("{algorithm} on {pes} PEs, root {root}"),
    ];
    if [SyncModes::STRICT, SyncModes::LOOSE, SyncModes::MINE].contains(sync) {
        shown.push(format!("{algorithm}, {sync}, symmetric: {symmetric}"));
        if *size < LONG_BYTES {
            shown.push(format!("{algorithm}, {sync}, {size} B"));
        }
    }
    shown
}
