//! Output of the commands: tables and times for people, JSON for programs.

pub(crate) mod machine;
pub(crate) mod overrun;
pub(crate) mod progress;
pub(crate) mod record;
pub(crate) mod svg;
pub(crate) mod warnings;

use std::{
    ffi::OsStr,
    fs,
    io::{self, ErrorKind, IsTerminal, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use comfy_table::{CellAlignment, ContentArrangement, Row, Table, presets};
use consort::Candidate;
use consort_bench::page::{Page, Part};
pub(crate) use consort_bench::units::{ratio, time};
use serde::Serialize;

/// The most columns of a printed line.
const COLUMNS: u16 = 100;

/// The columns of a line: those of the terminal, if there is one that has fewer.
fn columns() -> u16 {
    let terminal = terminal_size::terminal_size_of(io::stdout());
    terminal.map_or(COLUMNS, |(columns, _)| columns.0.clamp(1, COLUMNS))
}

/// Prints to standard output. It is no error if the reader closes it early.
///
/// # Errors
/// When standard output cannot be written.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.context("cannot write to standard output"),
    }
}

/// Prints a line to standard error, at once, since other processes may write there too. It is no
/// error if nobody reads that.
pub(crate) fn complain(line: &str) {
    let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// Writes JSON objects, one per line, to a file or, as `-`, to standard output.
///
/// # Errors
/// When they cannot be written.
pub(crate) fn write_json_lines(path: &Path, objects: &[impl Serialize]) -> Result<()> {
    let mut text = String::new();
    for object in objects {
        text += &serde_json::to_string(object).context("cannot write the result as JSON")?;
        text.push('\n');
    }
    if path.as_os_str() == "-" {
        return print(&text);
    }
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Writes JSON objects if a file is named for them, and prints a text otherwise.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn tell<T: Serialize>(
    json: Option<&PathBuf>,
    objects: &[T],
    text: impl FnOnce() -> String,
) -> Result<()> {
    json.map_or_else(|| print(&text()), |path| write_json_lines(path, objects))
}

/// A word as a shell reads it.
pub(crate) fn quoted(word: &OsStr) -> String {
    let text = word.to_string_lossy();
    let is_plain = |one: char| one.is_alphanumeric() || "-_=+./,:@%^~".contains(one);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.into_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The text with a line break at its end, broken between words where lines would be too long. All
/// lines are indented like the first.
pub(crate) fn wrapped(text: &str) -> String {
    let words = text.trim_start_matches(' ');
    let indent = " ".repeat(text.len() - words.len());
    let most = usize::from(columns());
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

/// A table with these columns; it has ruled lines on a terminal only.
pub(crate) fn table(header: impl Into<Row>) -> Table {
    let mut table = Table::new();
    let lines = io::stdout().is_terminal();
    table.load_style(if lines { presets::UTF8_FULL_CONDENSED } else { presets::NOTHING });
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(columns());
    table.set_header(header);
    table
}

/// The text of a table; the columns `numbers` are aligned to the right.
pub(crate) fn finish(mut table: Table, numbers: &[usize]) -> String {
    for &index in numbers {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt() + "\n"
}

/// The text of a page.
pub(crate) fn page(page: &Page) -> String {
    let text = |part: &Part| match part {
        Part::Lines(text) => text.clone(),
        Part::Paragraph(text) => wrapped(text),
        Part::Table { header, rows, numbers } => {
            let mut table = table(header.clone());
            table.add_rows(rows.clone());
            finish(table, numbers)
        }
    };
    page.parts().iter().map(text).collect()
}

/// A candidate for narrow columns: `shared(chunk=64K)` for `shared(chunk_bytes=65536)`.
pub(crate) fn brief(candidate: &Candidate) -> String {
    let parameters: Vec<String> = candidate
        .parameters
        .iter()
        .map(|(name, &value)| match name.strip_suffix("_bytes") {
            Some(name) if value >= 1 << 20 && value % (1 << 20) == 0 => {
                format!("{name}={}M", value >> 20)
            }
            Some(name) if value >= 1 << 10 && value % (1 << 10) == 0 => {
                format!("{name}={}K", value >> 10)
            }
            Some(name) => format!("{name}={value}"),
            None => format!("{name}={value}"),
        })
        .chain(candidate.parts.iter().map(brief))
        .collect();
    if parameters.is_empty() {
        return candidate.algorithm.clone();
    }
    format!("{}({})", candidate.algorithm, parameters.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_between_words() {
        assert_eq!(wrapped("as it is"), "as it is\n");
        let text = wrapped(&"seventh ".repeat(30));
        assert_eq!(text.lines().map(str::len).max(), Some(95), "{text}");
        assert_eq!(text.replace('\n', " ").trim_end(), "seventh ".repeat(30).trim_end());
        let text = wrapped(&format!("    {}", "seventh ".repeat(30)));
        assert!(text.trim_end().lines().all(|line| line.starts_with("    s")), "{text}");
        let long = "x".repeat(150);
        assert_eq!(wrapped(&format!("a {long} b")), format!("a\n{long}\nb\n"));
    }

    #[test]
    fn brief_candidates_have_units() {
        let brief = |text: &str| brief(&text.parse().unwrap());
        assert_eq!(brief("flat"), "flat");
        assert_eq!(brief("pipelined(chunk_bytes=4096,radix=2)"), "pipelined(chunk=4K,radix=2)");
        assert_eq!(brief("direct(block_bytes=1048576)"), "direct(block=1M)");
        assert_eq!(brief("chain(chunk_bytes=7056)"), "chain(chunk=7056)");
    }

    #[test]
    fn tables_keep_to_the_columns() {
        let mut table = table(["a", "b"]);
        table.add_row(["word ".repeat(30), "word ".repeat(30)]);
        let text = finish(table, &[1]);
        assert!(text.lines().all(|line| line.chars().count() <= usize::from(COLUMNS)), "{text}");
    }

    #[test]
    fn words_are_quoted_where_a_shell_would_read_them_otherwise() {
        let all = ["-I/a/b", "a b", "it's", "", "-DX=\"y\""].map(|word| quoted(OsStr::new(word)));
        assert_eq!(all, ["-I/a/b", "'a b'", r"'it'\''s'", "''", "'-DX=\"y\"'"]);
    }
}
