//! H5 (section 4, figure 6): with Clovertown's 8 threads the flat reduction is best at every size,
//! in both modes.

use anyhow::Result;
use consort::SyncModes;

use super::{
    crossover::{described_pairs, doubles, pairs, table},
    experiment::{Experiment, Outcome},
    hotpar::{CLOVERTOWN, Machine},
    measure::{AS_GOOD, Pair},
    quantity::{Quantity, Source},
};
use crate::page::Page;

/// The number of Clovertown's threads.
const PES: u32 = 8;

/// The number of sizes at which flat is the best, or as good.
fn flat_wins(pairs: &[Pair]) -> usize {
    pairs.iter().filter(|pair| pair.ratio() <= AS_GOOD).count()
}

/// The share of such sizes, as a quantity and its value.
fn share(pairs: &[Pair], source: Source, sync: SyncModes, pes: u32) -> (Quantity, f64) {
    let what = format!("reduce {sync}, share of sizes at which flat is best");
    let share = flat_wins(pairs) as f64 / pairs.len() as f64;
    (source.quantity(CLOVERTOWN, what, "ratio").with_pes(pes), share)
}

/// Runs the experiment on this machine, and judges the claim.
///
/// # Errors
/// When a job fails.
pub fn judge(experiment: &Experiment<'_>) -> Result<Outcome> {
    let pes = experiment.pes.unwrap_or(PES);
    let source = experiment.source;
    let (mut page, mut quantities, mut verdicts) = (Page::default(), Vec::new(), Vec::new());
    page.paragraph(experiment.placement(pes));
    for (name, sync) in [("Loose", SyncModes::LOOSE), ("Strict", SyncModes::STRICT)] {
        let pairs = pairs(experiment, pes, sync, experiment.budget / 2)?;
        page.lines(table(name, &pairs));
        quantities.extend(pairs.iter().map(|pair| {
            let what = format!("reduce {sync}, {} doubles, flat over best tree", doubles(pair));
            source.quantity(CLOVERTOWN, what, "ratio").with_pes(pes).native(pair.ratio())
        }));
        if !pairs.is_empty() {
            let (figure, share) = share(&pairs, source, sync, pes);
            quantities.push(figure.native(share));
        }
        verdicts.push(format!("{} of {} sizes when {name}", flat_wins(&pairs), pairs.len()));
    }
    page.lines("\nBars: flat over best tree; beyond the mark (|, equal) the tree is faster.\n");
    page.lines("The paper: flat is best throughout.\n");
    let verdict = format!("{pes} PEs: flat is best, or within 2 %, at {}", verdicts.join(", "));
    Ok(Outcome { verdict, page, quantities })
}

/// Runs the experiment on the paper's machine, simulated.
///
/// # Errors
/// When the simulation fails.
pub fn simulated(source: Source) -> Result<Vec<Quantity>> {
    let machine = Machine::new(CLOVERTOWN)?;
    let of_mode = |sync| {
        let (figure, share) = share(&described_pairs(&machine, sync)?, source, sync, machine.pes);
        Ok(figure.simulated(share))
    };
    [SyncModes::LOOSE, SyncModes::STRICT].into_iter().map(of_mode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flat_is_best_on_clovertown() {
        let shares = simulated(Source { claim: "H5", bounds: &[] }).unwrap();
        assert!(shares.iter().all(|share| share.simulated == Some(1.0)), "{shares:?}");
    }
}
