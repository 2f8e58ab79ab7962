//! H4 (section 4, figure 4): from which size on the best tree beats the flat reduction, by mode,
//! and what the other mode's crossover costs.

use anyhow::Result;
use consort::Sync;

use super::{Experiment, Outcome, Quantity, chart, measure, paper};
use crate::output;

/// Vectors of doubles, as in the figure.
pub(super) const DOUBLES: [usize; 8] = [1, 4, 8, 16, 32, 128, 1024, 8192];
/// Between those of the paper's machines where cores are few.
const PES: u32 = 16;

/// Flat and the best tree at one size.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    pub(super) doubles: usize,
    pub(super) flat_ns: f64,
    pub(super) tree: measure::Best,
}

impl Pair {
    /// What flat takes as a multiple of the tree.
    pub(super) fn ratio(&self) -> f64 {
        self.flat_ns / self.tree.ns
    }
}

pub(super) fn run(experiment: &Experiment<'_>) -> Result<Outcome> {
    let sizes = experiment.team_sizes(&[PES.max(experiment.cores)]);
    let pes = sizes[0];
    let loose = pairs(experiment, pes, Sync::LOOSE, experiment.budget / 2)?;
    let strict = pairs(experiment, pes, Sync::STRICT, experiment.budget / 2)?;
    let crossovers = (crossover(&loose), crossover(&strict));
    // Without a crossover flat serves every size.
    let never = usize::MAX;
    let (loose_from, strict_from) = (crossovers.0.unwrap_or(never), crossovers.1.unwrap_or(never));
    let strict_penalty = penalty(&strict, loose_from, strict_from);
    let loose_penalty = penalty(&loose, strict_from, loose_from);
    let mut quantities = Vec::new();
    let mut push = |what: &str, unit, paper, value| {
        let quantity = format!("reduce, {what}, {pes} PEs");
        let (claim, machine) = ("H4", paper::BARCELONA);
        quantities.push(Quantity::native(claim, machine, quantity, unit, Some(paper), value));
    };
    let doubles = |crossover: Option<usize>| crossover.map(|doubles| doubles as f64);
    push("crossover loose", "doubles", paper::CROSSOVER_LOOSE, doubles(crossovers.0));
    push("crossover strict", "doubles", paper::CROSSOVER_STRICT, doubles(crossovers.1));
    push("strict with loose's crossover", "ratio", paper::STRICT_PENALTY, strict_penalty);
    push("loose with strict's crossover", "ratio", paper::LOOSE_PENALTY, loose_penalty);
    let mut text = output::wrapped(&experiment.placement(pes));
    text += &table("Loose", &loose);
    text += &table("Strict", &strict);
    text += "\nBars: flat over best tree; beyond the mark (|, equal) the tree is faster.\n";
    text +=
        "The paper, Barcelona, 32 threads: trees from 8 doubles on when Loose, 32 when Strict;\n";
    text += "the wrong crossover costs 2x (Strict at 8) and 3x (Loose at 32).\n";
    let from = |crossover: Option<usize>| {
        crossover.map_or("nowhere".to_owned(), |doubles| format!("from {doubles} doubles on"))
    };
    let cost = |penalty: Option<f64>| penalty.map_or("-".to_owned(), output::ratio);
    let verdict = format!(
        "{pes} PEs: trees beat flat {} when Loose, {} when Strict; the other's crossover costs up \
         to {} (Loose) and {} (Strict)",
        from(crossovers.0),
        from(crossovers.1),
        cost(loose_penalty),
        cost(strict_penalty)
    );
    Ok(Outcome { verdict, text, quantities })
}

/// Flat and the best tree at each size that both can do.
pub(super) fn pairs(
    experiment: &Experiment<'_>,
    pes: u32,
    sync: Sync,
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

/// The first size from which on the tree is never slower than flat; `None` if flat wins last.
pub(super) fn crossover(pairs: &[Pair]) -> Option<usize> {
    let won = pairs.iter().rev().take_while(|pair| pair.ratio() > 1.0);
    won.last().map(|pair| pair.doubles)
}

/// What the worst size loses when trees serve from `from` doubles on instead of from `own` on.
pub(super) fn penalty(pairs: &[Pair], from: usize, own: usize) -> Option<f64> {
    let served = |pair: &Pair, from| if pair.doubles >= from { pair.tree.ns } else { pair.flat_ns };
    let losses = pairs.iter().map(|pair| served(pair, from) / served(pair, own));
    losses.max_by(f64::total_cmp)
}

/// Both times at each size, and their ratio as a bar.
pub(super) fn table(name: &str, pairs: &[Pair]) -> String {
    const WIDTH: usize = 40;
    let most = pairs.iter().map(Pair::ratio).fold(2.0, f64::max);
    let mark = chart::bar(1.0, most, WIDTH).len();
    let mut text =
        format!("  {name:<8}  {:>8}  {:>8}  {:<17}  {:>6}\n", "flat", "tree", "which", "");
    for pair in pairs {
        let mut bar = format!("{:<WIDTH$}", chart::bar(pair.ratio(), most, WIDTH));
        bar.insert(mark.min(WIDTH), '|');
        text += &format!(
            "  {:>8}  {:>8}  {:>8}  {:<17}  {:>6}  {}\n",
            pair.doubles,
            output::time(pair.flat_ns),
            output::time(pair.tree.ns),
            pair.tree.name(),
            output::ratio(pair.ratio()),
            bar.trim_end()
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(doubles: usize, flat_ns: f64, tree_ns: f64) -> Pair {
        let work = measure::reduce(Sync::LOOSE, doubles * 8, measure::flat());
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
}
