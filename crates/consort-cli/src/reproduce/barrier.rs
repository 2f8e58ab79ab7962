//! H1 (section 2.2, figure 2): the thread library's barrier, a flat one, and the best tree.

use anyhow::Result;
use consort::Collective;

use super::{Experiment, Outcome, Quantity, chart, measure, paper};
use crate::{bench::work::Work, output, peers};

/// Team sizes beyond the cores.
const OVERSUBSCRIBED: [u32; 3] = [8, 16, 32];

/// What one team size came to, in nanoseconds.
struct Row {
    pes: u32,
    library: f64,
    flat: f64,
    tree: measure::Best,
}

pub(super) fn run(experiment: &Experiment<'_>) -> Result<Outcome> {
    let here = experiment.cores.max(2);
    let mut of_claim = vec![here];
    of_claim.extend(OVERSUBSCRIBED.into_iter().filter(|&pes| pes > here));
    let sizes = experiment.team_sizes(&of_claim);
    let budget = experiment.budget / u32::try_from(sizes.len()).unwrap_or(1);
    let library = peers::names()[0];
    let mut rows = Vec::new();
    for pes in sizes {
        let library = Work::Peer { index: 0, collective: Collective::Barrier, bytes: 0 };
        let trees = measure::trees(pes).into_iter().map(measure::barrier).collect();
        let groups = [vec![library], vec![measure::barrier(measure::flat())], trees];
        let best = experiment.best(pes, &groups, budget)?;
        if let [Some(library), Some(flat), Some(tree)] = &best[..] {
            rows.push(Row { pes, library: library.ns, flat: flat.ns, tree: tree.clone() });
        }
    }
    let mut quantities = Vec::new();
    for Row { pes, library: library_ns, flat, tree } in &rows {
        let mut push = |what: &str, unit, paper, value| {
            let quantity = format!("barrier, {what}, {pes} PEs");
            let (claim, machine) = ("H1", paper::NIAGARA2);
            quantities.push(Quantity::native(claim, machine, quantity, unit, paper, Some(value)));
        };
        push(library, "us", None, library_ns / 1e3);
        push("flat", "us", None, flat / 1e3);
        push("best tree", "us", None, tree.ns / 1e3);
        let gain = library_ns / flat;
        push(&format!("{library} over flat"), "ratio", Some(paper::FLAT_BARRIER_GAIN), gain);
        push("flat over best tree", "ratio", Some(paper::TREE_BARRIER_GAIN), flat / tree.ns);
    }
    Ok(Outcome {
        verdict: verdict(&rows, library),
        text: text(experiment, &rows, library),
        quantities,
    })
}

fn verdict(rows: &[Row], library: &str) -> String {
    let parts: Vec<String> = rows
        .iter()
        .map(|Row { pes, library: ns, flat, tree }| {
            let (gain, tree) = (output::ratio(ns / flat), output::ratio(flat / tree.ns));
            format!("{pes} PEs: flat {gain} as fast as {library}, the best tree {tree} as flat")
        })
        .collect();
    if parts.is_empty() { "nothing could be measured".to_owned() } else { parts.join("; ") }
}

fn text(experiment: &Experiment<'_>, rows: &[Row], library: &str) -> String {
    let times = || rows.iter().flat_map(|row| [row.library, row.flat, row.tree.ns]);
    let most = times().fold(0.0, f64::max);
    let least = times().fold(f64::INFINITY, f64::min) / 2.0;
    let mut text = String::new();
    for row in rows {
        text += &output::wrapped(&experiment.placement(row.pes));
        let tree = row.tree.name();
        for (name, ns) in [(library, row.library), ("flat", row.flat), (&*tree, row.tree.ns)] {
            let bar = chart::log_bar(ns, least, most, 50);
            text += &format!("  {name:<18} {:>9}  {bar}\n", output::time(ns));
        }
    }
    text += "\nBars are logarithmic. ";
    text + "The paper's 100x and 10x are of 256 threads with a context each.\n"
}
