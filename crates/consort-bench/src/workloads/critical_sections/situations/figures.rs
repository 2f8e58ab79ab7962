//! The machine-readable results: one object for each situation, number of threads and lock.

use super::{
    super::figures::{Entry, fourth, interval},
    race::{Cell, Measured, Results},
};
use crate::harness::hundredths;

/// Rounds to an operation per second.
fn sixth(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

impl Results {
    /// Returns an entry for each situation, number of threads and lock.
    #[must_use]
    pub fn entries(&self) -> Vec<Entry> {
        let of_cell = |cell: &Cell| -> Vec<Entry> {
            let blank = Entry {
                bench: "lock",
                situation: Some(cell.situation.name()),
                busy_processes: Some(self.busy),
                load: "full",
                threads: cell.threads,
                placement: "unpinned",
                block_ms: u64::try_from(self.length.as_millis()).unwrap_or(u64::MAX),
                ..Entry::default()
            };
            let absent = self.absent.iter().map(|(library, _, why)| Entry {
                algorithm: library.name(),
                is_peer: true,
                absent: Some(why.clone()),
                ..blank.clone()
            });
            cell.locks.iter().map(|lock| lock.entry(&blank)).chain(absent).collect()
        };
        self.cells.iter().flat_map(of_cell).collect()
    }
}

impl Measured {
    fn entry(&self, blank: &Entry) -> Entry {
        let (low, high) = self.mops.ci95;
        // The steps of some clocks are longer than a wait.
        let quantile = |share| Some(self.waits.quantile_ns(share).max(1) as f64);
        Entry {
            algorithm: self.name,
            is_peer: self.is_peer,
            launches: Some(self.mops.count),
            mops: Some(sixth(self.mops.median)),
            ci95_mops: (self.mops.count > 1).then(|| (sixth(low), sixth(high))),
            ratio: self.ratio.as_ref().map(|ratio| sixth(ratio.median)),
            ci95_ratio: self.ratio.as_ref().and_then(interval),
            fairness: self.fairness.map(|fairness| hundredths(fairness.median)),
            fairness_p90: self.fairness.map(|fairness| hundredths(fairness.p90)),
            windows: self.fairness.map(|fairness| fairness.count),
            busier_half: Some(fourth(self.busier_half)),
            processor_ns: self.processor_ns.map(hundredths),
            median_ns: quantile(0.5),
            p99_ns: quantile(0.99),
            p999_ns: quantile(0.999),
            longest_ns: Some(self.waits.longest_ns() as f64),
            ..blank.clone()
        }
    }
}
