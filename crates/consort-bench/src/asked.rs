//! Queries about calls, as text and as JSON.

use std::fmt::Display;

use consort::{Collective, Query, SyncModes};
use consort_fabric::OperatorClass;
use serde::{Serialize, Serializer};

use crate::units;

/// A query about a call; if it combines, it sums.
pub fn sums(
    collective: Collective,
    sync: SyncModes,
    pes: u32,
    bytes: usize,
    symmetric: bool,
) -> Query {
    let operator = OperatorClass::Commutative;
    Query { collective, sync, pes, bytes: bytes as u64, operator, symmetric }
}

/// A query as a line of text: `loose reduce of 8 KiB on 2 PEs, symmetric`.
pub fn describe(query: &Query) -> String {
    let Query { collective, sync, pes, bytes, operator, symmetric } = *query;
    if collective == Collective::Barrier {
        return format!("barrier of {pes} PEs");
    }
    let ordered = if operator == OperatorClass::Ordered { " ordered" } else { "" };
    let memory = if symmetric { ", symmetric" } else { "" };
    let bytes = units::size(bytes);
    format!("{sync}{ordered} {collective} of {bytes} on {pes} PEs{memory}")
}

/// Serializes a value as its text.
pub fn shown<T: Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// A query, as JSON.
#[derive(Clone, Debug, Serialize)]
pub struct Asked {
    collective: String,
    sync: String,
    pes: u32,
    bytes: u64,
    operator: String,
    symmetric: bool,
}

impl From<&Query> for Asked {
    fn from(query: &Query) -> Self {
        Self {
            collective: query.collective.to_string(),
            sync: query.sync.to_string(),
            pes: query.pes,
            bytes: query.bytes,
            operator: query.operator.to_string(),
            symmetric: query.symmetric,
        }
    }
}
