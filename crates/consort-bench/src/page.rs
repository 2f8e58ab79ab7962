//! A page for people: lines, paragraphs and tables, whose layout the command makes.

/// A part of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
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
        /// The columns that are aligned to the right.
        numbers: Vec<usize>,
    },
}

/// Parts, from top to bottom.
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

    /// Adds the parts of another page.
    pub fn append(&mut self, other: &Page) {
        self.0.extend_from_slice(&other.0);
    }

    /// Adds a table. `numbers` are the columns that are aligned to the right.
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
