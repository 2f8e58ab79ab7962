//! T11: what HYBCOMB costs, whether it is fair, and how many operations it combines.

use anyhow::Result;

use super::{
    super::experiment::{Experiment, Outcome},
    delegation::MAX_OPS,
    machines::{TILE, TILES, on_tile},
    report::Report,
    run::Way,
};

/// T11: compare-exchanges and fairness of HYBCOMB, and combining rates (section 6.2.3 and figure
/// 6.6c).
///
/// # Errors
/// When a simulation fails.
pub fn judge(experiment: &Experiment<'_>) -> Result<Outcome> {
    let mut report = Report::new(experiment.source, &[TILE]);
    let (mut rows, mut most, mut unfair) = (Vec::new(), 0.0_f64, 0.0_f64);
    for threads in [2, 3, 4, 5, 6, 8, 10, 15, 20, 25, 30, TILES] {
        let point = on_tile(Way::HybComb(MAX_OPS), threads, 1)?;
        (most, unfair) = (most.max(point.exchanges()), unfair.max(point.fairness()));
        let exchanges = format!("{:.2}", point.exchanges());
        let fairness = format!("{:.2}", point.fairness());
        let cc = on_tile(Way::CcSynch(MAX_OPS), threads, 1)?;
        let [rate, cc] = [point, cc].map(|point| format!("{:.1}", point.combined));
        rows.push(vec![threads.to_string(), exchanges, fairness, rate, cc]);
    }
    let header = ["threads", "CAS an operation", "fairness", "HYBCOMB combines"];
    report.table(&[&header[..], &["CC-SYNCH combines"]].concat(), rows);
    for (name, way) in [("HYBCOMB", Way::HybComb(MAX_OPS)), ("CC-SYNCH", Way::CcSynch(MAX_OPS))] {
        let combined = on_tile(way, TILES, 1)?.combined;
        report.add(TILE, format!("6.6c {name}, combined, 36 threads"), "operations", combined);
    }
    let alone = on_tile(Way::HybComb(MAX_OPS), 1, 1)?.exchanges();
    report.add(TILE, "HYBCOMB, CAS an operation, 1 thread", "CAS", alone);
    let all = on_tile(Way::HybComb(MAX_OPS), TILES, 1)?.exchanges();
    let all = report.add(TILE, "HYBCOMB, CAS an operation, 36 threads", "CAS", all);
    let most = report.add(TILE, "HYBCOMB, CAS an operation, most", "CAS", most);
    let unfair = report.add(TILE, "HYBCOMB, most / least operations", "x", unfair);
    let server = on_tile(Way::Mp, TILES, 1)?.fairness();
    let server = report.add(TILE, "MP-SERVER, most / least operations", "x", server);
    report.finish(format!(
        "{all:.2} CAS an operation at 36 threads (paper: 0.1), at most {most:.2} from 2 on (0.7); \
         fairness {unfair:.2} (1.2), MP-SERVER's {server:.2} (1.1)"
    ))
}
