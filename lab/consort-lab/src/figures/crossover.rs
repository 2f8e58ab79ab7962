//! H4 (section 4, figures 4 and 5): for each mode, the crossover, which is the size from which the
//! best tree beats the flat reduction; and the loss if a mode uses the crossover of the other mode.
//! PEs read data in place, as in the paper. The same calls with sent data are additional figures.
//! With Niagara2's 256 threads, trees should win at every size.

use anyhow::Result;
use consort::sync_modes::SyncModes;

use super::{
    bars,
    experiment::{Experiment, Outcome},
    hotpar::{BARCELONA, FlowControl, Machine, NIAGARA2},
    measure::{self, Best, Pair, Way},
    quantity::Quantity,
};
use consort_bench::{
    harness::Work,
    page::Page,
    units::{counted, ratio, time},
};

figures! { pub FIGURES of "H4", "section 4, figures 4 and 5": "doubles":
    CROSSOVER_LOOSE("reduce, crossover loose", BARCELONA == 8.0)
    CROSSOVER_STRICT("reduce, crossover strict", BARCELONA == 32.0)
    "ratio":
    STRICT_LOSS("reduce, strict with loose's crossover", BARCELONA == 2.0)
    LOOSE_LOSS("reduce, loose with strict's crossover", BARCELONA == 3.0)
    "share":
    // Trees are best "at all vector sizes".
    LOOSE_TREES("reduce loose, share where a tree is best", NIAGARA2 >= 1.0)
    STRICT_TREES("reduce strict, share where a tree is best", NIAGARA2 >= 1.0)
}

/// Lengths of the vectors of doubles, as in the figure.
pub(super) const SIZES_BYTES: [usize; 8] = [8, 32, 64, 128, 256, 1 << 10, 8 << 10, 64 << 10];
/// The lengths with 256 threads. Longer vectors take minutes to simulate.
const SIZES_OF_MANY_BYTES: [usize; 5] = [8, 64, 256, 1 << 10, 8 << 10];
/// The number of PEs on machines with few cores: between those of the paper's machines.
const PES: u32 = 16;

/// Returns the length of the vectors of flat and of the best tree.
fn doubles(pair: &Pair) -> u64 {
    pair.bytes() / size_of::<f64>() as u64
}

/// Returns the crossovers and the losses with the other mode's crossover, as quantities with their
/// values.
fn figures([loose, strict]: [&[Pair]; 2]) -> [(Quantity, Option<f64>); 4] {
    // Without a crossover, flat serves all sizes.
    let from = |pairs| crossover(pairs).unwrap_or(u64::MAX);
    let length = |pairs| crossover(pairs).map(|doubles| doubles as f64);
    [
        (CROSSOVER_LOOSE.on(BARCELONA), length(loose)),
        (CROSSOVER_STRICT.on(BARCELONA), length(strict)),
        (STRICT_LOSS.on(BARCELONA), penalty(strict, from(loose), from(strict))),
        (LOOSE_LOSS.on(BARCELONA), penalty(loose, from(strict), from(loose))),
    ]
}

/// Runs the experiment on this machine, and judges the claim.
///
/// # Errors
/// When a job fails.
pub fn judge(experiment: &Experiment<'_>) -> Result<Outcome> {
    let pes = experiment.pes.unwrap_or(PES.max(experiment.cores));
    let (mut page, mut quantities, mut verdicts) = (Page::default(), Vec::new(), Vec::new());
    page.paragraph(experiment.placement(pes));
    for way in Way::EVERY {
        let loose = pairs(experiment, way, pes, SyncModes::LOOSE, experiment.budget / 4)?;
        let strict = pairs(experiment, way, pes, measure::ONE_BARRIER, experiment.budget / 4)?;
        let figures = figures([&loose, &strict]);
        page.lines(format!("\n  {}:\n", way.names()));
        page.lines(table("Loose", &loose) + &table("Strict", &strict));
        let from = |pairs| {
            crossover(pairs).map_or("nowhere".to_owned(), |from| format!("from {from} doubles"))
        };
        let cost = |penalty: Option<f64>| penalty.map_or("-".to_owned(), ratio);
        verdicts.push(format!(
            "{}: trees beat flat {} when Loose, {} when Strict; the wrong crossover costs up \
             to {} (Loose) and {} (Strict)",
            way.names(),
            from(&loose),
            from(&strict),
            cost(figures[3].1),
            cost(figures[2].1)
        ));
        quantities.extend(figures.map(|(figure, value)| {
            figure.by(way.names(), way == Way::Read).with_pes(pes).native(value)
        }));
    }
    page.lines("\n");
    page.paragraph(TABLE_NOTE);
    page.lines(
        "The paper, Barcelona, 32 threads: trees from 8 doubles when Loose, 32 when Strict;\n",
    );
    page.lines("the wrong crossover costs 2x (Strict at 8) and 3x (Loose at 32).\n");
    let verdict = format!("{pes} PEs, {}", verdicts.join(". "));
    Ok(Outcome { verdict, page, quantities })
}

/// Runs the experiment on the paper's machine, simulated.
///
/// # Errors
/// When the simulation fails.
pub fn simulated() -> Result<Vec<Quantity>> {
    let mut all = Vec::new();
    let credits = Way::EVERY.map(|way| (way, FlowControl::Credits));
    for (way, flow) in credits.into_iter().chain([(Way::Read, FlowControl::None)]) {
        let machine = Machine::new(BARCELONA)?.with(flow);
        let loose = described_pairs(&machine, way, SyncModes::LOOSE, &SIZES_BYTES)?;
        let strict = described_pairs(&machine, way, measure::ONE_BARRIER, &SIZES_BYTES)?;
        let by = way.names().to_owned() + flow.suffix();
        let is_published = (way, flow) == (Way::Read, FlowControl::Credits);
        all.extend(figures([&loose, &strict]).into_iter().filter_map(|(figure, value)| {
            Some(figure.by(&by, is_published).with_pes(machine.pes).simulated(value?))
        }));
    }
    all.extend(many_threads()?);
    Ok(all)
}

/// Simulates figure 5: Niagara2, whose many threads "mandate trees for both synchronization modes".
fn many_threads() -> Result<Vec<Quantity>> {
    let (machine, way) = (Machine::new(NIAGARA2)?, Way::Read);
    let mut all = Vec::new();
    for (sync, share) in [(SyncModes::LOOSE, &LOOSE_TREES), (measure::ONE_BARRIER, &STRICT_TREES)] {
        let pairs = described_pairs(&machine, way, sync, &SIZES_OF_MANY_BYTES)?;
        let mut add = |figure: Quantity, value| {
            all.push(figure.by(way.names(), true).with_pes(machine.pes).simulated(value));
        };
        let won = pairs.iter().filter(|pair| pair.ratio() > 1.0).count();
        add(share.on(NIAGARA2), won as f64 / pairs.len() as f64);
        for pair in &pairs {
            add(flat_over_tree(NIAGARA2, sync, pair), pair.ratio());
        }
    }
    Ok(all)
}

/// Returns the quantity that compares flat and the best tree at a size.
pub(super) fn flat_over_tree(machine: &'static str, sync: SyncModes, pair: &Pair) -> Quantity {
    let (mode, doubles) = (measure::mode_name(sync), counted(doubles(pair), "double"));
    Quantity::new(machine, format!("reduce {mode}, {doubles}, flat over best tree"), "ratio")
}

/// Returns flat and the best tree at each size on a simulated machine.
pub(super) fn described_pairs(
    machine: &Machine,
    way: Way,
    sync: SyncModes,
    sizes_bytes: &[usize],
) -> Result<Vec<Pair>> {
    let flat = way.flat();
    let pair = |(bytes, other)| Ok(Pair { one: machine.reduce(sync, bytes, &flat)?, other });
    let trees = machine.best_trees(way, sync, sizes_bytes)?;
    sizes_bytes.iter().copied().zip(trees).map(pair).collect()
}

/// Returns flat and the best tree at each size that both can serve.
pub(super) fn pairs(
    experiment: &Experiment<'_>,
    way: Way,
    pes: u32,
    sync: SyncModes,
    budget: std::time::Duration,
) -> Result<Vec<Pair>> {
    let groups = SIZES_BYTES.map(|bytes| {
        let reduce = measure::reduce(sync, pes, bytes);
        let trees = way.trees(pes).iter().map(|tree| Work::of(&reduce, tree)).collect();
        [vec![Work::of(&reduce, &way.flat())], trees]
    });
    experiment.pairs(pes, &groups, budget)
}

/// Returns the length from which the tree is never slower than flat, or `None` if flat wins at the
/// largest.
fn crossover(pairs: &[Pair]) -> Option<u64> {
    measure::crossover(pairs, |ratio| ratio > 1.0).map(|bytes| bytes / size_of::<f64>() as u64)
}

/// Returns the largest loss at any size when trees serve from `from` doubles instead of from `own`.
fn penalty(pairs: &[Pair], from: u64, own: u64) -> Option<f64> {
    let served =
        |pair: &Pair, from| if doubles(pair) >= from { pair.other.ns } else { pair.one.ns };
    let losses = pairs.iter().map(|pair| served(pair, from) / served(pair, own));
    losses.max_by(f64::total_cmp)
}

/// Returns the radix of a tree.
fn radix(tree: &Best) -> String {
    let radix = tree.work.candidate().and_then(|(_, by)| by.parameter("radix"));
    radix.map_or("-".to_owned(), |radix| radix.to_string())
}

/// The note below tables.
pub(super) const TABLE_NOTE: &str = "\
Rows: by the number of doubles. Bars: flat over best tree; beyond the mark (|, equal) the tree is \
faster.";

/// Returns a table with both times at each size, and their ratio as a bar.
pub(super) fn table(name: &str, pairs: &[Pair]) -> String {
    const WIDTH: usize = 28;
    let most = pairs.iter().map(Pair::ratio).fold(2.0, f64::max);
    let mark = bars::bar(1.0, most, WIDTH).len();
    let mut text = format!("  {name:<8}  {:>8}  {:>8}  radix\n", "flat", "tree");
    for pair in pairs {
        let mut bar = format!("{:<WIDTH$}", bars::bar(pair.ratio(), most, WIDTH));
        bar.insert(mark.min(WIDTH), '|');
        text += &format!(
            "  {:>8}  {:>8}  {:>8}  {:<8}  {:>6}  {}\n",
            doubles(pair),
            time(pair.one.ns),
            time(pair.other.ns),
            radix(&pair.other),
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
        let query = measure::reduce(SyncModes::LOOSE, PES, doubles * 8);
        let best = |ns| Best { work: Work::of(&query, &measure::flat()), ns };
        Pair { one: best(flat_ns), other: best(tree_ns) }
    }

    /// Returns pairs where flat wins at 1 and 8, and the tree at 32 and 128.
    fn pairs() -> Vec<Pair> {
        vec![pair(1, 1.0, 2.0), pair(8, 2.0, 3.0), pair(32, 9.0, 3.0), pair(128, 20.0, 5.0)]
    }

    #[test]
    fn crossover_is_where_the_tree_starts_to_win() {
        assert_eq!(crossover(&pairs()), Some(32));
    }

    #[test]
    fn penalty_is_that_of_the_worst_size() {
        assert_eq!(penalty(&pairs(), 32, 32), Some(1.0));
        assert_eq!(penalty(&pairs(), 1, 32), Some(2.0));
        assert_eq!(penalty(&pairs(), u64::MAX, 32), Some(4.0));
        assert_eq!(penalty(&[], 1, 32), None);
    }

    /// Simulates every algorithm and size of the claim.
    mod night {
        use super::*;

        #[test]
        fn crossovers_and_penalties_are_near_the_paper() {
            let found = simulated().unwrap();
            let found: Vec<f64> =
                found.iter().filter_map(|one| one.simulated.or(one.fitted)).collect();
            let [loose, strict, strict_penalty, loose_penalty, ..] = found[..] else {
                panic!("{found:?}")
            };
            // With the tuned barrier, the Strict crossover is missed: the paper has 32.
            assert!((4.0..=16.0).contains(&loose) && (64.0..=256.0).contains(&strict), "{found:?}");
            assert!(loose < strict && strict_penalty >= 1.3 && loose_penalty >= 2.0, "{found:?}");
        }
    }
}
