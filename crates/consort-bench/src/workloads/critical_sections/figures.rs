//! The machine-readable results: one object for each row, load and number of threads.

use consort_fabric::statistics::Summary;
use serde::Serialize;

use super::race::{Contended, Latency, Results, Uncontended};
use crate::harness::hundredths;

/// Rounds to four decimal places: rates and ratios may be far below 1.
pub(super) fn fourth(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

/// The measurements of one row. A key that does not apply is null.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Entry {
    /// The subject: lock, delegate, counter, stack or queue.
    pub bench: &'static str,
    /// The lock or the scheme, or another library's lock.
    pub algorithm: &'static str,
    /// Whether it belongs to another library.
    pub is_peer: bool,
    /// `uncontended`: one thread, operations in a row. `full`: with at most `between` iterations
    /// between two operations of a thread. `low`: with many more.
    pub load: &'static str,
    /// The number of threads, without a server's.
    pub threads: usize,
    /// Whether each thread, and a server, had a core.
    pub placement: &'static str,
    /// The number of increments in an operation; a stack or a queue puts a value and takes one.
    pub increments: Option<usize>,
    /// The largest number of iterations between two operations.
    pub between: Option<u64>,
    /// The number of launches, over which medians and intervals are computed.
    pub launches: Option<usize>,
    /// Millions of operations per second.
    pub mops: Option<f64>,
    /// Their confidence interval.
    pub ci95_mops: Option<(f64, f64)>,
    /// Relative to `parking_lot`'s mutex in the same launch: times if uncontended, otherwise
    /// operations per second.
    pub ratio: Option<f64>,
    /// Its confidence interval.
    pub ci95_ratio: Option<(f64, f64)>,
    /// The ratio of the most to the fewest operations of a thread: the median over windows of 10 ms
    /// in which each thread had 90 % of a processor, or over blocks if threads outnumber the cores.
    /// In a situation, windows last 100 ms, or a block if that is shorter.
    pub fairness: Option<f64>,
    /// The 90th percentile.
    pub fairness_p90: Option<f64>,
    /// The number of these windows or blocks.
    pub windows: Option<usize>,
    /// The share of the operations that the busier half of the threads made, in a situation.
    pub busier_half: Option<f64>,
    /// The processor time of an operation, in a situation.
    pub processor_ns: Option<f64>,
    /// The time of a block.
    pub block_ms: u64,
    /// The median time of an operation; of a wait, in a situation.
    pub median_ns: Option<f64>,
    /// Its confidence interval, if uncontended.
    pub ci95_ns: Option<(f64, f64)>,
    /// The 99th percentile.
    pub p99_ns: Option<f64>,
    /// The situation in which threads use locks.
    pub situation: Option<&'static str>,
    /// The number of busy processes that ran meanwhile, in a situation.
    pub busy_processes: Option<usize>,
    /// The 99.9th percentile, in a situation.
    pub p999_ns: Option<f64>,
    /// The longest wait, in a situation.
    pub longest_ns: Option<f64>,
    /// Why another library was not measured.
    pub absent: Option<String>,
}

pub(super) fn interval(summary: &Summary) -> Option<(f64, f64)> {
    (summary.count > 1).then(|| (fourth(summary.ci95.0), fourth(summary.ci95.1)))
}

impl Results {
    /// Returns an entry for each row, load and number of threads.
    #[must_use]
    pub fn entries(&self) -> Vec<Entry> {
        let alone = self.uncontended.iter().map(|one| self.uncontended(one));
        let contended = self.contended.iter().flat_map(|one| {
            let low = one.low.map(|latency| Entry {
                load: "low",
                between: None,
                ..self.latency(one, Some(latency))
            });
            std::iter::once(self.contended(one)).chain(low)
        });
        alone.chain(contended).collect()
    }

    fn uncontended(&self, one: &Uncontended) -> Entry {
        Entry {
            median_ns: Some(hundredths(one.ns.median)),
            ci95_ns: interval(&one.ns),
            p99_ns: Some(hundredths(one.ns.p99)),
            ratio: one.ratio.as_ref().map(|ratio| fourth(ratio.median)),
            ci95_ratio: one.ratio.as_ref().and_then(interval),
            ..self.blank(one.name, one.is_peer)
        }
    }

    fn contended(&self, one: &Contended) -> Entry {
        Entry {
            launches: Some(one.mops.count),
            mops: Some(fourth(one.mops.median)),
            ci95_mops: interval(&one.mops),
            ratio: one.ratio.as_ref().map(|ratio| fourth(ratio.median)),
            ci95_ratio: one.ratio.as_ref().and_then(interval),
            fairness: one.fairness.map(|fairness| hundredths(fairness.median)),
            fairness_p90: one.fairness.map(|fairness| hundredths(fairness.p90)),
            windows: one.fairness.map(|fairness| fairness.count),
            ..self.latency(one, one.full)
        }
    }

    fn latency(&self, one: &Contended, latency: Option<Latency>) -> Entry {
        Entry {
            load: "full",
            threads: one.threads,
            placement: if one.is_pinned { "one thread a core" } else { "unpinned" },
            between: Some(self.between),
            median_ns: latency.map(|latency| hundredths(latency.median_ns)),
            p99_ns: latency.map(|latency| hundredths(latency.p99_ns)),
            ..self.blank(one.name, one.is_peer)
        }
    }

    /// Returns an entry of a single thread, without figures.
    fn blank(&self, algorithm: &'static str, is_peer: bool) -> Entry {
        Entry {
            bench: self.subject.name(),
            algorithm,
            is_peer,
            load: "uncontended",
            threads: 1,
            placement: "one thread a core",
            increments: self.subject.increments().then_some(self.increments),
            block_ms: u64::try_from(self.length.as_millis()).unwrap_or(u64::MAX),
            ..Entry::default()
        }
    }
}
