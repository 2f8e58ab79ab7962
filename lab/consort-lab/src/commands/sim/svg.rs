//! The SVG elements that the pictures use.

use consort_report::{escaped, titled};

/// The colour of text and lines.
pub(super) const INK: &str = "#222222";
/// The colour of background parts.
pub(super) const FAINT: &str = "#dddddd";

/// The position of a text relative to its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A picture that grows downwards: its height is set at the end.
#[derive(Debug)]
pub(super) struct Svg {
    width: f64,
    elements: String,
}

impl Svg {
    pub(super) fn new(width: f64) -> Self {
        Self { width, elements: String::new() }
    }

    fn push(&mut self, element: &str, attributes: &str, within: Option<String>) {
        self.elements += &match within {
            Some(within) => format!("<{element} {attributes}>{within}</{element}>\n"),
            None => format!("<{element} {attributes}/>\n"),
        };
    }

    pub(super) fn text(&mut self, (x, y): (f64, f64), size: u32, anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let attributes = format!(
            "x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" text-anchor=\"{anchor}\" \
             fill=\"{INK}\""
        );
        self.push("text", &attributes, Some(escaped(text)));
    }

    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), ink: &str, width: f64) {
        let ((x1, y1), (x2, y2)) = (from, to);
        let attributes = format!(
            "x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{ink}\" \
             stroke-width=\"{width}\""
        );
        self.push("line", &attributes, None);
    }

    /// Adds a filled box. `title` is shown under the pointer.
    pub(super) fn block(
        &mut self,
        (x, y): (f64, f64),
        (width, height): (f64, f64),
        ink: &str,
        title: &str,
    ) {
        let attributes = format!(
            "x=\"{x:.2}\" y=\"{y:.1}\" width=\"{width:.2}\" height=\"{height:.1}\" fill=\"{ink}\""
        );
        self.push("rect", &attributes, Some(titled(title)));
    }

    pub(super) fn disc(&mut self, (x, y): (f64, f64), radius: f64, ink: &str, title: &str) {
        let attributes = format!(
            "cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{ink}\" stroke=\"{INK}\" \
             stroke-width=\"0.8\""
        );
        self.push("circle", &attributes, Some(titled(title)));
    }

    /// Returns the text of the SVG file.
    pub(super) fn finish(self, height: f64) -> String {
        let Self { width, elements } = self;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"sans-serif\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{elements}</svg>\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_text_is_escaped() {
        let mut svg = Svg::new(10.0);
        svg.text((1.0, 2.0), 9, Anchor::End, "a<b & c");
        assert!(svg.finish(5.0).contains(">a&lt;b &amp; c</text>"));
    }
}
