//! T10: the parts of the servicing thread's time.

use anyhow::Result;
use consort_sim::Stall;

use super::{
    super::experiment::{Experiment, Outcome},
    delegation::schemes,
    machines::{TILE, TILES, on_tile},
    report::Report,
};

figures! { pub FIGURES of "T10", "section 6.2.3, figure 6.6b":
    // "virtually never"; "more than 50%".
    "%":
    MP_SERVER("MP-SERVER, time stalled", TILE == 0.0)
    HYBCOMB("HYBCOMB, time stalled", TILE == 0.0)
    SHM_SERVER("SHM-SERVER, time stalled", TILE >= 50.0)
    CC_SYNCH("CC-SYNCH, time stalled", TILE >= 50.0)
}

/// T10: stalls of the servicing thread (section 6.2.3, figure 6.6b). It is the same thread for the
/// whole run: `MAX_OPS` is unbounded.
///
/// # Errors
/// When a simulation fails.
pub fn judge(_: &Experiment<'_>) -> Result<Outcome> {
    let mut report = Report::default();
    let (mut rows, mut shares) = (Vec::new(), Vec::new());
    let figures = [&MP_SERVER, &HYBCOMB, &SHM_SERVER, &CC_SYNCH];
    for ((name, way), figure) in schemes(u64::MAX).into_iter().zip(figures) {
        let point = on_tile(way, TILES, 1)?;
        let all = 1e3 / point.mops;
        let mut row = vec![name.to_owned(), format!("{all:.1}")];
        row.extend(Stall::EVERY.map(|cause| {
            format!("{:.1}", point.servicing.stalled_ns(cause) / point.operations() as f64)
        }));
        rows.push(row);
        let share = 100.0 * point.stalled();
        shares.push(report.add(figure.on(TILE), share));
    }
    report.table(&["ns an operation", "all", "coherence", "fences", "store buffer"], rows);
    Ok(report.finish(format!(
        "stalled for {:.0} % with MP-SERVER and {:.0} % with HYBCOMB (paper: almost never), \
         {:.0} % with SHM-SERVER and {:.0} % with CC-SYNCH (over 50 %)",
        shares[0], shares[1], shares[2], shares[3],
    )))
}
