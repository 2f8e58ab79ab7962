//! The matrix of transfers, as text of at most 100 columns; slower transfers are darker.
//!
//! With up to 8 processors, the class is a word; with up to 16, it is one letter. With more, there
//! is only room for the shade, in bands of 80 columns.

use std::{collections::BTreeMap, fmt::Write};

use consort_bench::limits::survey::Transfer;
use consort_report::{Document, Heat, HeatCell};
use consort_tuner::TransferClass;

/// Shades for transfers below a number of nanoseconds.
const SHADES: [(char, f64); 5] = [
    ('·', TransferClass::NEAR_BELOW_NS / 2.0),
    ('░', TransferClass::NEAR_BELOW_NS),
    ('▒', TransferClass::NEAR_BELOW_NS * 2.0),
    ('▓', TransferClass::NEAR_BELOW_NS * 4.0),
    ('█', f64::INFINITY),
];
const BAND_COLUMNS: usize = 80;

#[derive(Clone, Copy)]
enum Cell {
    Words,
    Letter,
    Shade,
}

/// Adds the matrix to a report.
pub(super) fn plot(document: &mut Document, transfers: &[Transfer]) {
    let matrix = matrix(transfers);
    let cpus = cpus(&matrix);
    let cell = |transfer: &Transfer| HeatCell {
        class: SHADES.iter().position(|(_, below)| transfer.ns < *below).unwrap_or(SHADES.len()),
        mark: format!("{:.0}", transfer.ns),
        text: format!("{:.1} ns, {}", transfer.ns, transfer.class),
    };
    let row = |a: &u32| {
        let cells = cpus.iter().map(|b| matrix.get(&(*a, *b)).map(cell));
        (a.to_string(), cells.collect())
    };
    let step = |(index, (_, below)): (usize, &(char, f64))| match below.is_finite() {
        true => format!("under {below:.0} ns"),
        false => format!("{:.0} ns and more", SHADES[index - 1].1),
    };
    document.section("Transfers");
    document.heat(&Heat {
        title: "One-way transfer of a cache line, ns".to_owned(),
        x_title: "Processor".to_owned(),
        y_title: "Processor".to_owned(),
        value_title: "Transfer, ns".to_owned(),
        columns: cpus.iter().map(u32::to_string).collect(),
        rows: cpus.iter().map(row).collect(),
        classes: SHADES.iter().enumerate().map(step).collect(),
        is_ramp: true,
    });
}

/// Returns each transfer in both directions.
fn matrix(transfers: &[Transfer]) -> BTreeMap<(u32, u32), Transfer> {
    let both = |t: &Transfer| [((t.a, t.b), t.clone()), ((t.b, t.a), t.clone())];
    transfers.iter().flat_map(both).collect()
}

fn cpus(matrix: &BTreeMap<(u32, u32), Transfer>) -> Vec<u32> {
    let mut cpus: Vec<u32> = matrix.keys().map(|(a, _)| *a).collect();
    cpus.dedup();
    cpus
}

/// Returns the matrix, its legend, and the pairs that changed between near and far.
pub(super) fn map(transfers: &[Transfer]) -> String {
    let matrix = matrix(transfers);
    let cpus = cpus(&matrix);
    let (cell, columns) = match cpus.len() {
        0..=8 => (Cell::Words, 8),
        9..=16 => (Cell::Letter, 16),
        _ => (Cell::Shade, BAND_COLUMNS),
    };
    let mut text = String::new();
    for band in cpus.chunks(columns) {
        heading(&mut text, cell, band);
        for a in &cpus {
            let mut line = format!("{a:>4}");
            for b in band {
                line += &cell.of(matrix.get(&(*a, *b)));
            }
            text += line.trim_end();
            text.push('\n');
        }
    }
    text += &legend();
    for t in transfers {
        let (low, high) = t.range_ns;
        if TransferClass::of(low) != TransferClass::of(high) {
            let Transfer { a, b, .. } = t;
            // Writing to a string cannot fail.
            let _ = writeln!(text, "cpus {a} and {b} moved: {low:.0} to {high:.0} ns");
        }
    }
    text
}

fn heading(text: &mut String, cell: Cell, band: &[u32]) {
    let numbers: String = match (cell, band) {
        (Cell::Words, _) => band.iter().map(|cpu| format!("{cpu:>7}     ")).collect(),
        (Cell::Letter, _) => band.iter().map(|cpu| format!("{cpu:>5} ")).collect(),
        (Cell::Shade, [first, .., last]) => format!(" {first} to {last}"),
        (Cell::Shade, _) => String::new(),
    };
    *text += format!(" cpu{numbers}").trim_end();
    text.push('\n');
}

impl Cell {
    fn of(self, transfer: Option<&Transfer>) -> String {
        let Some(Transfer { ns, class, .. }) = transfer else {
            return match self {
                Cell::Words => "      -     ".to_owned(),
                Cell::Letter => "    - ".to_owned(),
                Cell::Shade => " ".to_owned(),
            };
        };
        let shade = SHADES.iter().find(|(_, below)| ns < below).map_or('█', |(shade, _)| *shade);
        match self {
            Cell::Words => format!(" {shade}{ns:>5.0} {class:<4}"),
            Cell::Letter => format!(" {shade}{ns:>3.0}{}", &class.to_string()[..1]),
            Cell::Shade => shade.to_string(),
        }
    }
}

fn legend() -> String {
    let [a, b, c, d, e] = SHADES;
    format!(
        "near: {} under {} ns, {} under {} ns; far: {} under {} ns, {} under {} ns, {} above\n",
        a.0, a.1, b.0, b.1, c.0, c.1, d.0, d.1, e.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns all pairs of the processors, with 10 ns for each step between their numbers.
    fn transfers(count: u32) -> Vec<Transfer> {
        let pairs = (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b)));
        let transfer = |(a, b)| {
            let ns = f64::from(10 * (b - a));
            Transfer { a, b, ns, range_ns: (ns, ns), class: TransferClass::of(ns) }
        };
        pairs.map(transfer).collect()
    }

    #[test]
    fn few_processors_have_their_class_in_words() {
        let mut transfers = transfers(2);
        transfers[0].ns = 150.0;
        transfers[0].class = TransferClass::Far;
        transfers[0].range_ns = (20.0, 180.0);
        let text = map(&transfers);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], " cpu      0           1");
        assert_eq!(lines[1], "   0      -      ▒  150 far");
        assert_eq!(lines[2], "   1 ▒  150 far       -");
        assert!(lines[3].starts_with("near: · under 40 ns, ░ under 80 ns; far: ▒ under 160 ns"));
        assert_eq!(lines[4], "cpus 0 and 1 moved: 20 to 180 ns");
    }

    #[test]
    fn more_processors_have_a_letter() {
        let text = map(&transfers(16));
        let line = text.lines().nth(1).unwrap();
        assert!(line.starts_with("   0    -  · 10n · 20n · 30n ░ 40n"), "{line}");
        assert!(line.ends_with(" ▒150f"), "{line}");
    }

    #[test]
    fn every_size_fits_a_hundred_columns() {
        for count in [0, 1, 2, 8, 9, 16, 17, 80, 200] {
            let text = map(&transfers(count));
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest.unwrap() <= 100, "{count}: {widest:?}");
        }
    }

    #[test]
    fn large_map_is_split_into_bands() {
        let text = map(&transfers(100));
        assert!(text.contains(" cpu 0 to 79\n") && text.contains(" cpu 80 to 99\n"), "{text}");
        assert_eq!(text.lines().count(), 2 * 101 + 1);
    }
}
