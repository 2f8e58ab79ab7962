//! One figure: a line of JSON, or a row of a table.

use std::{borrow::Cow, collections::BTreeMap};

use consort::tune::Arrival;
use consort_fabric::statistics::Summary;
use consort_tuner::TransferClass;
use serde::Serialize;

use super::session::Mode;
use crate::{limits::Limit, query_json::optional};

/// The time of one kind of work in one class of the transfer. A key that does not apply is null.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Figure {
    /// The collective, or the workload.
    pub bench: &'static str,
    /// Threads, processes, or a simulated machine.
    pub fabric: Cow<'static, str>,
    /// The number of PEs.
    pub pes: u32,
    /// The team, which consists of all PEs.
    pub team: &'static str,
    /// The algorithm that served, with its parts if it has any.
    pub algorithm: Option<String>,
    /// Whether Consort chose it.
    pub chosen: bool,
    /// Its parameters.
    pub params: Option<BTreeMap<String, u64>>,
    /// The modes of synchronization.
    pub sync: Option<String>,
    /// The size of a block.
    pub bytes: Option<usize>,
    /// Whether calls are in a row or single.
    pub mode: &'static str,
    /// The arrival of the PEs at a call.
    pub arrival: &'static str,
    /// The placement of the PEs.
    pub placement: String,
    /// How they waited.
    pub waiting: Option<String>,
    /// The median of a call, over the blocks.
    pub median_ns: Option<f64>,
    /// Its confidence interval.
    pub ci95_ns: Option<(f64, f64)>,
    /// The 99th percentile.
    pub p99_ns: Option<f64>,
    /// The mean, for work in which a few long times matter.
    pub mean_ns: Option<f64>,
    /// The processor time of all threads, in seconds per second.
    pub busy_cores: Option<f64>,
    /// The number of blocks.
    pub reps: usize,
    /// The number of launches that the blocks come from, if the interval is over launches.
    pub launches: Option<usize>,
    /// The library, or the limit; null for Consort.
    pub peer: Option<String>,
    /// The median over the blocks of the ratio of their time to the transfer at that moment.
    pub ratio_to_limit: Option<f64>,
    /// The one-way transfer of a cache line during the measurement.
    pub c2c_ns: Option<f64>,
    /// Its class.
    #[serde(serialize_with = "optional::serialize")]
    pub c2c_class: Option<TransferClass>,
    /// The bandwidth of a core that copies its own buffer of this size.
    pub memcpy_gbps: Option<f64>,
    /// The same for a buffer that another core has just rewritten.
    pub pull_gbps: Option<f64>,
    /// The bandwidth as a share of each limit; for tables only.
    #[serde(skip)]
    pub shares: Vec<(Limit, f64)>,
    /// The number of discarded blocks; for tables only.
    #[serde(skip)]
    pub discarded: usize,
    /// The reason why there is no figure; for tables only.
    #[serde(skip)]
    pub absent: Option<String>,
    /// Whether a separate program measured it, with calls in a row; for tables only.
    #[serde(skip)]
    pub is_program: bool,
}

impl Figure {
    /// Returns a figure of threads that arrive at calls together, without times.
    pub fn of(bench: &'static str, pes: u32, mode: Mode) -> Figure {
        Figure {
            bench,
            fabric: "threads".into(),
            pes,
            team: "world",
            mode: mode.name(),
            arrival: Arrival::Together.name(),
            ..Figure::default()
        }
    }

    /// Returns whether it is a figure of Consort itself, not of another library or the machine.
    pub fn is_ours(&self) -> bool {
        self.peer.is_none()
    }

    /// Returns whether it is a limit of the machine.
    pub fn is_limit(&self) -> bool {
        self.peer.as_ref().is_some_and(|peer| peer.starts_with("limit "))
    }

    /// Returns half the interval of the median, relative to it; `None` for a single block.
    pub fn precision(&self) -> Option<f64> {
        let (low, high) = self.ci95_ns?;
        Some((high - low) / 2.0 / self.median_ns?)
    }

    /// Returns the same figure with the times of `summary`.
    pub fn with(self, summary: &Summary) -> Figure {
        Figure {
            median_ns: Some(hundredths(summary.median)),
            ci95_ns: (summary.count > 1)
                .then(|| (hundredths(summary.ci95.0), hundredths(summary.ci95.1))),
            p99_ns: Some(hundredths(summary.p99)),
            reps: summary.count,
            ..self
        }
    }
}

/// Rounds to two decimal places: no value is more exact.
pub fn hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}
