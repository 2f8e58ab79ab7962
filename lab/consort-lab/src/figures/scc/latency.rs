//! T2: the latency of short messages.

use anyhow::Result;
use consort::tune::Candidate;
use consort_sim::analytic::scc::Scc;

use super::{
    super::{
        experiment::{Experiment, Outcome},
        quantity::Quantity,
    },
    machine::{FITTED, MACHINE, RAW, UNCONTENDED, binomial, latency_us, oc_bcast},
    native::add_native,
    row::{Row, outcome},
};
use consort_bench::page::Curves;

figures! { pub FIGURES of "T2", "section 3.3.3, figure 3.2a": "us":
    LINE_K7("1 line, k=7", MACHINE == 16.6)
    LINE_BINOMIAL("1 line, binomial", MACHINE == 21.6)
    "x":
    K7_OVER_BINOMIAL("1 line, k=7 / binomial", MACHINE == 16.6 / 21.6)
    K7_OVER_K2["", " lines, k=7 / k=2"; 96 | 144 | 192 => (MACHINE == 0.75)]
    // Part of the next figure.
    K47_OVER_K7["", " lines, k=47 / k=7"; 96 | 192 => ()]
    // The curves of these two "almost completely overlap".
    FARTHEST_APART("3.2a k=47 and k=7, farthest apart from 32 lines on", MACHINE == 1.0)
}

/// The lengths of messages in figure 3.2a, of at most two chunks.
const CURVE_LINES: [usize; 7] = [1, 32, 64, 96, 128, 160, 192];

/// T2: the latency of short messages (section 3.3.3, figure 3.2a).
///
/// # Errors
/// When a job or a simulation fails.
pub fn judge(experiment: &Experiment<'_>) -> Result<Outcome> {
    let formulas = Scc::table_4_1();
    let mut rows = Vec::new();
    let lines = |lines: usize| lines as u64;
    let one = |figure: Quantity, candidate: Candidate, model: f64| -> Result<Row> {
        let raw = latency_us(RAW, candidate.clone(), 1)?;
        let fitted = latency_us(FITTED, candidate, 1)?;
        Ok(Row::new(figure, raw).model(model / 1e3).fitted(fitted))
    };
    rows.push(one(LINE_K7.on(MACHINE), oc_bcast(7), formulas.latency_ns(1, 7))?);
    rows.push(one(LINE_BINOMIAL.on(MACHINE), binomial(), formulas.binomial_ns(1))?);
    add_native(experiment, &mut rows, 1, binomial(), |ns| ns / 1e3)?;
    let over = |us: fn(&Row) -> f64| us(&rows[0]) / us(&rows[1]);
    let [raw, fitted] = [over(|row| row.raw), over(|row| row.fitted.unwrap_or(row.raw))];
    let row = Row::of(&K7_OVER_BINOMIAL, raw).fitted(fitted);
    rows.push(row.model(formulas.latency_ns(1, 7) / formulas.binomial_ns(1)));
    let mut ratio = |figure: Quantity, effects, [over, under]: [u32; 2], at: u32| -> Result<f64> {
        let at = at as usize;
        let times = [over, under].map(|k| latency_us(effects, oc_bcast(k.into()), at));
        let [over_us, under_us] = times;
        let raw = over_us? / under_us?;
        let model = |k| formulas.latency_ns(lines(at), k);
        rows.push(Row::new(figure, raw).model(model(over) / model(under)));
        Ok(raw)
    };
    let mut gain = 1.0_f64;
    for figure in &K7_OVER_K2 {
        gain = gain.min(ratio(figure.on(MACHINE), RAW, [7, 2], figure.at)?);
    }
    let mut ratios = Vec::new();
    for figure in &K47_OVER_K7 {
        ratios.push(ratio(figure.on(MACHINE), RAW, [47, 7], figure.at)?);
        let uncontended = figure.on(MACHINE).named(", no contention");
        ratio(uncontended, UNCONTENDED, [47, 7], figure.at)?;
    }
    let curves = curves()?;
    // At one line they do not overlap, according to the thesis' own figures: 16.6 us in this one
    // and 44.1 in table 3.1.
    let apart = |index: usize| curves.ways[2].1[index] / curves.ways[1].1[index];
    let ratio = |index: usize| apart(index).max(1.0 / apart(index));
    let farthest = (1..CURVE_LINES.len()).map(ratio).fold(1.0, f64::max);
    rows.push(Row::of(&FARTHEST_APART, farthest));
    let verdict = format!(
        "k=7 takes {:.1} us against {:.1} of binomial for one line (paper: 16.6 and 21.6; raw \
         {:.1} and {:.1}), {:.0} % less than k=2 at best; contention makes k=47 meet k=7 ({:.2} \
         and {:.2})",
        rows[0].fitted.unwrap_or(rows[0].raw),
        rows[1].fitted.unwrap_or(rows[1].raw),
        rows[0].raw,
        rows[1].raw,
        (1.0 - gain) * 100.0,
        ratios[0],
        ratios[1],
    );
    let mut outcome = outcome(&rows, verdict)?;
    outcome.page.curves(curves);
    Ok(outcome)
}

/// Figure 3.2a, simulated.
fn curves() -> Result<Curves> {
    let mut ways = Vec::new();
    for (name, candidate) in [
        ("k=2", oc_bcast(2)),
        ("k=7", oc_bcast(7)),
        ("k=47", oc_bcast(47)),
        ("binomial", binomial()),
    ] {
        let us = CURVE_LINES.map(|lines| latency_us(RAW, candidate.clone(), lines));
        ways.push((name.to_owned(), us.into_iter().collect::<Result<_>>()?));
    }
    let numbers = CURVE_LINES.map(|lines| lines as f64).to_vec();
    Ok(Curves { values: "us".to_owned(), by: "lines".to_owned(), numbers, ways })
}
