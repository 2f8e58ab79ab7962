//! H3 (section 3, figure 3): Strict against Loose reductions in a row, the best algorithm of each.

use anyhow::Result;
use consort::{Algorithms, SyncModes};
use consort_fabric::statistics::median;
use consort_tuner::Catalog;

use super::{
    bars::bar,
    experiment::{Experiment, Outcome},
    hotpar::{Machine, NIAGARA2},
    measure::{self, Pair},
    quantity::{Quantity, Source},
};
use crate::{
    harness::Work,
    page::Page,
    units::{ratio, size, time},
};

/// Sizes from 8 B to 64 kB.
const SIZES_BYTES: [usize; 7] = [8, 32, 128, 512, 2 << 10, 8 << 10, 64 << 10];
/// The second team size, besides one PE for each core.
const OVERSUBSCRIBED: u32 = 16;

/// The figures of pairs of Strict and Loose: a ratio for each, the median and the largest, each
/// with its value.
fn figures(pairs: &[Pair], source: Source, pes: u32) -> Vec<(Quantity, f64)> {
    let mut ratios: Vec<f64> = pairs.iter().map(Pair::ratio).collect();
    let (middle, most) = (median(&mut ratios), ratios[ratios.len() - 1]);
    let of_size = |pair: &Pair| (format!("{} B", pair.bytes()), pair.ratio());
    let all = [("median", middle), ("most", most)];
    let all = all.map(|(which, value)| (format!("8 B to 64 kB, {which}"), value));
    let quantity = |(of, value)| {
        let what = format!("reduce strict over loose, {of}");
        (source.quantity(NIAGARA2, what, "ratio").with_pes(pes), value)
    };
    pairs.iter().map(of_size).chain(all).map(quantity).collect()
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
        let reductions = |sync, bytes| {
            let query = measure::reduce(sync, pes, bytes);
            let candidates = Algorithms::here().candidates(&query);
            candidates.iter().map(|candidate| Work::of(&query, candidate)).collect()
        };
        let groups = SIZES_BYTES
            .map(|bytes| [SyncModes::STRICT, SyncModes::LOOSE].map(|sync| reductions(sync, bytes)));
        let pairs = experiment.pairs(pes, &groups, budget)?;
        if pairs.is_empty() {
            continue;
        }
        let figures = figures(&pairs, experiment.source, pes);
        let [.., (_, middle), (_, most)] = &figures[..] else { continue };
        let (middle, most) = (ratio(*middle), ratio(*most));
        verdicts.push(format!("{pes} PEs: Loose {middle} as fast (median), at most {most}"));
        quantities.extend(figures.into_iter().map(|(figure, value)| figure.native(value)));
        page.paragraph(experiment.placement(pes));
        page.lines(table(&pairs) + "\n");
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
pub fn simulated(source: Source) -> Result<Vec<Quantity>> {
    let machine = Machine::new(NIAGARA2)?;
    let strict = machine.best_trees(SyncModes::STRICT, &SIZES_BYTES)?;
    let loose = machine.best_trees(SyncModes::LOOSE, &SIZES_BYTES)?;
    let pairs = strict.into_iter().zip(loose).map(|(one, other)| Pair { one, other });
    let figures = figures(&pairs.collect::<Vec<Pair>>(), source, machine.pes);
    Ok(figures.into_iter().map(|(figure, value)| figure.simulated(value)).collect())
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
mod tests {
    use super::*;

    #[test]
    fn loose_calls_are_as_much_faster_as_in_the_paper_or_near() {
        let found = simulated(Source { claim: "H3", bounds: &[] }).unwrap();
        let found: Vec<f64> = found.iter().filter_map(|quantity| quantity.simulated).collect();
        let [.., median, most] = found[..] else { panic!("{found:?}") };
        assert!((2.5..=4.5).contains(&median) && most <= 6.0, "{found:?}");
    }
}
