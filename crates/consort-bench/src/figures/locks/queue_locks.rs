//! T8: queue locks and HYBLOCK.

use anyhow::Result;

use super::{
    super::experiment::{Experiment, Outcome},
    machines::{TILE, TILES, on_tile},
    report::Report,
    run::Way,
};

const LOCKS: [(&str, Way); 4] =
    [("TAS", Way::TestAndSet), ("MCS", Way::Mcs), ("CLH", Way::Clh), ("HYBLOCK", Way::HybLock)];

/// T8: locks on the TILE-Gx (section 6.2.3, figure 6.4).
///
/// # Errors
/// When a simulation fails.
pub fn judge(experiment: &Experiment<'_>) -> Result<Outcome> {
    let mut report = Report::new(experiment.source, &[TILE]);
    let mut rows = Vec::new();
    for threads in [1, 2, 3, 4, 5, 10, 15, 20, 25, 30, TILES] {
        let mut row = vec![threads.to_string()];
        for (name, way) in LOCKS {
            let point = on_tile(way, threads, 1)?;
            row.push(format!("{:.1}", point.mops));
            row.push(format!("{:.0}", point.latency_ns()));
            if threads == 1 {
                report.add(TILE, format!("{name}, 1 thread"), "ns", point.latency_ns());
            }
        }
        rows.push(row);
    }
    let header = ["threads", "TAS Mops/s", "ns", "MCS Mops/s", "ns", "CLH Mops/s", "ns"];
    report.table(&[&header[..], &["HYBLOCK Mops/s", "ns"]].concat(), rows);
    let mut ratios = Vec::new();
    for (increments, section) in [(1, "counter"), (0, "empty section"), (25, "25 increments")] {
        let hybrid = on_tile(Way::HybLock, TILES, increments)?.mops;
        for (name, way) in &LOCKS[1..3] {
            let ratio = hybrid / on_tile(way.clone(), TILES, increments)?.mops;
            ratios.push(report.add(TILE, format!("{section}, HYBLOCK / {name}"), "x", ratio));
        }
    }
    report.finish(format!(
        "HYBLOCK {:.2} and {:.2} times MCS and CLH (paper: 1.35), {:.2} and {:.2} with an empty \
         section (2), {:.2} and {:.2} with 25 increments (1.18)",
        ratios[0], ratios[1], ratios[2], ratios[3], ratios[4], ratios[5],
    ))
}
