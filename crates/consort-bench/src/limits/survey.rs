//! A survey of transfers between many processors and of the bandwidths of one, within a budget.
//!
//! One half of the budget is for the transfers between pairs of processors, in several passes over
//! all pairs. The other half is for the bandwidths of one core, alone and with its nearest
//! neighbour.

use std::{io, iter, time::Duration};

use consort_fabric::statistics::median;
use consort_machine::{affinity::CpuId, topology::Topology};
use consort_tuner::TransferClass;
use serde::Serialize;

use super::{between::transfer_ns, readings::Limit};
use crate::query_json::shown;

/// The largest number of processors that are measured, unless all are requested.
const SAMPLE: usize = 16;
/// The sizes of the buffers: in the nearest cache, in the next one, and mostly in memory.
const SIZES_BYTES: [usize; 3] = [32 << 10, 1 << 20, 32 << 20];
/// The number of readings of each pair, if the budget allows.
const PASSES: u32 = 5;
/// The shortest time of a reading, whatever its budget: threads start, and blocks run.
const SHORTEST: Duration = Duration::from_millis(2);
/// The longest time of a reading; a longer one is not more precise.
const LONGEST: Duration = Duration::from_millis(250);

/// The processors to measure, and the time for it.
pub struct Plan {
    cpus: Vec<CpuId>,
    /// The processor whose bandwidth is measured, and the neighbour that rewrites data for it.
    cpu: CpuId,
    neighbour: Option<CpuId>,
    budget: Duration,
}

/// The figures of a survey.
#[derive(Serialize)]
pub struct SurveyFigures {
    /// Each pair once, the lower processor first.
    pub transfers: Vec<Transfer>,
    /// The processor whose bandwidth was measured.
    pub bandwidth_cpu: u32,
    /// The processor that rewrites the data of pulls.
    pub bandwidth_neighbour: Option<u32>,
    /// One entry per size.
    pub bandwidths: Vec<Bandwidth>,
}

/// The one-way transfer of a cache line between two processors.
#[derive(Clone, Debug, Serialize)]
pub struct Transfer {
    /// The lower processor.
    pub a: u32,
    /// The higher processor.
    pub b: u32,
    /// The median of the readings.
    pub ns: f64,
    /// The smallest and the largest reading.
    pub range_ns: (f64, f64),
    /// The class of the median.
    #[serde(serialize_with = "shown")]
    pub class: TransferClass,
}

/// The bandwidths of one core in GB/s for buffers of one size; null if there is no neighbour.
#[derive(Serialize)]
pub struct Bandwidth {
    /// The size of a buffer.
    pub bytes: usize,
    /// Copying the core's own data.
    pub copy_gbps: f64,
    /// Copying data that the neighbour has just rewritten.
    pub pull_gbps: Option<f64>,
    /// Adding the core's own data.
    pub combine_gbps: f64,
    /// Adding data that the neighbour has just rewritten.
    pub pull_combine_gbps: Option<f64>,
    /// The transfer to the neighbour, read immediately afterwards.
    pub transfer: Option<Transfer>,
}

impl Plan {
    /// Creates a plan for all processors or a sample of them, within a budget.
    pub fn new(topology: &Topology, all: bool, budget: Duration) -> Plan {
        let allowed = topology.allowed();
        let near = topology.placement(2).unwrap_or_else(|| allowed.to_vec());
        let cpus = if all { allowed.to_vec() } else { sample(allowed) };
        let (cpu, neighbour) = (near.first().copied().unwrap_or(CpuId(0)), near.get(1).copied());
        Plan { cpus, cpu, neighbour, budget }
    }

    fn pairs(&self) -> Vec<(CpuId, CpuId)> {
        let lower = self.cpus.iter().enumerate();
        lower.flat_map(|(i, &a)| self.cpus[i + 1..].iter().map(move |&b| (a, b))).collect()
    }
}

/// Samples pairs of adjacent numbers, evenly spread, so that short and long distances occur.
fn sample(cpus: &[CpuId]) -> Vec<CpuId> {
    if cpus.len() <= SAMPLE {
        return cpus.to_vec();
    }
    let starts = (0..SAMPLE / 2).map(|pair| pair * cpus.len() / (SAMPLE / 2));
    starts.flat_map(|start| [cpus[start], cpus[start + 1]]).collect()
}

/// Returns the number of passes over `pairs` pairs, and the time for one reading.
fn schedule(pairs: usize, budget: Duration) -> (u32, Duration) {
    let pairs = u32::try_from(pairs).unwrap_or(u32::MAX).max(1);
    let each = budget / pairs;
    let passes = (1..PASSES).rev().find(|passes| each / (passes + 1) >= SHORTEST);
    let passes = passes.map_or(1, |passes| passes + 1);
    (passes, (each / passes).min(LONGEST))
}

/// Measures. Passes the current kind of measurement, the number of the step, and the number of all
/// steps to `show`.
///
/// # Errors
/// If a thread cannot be bound, or gets no processor time for a second.
pub fn run(plan: &Plan, show: impl Fn(&'static str, usize, usize)) -> io::Result<SurveyFigures> {
    let pairs = plan.pairs();
    let (passes, reading) = schedule(pairs.len(), plan.budget / 2);
    let steps = pairs.len() * passes as usize + SIZES_BYTES.len();
    let mut done = 0;
    let mut readings = vec![Vec::new(); pairs.len()];
    for _ in 0..passes {
        for (&(a, b), readings) in pairs.iter().zip(&mut readings) {
            show("transfers", done, steps);
            readings.push(transfer_ns(a, b, reading)?);
            done += 1;
        }
    }
    let transfers = pairs.iter().zip(readings);
    let transfers = transfers.map(|(&(a, b), readings)| transfer(a, b, readings)).collect();
    let reading = plan.budget / 2 / u32::try_from(SIZES_BYTES.len() * 5).unwrap_or(1);
    let mut bandwidths = Vec::new();
    for bytes in SIZES_BYTES {
        show("bandwidths", done, steps);
        bandwidths.push(bandwidth(plan, bytes, reading.min(LONGEST))?);
        done += 1;
    }
    Ok(SurveyFigures {
        transfers,
        bandwidth_cpu: plan.cpu.0,
        bandwidth_neighbour: plan.neighbour.map(|cpu| cpu.0),
        bandwidths,
    })
}

fn transfer(a: CpuId, b: CpuId, mut readings: Vec<f64>) -> Transfer {
    let ns = median(&mut readings);
    let range_ns = (tenths(readings[0]), tenths(readings[readings.len() - 1]));
    Transfer { a: a.0, b: b.0, ns: tenths(ns), range_ns, class: TransferClass::of(ns) }
}

fn bandwidth(plan: &Plan, bytes: usize, reading: Duration) -> io::Result<Bandwidth> {
    let cpus: Vec<CpuId> = iter::once(plan.cpu).chain(plan.neighbour).collect();
    let gbps = |limit: Limit| limit.gbps(&cpus, bytes, reading).map(tenths);
    let pulled = |limit| plan.neighbour.map(|_| gbps(limit)).transpose();
    let transfer = |b| -> io::Result<Transfer> {
        Ok(transfer(plan.cpu, b, vec![transfer_ns(plan.cpu, b, reading)?]))
    };
    Ok(Bandwidth {
        bytes,
        copy_gbps: gbps(Limit::Copy)?,
        combine_gbps: gbps(Limit::Combine)?,
        pull_gbps: pulled(Limit::Pull)?,
        pull_combine_gbps: pulled(Limit::PullCombine)?,
        transfer: plan.neighbour.map(transfer).transpose()?,
    })
}

/// Rounds to one decimal place: no value is more exact.
fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_pairs_spread_over_the_machine() {
        let cpus: Vec<CpuId> = (0..128).map(CpuId).collect();
        let numbers: Vec<u32> = sample(&cpus).iter().map(|cpu| cpu.0).collect();
        assert_eq!(numbers, [0, 1, 16, 17, 32, 33, 48, 49, 64, 65, 80, 81, 96, 97, 112, 113]);
        assert_eq!(sample(&cpus[..16]), cpus[..16]);
        let mut numbers = sample(&cpus[..17]);
        numbers.dedup();
        assert_eq!(numbers.len(), SAMPLE);
    }

    #[test]
    fn the_budget_is_shared_out() {
        let seconds = Duration::from_secs;
        assert_eq!(schedule(1, seconds(3)), (5, LONGEST));
        assert_eq!(schedule(100, seconds(2)), (5, Duration::from_millis(4)));
        assert_eq!(schedule(100, Duration::from_millis(600)), (3, Duration::from_millis(2)));
        assert_eq!(schedule(1000, seconds(1)), (1, Duration::from_millis(1)));
        assert_eq!(schedule(0, seconds(1)).0, 5);
    }

    #[test]
    fn transfer_reports_its_range() {
        let transfer = transfer(CpuId(0), CpuId(3), vec![180.0, 12.34, 170.06]);
        assert_eq!((transfer.ns, transfer.range_ns), (170.1, (12.3, 180.0)));
        let json = serde_json::to_string(&transfer).unwrap();
        assert_eq!(json, r#"{"a":0,"b":3,"ns":170.1,"range_ns":[12.3,180.0],"class":"far"}"#);
    }
}
