//! T8: queue locks and HYBLOCK.

use anyhow::Result;

use super::{
    super::experiment::{Experiment, Outcome},
    curves::{Curves, least, most},
    machines::{TILE, TILES, on_tile},
    report::Report,
    run::{Point, Way},
};

pub(super) const LOCKS: [(&str, Way); 4] =
    [("TAS", Way::TestAndSet), ("MCS", Way::Mcs), ("CLH", Way::Clh), ("HYBLOCK", Way::HybLock)];

/// The queue locks over shared memory.
const QUEUES: [&str; 2] = ["MCS", "CLH"];

const THREADS: [u32; 11] = [1, 2, 3, 4, 5, 10, 15, 20, 25, 30, TILES];

/// T8: locks on the TILE-Gx (section 6.2.3, figure 6.4).
///
/// # Errors
/// When a simulation fails.
pub fn judge(experiment: &Experiment<'_>) -> Result<Outcome> {
    let mut report = Report::new(experiment.source, &[TILE]);
    let counter = Curves::run(LOCKS, &THREADS, |way, threads| on_tile(way.clone(), threads, 1))?;
    report.curves(("Mops/s", "threads"), &counter, |point| point.mops);
    report.curves(("ns", "threads"), &counter, Point::latency_ns);
    let sections = Curves::run(LOCKS, &[0, 1, 5, 10, 15, 20, 25], |way, increments| {
        on_tile(way.clone(), TILES, increments as usize)
    })?;
    report.curves(("Mops/s", "increments"), &sections, |point| point.mops);
    throughput(&mut report, &counter);
    latency(&mut report, &counter);
    let mut ratios = Vec::new();
    for (increments, section) in [(1, "6.4a counter"), (0, "6.4c empty"), (25, "6.4c 25")] {
        for other in QUEUES {
            let ratio = sections.gains("HYBLOCK", &[other], increments..=increments)[0];
            ratios.push(report.add(TILE, format!("{section}, HYBLOCK / {other}"), "x", ratio));
        }
    }
    report.finish(format!(
        "HYBLOCK {:.2} and {:.2} times MCS and CLH (paper: 1.35), {:.2} and {:.2} with an empty \
         section (2), {:.2} and {:.2} with 25 increments (1.18)",
        ratios[0], ratios[1], ratios[2], ratios[3], ratios[4], ratios[5],
    ))
}

/// Figure 6.4a.
fn throughput(report: &mut Report, counter: &Curves) {
    let few = least(counter.gains("HYBLOCK", &QUEUES, 2..=5));
    report.add(TILE, "6.4a HYBLOCK / queue locks, 2 to 5 threads", "x", few);
    let many = least(counter.gains("HYBLOCK", &["TAS"], 30..));
    report.add(TILE, "6.4a HYBLOCK / TAS, 30 threads and more", "x", many);
    let tas = |threads| counter.at("TAS", threads).mops;
    report.add(TILE, "6.4a TAS, 36 threads / 1", "x", tas(TILES) / tas(1));
}

/// Figure 6.4b.
fn latency(report: &mut Report, counter: &Curves) {
    for (name, _) in LOCKS {
        let alone = counter.at(name, 1).latency_ns();
        report.add(TILE, format!("6.4b {name}, 1 thread"), "ns", alone);
    }
    for (name, other) in [("HYBLOCK", "MCS"), ("HYBLOCK", "CLH"), ("TAS", "HYBLOCK")] {
        let ratio = counter.delays(name, &[other], 1..=1)[0];
        report.add(TILE, format!("6.4b {name} / {other}, 1 thread"), "x", ratio);
    }
    let few = most(counter.delays("MCS", &["CLH"], 2..=4));
    report.add(TILE, "6.4b MCS / CLH, 2 to 4 threads, most", "x", few);
    let many = most(counter.delays("MCS", &["CLH"], 5..));
    report.add(TILE, "6.4b MCS / CLH, 5 threads and more, most", "x", many);
}
