//! H6 (section 4.1, table 2): an 8 kB reduction by the radix of its tree, Loose and Strict.

use anyhow::Result;
use consort::{Candidate, Sync};

use super::{
    Experiment, Outcome, Quantity, measure,
    paper::{RADICES, TABLE_2},
};
use crate::output;

/// 1024 doubles.
pub(super) const BYTES: usize = 8 << 10;
/// Barcelona's threads; radix 16 needs more than 16.
const PES: u32 = 32;

/// Microseconds by radix, where they could be measured.
type Column = Vec<Option<f64>>;

pub(super) fn run(experiment: &Experiment<'_>) -> Result<Outcome> {
    let pes = experiment.team_sizes(&[PES])[0];
    let work: Vec<_> = [Sync::LOOSE, Sync::STRICT]
        .into_iter()
        .flat_map(|sync| {
            let tree = |radix| Candidate::new("knomial").with("radix", radix);
            RADICES.map(|radix| measure::reduce(sync, BYTES, tree(radix)))
        })
        .collect();
    let us: Column = experiment
        .medians(pes, &work, experiment.budget)?
        .into_iter()
        .map(|ns| ns.map(|ns| ns / 1e3))
        .collect();
    let (loose, strict) = us.split_at(RADICES.len());
    let mut quantities = Vec::new();
    for column in &TABLE_2 {
        let (mode, native) = if column.strict { ("strict", strict) } else { ("loose", loose) };
        for ((radix, paper), &native) in RADICES.iter().zip(column.us).zip(native) {
            let quantity = format!("reduce 8 kB {mode} radix {radix}");
            let (claim, machine) = ("H6", column.machine);
            quantities.push(Quantity::native(claim, machine, quantity, "us", Some(paper), native));
        }
    }
    let mut text = output::wrapped(&experiment.placement(pes));
    text += &table(loose, strict);
    text += "\nEach time in us, and as a multiple of its column's best (*).\n";
    if u64::from(pes) <= RADICES[RADICES.len() - 1] {
        text += &format!("With {pes} PEs, trees of radix {pes} and above are the flat one.\n");
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
    Ok(Outcome { verdict, text, quantities })
}

/// The place and the value of the least.
fn best(column: &[Option<f64>]) -> Option<(usize, f64)> {
    let known = column.iter().enumerate().filter_map(|(index, us)| Some((index, (*us)?)));
    known.min_by(|(_, one), (_, other)| one.total_cmp(other))
}

fn table(loose: &[Option<f64>], strict: &[Option<f64>]) -> String {
    let mut columns = vec![("here Loose", loose.to_vec()), ("here Strict", strict.to_vec())];
    columns.extend(TABLE_2.iter().map(|column| (column.short, column.us.map(Some).to_vec())));
    let mut header = vec!["radix".to_owned()];
    header.extend(columns.iter().map(|(name, _)| (*name).to_owned()));
    let mut table = output::table(header);
    for (index, radix) in RADICES.iter().enumerate() {
        let mut row = vec![radix.to_string()];
        row.extend(columns.iter().map(|(_, us)| cell(us, index)));
        table.add_row(row);
    }
    output::finish(table, &[0, 1, 2, 3, 4, 5, 6])
}

/// A time, and what multiple it is of its column's best.
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

    #[test]
    fn a_column_is_relative_to_its_best() {
        let column = vec![Some(306.0), Some(110.0), None];
        assert_eq!(best(&column), Some((1, 110.0)));
        assert_eq!(cell(&column, 0), "306 2.78 ");
        assert_eq!(cell(&column, 1), "110 1.00*");
        assert_eq!(cell(&column, 2), "-");
        assert_eq!(cell(&vec![None], 0), "-");
    }

    #[test]
    fn the_papers_winners_are_found() {
        let winners = TABLE_2.iter().map(|column| best(&column.us.map(Some)).unwrap().0);
        let radices: Vec<u64> = winners.map(|index| RADICES[index]).collect();
        assert_eq!(radices, [1, 2, 1, 4]);
    }
}
