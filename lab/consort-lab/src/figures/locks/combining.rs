//! T11: the cost of HYBCOMB, its fairness, and how many operations it combines.

use anyhow::Result;

use super::{
    super::experiment::{Experiment, Outcome},
    delegation::MAX_OPS,
    machines::{TILE, TILES, on_tile},
    report::Report,
    run::Way,
};

figures! { pub FIGURES of "T11", "section 6.2.3, figure 6.6c": "atomics":
    // An isolated thread "running CC-SYNCH executes only one atomic instruction per operation,
    // whereas HYBCOMB executes three".
    HYBCOMB_ALONE("HYBCOMB, atomic instructions an operation, 1 thread", TILE ~ 3.0)
    CC_SYNCH_ALONE("CC-SYNCH, atomic instructions an operation, 1 thread", TILE ~ 1.0)
    "CAS":
    ALL("HYBCOMB, CAS an operation, 36 threads", TILE == 0.1)
    MOST("HYBCOMB, CAS an operation, most", TILE <= 0.7)
    "x":
    FAIRNESS("HYBCOMB, most / least operations", TILE <= 1.2)
    FAIRNESS_OF_SERVER("MP-SERVER, most / least operations", TILE == 1.1)
    "operations":
    HYBCOMB("6.6c HYBCOMB, combined, 36 threads")
    // "reaches the desired combining rate".
    CC_SYNCH("6.6c CC-SYNCH, combined, 36 threads", TILE ~ 200.0)
}

/// T11: compare-exchanges and fairness of HYBCOMB, and combining rates (section 6.2.3 and figure
/// 6.6c).
///
/// # Errors
/// When a simulation fails.
pub fn judge(_: &Experiment<'_>) -> Result<Outcome> {
    let mut report = Report::default();
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
    for (figure, way) in [(&HYBCOMB, Way::HybComb(MAX_OPS)), (&CC_SYNCH, Way::CcSynch(MAX_OPS))] {
        let combined = on_tile(way, TILES, 1)?.combined;
        report.add(figure.on(TILE), combined);
    }
    for (figure, way) in
        [(&HYBCOMB_ALONE, Way::HybComb(MAX_OPS)), (&CC_SYNCH_ALONE, Way::CcSynch(MAX_OPS))]
    {
        let alone = on_tile(way, 1, 1)?.atomics();
        report.add(figure.on(TILE), alone);
    }
    let all = on_tile(Way::HybComb(MAX_OPS), TILES, 1)?.exchanges();
    let all = report.add(ALL.on(TILE), all);
    let most = report.add(MOST.on(TILE), most);
    let unfair = report.add(FAIRNESS.on(TILE), unfair);
    let server = on_tile(Way::Mp, TILES, 1)?.fairness();
    let server = report.add(FAIRNESS_OF_SERVER.on(TILE), server);
    Ok(report.finish(format!(
        "{all:.2} CAS per operation at 36 threads (paper: 0.1), at most {most:.2} from 2 (0.7); \
         fairness {unfair:.2} (1.2), MP-SERVER's {server:.2} (1.1)"
    )))
}
