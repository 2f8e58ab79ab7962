//! T5: the thesis' formulas, and simulations under their assumptions.

use anyhow::Result;
use consort_sim::analytic::scc::Scc;

use super::{
    super::experiment::{Experiment, Outcome},
    machine::{
        AS_FORMULAS, MEGABYTE_LINES, SLICES_LINES, oc_bcast, scatter_allgather, throughput_mbps,
    },
    native::add_native_mbps,
    primitives,
    row::{Row, outcome},
};

/// T5: the formulas, and simulations under their assumptions (sections 4.1.2 and 4.3.2, figure 4.2,
/// table 4.2).
///
/// # Errors
/// When a job or a simulation fails.
pub fn judge(experiment: &Experiment<'_>) -> Result<Outcome> {
    let formulas = Scc::table_4_1();
    let (source, mut rows) = (experiment.source, Vec::new());
    for k in [2, 7, 47] {
        let raw = throughput_mbps(AS_FORMULAS, oc_bcast(k.into()), MEGABYTE_LINES)?;
        let row = Row::new(source, format!("throughput, k={k}"), "MB/s", raw);
        rows.push(row.model(formulas.throughput_mbps(k)));
    }
    let raw = throughput_mbps(AS_FORMULAS, scatter_allgather(), SLICES_LINES)?;
    let row = Row::new(source, "throughput, scatter-allgather", "MB/s", raw);
    rows.push(row.model(formulas.scatter_allgather_mbps()));
    add_native_mbps(experiment, &mut rows[2..])?;
    let worst = |of: fn((f64, f64)) -> f64, rows: &[Row]| {
        let errors = rows.iter().filter_map(|row| Some((of(row.of_paper()?) - 1.0).abs()));
        errors.fold(0.0, f64::max) * 100.0
    };
    let verdict = format!(
        "formulas within {:.2} % (scatter-allgather {:.1} %), simulated algorithms within {:.1} % \
         ({:.1} %)",
        worst(|(model, _)| model, &rows[..3]),
        worst(|(model, _)| model, &rows[3..]),
        worst(|(_, raw)| raw, &rows[..3]),
        worst(|(_, raw)| raw, &rows[3..]),
    );
    let (of_primitives, curves) = primitives::rows(source)?;
    rows.extend(of_primitives);
    let mut outcome = outcome(&rows, verdict)?;
    outcome.page.paragraph(
        "The thesis took the parameters of table 4.1 from figure 4.2, so its puts and gets, \
         simulated with these, are fitted too.",
    );
    for one in curves {
        outcome.page.curves(one);
    }
    Ok(outcome)
}
