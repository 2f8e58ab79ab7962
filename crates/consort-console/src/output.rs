//! Output of the commands: tables and times for people, JSON for programs.

pub mod csv;
pub mod files;
pub mod overrun;
pub mod progress;
mod stream;
pub mod warnings;

use std::{
    ffi::OsStr,
    io::{self, IsTerminal},
    os::fd::AsFd,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use comfy_table::{
    Cell, CellAlignment, ColumnConstraint, ContentArrangement, Row, Table, Width, presets,
};
use consort::tune::Candidate;
use consort_bench::page::{Page, Part};
pub use consort_bench::units::{ratio, time};
use serde::Serialize;

pub use files::save;
pub use stream::print_as_it_is;

/// The columns of a printed line without a terminal.
const COLUMNS: u16 = 80;
/// The most columns of a printed line.
const MOST_COLUMNS: u16 = 100;

/// Returns the number of columns of a stream's terminal; `None` if the stream is not a terminal.
fn terminal_of(stream: impl AsFd) -> Option<usize> {
    terminal_size::terminal_size_of(stream).map(|(columns, _)| columns.0.max(1).into())
}

/// Returns the number of columns of a printed line: those of the terminal, if there is one.
fn columns() -> u16 {
    let terminal = terminal_of(io::stdout()).and_then(|columns| u16::try_from(columns).ok());
    terminal.map_or(COLUMNS, |columns| columns.min(MOST_COLUMNS))
}

/// Prints a text for people to standard output. For a terminal, breaks its lines between words.
///
/// # Errors
/// When standard output cannot be written.
pub fn print(text: &str) -> Result<()> {
    print_as_it_is(&fitted(text, terminal_of(io::stdout())))
}

/// Prints a line to standard error in one write, because other processes may write there too. A
/// missing reader is not an error.
pub fn print_error_line(line: &str) {
    let _ = stream::write_all(io::stderr(), for_stderr(line).as_bytes());
}

/// Returns a line for standard error, with a line break at its end.
fn for_stderr(line: &str) -> String {
    fitted(&format!("{line}\n"), terminal_of(io::stderr()))
}

/// Returns a text with longer lines broken between words, for a terminal of this many columns.
fn fitted(text: &str, columns: Option<usize>) -> String {
    let Some(columns) = columns else { return text.to_owned() };
    let fits = |line: &str| line.chars().count() <= columns;
    let lines = text.split_inclusive('\n').map(|line| match line.trim_end_matches('\n') {
        short if fits(short) => line.to_owned(),
        long => broken(long, columns),
    });
    lines.collect()
}

/// Writes JSON objects, one per line, to a file or, as `-`, to standard output.
///
/// # Errors
/// When they cannot be written.
pub fn write_json_lines(path: &Path, objects: &[impl Serialize]) -> Result<()> {
    let mut text = String::new();
    for object in objects {
        text += &serde_json::to_string(object).context("cannot write the result as JSON")?;
        text.push('\n');
    }
    save(path, &text)
}

/// Writes JSON objects if a file is named for them, and prints a text otherwise.
///
/// # Errors
/// When it cannot be written.
pub fn write_or_print<T: Serialize>(
    json: Option<&PathBuf>,
    objects: &[T],
    text: impl FnOnce() -> String,
) -> Result<()> {
    json.map_or_else(|| print(&text()), |path| write_json_lines(path, objects))
}

/// Quotes a word for a shell.
pub fn quoted(word: &OsStr) -> String {
    let text = word.to_string_lossy();
    let is_plain = |one: char| one.is_alphanumeric() || "-_=+./,:@%^~".contains(one);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.into_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Returns the text with a line break at its end, broken between words if lines would be too long.
/// All lines are indented like the first.
pub fn wrapped(text: &str) -> String {
    broken(text, columns().into())
}

/// Returns the same for lines of at most `most` columns.
fn broken(text: &str, most: usize) -> String {
    let words = text.trim_start_matches(' ');
    let indent = " ".repeat(text.len() - words.len());
    let mut lines = indent.clone();
    let mut column = indent.len();
    for word in words.split(' ') {
        let width = word.chars().count();
        if column > indent.len() && column + 1 + width > most {
            lines.push('\n');
            lines += &indent;
            column = indent.len();
        } else if column > indent.len() {
            lines.push(' ');
            column += 1;
        }
        lines += word;
        column += width;
    }
    lines + "\n"
}

/// Returns a table with these columns; it has ruled lines only on a terminal.
pub fn table(header: impl Into<Row>) -> Table {
    let mut table = Table::new();
    let lines = io::stdout().is_terminal();
    table.load_style(if lines { presets::UTF8_FULL_CONDENSED } else { presets::NOTHING });
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(columns());
    table.set_header(header);
    table
}

/// Returns the text of a table. The columns `numbers` are aligned to the right, and keep their
/// units next to them. Other cells are only broken between words, even if the table then exceeds
/// the columns.
pub fn finish(mut table: Table, numbers: &[usize]) -> String {
    let count = table.column_count();
    let longest = |index| {
        let quantity = if numbers.contains(&index) { longest_quantity(&table, index) } else { 0 };
        longest_word(&table, index).max(quantity)
    };
    let longest: Vec<u16> = (0..count).map(longest).collect();
    // Each column needs a space on both sides and a ruled line, unless that is too wide.
    let ruled = longest.iter().fold(1, |sum, longest| longest.saturating_add(sum + 3));
    // A terminal would break the lines of a table that is still too wide.
    let least = longest.iter().fold(0_u16, |sum, longest| longest.saturating_add(sum + 1));
    if let Some(columns) = terminal_of(io::stdout()).filter(|&columns| usize::from(least) > columns)
    {
        return listed(&table, columns);
    }
    let is_narrow = table.width().is_some_and(|columns| ruled > columns);
    if is_narrow {
        table.load_style(presets::NOTHING);
    }
    for (column, longest) in table.column_iter_mut().zip(longest) {
        let padding = if is_narrow { (0, 1) } else { (1, 1) };
        column.set_padding(padding);
        let least = Width::Fixed(longest.saturating_add(padding.0 + padding.1));
        column.set_constraint(ColumnConstraint::LowerBoundary(least));
    }
    for &index in numbers {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt() + "\n"
}

/// Returns the rows of a table as a list, for a terminal that is narrower than the table: the first
/// cell, and below it the others with the names of their columns.
fn listed(table: &Table, columns: usize) -> String {
    let cells = |row: &Row| row.cell_iter().map(Cell::content).collect::<Vec<_>>();
    let names = table.header().map(cells).unwrap_or_default();
    let item = |row: &Row| {
        let cells = cells(row);
        let first = cells.first().map_or("", String::as_str);
        let indent = " ".repeat(first.len() - first.trim_start().len() + 2);
        let named = names.iter().zip(&cells).skip(1).filter(|(_, cell)| !cell.is_empty());
        let named = named.map(|(name, cell)| match name.as_str() {
            "" => cell.clone(),
            name => format!("{name}: {cell}"),
        });
        let rest = named.collect::<Vec<_>>().join("; ");
        broken(first, columns) + &broken(&format!("{indent}{rest}"), columns)
    };
    let title = names.first().filter(|name| !name.is_empty());
    let title = title.map(|name| broken(&format!("{name}:"), columns)).unwrap_or_default();
    title + &table.row_iter().map(item).collect::<String>()
}

/// Returns the width of the longest word of a column.
fn longest_word(table: &Table, index: usize) -> u16 {
    let rows = table.header().into_iter().chain(table.row_iter());
    let cells = rows.filter_map(|row| row.cell_iter().nth(index).map(Cell::content));
    // A star stays next to the word that it marks.
    let words = |text: &str| text.replace(" *", "_*");
    let width =
        |text: String| words(&text).split_whitespace().map(|word| word.chars().count()).max();
    let longest = cells.filter_map(width).max().unwrap_or(0);
    u16::try_from(longest).unwrap_or(u16::MAX)
}

/// Returns the width of a column's longest number with its unit, at most two words.
fn longest_quantity(table: &Table, index: usize) -> u16 {
    let cells = table.row_iter().filter_map(|row| row.cell_iter().nth(index).map(Cell::content));
    let is_quantity = |text: &String| text.split_whitespace().count() <= 2;
    let longest = cells.filter(is_quantity).map(|text| text.chars().count()).max().unwrap_or(0);
    u16::try_from(longest).unwrap_or(u16::MAX)
}

/// Returns the text of a page.
pub fn page(page: &Page) -> String {
    let rows_of = |header: &[String], rows: &[Vec<String>], numbers: &[usize]| {
        let mut table = table(header.to_vec());
        table.add_rows(rows.to_vec());
        finish(table, numbers)
    };
    let text = |part: &Part| match part {
        Part::Lines(text) => text.clone(),
        Part::Paragraph(text) => wrapped(text),
        Part::Table { header, rows, numbers } => rows_of(header, rows, numbers),
        Part::Curves(curves) => {
            let (header, rows) = curves.table();
            rows_of(&header, &rows, &(1..header.len()).collect::<Vec<_>>())
        }
    };
    page.parts().iter().map(text).collect()
}

/// Returns the short form of a candidate in words that a table column may break.
pub fn brief_in_words(candidate: &Candidate) -> String {
    candidate.brief().replace(',', ", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_between_words() {
        assert_eq!(wrapped("as it is"), "as it is\n");
        let text = wrapped(&"seventh ".repeat(30));
        assert_eq!(text.lines().map(str::len).max(), Some(80), "{text}");
        assert_eq!(text.replace('\n', " ").trim_end(), "seventh ".repeat(30).trim_end());
        let text = wrapped(&format!("    {}", "seventh ".repeat(30)));
        assert!(text.trim_end().lines().all(|line| line.starts_with("    s")), "{text}");
        let long = "x".repeat(150);
        assert_eq!(wrapped(&format!("a {long} b")), format!("a\n{long}\nb\n"));
    }

    #[test]
    fn a_terminal_breaks_no_word() {
        let long = format!("short\nwarning: {}\n", "seventh ".repeat(20));
        assert_eq!(fitted(&long, None), long);
        let text = fitted(&long, Some(40));
        assert!(text.starts_with("short\nwarning: seventh") && text.ends_with('\n'), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 40), "{text}");
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&text), words(&long));
    }

    #[test]
    fn tables_break_between_words_alone() {
        let name = "two_level(knomial(radix=4), vendor, knomial(radix=4))";
        let mut table = table(["collective", "choice", "time"]);
        table.set_width(40);
        table.add_row(["exclusive_scan", name, "1.25 us"]);
        let text = finish(table, &[2]);
        let words = ["exclusive_scan", "two_level(knomial(radix=4),", "vendor,", "1.25"];
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 51), "{text}");
    }

    #[test]
    fn too_wide_table_prints_as_a_list() {
        let mut table = table(["algorithm", "latency", "", "waiting"]);
        table.add_row(["knomial(radix=2)", "11.1 us", "*", "8.20 us"]);
        table.add_row(["  the last, PE 0", "-", "", "6.35 us"]);
        let text = "\
algorithm:
knomial(radix=2)
  latency: 11.1 us; *;
  waiting: 8.20 us
  the last, PE 0
    latency: -; waiting:
    6.35 us
";
        assert_eq!(listed(&table, 24), text);
    }

    #[test]
    fn tables_keep_to_the_columns() {
        let mut table = table(["a", "b"]);
        table.add_row(["word ".repeat(30), "word ".repeat(30)]);
        let text = finish(table, &[1]);
        assert!(text.lines().all(|line| line.chars().count() <= usize::from(COLUMNS)), "{text}");
    }

    #[test]
    fn words_are_quoted_if_a_shell_would_change_them() {
        let all = ["-I/a/b", "a b", "it's", "", "-DX=\"y\""].map(|word| quoted(OsStr::new(word)));
        assert_eq!(all, ["-I/a/b", "'a b'", r"'it'\''s'", "''", "'-DX=\"y\"'"]);
    }
}
