//! The canonical form of queries: equivalent queries find the same entry.

use consort_fabric::{Collective, OperatorClass, Query, SyncModes};

/// The largest distinct size: larger ones are treated as this.
pub(crate) const MAX_BYTES: u64 = (1 << 52) - 1;

/// Returns `query` with each property that does not apply to its collective set to the least
/// demanding value.
pub(crate) fn canonical(query: &Query) -> Query {
    let mut query = *query;
    query.bytes = query.bytes.min(MAX_BYTES);
    if query.collective == Collective::Barrier {
        query.sync = SyncModes::STRICT;
        query.bytes = 0;
        query.symmetric = true;
    }
    if !query.collective.combines() {
        query.operator = OperatorClass::Commutative;
    }
    query
}

/// Returns the row of a query: the query without its size.
pub(crate) fn row_of(query: &Query) -> Query {
    Query { bytes: 0, ..canonical(query) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_barrier_has_one_form() {
        let odd = Query {
            collective: Collective::Barrier,
            sync: SyncModes::LOOSE,
            pes: 4,
            bytes: 8,
            operator: OperatorClass::Ordered,
            symmetric: false,
        };
        let plain = Query { sync: SyncModes::MINE, bytes: 0, symmetric: true, ..odd };
        assert_eq!(canonical(&odd), canonical(&plain));
    }

    #[test]
    fn a_reduction_keeps_its_operator() {
        let reduce = Query {
            collective: Collective::Reduce,
            sync: SyncModes::LOOSE,
            pes: 2,
            bytes: u64::MAX,
            operator: OperatorClass::Ordered,
            symmetric: false,
        };
        assert_eq!(canonical(&reduce), Query { bytes: MAX_BYTES, ..reduce });
    }
}
