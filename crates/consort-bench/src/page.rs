//! A page for people: lines, paragraphs and tables, which the command lays out.

/// A part of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Lines as they are.
    Lines(String),
    /// A text that may be broken between words.
    Paragraph(String),
    /// A table, and which of its columns are numbers.
    Table {
        /// The columns' names.
        header: Vec<String>,
        /// The rows, as long as the header.
        rows: Vec<Vec<String>>,
        /// The columns that are aligned to the right.
        numbers: Vec<usize>,
    },
}

/// Parts, one below the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page(Vec<Part>);

impl Page {
    /// The parts, from the top.
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

    /// Adds a table of which these columns are numbers.
    pub fn table(
        &mut self,
        header: impl IntoIterator<Item = impl Into<String>>,
        rows: Vec<Vec<String>>,
        numbers: impl IntoIterator<Item = usize>,
    ) {
        let header = header.into_iter().map(Into::into).collect();
        self.0.push(Part::Table { header, rows, numbers: numbers.into_iter().collect() });
    }
}
