//! The elements of SVG, for one of the two sizes of a plot.

use crate::markup::{escaped, titled};

/// The width of the window that a plot is drawn for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    Wide,
    Narrow,
}

impl Size {
    pub(crate) const BOTH: [Self; 2] = [Self::Wide, Self::Narrow];

    /// Returns the width of the drawing, in its own units.
    pub(crate) fn width(self) -> f64 {
        match self {
            Self::Wide => 960.0,
            Self::Narrow => 380.0,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Wide => "wide",
            Self::Narrow => "narrow",
        }
    }

    /// Returns one value for wide windows, and another one for narrow windows.
    pub(crate) fn pick<T>(self, wide: T, narrow: T) -> T {
        match self {
            Self::Wide => wide,
            Self::Narrow => narrow,
        }
    }
}

/// The width of a small letter in plots, for a wide font.
const LETTER: f64 = 7.3;

/// Returns the approximate width of a text in the small letters of plots.
pub(crate) fn width_of(text: &str) -> f64 {
    LETTER * text.chars().count() as f64
}

/// Returns a text, shortened to at most this width.
pub(crate) fn fitting(text: &str, width: f64) -> String {
    if width_of(text) <= width {
        return text.to_owned();
    }
    let mut short = String::new();
    for one in text.chars() {
        if width_of(&short) + 2.0 * LETTER > width {
            break;
        }
        short.push(one);
    }
    short.trim_end().to_owned() + "…"
}

/// A picture whose height is known at the end.
#[derive(Debug)]
pub(crate) struct Canvas {
    size: Size,
    body: String,
}

impl Canvas {
    pub(crate) fn new(size: Size) -> Self {
        Self { size, body: String::new() }
    }

    /// Adds a text; the classes determine its style, and its position relative to the point.
    pub(crate) fn text(&mut self, (x, y): (f64, f64), classes: &str, text: &str) {
        let text = escaped(text);
        self.body +=
            &format!("<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{classes}\">{text}</text>\n");
    }

    pub(crate) fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), classes: &str) {
        self.body += &format!(
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" \
             class=\"{classes}\"/>\n"
        );
    }

    /// Adds a path with further attributes, and a title shown at the pointer unless it is empty.
    pub(crate) fn path(&mut self, d: &str, classes: &str, more: &str, title: &str) {
        let title = titled(title);
        self.body += &format!("<path d=\"{d}\" class=\"{classes}\"{more}>{title}</path>\n");
    }

    pub(crate) fn block(
        &mut self,
        (x, y): (f64, f64),
        (width, height): (f64, f64),
        classes: &str,
        title: &str,
    ) {
        let title = titled(title);
        self.body += &format!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
             class=\"{classes}\">{title}</rect>\n"
        );
    }

    /// Begins the elements of a series.
    pub(crate) fn begin_series(&mut self, series: usize, classes: &str) {
        self.body += &format!("<g class=\"series {classes}\" data-s=\"{series}\">\n");
    }

    pub(crate) fn end_series(&mut self) {
        self.body += "</g>\n";
    }

    /// Returns the text of the picture, with descriptions for screen readers.
    pub(crate) fn finish(self, height: f64, title: &str, about: &str) -> String {
        let Self { size, body } = self;
        let (width, name) = (size.width(), size.name());
        let (title, about) = (escaped(title), escaped(about));
        format!(
            "<svg class=\"{name}\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" \
             aria-label=\"{title}. {about}\">\n{body}</svg>\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_where_they_would_not_fit() {
        assert_eq!(fitting("short", 100.0), "short");
        let cut = fitting("two_level(knomial(radix=4), vendor)", 100.0);
        assert!(cut.starts_with("two_level(") && cut.ends_with('…'), "{cut}");
        assert!(width_of(&cut) <= 100.0);
        assert_eq!(fitting("x", 1.0), "…");
    }

    #[test]
    fn outside_text_is_escaped() {
        let mut canvas = Canvas::new(Size::Narrow);
        canvas.text((1.0, 2.0), "tick", "<a>");
        canvas.path("M0 0Z", "point", "", "x < y");
        let text = canvas.finish(10.0, "\"t\"", "a & b");
        for part in ["&lt;a&gt;</text>", "<title>x &lt; y", "\"&quot;t&quot;. a &amp; b\""] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
