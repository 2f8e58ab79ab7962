//! T3: the throughput of long messages.

use anyhow::Result;
use consort_sim::analytic::scc::Scc;

use super::{
    super::experiment::{Experiment, Outcome},
    machine::{MACHINE, MEGABYTE_LINES, RAW, oc_bcast, scatter_allgather, throughput_mbps},
    native::add_native_mbps,
    row::{Row, outcome},
};

figures! { pub FIGURES of "T3", "section 3.3.3, figure 3.2b": "MB/s":
    // The measurements are within 10 % of the formulas. The one for k = 47 is 16 % below.
    MEGABYTE["1 MB, k=", "";
        2 => (MACHINE ~ 35.22), 7 => (MACHINE ~ 34.30), 47 => (MACHINE ~ 35.88 * 0.84)]
    SCATTER_ALLGATHER("1 MB, scatter-allgather", MACHINE ~ 13.38)
    "x":
    GAIN("1 MB, k=2 and 7 / scatter-allgather", MACHINE == 2.6)
}

/// T3: the throughput of long messages (section 3.3.3, figure 3.2b).
///
/// # Errors
/// When a job or a simulation fails.
pub fn judge(experiment: &Experiment<'_>) -> Result<Outcome> {
    let formulas = Scc::table_4_1();
    let mut rows = Vec::new();
    let two_sided = throughput_mbps(RAW, scatter_allgather(), MEGABYTE_LINES)?;
    let mut gains = Vec::new();
    for figure in &MEGABYTE {
        let k = figure.at;
        let raw = throughput_mbps(RAW, oc_bcast(k.into()), MEGABYTE_LINES)?;
        rows.push(Row::of(figure, raw).model(formulas.throughput_mbps(k)));
        gains.push(raw / two_sided);
    }
    let model = formulas.scatter_allgather_mbps();
    rows.push(Row::of(&SCATTER_ALLGATHER, two_sided).model(model));
    add_native_mbps(experiment, &mut rows[2..])?;
    let gain = gains[..2].iter().sum::<f64>() / 2.0;
    rows.push(Row::of(&GAIN, gain));
    let mut dips = Vec::new();
    for k in [2, 7, 47] {
        let at = |lines| throughput_mbps(RAW, oc_bcast(k), lines);
        let (whole, over, two) = (at(96)?, at(97)?, at(192)?);
        dips.push((1.0 - over / whole) * 100.0);
        rows.push(Row::other(format!("97 / 96 lines, k={k}"), "x", over / whole));
        rows.push(Row::other(format!("192 / 96 lines, k={k}"), "x", two / whole));
    }
    let verdict = format!(
        "{gain:.1} times scatter-allgather (paper: almost 3); at 97 lines {:.0}, {:.0} and {:.0} % \
         less than at 96 for k = 2, 7, 47, gone at 192. The paper's values here are those of the \
         formulas of table 4.2, with 16 % less for k = 47: the thesis draws its measurements \
         (figure 3.2b), and says that they agree with the formulas in this way",
        dips[0], dips[1], dips[2],
    );
    outcome(&rows, verdict)
}
