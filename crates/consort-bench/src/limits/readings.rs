//! Readings of the machine's limits, taken between sessions on the same cores.
//!
//! | limit | one core ... |
//! | --- | --- |
//! | copy | copies its own buffer |
//! | pull | copies a buffer that the next core has just rewritten |
//! | combine | adds two of its buffers into a third: load, add, store |
//! | pull, combine | the same, after the next core has rewritten one of the two |
//!
//! Bandwidths are in bytes of the target. The transfer is measured before and after each reading. A
//! reading is discarded if its two transfers differ by more than a fifth; otherwise it belongs to
//! their class.

use std::{fmt, io, time::Duration};

use consort_fabric::statistics::Summary;
use consort_machine::{
    affinity::{CpuId, Pinned},
    topology::Topology,
};
use consort_tuner::TransferClass;

use super::{
    bandwidth::{combine_gbps, copy_gbps, pull_combine_gbps, pull_gbps},
    between::transfer_ns,
};

/// The time for one reading of a bandwidth, and of the transfer. At large sizes a bandwidth takes
/// longer, because it needs a minimum number of samples.
const BANDWIDTH_SLICE: Duration = Duration::from_millis(3);
const TRANSFER_SLICE: Duration = Duration::from_micros(500);

/// Larger buffers are read at this size: both are far larger than caches, and reading a larger one
/// takes seconds.
pub const MOST_BYTES: usize = 64 << 20;

/// Returns whether two readings of the transfer show the same state of the machine: they differ by
/// at most a fifth.
pub fn readings_agree(one_ns: f64, other_ns: f64) -> bool {
    (one_ns - other_ns).abs() <= 0.2 * one_ns.min(other_ns)
}

/// A limit of bandwidth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Copying the core's own data.
    Copy,
    /// Copying data that another core has rewritten.
    Pull,
    /// Adding the core's own data.
    Combine,
    /// Adding data that another core has rewritten to the core's own.
    PullCombine,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Copy => "copy",
            Self::Pull => "pull",
            Self::Combine => "combine",
            Self::PullCombine => "pull-combine",
        })
    }
}

impl Limit {
    /// Reads the limit in GB/s on the first core, whose neighbour, if there is one, is the second.
    pub(super) fn gbps(self, cpus: &[CpuId], bytes: usize, budget: Duration) -> io::Result<f64> {
        match (self, cpus) {
            (Self::Copy, &[a, ..]) => on(a, || copy_gbps(bytes, budget)),
            (Self::Combine, &[a, ..]) => on(a, || combine_gbps(bytes, budget)),
            (Self::Pull, &[a, b]) => pull_gbps(a, b, bytes, budget),
            (Self::PullCombine, &[a, b]) => pull_combine_gbps(a, b, bytes, budget),
            _ => Err(io::Error::new(io::ErrorKind::Unsupported, "no core to measure on")),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Reading {
    limit: Limit,
    bytes: usize,
    gbps: f64,
    class: Option<TransferClass>,
}

/// The limits of a run so far.
#[derive(Debug, Default)]
pub struct Limits {
    /// Two cores, if there are two: the first measures, the other rewrites.
    cpus: Vec<CpuId>,
    readings: Vec<Reading>,
}

impl Limits {
    /// Creates an empty collection for the first two cores on which PEs are placed.
    pub fn new() -> Self {
        let topology = Topology::discover();
        let cpus = topology.placement(2).or_else(|| topology.placement(1)).unwrap_or_default();
        Self { cpus, readings: Vec::new() }
    }

    /// Reads each of `limits` once at each size; all sizes above [`MOST_BYTES`] count as that one.
    /// Limits that cannot be measured here are left out.
    pub fn read(&mut self, limits: &[Limit], sizes_bytes: &[usize]) {
        let mut sizes: Vec<usize> =
            sizes_bytes.iter().map(|&bytes| bytes.min(MOST_BYTES)).collect();
        sizes.dedup();
        for bytes in sizes {
            let mut before = self.transfer();
            for &limit in limits {
                let Ok(gbps) = limit.gbps(&self.cpus, bytes, BANDWIDTH_SLICE) else { continue };
                let after = self.transfer();
                let agree = before.zip(after).is_none_or(|(a, b)| readings_agree(a, b));
                let class = before.zip(after).map(|(a, b)| TransferClass::of(f64::midpoint(a, b)));
                if agree {
                    self.readings.push(Reading { limit, bytes, gbps, class });
                }
                before = after;
            }
        }
    }

    fn transfer(&self) -> Option<f64> {
        let [a, b] = self.cpus[..] else { return None };
        transfer_ns(a, b, TRANSFER_SLICE).ok()
    }

    /// Returns the bandwidth in GB/s of a limit at a size, over the readings of a class, or of all.
    /// Above [`MOST_BYTES`] it is the bandwidth at that size.
    pub fn summary(
        &self,
        limit: Limit,
        bytes: usize,
        class: Option<TransferClass>,
    ) -> Option<Summary> {
        let fitting = |reading: &&Reading| {
            reading.limit == limit
                && reading.bytes == bytes.min(MOST_BYTES)
                && (class.is_none() || reading.class == class)
        };
        let gbps: Vec<f64> = self.readings.iter().filter(fitting).map(|one| one.gbps).collect();
        (!gbps.is_empty()).then(|| Summary::of(&gbps))
    }
}

fn on(cpu: CpuId, measure: impl FnOnce() -> f64) -> io::Result<f64> {
    let _pinned = Pinned::new(cpu)?;
    Ok(measure())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_covers_one_limit_size_and_class() {
        let reading = |limit, bytes, gbps, class| Reading { limit, bytes, gbps, class };
        let (near, far) = (Some(TransferClass::Near), Some(TransferClass::Far));
        let limits = Limits {
            cpus: Vec::new(),
            readings: vec![
                reading(Limit::Pull, 8192, 10.0, far),
                reading(Limit::Pull, 8192, 12.0, far),
                reading(Limit::Pull, 8192, 40.0, near),
                reading(Limit::Pull, 64, 1.0, far),
                reading(Limit::Pull, MOST_BYTES, 9.0, far),
                reading(Limit::Copy, 8192, 20.0, far),
            ],
        };
        let median = |limit, bytes, class| limits.summary(limit, bytes, class).map(|s| s.median);
        assert_eq!(median(Limit::Pull, 8192, far), Some(11.0));
        assert_eq!(median(Limit::Pull, 8192, near), Some(40.0));
        assert_eq!(median(Limit::Pull, 8192, None), Some(12.0));
        assert_eq!(median(Limit::Copy, 8192, near), None);
        assert_eq!(median(Limit::Combine, 8192, None), None);
        assert_eq!(
            [MOST_BYTES, 1 << 30].map(|bytes| median(Limit::Pull, bytes, far)),
            [Some(9.0); 2]
        );
    }

    #[test]
    fn limits_of_this_machine_are_read() {
        let mut limits = Limits::new();
        limits.read(&[Limit::Copy, Limit::Combine], &[4096]);
        for limit in [Limit::Copy, Limit::Combine] {
            // A disturbed reading is discarded.
            if let Some(summary) = limits.summary(limit, 4096, None) {
                assert!(summary.median > 0.0);
            }
        }
    }
}
