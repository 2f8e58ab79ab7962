//! H1 (section 2.2, figure 2): the thread library's barrier, a flat one, and the best tree.

use anyhow::Result;
use consort::tune::Candidate;

use super::{
    bars::log_bar,
    experiment::{Experiment, Outcome},
    hotpar::{BARCELONA, CLOVERTOWN, Machine, NIAGARA2},
    measure::{self, Best, Way, radices},
    quantity::Quantity,
};
use consort_bench::{
    harness::Work,
    page::Page,
    peers::threads,
    units::{ratio, time},
};

figures! { pub FIGURES of "H1", "section 2.2": "ratio":
    // "almost two orders of magnitude" from the thread library's barrier to a flat one, and
    // "another order of magnitude" to the best tree on 256 threads.
    PTHREAD_OVER_FLAT("barrier, pthread over flat", NIAGARA2 == 100.0)
    FLAT_OVER_TREE("barrier, flat over best tree", NIAGARA2 == 10.0)
}

/// Team sizes beyond the number of cores.
const OVERSUBSCRIBED: [u32; 3] = [8, 16, 32];

/// The times of one team size, in nanoseconds.
struct Row {
    pes: u32,
    peer_ns: f64,
    flat: f64,
    tree: Best,
}

/// Runs the experiment on this machine, and judges the claim.
///
/// # Errors
/// When a job fails.
pub fn judge(experiment: &Experiment<'_>) -> Result<Outcome> {
    let sizes = experiment.team_sizes(&OVERSUBSCRIBED);
    let budget = experiment.budget / u32::try_from(sizes.len()).unwrap_or(1);
    let library = threads::names()[0];
    let mut rows = Vec::new();
    for pes in sizes {
        let barrier = measure::barrier(pes);
        let trees = Way::Sent.trees(pes).iter().map(|tree| Work::of(&barrier, tree)).collect();
        let flat = Work::of(&barrier, &measure::flat());
        let groups = [vec![Work::of_peer(&barrier, 0)], vec![flat], trees];
        let best = experiment.best(pes, &groups, budget)?;
        if let [Some(library), Some(flat), Some(tree)] = &best[..] {
            rows.push(Row { pes, peer_ns: library.ns, flat: flat.ns, tree: tree.clone() });
        }
    }
    let mut quantities = Vec::new();
    for Row { pes, peer_ns, flat, tree } in &rows {
        let time = |what: &str| Quantity::new(NIAGARA2, format!("barrier, {what}"), "us");
        let over_flat = if cfg!(target_os = "linux") {
            PTHREAD_OVER_FLAT.on(NIAGARA2)
        } else {
            Quantity::new(NIAGARA2, format!("barrier, {library} over flat"), "ratio")
        };
        let figures = [
            (time(library), peer_ns / 1e3),
            (time("flat"), flat / 1e3),
            (time("best tree"), tree.ns / 1e3),
            (over_flat, peer_ns / flat),
            (FLAT_OVER_TREE.on(NIAGARA2), flat / tree.ns),
        ];
        quantities.extend(figures.map(|(figure, value)| figure.with_pes(*pes).native(value)));
    }
    Ok(Outcome {
        verdict: verdict(&rows, library),
        page: page(experiment, &rows, library),
        quantities,
    })
}

/// Runs the experiment on the paper's machines, simulated: a flat barrier and trees. The cost of
/// the thread library's barrier there depends on the kernel, which no description contains.
///
/// # Errors
/// When the simulation fails.
pub fn simulated() -> Result<Vec<Quantity>> {
    let mut all = Vec::new();
    for name in [NIAGARA2, BARCELONA, CLOVERTOWN] {
        let machine = Machine::new(name)?;
        let barrier = measure::barrier(machine.pes);
        let flat_ns = machine.timed(barrier, &measure::flat())?.ns;
        let mut trees = Vec::new();
        for radix in radices(machine.pes) {
            trees.push((radix, machine.timed(barrier, &Way::Sent.tree(radix))?.ns));
        }
        let best_ns = trees.iter().map(|&(_, ns)| ns).fold(f64::INFINITY, f64::min);
        let mut add = |figure: Quantity, value| {
            all.push(figure.with_pes(machine.pes).simulated(value));
        };
        let time = |what: &str| Quantity::new(name, format!("barrier, {what}"), "us");
        add(time("flat"), flat_ns / 1e3);
        // The paper's barriers use "flags" and "atomic counters", and it does not say where.
        let counted_ns = machine.timed(barrier, &Candidate::new("central"))?.ns;
        add(time("flat, with a counter"), counted_ns / 1e3);
        for (radix, ns) in trees {
            add(time(&format!("tree of radix {radix}")), ns / 1e3);
        }
        add(time("best tree"), best_ns / 1e3);
        add(FLAT_OVER_TREE.on(name), flat_ns / best_ns);
    }
    Ok(all)
}

fn verdict(rows: &[Row], library: &str) -> String {
    let parts: Vec<String> = rows
        .iter()
        .map(|Row { pes, peer_ns: ns, flat, tree }| {
            let (gain, tree) = (ratio(ns / flat), ratio(flat / tree.ns));
            format!("{pes} PEs: flat {gain} as fast as {library}, the best tree {tree} as flat")
        })
        .collect();
    if parts.is_empty() { "nothing could be measured".to_owned() } else { parts.join("; ") }
}

fn page(experiment: &Experiment<'_>, rows: &[Row], library: &str) -> Page {
    let times = || rows.iter().flat_map(|row| [row.peer_ns, row.flat, row.tree.ns]);
    let most = times().fold(0.0, f64::max);
    let least = times().fold(f64::INFINITY, f64::min) / 2.0;
    let mut page = Page::default();
    for row in rows {
        page.paragraph(experiment.placement(row.pes));
        let tree = row.tree.name();
        for (name, ns) in [(library, row.peer_ns), ("flat", row.flat), (&*tree, row.tree.ns)] {
            let bar = log_bar(ns, least, most, 50);
            page.lines(format!("  {name:<18} {:>9}  {bar}\n", time(ns)));
        }
    }
    page.lines("\nBars are logarithmic. ");
    page.lines("The paper's 100x and 10x are of 256 threads with a context each.\n");
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figure 2: the more threads, the larger the lead of a tree.
    #[test]
    fn a_tree_is_far_ahead_on_niagara2() {
        let barriers = simulated().unwrap();
        let gains = barriers.iter().filter(|one| one.unit == FLAT_OVER_TREE.unit);
        let gains: Vec<f64> = gains.filter_map(|one| one.simulated).collect();
        assert!(gains[0] >= 8.0 && gains.is_sorted_by(|a, b| a > b), "{barriers:?}");
    }
}
