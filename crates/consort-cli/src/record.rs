//! Queries and entries of wisdom in words, and as JSON.

use std::fmt::Display;

use consort::{Collective, Query};
use consort_fabric::OperatorClass;
use consort_tuner::Entry;
use serde::{Serialize, Serializer};

use crate::bytes;

/// A query as a line of text: `loose reduce of 8 KiB on 2 PEs, symmetric`.
pub(crate) fn describe(query: &Query) -> String {
    let Query { collective, sync, pes, bytes, operator, symmetric } = *query;
    if collective == Collective::Barrier {
        return format!("barrier of {pes} PEs");
    }
    let ordered = if operator == OperatorClass::Ordered { " ordered" } else { "" };
    let memory = if symmetric { ", symmetric" } else { "" };
    let bytes = bytes::shown(bytes);
    format!("{sync}{ordered} {collective} of {bytes} on {pes} PEs{memory}")
}

/// Serializes a value as its text.
pub(crate) fn shown<T: Display, S: Serializer>(
    value: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// What was asked, as JSON.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Asked {
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

/// An entry of wisdom as JSON; a key that does not apply is null.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Record {
    #[serde(flatten)]
    asked: Asked,
    choice: String,
    median_ns: f64,
    ci95_ns: Option<(f64, f64)>,
    runner_up: Option<String>,
    runner_up_ns: Option<f64>,
    margin: Option<f64>,
    confidence: String,
    rigour: String,
    c2c_class: Option<String>,
}

impl From<&Entry> for Record {
    fn from(entry: &Entry) -> Self {
        let runner_up = entry.runner_up.as_ref();
        Self {
            asked: Asked::from(&entry.query),
            choice: entry.choice.to_string(),
            median_ns: entry.median_ns,
            ci95_ns: entry.ci95_ns,
            runner_up: runner_up.map(|second| second.candidate.to_string()),
            runner_up_ns: runner_up.map(|second| second.median_ns),
            margin: entry.margin(),
            confidence: entry.confidence.to_string(),
            rigour: entry.rigour.to_string(),
            c2c_class: entry.class.map(|class| class.to_string()),
        }
    }
}
