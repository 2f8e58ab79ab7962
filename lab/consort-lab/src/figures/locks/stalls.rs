//! T10: where the time of the servicing thread goes.

use anyhow::Result;
use consort_sim::Stall;

use super::{
    super::experiment::{Experiment, Outcome},
    delegation::schemes,
    machines::{TILE, TILES, on_tile},
    report::Report,
};

/// T10: stalls of the servicing thread (section 6.2.3, figure 6.6b), which is the same for the
/// whole run: `MAX_OPS` is unbounded.
///
/// # Errors
/// When a simulation fails.
pub fn judge(experiment: &Experiment<'_>) -> Result<Outcome> {
    let mut report = Report::new(experiment.source, &[TILE]);
    let (mut rows, mut shares) = (Vec::new(), Vec::new());
    for (name, way) in schemes(u64::MAX) {
        let point = on_tile(way, TILES, 1)?;
        let all = 1e3 / point.mops;
        let mut row = vec![name.to_owned(), format!("{all:.1}")];
        row.extend(Stall::EVERY.map(|cause| {
            format!("{:.1}", point.servicing.stalled_ns(cause) / point.operations() as f64)
        }));
        rows.push(row);
        let share = 100.0 * point.stalled();
        shares.push(report.add(TILE, format!("{name}, time stalled"), "%", share));
    }
    report.table(&["ns an operation", "all", "coherence", "fences", "store buffer"], rows);
    report.finish(format!(
        "stalled for {:.0} % with MP-SERVER and {:.0} % with HYBCOMB (paper: almost never), \
         {:.0} % with SHM-SERVER and {:.0} % with CC-SYNCH (over 50 %)",
        shares[0], shares[1], shares[2], shares[3],
    ))
}
