//! The parts of a report, in order.

use crate::{
    bars::Bars,
    figure::Drawn,
    heat::Heat,
    lines::Lines,
    table::{Table, Tone},
};

#[derive(Debug)]
pub(crate) enum Part {
    /// A heading that the table of contents lists.
    Section {
        title: String,
        short: String,
    },
    Subsection(String),
    Paragraph(String),
    Lines(String),
    Note(Tone, String),
    Facts(Vec<(String, String)>),
    Table(Table),
    Plot(Box<Drawn>),
    /// Parts that are shown on request.
    Details(String, Document),
}

/// A report.
#[derive(Debug, Default)]
pub struct Document {
    pub(crate) title: String,
    pub(crate) subtitle: String,
    pub(crate) parts: Vec<Part>,
}

impl Document {
    /// Creates a report with a title, and a line below it.
    pub fn new(title: impl Into<String>, subtitle: impl Into<String>) -> Self {
        Self { title: title.into(), subtitle: subtitle.into(), parts: Vec::new() }
    }

    /// Begins a section, which the table of contents lists.
    pub fn section(&mut self, title: impl Into<String>) {
        let title = title.into();
        self.parts.push(Part::Section { short: title.clone(), title });
    }

    /// Begins a section with a shorter name in the table of contents.
    pub fn section_as(&mut self, short: impl Into<String>, title: impl Into<String>) {
        self.parts.push(Part::Section { title: title.into(), short: short.into() });
    }

    /// Begins a part of a section.
    pub fn subsection(&mut self, title: impl Into<String>) {
        self.parts.push(Part::Subsection(title.into()));
    }

    /// Adds a paragraph.
    pub fn paragraph(&mut self, text: impl Into<String>) {
        self.parts.push(Part::Paragraph(text.into()));
    }

    /// Adds lines that are shown as they are, in a monospaced font.
    pub fn lines(&mut self, text: impl Into<String>) {
        self.parts.push(Part::Lines(text.into()));
    }

    /// Adds a highlighted text.
    pub fn note(&mut self, tone: Tone, text: impl Into<String>) {
        self.parts.push(Part::Note(tone, text.into()));
    }

    /// Adds names and their values.
    pub fn facts<N: Into<String>, V: Into<String>>(
        &mut self,
        facts: impl IntoIterator<Item = (N, V)>,
    ) {
        let facts = facts.into_iter().map(|(name, value)| (name.into(), value.into()));
        self.parts.push(Part::Facts(facts.collect()));
    }

    /// Adds a table, if it has a row.
    pub fn table(&mut self, table: Table) {
        if !table.is_empty() {
            self.parts.push(Part::Table(table));
        }
    }

    /// Adds curves, if there is a point. Returns whether there is one.
    pub fn curves(&mut self, lines: &Lines) -> bool {
        self.plot(lines.drawn())
    }

    /// Adds bars, if there is a value. Returns whether there is one.
    pub fn bars(&mut self, bars: &Bars) -> bool {
        self.plot(bars.drawn())
    }

    /// Adds a heat map, if there is a cell. Returns whether there is one.
    pub fn heat(&mut self, heat: &Heat) -> bool {
        self.plot(heat.drawn())
    }

    /// Adds parts that are shown on request.
    pub fn details(&mut self, summary: impl Into<String>, parts: Document) {
        if !parts.is_empty() {
            self.parts.push(Part::Details(summary.into(), parts));
        }
    }

    /// Adds all parts of another document.
    pub fn append(&mut self, other: Document) {
        self.parts.extend(other.parts);
    }

    /// Returns whether it has no parts.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    fn plot(&mut self, drawn: Option<Drawn>) -> bool {
        let is_drawn = drawn.is_some();
        self.parts.extend(drawn.map(|drawn| Part::Plot(Box::new(drawn))));
        is_drawn
    }
}
