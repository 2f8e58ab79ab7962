//! H5 (section 4, figure 6): with Clovertown's 8 threads the flat reduction is best at every size,
//! in both modes. PEs read data in place, as in the paper. The same calls with sent data are
//! additional figures.

use anyhow::Result;
use consort::sync_modes::SyncModes;

use super::{
    crossover::{SIZES_BYTES, TABLE_NOTE, described_pairs, flat_over_tree, pairs, table},
    experiment::{Experiment, Outcome},
    figure::Figure,
    hotpar::{CLOVERTOWN, Machine},
    measure::{EQUAL_WITHIN, ONE_BARRIER, Pair, Way},
    quantity::Quantity,
};
use consort_bench::page::Page;

figures! { pub FIGURES of "H5", "section 4, figure 6": "share":
    LOOSE("reduce loose, share where flat is best", CLOVERTOWN >= 1.0)
    STRICT("reduce strict, share where flat is best", CLOVERTOWN >= 1.0)
}

/// The modes, with their names and figures.
const MODES: [(&str, SyncModes, &Figure); 2] =
    [("Loose", SyncModes::LOOSE, &LOOSE), ("Strict", ONE_BARRIER, &STRICT)];

/// The number of Clovertown's threads.
const PES: u32 = 8;

/// Returns the number of sizes at which flat is the best, or equally good.
fn flat_wins(pairs: &[Pair]) -> usize {
    pairs.iter().filter(|pair| pair.ratio() <= EQUAL_WITHIN).count()
}

/// Returns the share of these sizes, as a quantity and its value.
fn share(figure: &'static Figure, way: Way, pairs: &[Pair], pes: u32) -> (Quantity, f64) {
    let share = flat_wins(pairs) as f64 / pairs.len() as f64;
    (figure.on(CLOVERTOWN).by(way.names(), way == Way::Read).with_pes(pes), share)
}

/// Runs the experiment on this machine, and judges the claim.
///
/// # Errors
/// When a job fails.
pub fn judge(experiment: &Experiment<'_>) -> Result<Outcome> {
    let pes = experiment.pes.unwrap_or(PES);
    let (mut page, mut quantities, mut verdicts) = (Page::default(), Vec::new(), Vec::new());
    page.paragraph(experiment.placement(pes));
    for way in Way::EVERY {
        page.lines(format!("\n  {}:\n", way.names()));
        let mut wins = Vec::new();
        for (name, sync, figure) in MODES {
            let pairs = pairs(experiment, way, pes, sync, experiment.budget / 4)?;
            page.lines(table(name, &pairs));
            quantities.extend(pairs.iter().map(|pair| {
                let figure = flat_over_tree(CLOVERTOWN, sync, pair).by(way.names(), true);
                figure.with_pes(pes).native(pair.ratio())
            }));
            if !pairs.is_empty() {
                let (figure, share) = share(figure, way, &pairs, pes);
                quantities.push(figure.native(share));
            }
            wins.push(format!("{} of {} sizes when {name}", flat_wins(&pairs), pairs.len()));
        }
        verdicts.push(format!("{} with {}", wins.join(" and "), way.names()));
    }
    page.lines("\n");
    page.paragraph(TABLE_NOTE);
    page.lines("The paper: flat is best throughout.\n");
    let verdict = format!("{pes} PEs: flat is best, or within 2 %, at {}", verdicts.join(", "));
    Ok(Outcome { verdict, page, quantities })
}

/// Runs the experiment on the paper's machine, simulated.
///
/// # Errors
/// When the simulation fails.
pub fn simulated() -> Result<Vec<Quantity>> {
    let machine = Machine::new(CLOVERTOWN)?;
    let mut all = Vec::new();
    for way in Way::EVERY {
        for (_, sync, figure) in MODES {
            let pairs = described_pairs(&machine, way, sync, &SIZES_BYTES)?;
            let (figure, share) = share(figure, way, &pairs, machine.pes);
            all.push(figure.simulated(share));
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flat_is_best_on_clovertown() {
        let shares = simulated().unwrap();
        assert!(shares[..2].iter().all(|share| share.simulated == Some(1.0)), "{shares:?}");
    }
}
