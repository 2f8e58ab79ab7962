//! T7: many cores access one message buffer.

use anyhow::Result;

use super::{
    super::experiment::{Experiment, Outcome},
    machine::{CORES, LINE_BYTES, RAW, UNCONTENDED, simulation},
    row::{Row, outcome},
};
use crate::simulation::{Access, contention};

/// How long the cores access the buffer, in nanoseconds.
const PRESSURE_NS: f64 = 1e6;

/// T7: many cores access one message buffer (section 4.1.3, figure 4.3).
///
/// # Errors
/// When a simulation fails.
pub fn judge(experiment: &Experiment<'_>) -> Result<Outcome> {
    let (source, mut rows) = (experiment.source, Vec::new());
    let mut verdict = Vec::new();
    for (access, name, lines) in
        [(Access::Get, "gets of 128 lines", 128), (Access::Put, "puts of 1 line", 1)]
    {
        let press = |effects, cores| {
            contention(&simulation(effects)?, access, cores, lines * LINE_BYTES, PRESSURE_NS)
        };
        let slowdown = press(RAW, 24)?.mean_ns / press(UNCONTENDED, 24)?.mean_ns;
        let what = format!("{name}, 24 cores, mean / one's");
        rows.push(Row::new(source, what, "x", slowdown));
        let all = press(RAW, CORES)?;
        let spread = all.slowest_ns / all.fastest_ns;
        rows.push(Row::new(source, format!("{name}, 48 cores, slowest / least"), "x", spread));
        verdict.push(format!("{name}: {slowdown:.2} times at 24 cores, slowest {spread:.1} at 48"));
    }
    outcome(&rows, verdict.join("; "))
}
