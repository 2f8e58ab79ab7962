//! Finds measured entries that contradict each other: an operation that does less must not be
//! slower.
//!
//! Of two entries that differ in one property, one does less if it has a smaller message, an entry
//! or exit mode that waits for less, a commutative operator, buffers in symmetric memory, or a
//! result on the root only. A barrier does less than any strict operation, because a strict
//! operation includes a barrier. If two operations in sequence give the result of a third, they do
//! more than the third (Träff, Gropp and Thakur 2010, "Self-consistent MPI performance
//! guidelines"). A contradiction means noise or a missing candidate, because the operation that
//! does more could have replaced the other.
//!
//! Entries are times of calls in a row. One call can replace another in such a row, so their times
//! are comparable. But if calls overlap, the time of a row of one call and the time of a row of
//! another do not give the time of a row that alternates between the two. In such a row, the second
//! call waits for the first. So only calls that cannot overlap are put in sequence: Strict calls in
//! symmetric memory. In private memory, a mode All requires less than in symmetric memory. So a
//! call in private memory with such a mode is not compared with calls in symmetric memory.

use std::fmt;

use consort_fabric::{Collective, OperatorClass, Query, SyncMode, SyncModes, units::time};

use crate::{
    Entry, Wisdom,
    query::{canonical, row_of},
};

/// Contradictions up to this ratio count as noise.
const TOLERANCE: f64 = 1.1;

/// An entry that is slower, by more than noise, than operations that do more.
#[derive(Clone, Debug, PartialEq)]
pub struct Inconsistency {
    /// The query that does less.
    pub less: Query,
    /// Its time in nanoseconds per call.
    pub less_ns: f64,
    /// The query that does more, or two that do more in sequence.
    pub more: Vec<Query>,
    /// Their time in nanoseconds per call.
    pub more_ns: f64,
}

impl fmt::Display for Inconsistency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { less, less_ns, more, more_ns } = self;
        let more = more.iter().map(Query::to_string).collect::<Vec<_>>().join(" and then ");
        let (less_time, more_time) = (time(*less_ns), time(*more_ns));
        write!(f, "{less} takes {less_time}, but {more}, which does more, takes {more_time}")
    }
}

/// Returns all contradictions among the measured entries of `wisdom`.
#[must_use]
pub fn inconsistencies(wisdom: &Wisdom) -> Vec<Inconsistency> {
    let mut entries: Vec<&Entry> = wisdom.entries().filter(|entry| entry.is_measured()).collect();
    entries.sort_by_key(|entry| (row_of(&entry.query), entry.query.bytes));
    let neighbours = entries
        .windows(2)
        .filter(|pair| row_of(&pair[0].query) == row_of(&pair[1].query))
        .map(|pair| (pair[0], vec![pair[1]]));
    let relaxed = entries.iter().flat_map(|less| {
        let does_more = |more: &&&Entry| does_less(&less.query, &more.query);
        entries.iter().filter(does_more).map(|more| (*less, vec![*more]))
    });
    let find =
        |query: Query| entries.iter().copied().find(|entry| entry.query == canonical(&query));
    let composed = entries.iter().flat_map(|whole| {
        let found = |parts: [Query; 2]| parts.into_iter().map(find).collect::<Option<Vec<_>>>();
        compositions(&whole.query).into_iter().filter_map(found).map(|parts| (*whole, parts))
    });
    neighbours
        .chain(relaxed)
        .chain(composed)
        .filter(|(less, more)| contradict(less, more))
        .map(|(less, more)| Inconsistency {
            less: less.query,
            less_ns: less.median_ns,
            more: more.iter().map(|entry| entry.query).collect(),
            more_ns: more.iter().map(|entry| entry.median_ns).sum(),
        })
        .collect()
}

/// Returns the pairs of operations that give the result of `query` in sequence. They are Strict
/// calls, which do not overlap in a row.
fn compositions(query: &Query) -> Vec<[Query; 2]> {
    use Collective::{
        AllGather, AllReduce, AllToAll, Broadcast, ExclusiveScan, Gather, Reduce, ReduceScatter,
        Scan, Scatter,
    };
    let Query { collective, bytes, symmetric, .. } = *query;
    if !symmetric {
        return Vec::new();
    }
    let sync = SyncModes::STRICT;
    let pes = u64::from(query.pes);
    let all = bytes.saturating_mul(pes);
    let part = |collective, bytes| Query { collective, sync, bytes, ..*query };
    let block = bytes.checked_div(pes).filter(|block| block * pes == bytes && bytes > 0);
    let of_blocks = |first, second| block.map(|block| [part(first, block), part(second, block)]);
    match collective {
        AllGather => vec![[part(Gather, bytes), part(Broadcast, all)]],
        AllReduce => [
            Some([part(Reduce, bytes), part(Broadcast, bytes)]),
            of_blocks(ReduceScatter, AllGather),
            Some([part(Scan, bytes), part(Broadcast, bytes)]),
        ]
        .into_iter()
        .flatten()
        .collect(),
        Broadcast => of_blocks(Scatter, AllGather).into_iter().collect(),
        // Each PE sends the result of its scan to the next.
        ExclusiveScan => vec![[part(Scan, bytes), part(AllToAll, bytes)]],
        ReduceScatter => vec![[part(Reduce, all), part(Scatter, bytes)]],
        _ => Vec::new(),
    }
}

/// Returns whether `less` does less than `more`, at the same size.
fn does_less(less: &Query, more: &Query) -> bool {
    if less.pes != more.pes {
        return false;
    }
    if less.collective == Collective::Barrier {
        return more.collective != Collective::Barrier && more.sync == SyncModes::STRICT;
    }
    let Query { collective, sync, operator, symmetric, .. } = *less;
    let to_all = match collective {
        Collective::Gather => Collective::AllGather,
        Collective::Reduce => Collective::AllReduce,
        other => other,
    };
    let apart_from_one_thing = [
        Query { collective: to_all, ..*less },
        Query { sync: more.sync, ..*less },
        Query { operator: more.operator, ..*less },
        Query { symmetric: more.symmetric, ..*less },
    ];
    let is_private_all = !more.symmetric && [sync.entry, sync.exit].contains(&SyncMode::All);
    less != more
        && !(symmetric && is_private_all)
        && apart_from_one_thing.contains(more)
        && sync.entry <= more.sync.entry
        && sync.exit <= more.sync.exit
        && (operator == OperatorClass::Commutative || operator == more.operator)
        && (symmetric || !more.symmetric)
}

/// Returns whether `less` is slower than all of `more` in sequence, by more than noise, with the
/// cores equally far apart.
fn contradict(less: &Entry, more: &[&Entry]) -> bool {
    let classes = || more.iter().chain([&less]).filter_map(|entry| entry.class);
    let comparable = classes().zip(classes().skip(1)).all(|(one, next)| one == next);
    let low = less.ci95_ns.map(|(low, _)| low);
    let high: Option<f64> = more.iter().map(|entry| entry.ci95_ns.map(|(_, high)| high)).sum();
    let intervals_apart = low.zip(high).is_some_and(|(low, high)| low > high);
    let more_ns: f64 = more.iter().map(|entry| entry.median_ns).sum();
    comparable && intervals_apart && less.median_ns > more_ns * TOLERANCE
}

#[cfg(test)]
mod tests {
    use super::*;

    const REDUCE: Query = Query {
        collective: Collective::Reduce,
        sync: SyncModes::MINE,
        pes: 4,
        bytes: 64,
        operator: OperatorClass::Ordered,
        symmetric: false,
    };

    #[test]
    fn looser_modes_and_easier_arguments_do_less() {
        assert!(!does_less(&REDUCE, &REDUCE));
        assert!(does_less(&Query { sync: SyncModes::LOOSE, ..REDUCE }, &REDUCE));
        assert!(does_less(&REDUCE, &Query { sync: SyncModes::STRICT, ..REDUCE }));
        assert!(!does_less(&Query { sync: SyncModes::STRICT, ..REDUCE }, &REDUCE));
        let easy = Query { operator: OperatorClass::Commutative, ..REDUCE };
        assert!(does_less(&easy, &REDUCE) && !does_less(&REDUCE, &easy));
        let reachable = Query { symmetric: true, ..REDUCE };
        assert!(does_less(&reachable, &REDUCE) && !does_less(&REDUCE, &reachable));
        assert!(!does_less(&Query { pes: 2, ..reachable }, &REDUCE), "another team");
        let strict = Query { sync: SyncModes::STRICT, ..REDUCE };
        assert!(
            !does_less(&Query { symmetric: true, ..strict }, &strict),
            "the modes require less there"
        );
        let on_all = Query { collective: Collective::AllReduce, ..REDUCE };
        assert!(does_less(&REDUCE, &on_all) && !does_less(&on_all, &REDUCE));
    }

    #[test]
    fn composition_has_sizes_and_modes_of_parts() {
        let parts = |collective, sync, bytes| {
            let reachable = Query { symmetric: true, ..REDUCE };
            let parts = compositions(&Query { collective, sync, bytes, ..reachable });
            let described =
                |part: Query| format!("{} {} {}", part.sync, part.collective, part.bytes);
            parts.into_iter().map(|parts| parts.map(described)).collect::<Vec<_>>()
        };
        assert_eq!(
            parts(Collective::AllReduce, SyncModes::STRICT, 64),
            [
                ["strict reduce 64", "strict broadcast 64"],
                ["strict reduce_scatter 16", "strict all_gather 16"],
                ["strict scan 64", "strict broadcast 64"],
            ]
        );
        assert_eq!(
            parts(Collective::AllReduce, SyncModes::MINE, 6).len(),
            2,
            "6 B are not 4 blocks"
        );
        assert_eq!(
            parts(Collective::AllGather, SyncModes::LOOSE, 8),
            [["strict gather 8", "strict broadcast 32"]]
        );
        assert_eq!(
            parts(Collective::ReduceScatter, SyncModes::MINE, 8),
            [["strict reduce 32", "strict scatter 8"]]
        );
        let private = Query { collective: Collective::AllReduce, ..REDUCE };
        assert!(
            compositions(&private).is_empty(),
            "its calls overlap in a row, whatever the modes"
        );
        assert_eq!(parts(Collective::Barrier, SyncModes::STRICT, 0), [[""; 2]; 0]);
    }

    #[test]
    fn barrier_does_less_than_a_strict_call() {
        let barrier = Query { collective: Collective::Barrier, sync: SyncModes::STRICT, ..REDUCE };
        assert!(does_less(&barrier, &Query { sync: SyncModes::STRICT, ..REDUCE }));
        assert!(!does_less(&barrier, &REDUCE));
    }
}
