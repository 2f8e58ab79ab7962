//! H5 (section 4, figure 6): with the 8 threads of Clovertown the flat reduction is best at every
//! size, in both modes.

use anyhow::Result;
use consort::Sync;

use super::{Experiment, Outcome, Quantity, crossover, measure::AS_GOOD, paper};
use crate::output;

/// Clovertown's threads.
const PES: u32 = 8;

pub(super) fn run(experiment: &Experiment<'_>) -> Result<Outcome> {
    let pes = experiment.team_sizes(&[PES])[0];
    let mut quantities = Vec::new();
    let mut text = output::wrapped(&experiment.placement(pes));
    let mut verdicts = Vec::new();
    for (name, sync) in [("Loose", Sync::LOOSE), ("Strict", Sync::STRICT)] {
        let pairs = crossover::pairs(experiment, pes, sync, experiment.budget / 2)?;
        text += &crossover::table(name, &pairs);
        let flat_wins = pairs.iter().filter(|pair| pair.ratio() <= AS_GOOD).count();
        let mut push = |quantity, paper, value| {
            let (claim, machine) = ("H5", paper::CLOVERTOWN);
            let figure = Quantity::native(claim, machine, quantity, "ratio", paper, Some(value));
            quantities.push(figure);
        };
        for pair in &pairs {
            let doubles = pair.doubles;
            let quantity =
                format!("reduce {sync}, {doubles} doubles, flat over best tree, {pes} PEs");
            push(quantity, None, pair.ratio());
        }
        if !pairs.is_empty() {
            let quantity =
                format!("reduce {sync}, share of sizes at which flat is best, {pes} PEs");
            push(quantity, Some(1.0), flat_wins as f64 / pairs.len() as f64);
        }
        verdicts.push(format!("{flat_wins} of {} sizes when {name}", pairs.len()));
    }
    text += "\nBars: flat over best tree; beyond the mark (|, equal) the tree is faster.\n";
    text += "The paper: flat is best throughout.\n";
    let verdict = format!("{pes} PEs: flat is best, or within 2 %, at {}", verdicts.join(", "));
    Ok(Outcome { verdict, text, quantities })
}
