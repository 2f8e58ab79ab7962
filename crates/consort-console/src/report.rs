//! Reports of measurements: the text of a page, with plots, the machine, and the conditions of the
//! measurement.
//!
//! `axes` has axes of times, sizes and counts.

pub mod axes;

use std::env;

use consort_bench::{
    environment::Context,
    page::{Page, Part},
};
use consort_machine::topology::Topology;
use consort_report::{Cell, Document, Table, Tone};
use serde_json::Value;

use crate::{output, this_machine::MachineInfo};

/// The results of a command, for all readers.
pub struct Findings<'t, T> {
    /// The results for programs.
    pub objects: &'t [T],
    /// The rows of CSV, if they are not the objects.
    pub rows: Option<Vec<Value>>,
    /// The results for people.
    pub page: &'t Page,
    /// Adds the plots of a report, above the page.
    pub plots: &'t dyn Fn(&mut Document),
}

/// Returns a report of a measurement in its context.
pub fn report<T>(context: &Context, findings: &Findings<'_, T>) -> Document {
    let mut document = begun(context);
    (findings.plots)(&mut document);
    if !findings.page.parts().is_empty() {
        document.section("Tables");
        add_page(&mut document, findings.page);
    }
    let mut machine = Page::default();
    MachineInfo::of(&Topology::discover()).show(&mut machine);
    // The page of `consort topo` already shows the machine.
    if !findings.page.parts().starts_with(machine.parts()) {
        document.section("The machine");
        add_page(&mut document, &machine);
    }
    document
}

/// Returns the head of a report.
fn begun(context: &Context) -> Document {
    let Context { machine, date, version, commit, load, busy, interrupted } = context;
    let words: Vec<String> = env::args_os().skip(1).map(|word| output::quoted(&word)).collect();
    let named = words.iter().take_while(|word| !word.starts_with('-')).map(String::as_str);
    let named: Vec<&str> = named.collect();
    let named = if named.len() > 2 { &named[..1] } else { &named[..] };
    let title = [&["consort"], named].concat();
    let mut document = Document::new(title.join(" "), format!("consort {}", words.join(" ")));
    let mut facts = vec![
        ("Machine", machine.clone()),
        ("Date", date.clone()),
        ("Build", format!("consort {version} ({commit})")),
    ];
    facts.extend(load.map(|load| ("Load before", format!("{load:.2}"))));
    document.facts(facts);
    if let Some(busy) = busy {
        document
            .note(Tone::Warning, format!("The machine was busy: {busy}. Figures may be too high."));
    }
    if *interrupted {
        document.note(Tone::Warning, "The measurement was interrupted.");
    }
    document
}

/// Adds the contents of a page.
pub fn add_page(document: &mut Document, page: &Page) {
    let parts: Vec<&Part> = page.parts().iter().filter(|part| !is_blank(part)).collect();
    let mut lines = String::new();
    for (index, part) in parts.iter().enumerate() {
        if !matches!(part, Part::Lines(_)) {
            add_lines(document, &std::mem::take(&mut lines));
        }
        // The text above a table describes it.
        let heads_table = matches!(parts.get(index + 1), Some(Part::Table { .. }));
        match part {
            Part::Table { header, rows, numbers } => {
                let caption = index.checked_sub(1).and_then(|above| caption(parts[above]));
                document.table(table(header, rows, numbers, caption));
            }
            Part::Curves(curves) => {
                let (header, rows) = curves.table();
                let numbers: Vec<usize> = (1..header.len()).collect();
                document.table(table(&header, &rows, &numbers, None));
            }
            Part::Paragraph(_) | Part::Lines(_) if heads_table && caption(part).is_some() => {
                add_lines(document, &std::mem::take(&mut lines));
            }
            Part::Paragraph(text) => document.paragraph(text.trim()),
            Part::Lines(text) => lines += text,
        }
    }
    add_lines(document, &lines);
}

fn is_blank(part: &Part) -> bool {
    matches!(part, Part::Lines(text) | Part::Paragraph(text) if text.trim().is_empty())
}

/// Returns a text that can head a table: one line of words.
fn caption(part: &Part) -> Option<&str> {
    match part {
        Part::Lines(text) | Part::Paragraph(text) => {
            Some(text.trim()).filter(|text| !text.contains('\n') && !is_drawn(text))
        }
        Part::Table { .. } | Part::Curves(_) => None,
    }
}

/// Returns whether lines are a drawing, which must keep its line breaks and spaces.
fn is_drawn(text: &str) -> bool {
    text.lines().any(|line| line.trim().contains("  ") || line.contains(['#', '|']))
}

fn add_lines(document: &mut Document, text: &str) {
    if is_drawn(text) {
        document.lines(text);
    } else {
        text.lines().filter(|line| !line.is_empty()).for_each(|line| document.paragraph(line));
    }
}

fn table(
    header: &[String],
    rows: &[Vec<String>],
    numbers: &[usize],
    caption: Option<&str>,
) -> Table {
    let mut names: Vec<&str> = header.iter().map(String::as_str).collect();
    for index in 0..names.len() {
        // Gives each column a name, by which it can be sorted.
        if names[index].is_empty() {
            names[index] = index.checked_sub(1).map_or("what", |before| names[before]);
        }
    }
    let mut table = Table::new(names).numbers(numbers.iter().copied());
    for row in rows {
        table.row(row.iter().map(|text| cell(text)));
    }
    match caption {
        Some(caption) => table.caption(caption),
        None => table,
    }
}

/// Returns a cell; verdicts have a colour.
fn cell(text: &str) -> Cell {
    let cell = Cell::text(text);
    match text.trim_end_matches(", busy") {
        "faster" | "holds" => cell.toned(Tone::Good),
        "slower" | "missed" => cell.toned(Tone::Bad),
        "same" => cell.toned(Tone::Neutral),
        "undecided" => cell.toned(Tone::Warning),
        _ => cell,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn html(page: &Page) -> String {
        let mut document = Document::default();
        add_page(&mut document, page);
        document.html()
    }

    #[test]
    fn the_line_above_a_table_is_its_caption() {
        let mut page = Page::default();
        page.paragraph("Some words first.");
        page.lines("\n");
        page.paragraph("1 MiB, near");
        page.table(["", "b"], vec![vec!["x".to_owned(), "1 us".to_owned()]], [1]);
        page.lines("\nTail\nof two lines\n");
        let html = html(&page);
        for part in [
            "<p>Some words first.</p>\n<div class=\"scroll\"",
            "<caption>1 MiB, near</caption>",
            "<th scope=\"col\">what</th>",
            "<td class=\"n\" data-v=\"1000\">1 us</td>",
            "<p>Tail</p>\n<p>of two lines</p>",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
        assert!(!html.contains("<p>1 MiB"), "{html}");
    }

    #[test]
    fn drawings_keep_their_places() {
        let mut page = Page::default();
        page.lines("flat  ##\n");
        page.lines("tree  ####\n");
        page.table(["a"], vec![vec!["x".to_owned()]], []);
        let html = html(&page);
        assert!(html.contains(">flat  ##\ntree  ####</pre>"), "{html}");
        assert!(!html.contains("<caption>"), "{html}");
    }
}
