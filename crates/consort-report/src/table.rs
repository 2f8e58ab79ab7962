//! Tables: cells of text, and their sort keys.

use crate::markup::escaped;

/// The meaning of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// As hoped for.
    Good,
    /// Not as hoped for.
    Bad,
    /// Neither.
    Neutral,
    /// To be read with care.
    Warning,
}

impl Tone {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Bad => "bad",
            Self::Neutral => "neutral",
            Self::Warning => "warning",
        }
    }
}

/// A table whose rows a reader can sort.
#[derive(Clone, Debug, Default)]
pub struct Table {
    caption: String,
    header: Vec<String>,
    rows: Vec<Vec<Cell>>,
    numbers: Vec<usize>,
}

/// A cell.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    text: String,
    key: Option<f64>,
    tone: Option<Tone>,
}

/// The units at the end of a number, with their factors.
const UNITS: [(&str, f64); 9] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("B", 1.0),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("%", 1.0),
];

impl Cell {
    /// Creates a cell with a text. Its sort key is the number at the beginning of the text, if any.
    pub fn text(text: &str) -> Self {
        Self { text: text.to_owned(), key: number(text), tone: None }
    }

    /// Returns the cell with another sort key.
    #[must_use]
    pub fn sorted_by(self, key: f64) -> Self {
        Self { key: key.is_finite().then_some(key), ..self }
    }

    /// Returns the cell with a meaning, which its text also expresses.
    #[must_use]
    pub fn toned(self, tone: Tone) -> Self {
        Self { tone: Some(tone), ..self }
    }
}

/// Returns the number at the beginning of a text, with a unit or as a ratio.
fn number(text: &str) -> Option<f64> {
    let text = text.trim().trim_start_matches(['<', '>']).trim();
    let end = text.find(|one: char| !(one.is_ascii_digit() || "+-.e".contains(one)));
    let (digits, unit) = text.split_at(end.unwrap_or(text.len()));
    let value: f64 = digits.parse().ok()?;
    let unit = unit.split_whitespace().next().unwrap_or_default();
    let factor = UNITS.iter().find(|(name, _)| *name == unit).map_or(1.0, |(_, factor)| *factor);
    Some(value * factor)
}

impl Table {
    /// Creates a table with these columns.
    pub fn new<N: Into<String>>(header: impl IntoIterator<Item = N>) -> Self {
        Self { header: header.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// Returns the table with a caption.
    #[must_use]
    pub fn caption(self, caption: impl Into<String>) -> Self {
        Self { caption: caption.into(), ..self }
    }

    /// Returns the table with these columns right-aligned.
    #[must_use]
    pub fn numbers(self, numbers: impl IntoIterator<Item = usize>) -> Self {
        Self { numbers: numbers.into_iter().collect(), ..self }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Returns whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(crate) fn html(&self) -> String {
        let class = |column: usize| {
            if self.numbers.contains(&column) { " class=\"n\"" } else { "" }
        };
        let name = if self.caption.is_empty() { "Table" } else { &self.caption };
        let mut text = format!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table>\n",
            escaped(name)
        );
        if !self.caption.is_empty() {
            text += &format!("<caption>{}</caption>\n", escaped(&self.caption));
        }
        text += "<thead><tr>";
        for (column, name) in self.header.iter().enumerate() {
            text += &format!("<th scope=\"col\"{}>{}</th>", class(column), escaped(name));
        }
        text += "</tr></thead>\n<tbody>\n";
        for row in &self.rows {
            text += "<tr>";
            for (column, cell) in row.iter().enumerate() {
                let key = cell.key.map_or(String::new(), |key| format!(" data-v=\"{key}\""));
                let shown = escaped(&cell.text);
                let shown = match cell.tone {
                    Some(tone) => format!("<span class=\"tone {}\">{shown}</span>", tone.name()),
                    None => shown,
                };
                text += &match column {
                    0 => format!("<th scope=\"row\"{}{key}>{shown}</th>", class(0)),
                    _ => format!("<td{}{key}>{shown}</td>", class(column)),
                };
            }
            text += "</tr>\n";
        }
        text + "</tbody></table></div>\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_sorted_by_their_numbers() {
        let of = |text: &str| Cell::text(text).key;
        assert_eq!(of("4.50 us"), Some(4500.0));
        assert_eq!(of("8 KiB"), Some(8192.0));
        assert_eq!(of("3.42x"), Some(3.42));
        assert_eq!(of("+12 %"), Some(12.0));
        assert_eq!(of("< 1.00"), Some(1.0));
        assert_eq!(of("12.0 fitted"), Some(12.0));
        for text in ["-", "", "flat", "knomial(radix=4)", "e"] {
            assert_eq!(of(text), None, "{text}");
        }
        assert_eq!(Cell::text("flat").sorted_by(f64::NAN).key, None);
    }

    #[test]
    fn headers_have_a_scope_and_texts_are_escaped() {
        let mut table = Table::new(["<name>", "time"]).numbers([1]).caption("a & b");
        assert!(table.is_empty());
        table.row([Cell::text("x\"y"), Cell::text("2.00 us").toned(Tone::Good)]);
        let html = table.html();
        for part in [
            "<caption>a &amp; b</caption>",
            "<th scope=\"col\">&lt;name&gt;</th><th scope=\"col\" class=\"n\">time</th>",
            "<th scope=\"row\">x&quot;y</th>",
            "<td class=\"n\" data-v=\"2000\"><span class=\"tone good\">2.00 us</span></td>",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
    }
}
