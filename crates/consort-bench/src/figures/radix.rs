//! H6 (section 4.1, table 2): an 8 kB reduction by the radix of its tree, Loose and Strict.

use anyhow::Result;
use consort::{Candidate, SyncModes};

use super::{
    experiment::{Experiment, Outcome},
    hotpar::{BARCELONA, Machine, NIAGARA2, tree},
    measure::{self, RADICES},
    quantity::{Quantity, Source},
};
use crate::{harness::Work, page::Page};

/// 1024 doubles.
const BYTES: usize = 8 << 10;
/// The number of Barcelona's threads; radix 16 needs more than 16.
const PES: u32 = 32;

/// The columns of table 2: the machine, whether it is Strict, and a short name.
const COLUMNS: [(&str, bool, &str); 4] = [
    (BARCELONA, false, "Barc. Loose"),
    (BARCELONA, true, "Barc. Strict"),
    (NIAGARA2, false, "Niag. Loose"),
    (NIAGARA2, true, "Niag. Strict"),
];

/// Times in microseconds by radix, where they could be measured.
type Column = Vec<Option<f64>>;

/// A figure of table 2.
fn figure(source: Source, machine: &'static str, strict: bool, radix: u64) -> Quantity {
    let mode = if strict { "strict" } else { "loose" };
    source.quantity(machine, format!("reduce 8 kB {mode} radix {radix}"), "us")
}

/// Runs the experiment on this machine, and judges the claim.
///
/// # Errors
/// When a job fails.
pub fn judge(experiment: &Experiment<'_>) -> Result<Outcome> {
    let pes = experiment.pes.unwrap_or(PES);
    let work: Vec<_> = [SyncModes::LOOSE, SyncModes::STRICT]
        .into_iter()
        .flat_map(|sync| {
            let query = measure::reduce(sync, pes, BYTES);
            let tree = |radix| Candidate::new("knomial").with("radix", radix);
            RADICES.map(|radix| Work::of(&query, &tree(radix)))
        })
        .collect();
    let us: Column = experiment
        .medians(pes, &work, experiment.budget)?
        .into_iter()
        .map(|ns| ns.map(|ns| ns / 1e3))
        .collect();
    let (loose, strict) = us.split_at(RADICES.len());
    let mut quantities = Vec::new();
    for (machine, is_strict, _) in COLUMNS {
        let native = if is_strict { strict } else { loose };
        let figures = RADICES.map(|radix| figure(experiment.source, machine, is_strict, radix));
        quantities.extend(figures.into_iter().zip(native).map(|(one, &us)| one.native(us)));
    }
    let mut page = Page::default();
    page.paragraph(experiment.placement(pes));
    table(&mut page, experiment.source, loose, strict);
    page.lines("\nEach time in us, and as a multiple of its column's best (*).\n");
    if u64::from(pes) <= RADICES[RADICES.len() - 1] {
        page.lines(format!("With {pes} PEs, trees of radix {pes} and above are the flat one.\n"));
    }
    let winner = |column: &[Option<f64>]| {
        best(column).map_or("nothing".to_owned(), |(index, _)| match RADICES[index] {
            1 => "the chain".to_owned(),
            radix => format!("radix {radix}"),
        })
    };
    let verdict = format!(
        "{pes} PEs: {} wins when Loose, {} when Strict (the paper: the chain; radix 2 and 4)",
        winner(loose),
        winner(strict)
    );
    Ok(Outcome { verdict, page, quantities })
}

/// Runs the experiment on the paper's machines, simulated.
///
/// # Errors
/// When a simulation fails.
pub fn simulated(source: Source) -> Result<Vec<Quantity>> {
    let mut all = Vec::new();
    for (name, strict, _) in COLUMNS {
        let machine = Machine::new(name)?;
        let sync = if strict { SyncModes::STRICT } else { SyncModes::LOOSE };
        for radix in RADICES {
            let ns = machine.reduce(sync, BYTES, &tree(radix))?.ns;
            all.push(figure(source, name, strict, radix).simulated(ns / 1e3));
        }
    }
    Ok(all)
}

/// The index and the value of the least.
fn best(column: &[Option<f64>]) -> Option<(usize, f64)> {
    let known = column.iter().enumerate().filter_map(|(index, us)| Some((index, (*us)?)));
    known.min_by(|(_, one), (_, other)| one.total_cmp(other))
}

fn table(page: &mut Page, source: Source, loose: &[Option<f64>], strict: &[Option<f64>]) {
    let mut columns = vec![("here Loose", loose.to_vec()), ("here Strict", strict.to_vec())];
    columns.extend(COLUMNS.map(|(machine, strict, short)| {
        (short, RADICES.map(|radix| figure(source, machine, strict, radix).paper).to_vec())
    }));
    let row = |(index, radix): (usize, u64)| {
        let cells = columns.iter().map(|(_, us)| cell(us, index));
        std::iter::once(radix.to_string()).chain(cells).collect()
    };
    let header = std::iter::once("radix").chain(columns.iter().map(|(name, _)| *name));
    page.table(header, RADICES.into_iter().enumerate().map(row).collect(), 0..7);
}

/// A time, and its ratio to the best of its column.
fn cell(column: &Column, index: usize) -> String {
    let (Some(us), Some((best_index, best_us))) = (column[index], best(column)) else {
        return "-".to_owned();
    };
    let digits = if us < 99.95 { 1 } else { 0 };
    let star = if index == best_index { "*" } else { " " };
    format!("{us:.digits$} {:.2}{star}", us / best_us)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Columns of the paper's table.
    const BARCELONA_LOOSE: [f64; 5] = [46.4, 52.9, 60.1, 73.8, 110.0];
    const BARCELONA_STRICT: [f64; 5] = [306.0, 110.0, 119.0, 130.0, 213.0];
    const NIAGARA2_STRICT: [f64; 5] = [3103.0, 2115.0, 1774.0, 2471.0, 3998.0];

    fn us(machine: &Machine, sync: SyncModes) -> [f64; 5] {
        RADICES.map(|radix| machine.reduce(sync, BYTES, &tree(radix)).unwrap().ns / 1e3)
    }

    fn winner(us: &[f64; 5]) -> u64 {
        let best = (0..5).min_by(|&one, &other| us[one].total_cmp(&us[other])).unwrap();
        RADICES[best]
    }

    /// The largest error of the ratios of times to the column's best.
    fn relative_error(found: &[f64; 5], paper: &[f64; 5], best: usize) -> f64 {
        let relative = |us: &[f64; 5], at: usize| us[at] / us[best];
        let error = |at| (relative(found, at) / relative(paper, at) - 1.0).abs();
        (0..5).map(error).fold(0.0, f64::max)
    }

    #[test]
    fn barcelonas_columns_of_table_2_are_met() {
        let machine = Machine::new(BARCELONA).unwrap();
        let [loose, strict] = [SyncModes::LOOSE, SyncModes::STRICT].map(|sync| us(&machine, sync));
        assert_eq!((winner(&loose), winner(&strict)), (1, 2), "{loose:?} {strict:?}");
        assert!(relative_error(&strict, &BARCELONA_STRICT, 1) < 0.25, "{strict:?}");
        for (found, paper) in [(loose, BARCELONA_LOOSE), (strict, BARCELONA_STRICT)] {
            for (found, paper) in found.into_iter().zip(paper) {
                assert!((paper / 1.5..paper * 1.5).contains(&found), "{found} for {paper}");
            }
        }
    }

    #[test]
    fn niagara2s_strict_trees_are_met() {
        let machine = Machine::new(NIAGARA2).unwrap();
        let found = us(&machine, SyncModes::STRICT);
        assert_eq!(winner(&found), 4, "{found:?}");
        // The chain's deviation is known.
        let (mut trees, paper) = (found, NIAGARA2_STRICT);
        trees[0] = paper[0] / paper[2] * found[2];
        assert!(relative_error(&trees, &paper, 2) < 0.4, "{found:?}");
    }

    #[test]
    fn the_smallest_subtree_first_halves_the_critical_path() {
        // Radix 2 of 32: after 5 passes the root has waited for all; with the largest subtree first
        // after 15.
        let machine = Machine::new(BARCELONA).unwrap();
        let smallest = tree(2).with("largest_first", 0);
        let [largest, smallest] = [tree(2), smallest]
            .map(|tree| machine.reduce(SyncModes::STRICT, BYTES, &tree).unwrap().ns);
        assert!(largest > 1.7 * smallest, "{largest} {smallest}");
    }

    #[test]
    fn a_column_is_relative_to_its_best() {
        let column = vec![Some(306.0), Some(110.0), None];
        assert_eq!(best(&column), Some((1, 110.0)));
        assert_eq!(cell(&column, 0), "306 2.78 ");
        assert_eq!(cell(&column, 1), "110 1.00*");
        assert_eq!(cell(&column, 2), "-");
        assert_eq!(cell(&vec![None], 0), "-");
    }
}
