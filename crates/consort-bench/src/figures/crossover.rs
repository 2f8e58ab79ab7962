//! H4 (section 4, figure 4): the size from which the best tree beats the flat reduction, by mode,
//! and the loss with the other mode's crossover.

use anyhow::Result;
use consort::SyncModes;

use super::{
    bars,
    experiment::{Experiment, Outcome},
    hotpar::{BARCELONA, Machine},
    measure,
    quantity::{Quantity, Source},
};
use crate::{
    page::Page,
    units::{ratio, time},
};

/// Lengths of the vectors in doubles, as in the figure.
const DOUBLES: [usize; 8] = [1, 4, 8, 16, 32, 128, 1024, 8192];
/// The number of PEs on machines with few cores: between those of the paper's machines.
const PES: u32 = 16;

/// The times of flat and of the best tree at one size.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    pub(super) doubles: usize,
    pub(super) flat_ns: f64,
    pub(super) tree: measure::Best,
}

impl Pair {
    /// The time of flat as a multiple of the tree's.
    pub(super) fn ratio(&self) -> f64 {
        self.flat_ns / self.tree.ns
    }
}

/// The crossovers, and the losses with the other mode's crossover: each quantity with its value.
fn figures(
    loose: &[Pair],
    strict: &[Pair],
    source: Source,
    pes: u32,
) -> [(Quantity, Option<f64>); 4] {
    // Without a crossover flat serves all sizes.
    let from = |pairs| crossover(pairs).unwrap_or(usize::MAX);
    let doubles = |pairs| crossover(pairs).map(|doubles| doubles as f64);
    [
        ("crossover loose", "doubles", doubles(loose)),
        ("crossover strict", "doubles", doubles(strict)),
        ("strict with loose's crossover", "ratio", penalty(strict, from(loose), from(strict))),
        ("loose with strict's crossover", "ratio", penalty(loose, from(strict), from(loose))),
    ]
    .map(|(what, unit, value)| {
        (source.quantity(BARCELONA, format!("reduce, {what}"), unit).among(pes), value)
    })
}

/// Runs the experiment on this machine, and judges the claim.
///
/// # Errors
/// When a job fails.
pub fn judge(experiment: &Experiment<'_>) -> Result<Outcome> {
    let pes = experiment.team_sizes(&[PES.max(experiment.cores)])[0];
    let loose = pairs(experiment, pes, SyncModes::LOOSE, experiment.budget / 2)?;
    let strict = pairs(experiment, pes, SyncModes::STRICT, experiment.budget / 2)?;
    let figures = figures(&loose, &strict, experiment.source, pes);
    let mut page = Page::default();
    page.paragraph(experiment.placement(pes));
    page.lines(table("Loose", &loose) + &table("Strict", &strict));
    page.lines("\nBars: flat over best tree; beyond the mark (|, equal) the tree is faster.\n");
    page.lines(
        "The paper, Barcelona, 32 threads: trees from 8 doubles on when Loose, 32 when Strict;\n",
    );
    page.lines("the wrong crossover costs 2x (Strict at 8) and 3x (Loose at 32).\n");
    let from = |pairs| {
        crossover(pairs).map_or("nowhere".to_owned(), |from| format!("from {from} doubles on"))
    };
    let cost = |penalty: Option<f64>| penalty.map_or("-".to_owned(), ratio);
    let verdict = format!(
        "{pes} PEs: trees beat flat {} when Loose, {} when Strict; the other's crossover costs up \
         to {} (Loose) and {} (Strict)",
        from(&loose),
        from(&strict),
        cost(figures[3].1),
        cost(figures[2].1)
    );
    let quantities = figures.map(|(figure, value)| figure.native(value)).into();
    Ok(Outcome { verdict, page, quantities })
}

/// Runs the experiment on the paper's machine, simulated.
///
/// # Errors
/// When the simulation fails.
pub fn simulated(source: Source) -> Result<Vec<Quantity>> {
    let machine = Machine::new(BARCELONA)?;
    let loose = described_pairs(&machine, SyncModes::LOOSE)?;
    let strict = described_pairs(&machine, SyncModes::STRICT)?;
    let figures = figures(&loose, &strict, source, machine.pes);
    let known = |(figure, value): (Quantity, Option<f64>)| Some(figure.simulated(value?));
    Ok(figures.into_iter().filter_map(known).collect())
}

/// Flat and the best tree at each size on a simulated machine.
pub(super) fn described_pairs(machine: &Machine, sync: SyncModes) -> Result<Vec<Pair>> {
    let sizes_bytes = DOUBLES.map(|doubles| doubles * size_of::<f64>());
    let trees = machine.best_trees(sync, &sizes_bytes)?;
    let sizes = DOUBLES.into_iter().zip(sizes_bytes).zip(trees);
    sizes
        .map(|((doubles, bytes), tree)| {
            Ok(Pair { doubles, flat_ns: machine.flat_ns(sync, bytes)?, tree })
        })
        .collect()
}

/// Flat and the best tree at each size that both can serve.
pub(super) fn pairs(
    experiment: &Experiment<'_>,
    pes: u32,
    sync: SyncModes,
    budget: std::time::Duration,
) -> Result<Vec<Pair>> {
    let reduce = |doubles, candidate| measure::reduce(sync, doubles * size_of::<f64>(), candidate);
    let groups: Vec<_> = DOUBLES
        .into_iter()
        .flat_map(|doubles| {
            let trees = measure::trees(pes).into_iter();
            let trees = trees.map(|tree| reduce(doubles, tree)).collect();
            [vec![reduce(doubles, measure::flat())], trees]
        })
        .collect();
    let best = experiment.best(pes, &groups, budget)?;
    let pairs = DOUBLES.into_iter().zip(best.chunks(2));
    Ok(pairs
        .filter_map(|(doubles, pair)| {
            let flat_ns = pair[0].as_ref()?.ns;
            Some(Pair { doubles, flat_ns, tree: pair[1].clone()? })
        })
        .collect())
}

/// The size from which the tree is never slower than flat; `None` if flat wins at the largest.
fn crossover(pairs: &[Pair]) -> Option<usize> {
    let won = pairs.iter().rev().take_while(|pair| pair.ratio() > 1.0);
    won.last().map(|pair| pair.doubles)
}

/// The largest loss at any size when trees serve from `from` doubles on instead of from `own` on.
fn penalty(pairs: &[Pair], from: usize, own: usize) -> Option<f64> {
    let served = |pair: &Pair, from| if pair.doubles >= from { pair.tree.ns } else { pair.flat_ns };
    let losses = pairs.iter().map(|pair| served(pair, from) / served(pair, own));
    losses.max_by(f64::total_cmp)
}

/// Both times at each size, and their ratio as a bar.
pub(super) fn table(name: &str, pairs: &[Pair]) -> String {
    const WIDTH: usize = 40;
    let most = pairs.iter().map(Pair::ratio).fold(2.0, f64::max);
    let mark = bars::bar(1.0, most, WIDTH).len();
    let mut text =
        format!("  {name:<8}  {:>8}  {:>8}  {:<17}  {:>6}\n", "flat", "tree", "which", "");
    for pair in pairs {
        let mut bar = format!("{:<WIDTH$}", bars::bar(pair.ratio(), most, WIDTH));
        bar.insert(mark.min(WIDTH), '|');
        text += &format!(
            "  {:>8}  {:>8}  {:>8}  {:<17}  {:>6}  {}\n",
            pair.doubles,
            time(pair.flat_ns),
            time(pair.tree.ns),
            pair.tree.name(),
            ratio(pair.ratio()),
            bar.trim_end()
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(doubles: usize, flat_ns: f64, tree_ns: f64) -> Pair {
        let work = measure::reduce(SyncModes::LOOSE, doubles * 8, measure::flat());
        Pair { doubles, flat_ns, tree: measure::Best { work, ns: tree_ns } }
    }

    /// Flat wins at 1 and 8, the tree at 32 and 128.
    fn pairs() -> Vec<Pair> {
        vec![pair(1, 1.0, 2.0), pair(8, 2.0, 3.0), pair(32, 9.0, 3.0), pair(128, 20.0, 5.0)]
    }

    #[test]
    fn the_crossover_is_where_the_tree_begins_to_win_for_good() {
        assert_eq!(crossover(&pairs()), Some(32));
        assert_eq!(crossover(&pairs()[..2]), None);
        let mut late = pairs();
        late[0].flat_ns = 5.0;
        assert_eq!(crossover(&late), Some(32), "a single win below does not count");
    }

    #[test]
    fn a_penalty_is_of_the_worst_size() {
        assert_eq!(penalty(&pairs(), 32, 32), Some(1.0));
        assert_eq!(penalty(&pairs(), 1, 32), Some(2.0));
        assert_eq!(penalty(&pairs(), usize::MAX, 32), Some(4.0));
        assert_eq!(penalty(&[], 1, 32), None);
    }

    #[test]
    fn crossovers_and_penalties_are_those_of_the_paper_or_near() {
        let found = simulated(Source { claim: "H4", bounds: &[] }).unwrap();
        let found: Vec<f64> = found.iter().filter_map(|quantity| quantity.simulated).collect();
        let [loose, strict, strict_penalty, loose_penalty] = found[..] else { panic!("{found:?}") };
        assert!((4.0..=16.0).contains(&loose) && (16.0..=64.0).contains(&strict), "{found:?}");
        assert!(loose < strict && strict_penalty >= 1.3 && loose_penalty >= 2.0, "{found:?}");
    }
}
