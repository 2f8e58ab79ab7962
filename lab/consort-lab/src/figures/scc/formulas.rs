//! T5: the thesis' formulas, and simulations under their assumptions.

use anyhow::Result;
use consort_sim::analytic::scc::Scc;

use super::{
    super::experiment::{Experiment, Outcome},
    machine::{
        AS_FORMULAS, MACHINE, MEGABYTE_LINES, SLICES_LINES, oc_bcast, scatter_allgather,
        throughput_mbps,
    },
    native::add_native_mbps,
    primitives,
    row::{Row, outcome},
};

figures! { pub FIGURES of "T5", "section 4.3.2, table 4.2": "MB/s":
    // The thesis' own measurements are within 10 %.
    THROUGHPUT["throughput, k=", "";
        2 => (MACHINE ~ 35.22), 7 => (MACHINE ~ 34.30), 47 => (MACHINE ~ 35.88)]
    SCATTER_ALLGATHER("throughput, scatter-allgather", MACHINE ~ 13.38)
}

/// T5: the formulas, and simulations under their assumptions (sections 4.1.2 and 4.3.2, figure 4.2,
/// table 4.2).
///
/// # Errors
/// When a job or a simulation fails.
pub fn judge(experiment: &Experiment<'_>) -> Result<Outcome> {
    let formulas = Scc::table_4_1();
    let mut rows = Vec::new();
    for figure in &THROUGHPUT {
        let raw = throughput_mbps(AS_FORMULAS, oc_bcast(figure.at.into()), MEGABYTE_LINES)?;
        rows.push(Row::of(figure, raw).model(formulas.throughput_mbps(figure.at)));
    }
    let raw = throughput_mbps(AS_FORMULAS, scatter_allgather(), SLICES_LINES)?;
    let row = Row::of(&SCATTER_ALLGATHER, raw);
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
    let (of_primitives, curves) = primitives::rows()?;
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
