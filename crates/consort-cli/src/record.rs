//! An entry of wisdom as JSON.

use consort::tune::Query;
use consort_bench::query_json::QueryJson;
use consort_tuner::Entry;
use serde::Serialize;

/// An entry of wisdom as JSON; a key that does not apply is null.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Record {
    #[serde(flatten, with = "QueryJson")]
    query: Query,
    choice: String,
    median_ns: f64,
    ci95_ns: Option<(f64, f64)>,
    runner_up: Option<String>,
    runner_up_ns: Option<f64>,
    margin: Option<f64>,
    confidence: String,
    rigour: String,
    c2c_class: Option<String>,
    undisturbed: f64,
    busy: Option<String>,
}

impl From<&Entry> for Record {
    fn from(entry: &Entry) -> Self {
        let runner_up = entry.runner_up.as_ref();
        Self {
            query: entry.query,
            choice: entry.choice.to_string(),
            median_ns: entry.median_ns,
            ci95_ns: entry.ci95_ns,
            runner_up: runner_up.map(|second| second.candidate.to_string()),
            runner_up_ns: runner_up.map(|second| second.median_ns),
            margin: entry.margin(),
            confidence: entry.confidence.to_string(),
            rigour: entry.rigour.to_string(),
            c2c_class: entry.class.map(|class| class.to_string()),
            undisturbed: entry.undisturbed,
            busy: entry.busy.clone(),
        }
    }
}
