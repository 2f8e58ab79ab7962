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

/// How a query is serialized as JSON.
#[derive(Serialize)]
#[serde(remote = "Query")]
pub struct Asked {
    #[serde(serialize_with = "shown")]
    collective: Collective,
    #[serde(serialize_with = "shown")]
    sync: SyncModes,
    pes: u32,
    bytes: u64,
    #[serde(serialize_with = "shown")]
    operator: OperatorClass,
    symmetric: bool,
}
