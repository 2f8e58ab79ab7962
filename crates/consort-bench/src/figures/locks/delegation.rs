//! T9: delegation and combining.

use anyhow::Result;

use super::{
    super::experiment::{Experiment, Outcome},
    machines::{TILE, TILES, on_tile},
    report::Report,
    run::{Slots, Way},
};

/// The operations of others that a combiner executes at most (section 6.2.2).
pub(super) const MAX_OPS: u64 = 200;

pub(super) fn schemes(most: u64) -> [(&'static str, Way); 4] {
    [
        ("MP-SERVER", Way::Mp),
        ("HYBCOMB", Way::HybComb(most)),
        ("SHM-SERVER", Way::Shm(Slots::default())),
        ("CC-SYNCH", Way::CcSynch(most)),
    ]
}

/// T9: delegation on the TILE-Gx (section 6.2.3, figures 6.5 and 6.6a).
///
/// # Errors
/// When a simulation fails.
pub fn judge(experiment: &Experiment<'_>) -> Result<Outcome> {
    let mut report = Report::new(experiment.source, &[TILE]);
    let mut rows = Vec::new();
    let mut at_all = [0.0; 4];
    for threads in [2, 3, 4, 5, 10, 15, 20, 25, 30, TILES] {
        let mut row = vec![threads.to_string()];
        for (index, (_, way)) in schemes(MAX_OPS).into_iter().enumerate() {
            let point = on_tile(way, threads, 1)?;
            row.push(format!("{:.1}", point.mops));
            row.push(format!("{:.0}", point.latency_ns()));
            at_all[index] = point.mops;
        }
        rows.push(row);
    }
    let header = ["threads", "MP-SERVER Mops/s", "ns", "HYBCOMB Mops/s", "ns"];
    report.table(
        &[&header[..], &["SHM-SERVER Mops/s", "ns", "CC-SYNCH Mops/s", "ns"]].concat(),
        rows,
    );
    let mut rows = Vec::new();
    for most in [10, 50, 100, 200, 500, 1000, 5000] {
        let mops = |way| Ok::<_, anyhow::Error>(format!("{:.1}", on_tile(way, TILES, 1)?.mops));
        rows.push(vec![most.to_string(), mops(Way::HybComb(most))?, mops(Way::CcSynch(most))?]);
    }
    report.table(&["MAX_OPS", "HYBCOMB Mops/s", "CC-SYNCH Mops/s"], rows);
    let [mp, hybcomb, shm, cc] = at_all;
    let servers = report.add(TILE, "counter, MP-SERVER / SHM-SERVER", "x", mp / shm);
    let combiners = report.add(TILE, "counter, HYBCOMB / CC-SYNCH", "x", hybcomb / cc);
    let most = on_tile(Way::HybComb(5000), TILES, 1)?.mops;
    let most = report.add(TILE, "counter, HYBCOMB, MAX_OPS 5000", "Mops/s", most);
    let long = |way| Ok::<_, anyhow::Error>(on_tile(way, TILES, 15)?.mops);
    let long = long(Way::Mp)? / long(Way::Shm(Slots::default()))?;
    report.add(TILE, "15 increments, MP-SERVER / SHM-SERVER", "x", long);
    report.finish(format!(
        "MP-SERVER {servers:.1} times SHM-SERVER (paper: 4.3), HYBCOMB {combiners:.1} times \
         CC-SYNCH (2.5) and {most:.0} Mops/s with MAX_OPS 5000 (88)"
    ))
}
