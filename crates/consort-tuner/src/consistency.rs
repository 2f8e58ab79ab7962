//! Whether measured entries contradict each other: who is asked for less is not slower.
//!
//! Among entries that are alike but for one thing, less is asked by a smaller message, by modes
//! that wait for no more at either end, by an operator that commutes, and by buffers in symmetric
//! memory; and a barrier is part of every strict operation. A contradiction means noise, or a
//! candidate that is missing: one that does more would have served.

use std::fmt;

use consort_fabric::{Collective, OperatorClass, Query, Sync};

use crate::{
    Entry, Wisdom,
    query::{describe, row_of},
};

/// Entries may contradict each other by so much, and it is noise.
const TOLERANCE: f64 = 1.1;

/// Two entries of which the one that is asked for less is slower, by more than noise.
#[derive(Clone, Debug, PartialEq)]
pub struct Inconsistency {
    /// The query that asks for less.
    pub less: Query,
    /// Its time in nanoseconds a call.
    pub less_ns: f64,
    /// The query that asks for more.
    pub more: Query,
    /// Its time in nanoseconds a call.
    pub more_ns: f64,
}

impl fmt::Display for Inconsistency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { less, less_ns, more, more_ns } = self;
        let (less, more) = (describe(less), describe(more));
        write!(f, "{less} takes {less_ns} ns, yet {more}, which is asked for more, {more_ns} ns")
    }
}

/// Every contradiction among the measured entries of `wisdom`.
#[must_use]
pub fn inconsistencies(wisdom: &Wisdom) -> Vec<Inconsistency> {
    let mut entries: Vec<&Entry> = wisdom.entries().filter(|entry| entry.is_measured()).collect();
    entries.sort_by_key(|entry| (row_of(&entry.query), entry.query.bytes));
    let neighbours = entries
        .windows(2)
        .filter(|pair| row_of(&pair[0].query) == row_of(&pair[1].query))
        .map(|pair| (pair[0], pair[1]));
    let relaxed = entries.iter().flat_map(|less| {
        let asked_more = |more: &&&Entry| asks_less(&less.query, &more.query);
        entries.iter().filter(asked_more).map(|more| (*less, *more))
    });
    neighbours
        .chain(relaxed)
        .filter(|(less, more)| contradict(less, more))
        .map(|(less, more)| Inconsistency {
            less: less.query,
            less_ns: less.median_ns,
            more: more.query,
            more_ns: more.median_ns,
        })
        .collect()
}

/// Whether `less` asks for less than `more`, at the same size.
fn asks_less(less: &Query, more: &Query) -> bool {
    if less.pes != more.pes {
        return false;
    }
    if less.collective == Collective::Barrier {
        return more.collective != Collective::Barrier && more.sync == Sync::STRICT;
    }
    let Query { sync, operator, symmetric, .. } = *less;
    let apart_from_one_thing = [
        Query { sync: more.sync, ..*less },
        Query { operator: more.operator, ..*less },
        Query { symmetric: more.symmetric, ..*less },
    ];
    less != more
        && apart_from_one_thing.contains(more)
        && sync.entry <= more.sync.entry
        && sync.exit <= more.sync.exit
        && (operator == OperatorClass::Commutative || operator == more.operator)
        && (symmetric || !more.symmetric)
}

/// Whether `less` is slower than `more` by more than noise, the cores being as far apart.
fn contradict(less: &Entry, more: &Entry) -> bool {
    let comparable = match (less.class, more.class) {
        (Some(a), Some(b)) => a == b,
        _ => true,
    };
    let intervals_apart = match (less.ci95_ns, more.ci95_ns) {
        (Some((low, _)), Some((_, high))) => low > high,
        _ => false,
    };
    comparable && intervals_apart && less.median_ns > more.median_ns * TOLERANCE
}

#[cfg(test)]
mod tests {
    use super::*;

    const REDUCE: Query = Query {
        collective: Collective::Reduce,
        sync: Sync::MINE,
        pes: 4,
        bytes: 64,
        operator: OperatorClass::Ordered,
        symmetric: false,
    };

    #[test]
    fn less_is_asked_by_looser_modes_and_easier_arguments() {
        assert!(!asks_less(&REDUCE, &REDUCE));
        assert!(asks_less(&Query { sync: Sync::LOOSE, ..REDUCE }, &REDUCE));
        assert!(asks_less(&REDUCE, &Query { sync: Sync::STRICT, ..REDUCE }));
        assert!(!asks_less(&Query { sync: Sync::STRICT, ..REDUCE }, &REDUCE));
        let easy = Query { operator: OperatorClass::Commutative, ..REDUCE };
        assert!(asks_less(&easy, &REDUCE) && !asks_less(&REDUCE, &easy));
        let reachable = Query { symmetric: true, ..REDUCE };
        assert!(asks_less(&reachable, &REDUCE) && !asks_less(&REDUCE, &reachable));
        assert!(!asks_less(&Query { pes: 2, ..reachable }, &REDUCE), "another team");
    }

    #[test]
    fn a_barrier_is_part_of_what_is_strict() {
        let barrier = Query { collective: Collective::Barrier, sync: Sync::STRICT, ..REDUCE };
        assert!(asks_less(&barrier, &Query { sync: Sync::STRICT, ..REDUCE }));
        assert!(!asks_less(&barrier, &REDUCE));
    }
}
