//! H6 (section 4.1, table 2): an 8 kB reduction over the radix of its tree, Loose and Strict. Also
//! what a tree of radix 2 and the worst tree cost (sections 4.1, 6). Parents read, as in the paper.
//! Trees in which children send are additional figures.

use anyhow::Result;
use consort::sync_modes::SyncModes;

use super::{
    experiment::{Experiment, Outcome},
    figure::{Figure, Paper},
    hotpar::{BARCELONA, FlowControl, Machine, NIAGARA2},
    measure::{self, ONE_BARRIER, RADICES, Way, mode_name},
    quantity::Quantity,
};
use consort_bench::{harness::Work, page::Page};

figures! { pub FIGURES of "H6", "section 4.1, table 2": "us":
    LOOSE["reduce 8 kB loose radix ", "";
        1 => (BARCELONA == 46.4, NIAGARA2 == 576.0),
        2 => (BARCELONA == 52.9, NIAGARA2 == 621.0),
        4 => (BARCELONA == 60.1, NIAGARA2 == 710.0),
        8 => (BARCELONA == 73.8, NIAGARA2 == 1316.0),
        16 => (BARCELONA == 110.0, NIAGARA2 == 2240.0),
    ]
    STRICT["reduce 8 kB strict radix ", "";
        1 => (BARCELONA == 306.0, NIAGARA2 == 3103.0),
        2 => (BARCELONA == 110.0, NIAGARA2 == 2115.0),
        4 => (BARCELONA == 119.0, NIAGARA2 == 1774.0),
        8 => (BARCELONA == 130.0, NIAGARA2 == 2471.0),
        16 => (BARCELONA == 213.0, NIAGARA2 == 3998.0),
    ]
    "ratio":
    // The highlighted winners of the columns.
    LOOSE_WINNER("reduce 8 kB loose, chain / best other", BARCELONA <= 1.0, NIAGARA2 <= 1.0)
    STRICT_WINNER("reduce 8 kB strict, radix 2 / best other", BARCELONA <= 1.0)
    STRICT_WINNER_OF_MANY("reduce 8 kB strict, radix 4 / best other", NIAGARA2 <= 1.0)
    // "a penalty of 7% in the loosely synchronized case and 16% in the strictly synchronized case".
    // By table 2, these are parts of the time with radix 2.
    LOOSE_BINOMIAL("reduce 8 kB loose, radix 2 / best", NIAGARA2 == 1.08)
    STRICT_BINOMIAL("reduce 8 kB strict, radix 2 / best", NIAGARA2 == 1.19)
    // Section 6: "differences as high as 4x between the best and worst topology for a given
    // synchronization mode".
    WORST("reduce 8 kB, worst tree / best, at most", NIAGARA2 == 4.0)
}

/// 1024 doubles.
const BYTES: usize = 8 << 10;
/// The number of Barcelona's threads. Radix 16 needs more than 16.
const PES: u32 = 32;

/// The figures of table 2 by radix.
type Table = [Figure; RADICES.len()];

/// A column of table 2: the machine, its name in the table, the mode, the figures, and that of the
/// winner.
type Column = (&'static str, &'static str, SyncModes, &'static Table, &'static Figure);

const COLUMNS: [Column; 4] = [
    (BARCELONA, "Barcelona", SyncModes::LOOSE, &LOOSE, &LOOSE_WINNER),
    (BARCELONA, "Barcelona", ONE_BARRIER, &STRICT, &STRICT_WINNER),
    (NIAGARA2, "Niagara2", SyncModes::LOOSE, &LOOSE, &LOOSE_WINNER),
    (NIAGARA2, "Niagara2", ONE_BARRIER, &STRICT, &STRICT_WINNER_OF_MANY),
];

/// Times in microseconds by radix, if known.
type Times = Vec<Option<f64>>;

/// Runs the experiment on this machine, and judges the claim.
///
/// # Errors
/// When a job fails.
pub fn judge(experiment: &Experiment<'_>) -> Result<Outcome> {
    let pes = experiment.pes.unwrap_or(PES);
    let kinds = Way::EVERY.map(|way| [SyncModes::LOOSE, ONE_BARRIER].map(|sync| (way, sync)));
    let kinds = kinds.as_flattened();
    let trees = kinds.iter().flat_map(|&(way, sync)| {
        let query = measure::reduce(sync, pes, BYTES);
        RADICES.map(|radix| Work::of(&query, &way.tree(radix)))
    });
    let ns = experiment.medians(pes, &trees.collect::<Vec<_>>(), experiment.budget)?;
    let us: Times = ns.into_iter().map(|ns| ns.map(|ns| ns / 1e3)).collect();
    let mut rows: Vec<(String, Times)> = Vec::new();
    let (mut quantities, mut winners) = (Vec::new(), Vec::new());
    for (&(way, sync), native) in kinds.iter().zip(us.chunks(RADICES.len())) {
        rows.push((format!("here, {}, {}", mode_name(sync), way.tree_name()), native.to_vec()));
        winners.push(winner(native));
        for (machine, _, _, figures, _) in COLUMNS.iter().filter(|(_, _, of, ..)| *of == sync) {
            quantities.extend(figures.iter().zip(native).map(|(figure, &us)| {
                figure.on(machine).by(way.tree_name(), way == Way::Read).native(us)
            }));
        }
    }
    rows.extend(COLUMNS.map(|(machine, name, sync, figures, _)| {
        let times = figures.iter().map(|one| one.paper(machine).map(Paper::number));
        (format!("{name}, {}", mode_name(sync)), times.collect())
    }));
    let mut page = Page::default();
    page.paragraph(experiment.placement(pes));
    table(&mut page, &rows);
    page.lines("\nEach time in us, and as a multiple of its row's best (*); by radix.\n");
    if u64::from(pes) <= RADICES[RADICES.len() - 1] {
        page.lines(format!("With {pes} PEs, trees of radix {pes} and above are the flat one.\n"));
    }
    let verdict = format!(
        "{pes} PEs: where parents read, {} wins when Loose, {} when Strict; where children send, \
         {} and {} (the paper: the chain; radix 2 and 4)",
        winners[0], winners[1], winners[2], winners[3]
    );
    Ok(Outcome { verdict, page, quantities })
}

/// Runs the experiment on the paper's machines, simulated.
///
/// # Errors
/// When a simulation fails.
pub fn simulated() -> Result<Vec<Quantity>> {
    let (mut all, mut worst) = (Vec::new(), 0.0_f64);
    for (name, _, sync, figures, lead) in COLUMNS {
        let credits = Way::EVERY.map(|way| (way, FlowControl::Credits));
        let none = (sync == SyncModes::LOOSE).then_some((Way::Read, FlowControl::None));
        for (way, flow) in credits.into_iter().chain(none) {
            let machine = Machine::new(name)?.with(flow);
            let by = way.tree_name().to_owned() + flow.suffix();
            let is_published = (way, flow) == (Way::Read, FlowControl::Credits);
            let mut times = Times::new();
            for figure in figures {
                let us = machine.reduce(sync, BYTES, &way.tree(figure.at.into()))?.ns / 1e3;
                all.push(figure.on(name).by(&by, is_published).simulated(us));
                times.push(Some(us));
            }
            if is_published {
                all.extend(
                    lead_of(figures, name, &times).map(|ratio| lead.on(name).simulated(ratio)),
                );
            }
            if is_published && name == NIAGARA2 {
                let binomial =
                    if sync == SyncModes::LOOSE { &LOOSE_BINOMIAL } else { &STRICT_BINOMIAL };
                let over_best = over_best(&times);
                all.push(binomial.on(name).simulated(over_best[1]));
                worst = over_best.into_iter().fold(worst, f64::max);
            }
        }
    }
    all.push(WORST.on(NIAGARA2).simulated(worst));
    Ok(all)
}

/// Returns each time over the shortest one.
fn over_best(times: &[Option<f64>]) -> Vec<f64> {
    let known = times.iter().copied().flatten();
    best(times).map_or_else(Vec::new, |(_, best)| known.map(|us| us / best).collect())
}

/// Returns the time of the paper's winner of a column, over the shortest other one.
fn lead_of(table: &Table, machine: &str, times: &[Option<f64>]) -> Option<f64> {
    let paper: Times =
        table.iter().map(|figure| figure.paper(machine).map(Paper::number)).collect();
    let (winner, _) = best(&paper)?;
    let mut others = times.to_vec();
    let own = others[winner].take()?;
    best(&others).map(|(_, other)| own / other)
}

/// Returns the fastest tree.
fn winner(times: &[Option<f64>]) -> String {
    best(times).map_or("nothing".to_owned(), |(index, _)| match RADICES[index] {
        1 => "the chain".to_owned(),
        radix => format!("radix {radix}"),
    })
}

/// Returns the index and the value of the smallest time.
fn best(times: &[Option<f64>]) -> Option<(usize, f64)> {
    let known = times.iter().enumerate().filter_map(|(index, us)| Some((index, (*us)?)));
    known.min_by(|(_, one), (_, other)| one.total_cmp(other))
}

/// Adds a table with a row for each kind of tree and a column for each radix.
fn table(page: &mut Page, rows: &[(String, Times)]) {
    let header = ["tree".to_owned()].into_iter().chain(RADICES.map(|radix| radix.to_string()));
    let row = |(name, times): &(String, Times)| {
        let cells = (0..RADICES.len()).map(|index| cell(times, index));
        std::iter::once(name.clone()).chain(cells).collect()
    };
    page.table(header, rows.iter().map(row).collect(), 1..=RADICES.len());
}

/// Returns a time, and its ratio to the best of its row.
fn cell(times: &[Option<f64>], index: usize) -> String {
    let (Some(us), Some((best_index, best_us))) = (times[index], best(times)) else {
        return "-".to_owned();
    };
    let digits = if us < 99.95 { 1 } else { 0 };
    let star = if index == best_index { "*" } else { " " };
    format!("{us:.digits$} {:.2}{star}", us / best_us)
}

#[cfg(test)]
mod tests {
    use consort_sim::machines::Machine as Changed;

    use super::*;

    /// Returns a column of the paper's table.
    fn column(table: &Table, machine: &str) -> [f64; 5] {
        table.each_ref().map(|figure| figure.paper(machine).unwrap().number())
    }

    fn us(machine: &Machine, sync: SyncModes) -> [f64; 5] {
        RADICES.map(|radix| machine.reduce(sync, BYTES, &Way::Read.tree(radix)).unwrap().ns / 1e3)
    }

    fn fastest(us: &[f64; 5]) -> u64 {
        best(&us.map(Some)).map(|(index, _)| RADICES[index]).unwrap()
    }

    /// Returns the largest error of the ratios of times to the column's best.
    fn relative_error(found: &[f64; 5], paper: &[f64; 5], best: usize) -> f64 {
        let relative = |us: &[f64; 5], at: usize| us[at] / us[best];
        let error = |at| (relative(found, at) / relative(paper, at) - 1.0).abs();
        (0..5).map(error).fold(0.0, f64::max)
    }

    /// The chain wins when Loose. When Strict, radix 2 wins on Barcelona and radix 4 on Niagara 2.
    #[test]
    fn winners_match_the_paper() {
        let winners = COLUMNS.map(|(machine, _, _, table, _)| fastest(&column(table, machine)));
        assert_eq!(winners, [1, 2, 1, 4]);
        for table in [&LOOSE, &STRICT] {
            assert_eq!(table.each_ref().map(|figure| u64::from(figure.at)), RADICES);
        }
    }

    #[test]
    fn barcelona_matches_table_2() {
        let machine = Machine::new(BARCELONA).unwrap();
        let [loose, strict] = [SyncModes::LOOSE, ONE_BARRIER].map(|sync| us(&machine, sync));
        assert_eq!([&loose, &strict].map(fastest), [1, 2], "{loose:?} {strict:?}");
        let [of_loose, of_strict] = [&LOOSE, &STRICT].map(|table| column(table, BARCELONA));
        assert!(relative_error(&strict, &of_strict, 1) < 0.25, "{strict:?}");
        for (found, paper) in [(loose, of_loose), (strict, of_strict)] {
            for (found, paper) in found.into_iter().zip(paper) {
                assert!((paper / 1.5..paper * 1.5).contains(&found), "{found} for {paper}");
            }
        }
    }

    /// The chain's deviation is known, and a Strict tree of radix 16 is too fast.
    #[test]
    fn niagara2_trees_match_the_paper() {
        let machine = Machine::new(NIAGARA2).unwrap();
        let [loose, strict] = [SyncModes::LOOSE, ONE_BARRIER].map(|sync| us(&machine, sync));
        assert_eq!(fastest(&strict), 4, "{strict:?}");
        let papers = [&LOOSE, &STRICT].map(|table| column(table, NIAGARA2));
        for (found, paper, trees) in [(loose, papers[0], 1..5), (strict, papers[1], 1..4)] {
            for (found, paper) in found[trees.clone()].iter().zip(&paper[trees]) {
                assert!((paper / 1.5..paper * 1.5).contains(found), "{found} for {paper}");
            }
        }
    }

    /// If waiting threads do not poll, trees are too fast.
    #[test]
    fn polling_threads_slow_down_trees() {
        let strict_ns = |polls: &str| {
            let changed = Changed::changed(NIAGARA2, &[("core.polls", polls)]).unwrap();
            let tree = Way::Read.tree(4);
            Machine::of(changed).reduce(ONE_BARRIER, BYTES, &tree).unwrap().ns
        };
        let [polls, sleeps] = ["true", "false"].map(strict_ns);
        assert!((1.5..2.0).contains(&(polls / sleeps)), "{polls} {sleeps}");
    }

    #[test]
    fn the_smallest_subtree_first_halves_the_critical_path() {
        // Radix 2 of 32 PEs: with the smallest subtree first, the root has waited for all after 5
        // passes; with the largest first, after 15.
        let machine = Machine::new(BARCELONA).unwrap();
        let tree = Way::Read.tree(2);
        let smallest = tree.clone().with("largest_first", 0);
        let [largest, smallest] =
            [tree, smallest].map(|tree| machine.reduce(ONE_BARRIER, BYTES, &tree).unwrap().ns);
        assert!(largest > 1.7 * smallest, "{largest} {smallest}");
    }

    #[test]
    fn lead_is_that_of_the_papers_winner() {
        let times = [20.0, 10.0, 40.0, 40.0, 40.0].map(Some);
        assert_eq!(lead_of(&LOOSE, BARCELONA, &times), Some(2.0));
        assert_eq!(lead_of(&STRICT, BARCELONA, &times), Some(0.5));
        assert_eq!(lead_of(&STRICT, NIAGARA2, &times), Some(4.0));
    }

    /// The text of the paper follows from its table.
    #[test]
    fn costs_of_trees_are_those_of_the_papers_table() {
        let [loose, strict] =
            [&LOOSE, &STRICT].map(|table| over_best(&column(table, NIAGARA2).map(Some)));
        assert!((1.0 - 1.0 / loose[1] - 0.07).abs() < 0.005, "{loose:?}");
        assert!((1.0 - 1.0 / strict[1] - 0.16).abs() < 0.005, "{strict:?}");
        let worst = loose.into_iter().chain(strict).fold(0.0, f64::max);
        assert!((3.8..4.0).contains(&worst), "{worst}");
    }

    #[test]
    fn a_row_is_relative_to_its_best() {
        let times = vec![Some(306.0), Some(110.0), None];
        assert_eq!(best(&times), Some((1, 110.0)));
        assert_eq!(cell(&times, 0), "306 2.78 ");
        assert_eq!(cell(&times, 1), "110 1.00*");
        assert_eq!(cell(&times, 2), "-");
        assert_eq!(cell(&[None], 0), "-");
    }
}
