//! H3 (section 3, figure 3): Strict and Loose reductions in a row. They are compared twice: both by
//! the best trees whose parents read, as in the paper; and both by the best of all algorithms.

use anyhow::Result;
use consort::{sync_modes::SyncModes, tune::Algorithms};
use consort_fabric::statistics::median;
use consort_tuner::Catalog;

use super::{
    bars::bar,
    experiment::{Experiment, Outcome},
    hotpar::{FlowControl, Machine, NIAGARA2},
    measure::{self, Pair, Way},
    quantity::Quantity,
};
use consort_bench::{
    harness::Work,
    page::Page,
    units::{ratio, size, time},
};

figures! { pub FIGURES of "H3", "section 3, figure 3": "ratio":
    MEDIAN("reduce strict over loose, 8 B to 64 kB, median", NIAGARA2 == 3.1)
    MOST("reduce strict over loose, 8 B to 64 kB, most", NIAGARA2 == 4.0)
}

/// Sizes from 8 B to 64 kB.
const SIZES_BYTES: [usize; 7] = [8, 32, 128, 512, 2 << 10, 8 << 10, 64 << 10];
/// The second team size, in addition to one PE for each core.
const OVERSUBSCRIBED: u32 = 16;
/// The algorithms of the additional figures.
const ANY: &str = "any algorithm";

/// Returns the figures of pairs of Strict and Loose, with their values: a ratio for each pair, the
/// median and the largest.
fn figures(by: &str, is_published: bool, pairs: &[Pair], pes: u32) -> Vec<(Quantity, f64)> {
    let mut ratios: Vec<f64> = pairs.iter().map(Pair::ratio).collect();
    let (middle, most) = (median(&mut ratios), ratios[ratios.len() - 1]);
    let of_size = |pair: &Pair| {
        let what = format!("reduce strict over loose, {} B", pair.bytes());
        (Quantity::new(NIAGARA2, what, "ratio"), pair.ratio())
    };
    let all = [(MEDIAN.on(NIAGARA2), middle), (MOST.on(NIAGARA2), most)];
    let all = pairs.iter().map(of_size).chain(all);
    all.map(|(figure, value)| (figure.by(by, is_published).with_pes(pes), value)).collect()
}

/// Runs the experiment on this machine, and judges the claim.
///
/// # Errors
/// When a job fails.
pub fn judge(experiment: &Experiment<'_>) -> Result<Outcome> {
    let team_sizes = experiment.team_sizes(&[OVERSUBSCRIBED]);
    let budget = experiment.budget / u32::try_from(team_sizes.len()).unwrap_or(1);
    let (mut page, mut quantities, mut verdicts) = (Page::default(), Vec::new(), Vec::new());
    for pes in team_sizes {
        page.paragraph(experiment.placement(pes));
        let trees = Way::Read.trees(pes);
        for by in [Way::Read.tree_name(), ANY] {
            let reductions = |sync, bytes| -> Vec<Work> {
                let query = measure::reduce(sync, pes, bytes);
                let all = if by == ANY { &Algorithms::here().candidates(&query) } else { &trees };
                all.iter().map(|candidate| Work::of(&query, candidate)).collect()
            };
            let groups = SIZES_BYTES.map(|bytes| {
                [measure::ONE_BARRIER, SyncModes::LOOSE].map(|sync| reductions(sync, bytes))
            });
            let pairs = experiment.pairs(pes, &groups, budget / 2)?;
            if pairs.is_empty() {
                continue;
            }
            let figures = figures(by, by != ANY, &pairs, pes);
            let [.., (_, middle), (_, most)] = &figures[..] else { continue };
            let (middle, most) = (ratio(*middle), ratio(*most));
            verdicts
                .push(format!("{pes} PEs, {by}: Loose {middle} as fast (median), at most {most}"));
            quantities.extend(figures.into_iter().map(|(figure, value)| figure.native(value)));
            page.lines(format!("  {by}:\n{}\n", table(&pairs)));
        }
    }
    page.lines(
        "Bars: Strict over Loose. The paper: 3.10x in the median, 4.00x at most, on 256 threads.\n",
    );
    Ok(Outcome { verdict: verdicts.join("; "), page, quantities })
}

/// Runs the experiment on the paper's machine, simulated.
///
/// # Errors
/// When the simulation fails.
pub fn simulated() -> Result<Vec<Quantity>> {
    let machine = Machine::new(NIAGARA2)?;
    let strict = machine.best_trees(Way::Read, measure::ONE_BARRIER, &SIZES_BYTES)?;
    let of = |flow: FlowControl| {
        let machine = Machine::new(NIAGARA2)?.with(flow);
        let loose = machine.best_trees(Way::Read, SyncModes::LOOSE, &SIZES_BYTES)?;
        let pairs = strict.clone().into_iter().zip(loose);
        let pairs: Vec<Pair> = pairs.map(|(one, other)| Pair { one, other }).collect();
        let by = Way::Read.tree_name().to_owned() + flow.suffix();
        let figures = figures(&by, flow == FlowControl::Credits, &pairs, machine.pes).into_iter();
        Ok(figures.map(|(figure, value)| figure.simulated(value)).collect())
    };
    let all: Result<Vec<Vec<Quantity>>> =
        [FlowControl::Credits, FlowControl::None].into_iter().map(of).collect();
    Ok(all?.concat())
}

fn table(pairs: &[Pair]) -> String {
    let most = pairs.iter().map(Pair::ratio).fold(4.0, f64::max);
    let mut text = format!("  {:>8}  {:>8}  {:>8}  {:>6}\n", "size", "Strict", "Loose", "");
    for pair in pairs {
        text += &format!(
            "  {:>8}  {:>8}  {:>8}  {:>6}  {}\n",
            size(pair.bytes()),
            time(pair.one.ns),
            time(pair.other.ns),
            ratio(pair.ratio()),
            bar(pair.ratio(), most, 40)
        );
    }
    text
}

#[cfg(test)]
mod night {
    use super::*;

    #[test]
    fn loose_calls_gain_about_as_in_the_paper() {
        let found = simulated().unwrap();
        let found: Vec<f64> = found.iter().filter_map(|quantity| quantity.simulated).collect();
        let flows: Vec<&[f64]> = found.chunks(SIZES_BYTES.len() + 2).collect();
        let [[.., median, most], [.., endless, _]] = flows[..] else { panic!("{found:?}") };
        // With 256 PEs, 16 calls may be pending, and a quarter of them costs 30 credits.
        assert!((2.5..=3.7).contains(median) && (3.0..=4.5).contains(most), "{found:?}");
        assert!((6.5..=11.0).contains(endless), "{found:?}");
    }
}
