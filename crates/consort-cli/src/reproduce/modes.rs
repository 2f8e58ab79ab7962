//! H3 (section 3, figure 3): Strict against Loose reductions in a row, the best algorithm of each.

use anyhow::Result;
use consort::Sync;
use consort_fabric::statistics::median;

use super::{Experiment, Outcome, Quantity, chart, measure, paper};
use crate::{bytes, output};

/// 8 B to 64 kB.
pub(super) const SIZES_BYTES: [usize; 7] = [8, 32, 128, 512, 2 << 10, 8 << 10, 64 << 10];
/// Beside one PE a core.
const OVERSUBSCRIBED: u32 = 16;

pub(super) fn run(experiment: &Experiment<'_>) -> Result<Outcome> {
    let here = experiment.cores.max(2);
    let mut of_claim = vec![here];
    of_claim.extend(Some(OVERSUBSCRIBED).filter(|&pes| pes > here));
    let team_sizes = experiment.team_sizes(&of_claim);
    let budget = experiment.budget / u32::try_from(team_sizes.len()).unwrap_or(1);
    let mut outcome =
        Outcome { verdict: String::new(), text: String::new(), quantities: Vec::new() };
    let mut verdicts = Vec::new();
    for pes in team_sizes {
        let groups: Vec<_> = SIZES_BYTES
            .into_iter()
            .flat_map(|bytes| {
                [Sync::STRICT, Sync::LOOSE].map(|sync| measure::all_reductions(sync, pes, bytes))
            })
            .collect();
        let best = experiment.best(pes, &groups, budget)?;
        let pairs = SIZES_BYTES.into_iter().zip(best.chunks(2));
        let rows: Vec<(usize, &measure::Best, &measure::Best)> = pairs
            .filter_map(|(bytes, pair)| Some((bytes, pair[0].as_ref()?, pair[1].as_ref()?)))
            .collect();
        if rows.is_empty() {
            continue;
        }
        let mut ratios: Vec<f64> =
            rows.iter().map(|(_, strict, loose)| strict.ns / loose.ns).collect();
        let (middle, most) = (median(&mut ratios), ratios[ratios.len() - 1]);
        let mut push = |quantity: String, paper, value| {
            let (claim, machine) = ("H3", paper::NIAGARA2);
            let figure = Quantity::native(claim, machine, quantity, "ratio", paper, Some(value));
            outcome.quantities.push(figure);
        };
        for (bytes, strict, loose) in &rows {
            let quantity = format!("reduce strict over loose, {bytes} B, {pes} PEs");
            push(quantity, None, strict.ns / loose.ns);
        }
        let what = "reduce strict over loose, 8 B to 64 kB";
        push(format!("{what}, median, {pes} PEs"), Some(paper::STRICT_OVER_LOOSE_MEDIAN), middle);
        push(format!("{what}, most, {pes} PEs"), Some(paper::STRICT_OVER_LOOSE_MOST), most);
        let (middle, most) = (output::ratio(middle), output::ratio(most));
        verdicts.push(format!("{pes} PEs: Loose {middle} as fast (median), at most {most}"));
        outcome.text += &output::wrapped(&experiment.placement(pes));
        outcome.text += &table(&rows);
        outcome.text += "\n";
    }
    outcome.text += &format!(
        "Bars: Strict over Loose. The paper: {} in the median, {} at most, on 256 threads.\n",
        output::ratio(paper::STRICT_OVER_LOOSE_MEDIAN),
        output::ratio(paper::STRICT_OVER_LOOSE_MOST)
    );
    outcome.verdict = verdicts.join("; ");
    Ok(outcome)
}

fn table(rows: &[(usize, &measure::Best, &measure::Best)]) -> String {
    let ratio = |strict: &measure::Best, loose: &measure::Best| strict.ns / loose.ns;
    let most = rows.iter().map(|(_, strict, loose)| ratio(strict, loose)).fold(4.0, f64::max);
    let mut text = format!("  {:>8}  {:>8}  {:>8}  {:>6}\n", "size", "Strict", "Loose", "");
    for (bytes, strict, loose) in rows {
        let ratio = ratio(strict, loose);
        text += &format!(
            "  {:>8}  {:>8}  {:>8}  {:>6}  {}\n",
            bytes::shown(*bytes as u64),
            output::time(strict.ns),
            output::time(loose.ns),
            output::ratio(ratio),
            chart::bar(ratio, most, 40)
        );
    }
    text
}
