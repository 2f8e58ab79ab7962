//! A page for people: lines, paragraphs and tables, which the command lays out.

/// A part of a page.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// Lines that are shown as they are.
    Lines(String),
    /// A text that may be broken between words.
    Paragraph(String),
    /// A table.
    Table {
        /// The columns' names.
        header: Vec<String>,
        /// The rows, as long as the header.
        rows: Vec<Vec<String>>,
        /// The columns that are right-aligned.
        numbers: Vec<usize>,
    },
    /// Curves, which a report draws and a terminal shows as a table.
    Curves(Curves),
}

/// Curves over a number, such as the number of PEs. Each curve has a value for each number.
#[derive(Clone, Debug, PartialEq)]
pub struct Curves {
    /// The name of the values, with their unit.
    pub values: String,
    /// The name of the number.
    pub by: String,
    /// The numbers, in ascending order.
    pub numbers: Vec<f64>,
    /// The name of each curve, and its value for each number.
    pub ways: Vec<(String, Vec<f64>)>,
}

impl Curves {
    /// Returns a table: its header, and a row for each way. All columns but the first are numbers.
    pub fn table(&self) -> (Vec<String>, Vec<Vec<String>>) {
        let row = |first: String, rest: &[f64], text: fn(f64) -> String| {
            std::iter::once(first).chain(rest.iter().map(|&value| text(value))).collect()
        };
        let header =
            row(format!("{} by {}", self.values, self.by), &self.numbers, |it| it.to_string());
        let ways = self.ways.iter();
        (header, ways.map(|(way, values)| row(way.clone(), values, digits)).collect())
    }
}

/// Formats a value of a curve: one decimal place below 100, none above.
fn digits(value: f64) -> String {
    format!("{value:.*}", if value < 100.0 { 1 } else { 0 })
}

/// Parts, from top to bottom.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page(Vec<Part>);

impl Page {
    /// Returns the parts, from top to bottom.
    pub fn parts(&self) -> &[Part] {
        &self.0
    }

    /// Adds lines.
    pub fn lines(&mut self, lines: impl Into<String>) {
        self.0.push(Part::Lines(lines.into()));
    }

    /// Adds a paragraph.
    pub fn paragraph(&mut self, text: impl Into<String>) {
        self.0.push(Part::Paragraph(text.into()));
    }

    /// Adds the parts of another page.
    pub fn append(&mut self, other: &Page) {
        self.0.extend_from_slice(&other.0);
    }

    /// Adds a table. `numbers` are the columns that are right-aligned.
    pub fn table(
        &mut self,
        header: impl IntoIterator<Item = impl Into<String>>,
        rows: Vec<Vec<String>>,
        numbers: impl IntoIterator<Item = usize>,
    ) {
        let header = header.into_iter().map(Into::into).collect();
        self.0.push(Part::Table { header, rows, numbers: numbers.into_iter().collect() });
    }

    /// Adds curves.
    pub fn curves(&mut self, curves: Curves) {
        self.0.push(Part::Curves(curves));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_print_one_row_per_way() {
        let ways = vec![("a".to_owned(), vec![0.5, 99.0]), ("b".to_owned(), vec![100.4, 7418.0])];
        let (values, by) = ("Mops/s".to_owned(), "threads".to_owned());
        let (header, rows) = Curves { values, by, numbers: vec![1.0, 36.0], ways }.table();
        assert_eq!(header, ["Mops/s by threads", "1", "36"]);
        assert_eq!(rows, [["a", "0.5", "99.0"], ["b", "100", "7418"]]);
    }
}
