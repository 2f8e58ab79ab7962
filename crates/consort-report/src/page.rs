//! The file: a document as HTML, with its style and its script.

use crate::{
    document::{Document, Part},
    markup::escaped,
};

const STYLE: &str = include_str!("page.css");
/// The patterns that distinguish bars without their colours: lines in the background colour.
const PATTERNS: &str = "\
<svg width=\"0\" height=\"0\" class=\"patterns\" aria-hidden=\"true\"><defs>
<pattern id=\"h1\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" \
patternTransform=\"rotate(45)\"><path d=\"M0 0V6\"/></pattern>
<pattern id=\"h2\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">\
<circle cx=\"3\" cy=\"3\" r=\"1.3\"/></pattern>
<pattern id=\"h3\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\">\
<path d=\"M0 0V5M0 0H5\"/></pattern>
<pattern id=\"h4\" width=\"4\" height=\"4\" patternUnits=\"userSpaceOnUse\">\
<path d=\"M0 2H4\"/></pattern>
</defs></svg>
";
const SCRIPT: &str = include_str!("page.js");
/// Nothing may be loaded from elsewhere.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

impl Document {
    /// Returns the report as one file.
    pub fn html(&self) -> String {
        let title = escaped(&self.title);
        // Lines break only between words, so that words can be copied.
        let word = |word: &str| format!("<span>{}</span>", escaped(word));
        let subtitle = self.subtitle.split(' ').map(word).collect::<Vec<_>>().join(" ");
        let contents = contents(&self.parts);
        let body = body(&self.parts, &mut 0);
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
             {PATTERNS}<header>\n<div>\n<h1>{title}</h1>\n\
             <p class=\"subtitle\">{subtitle}</p>\n</div>\n\
             <button type=\"button\" id=\"theme\" hidden>Dark</button>\n</header>\n\
             {contents}<main>\n{body}</main>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n"
        )
    }
}

/// Returns the table of contents; empty if it would be short.
fn contents(parts: &[Part]) -> String {
    let titles = parts.iter().filter_map(|part| match part {
        Part::Section { short, .. } => Some(escaped(short)),
        _ => None,
    });
    let items: Vec<String> = titles
        .enumerate()
        .map(|(index, title)| format!("<li><a href=\"#s{index}\">{title}</a></li>\n"))
        .collect();
    if items.len() < 3 {
        return String::new();
    }
    format!("<nav aria-label=\"Contents\">\n<ul>\n{}</ul>\n</nav>\n", items.concat())
}

fn body(parts: &[Part], sections: &mut usize) -> String {
    let mut text = String::new();
    for part in parts {
        text += &match part {
            Part::Section { title, .. } => {
                let index = *sections;
                *sections += 1;
                format!("<h2 id=\"s{index}\">{}</h2>\n", escaped(title))
            }
            Part::Subsection(title) => format!("<h3>{}</h3>\n", escaped(title)),
            Part::Paragraph(text) => format!("<p>{}</p>\n", escaped(text)),
            Part::Lines(text) => {
                let text = escaped(text.trim_matches('\n'));
                format!("<pre class=\"scroll\" tabindex=\"0\">{text}</pre>\n")
            }
            Part::Note(tone, text) => {
                format!("<p class=\"note {}\" role=\"note\">{}</p>\n", tone.name(), escaped(text))
            }
            Part::Facts(facts) => {
                let fact = |(name, value): &(String, String)| {
                    format!("<div><dt>{}</dt><dd>{}</dd></div>\n", escaped(name), escaped(value))
                };
                format!(
                    "<dl class=\"facts\">\n{}</dl>\n",
                    facts.iter().map(fact).collect::<String>()
                )
            }
            Part::Table(table) => table.html(),
            Part::Plot(drawn) => drawn.html(),
            Part::Details(summary, inner) => format!(
                "<details class=\"part\"><summary>{}</summary>\n{}</details>\n",
                escaped(summary),
                body(&inner.parts, sections)
            ),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cell, Table, Tone};

    fn document() -> Document {
        let mut document = Document::new("bench <b>", "x & y");
        for title in ["One", "Two <i>"] {
            document.section(title);
        }
        document.section_as("3", "Three");
        document.subsection("Below");
        document.paragraph("a < b");
        document.lines("\n  a  |###\n");
        document.note(Tone::Warning, "busy");
        document.facts([("cores", "2")]);
        let mut table = Table::new(["a"]);
        table.row([Cell::text("1")]);
        document.table(table);
        document.table(Table::new(["no row"]));
        let mut inner = Document::default();
        inner.paragraph("inside");
        document.details("More", inner);
        document.details("Nothing", Document::default());
        document
    }

    #[test]
    fn every_part_is_present_and_escaped() {
        let html = document().html();
        for part in [
            "<title>bench &lt;b&gt;</title>",
            "<p class=\"subtitle\"><span>x</span> <span>&amp;</span> <span>y</span></p>",
            "<a href=\"#s1\">Two &lt;i&gt;</a>",
            "<a href=\"#s2\">3</a>",
            "<h2 id=\"s2\">Three</h2>",
            "<h3>Below</h3>",
            "<p>a &lt; b</p>",
            ">  a  |###</pre>",
            "<p class=\"note warning\" role=\"note\">busy</p>",
            "<dt>cores</dt><dd>2</dd>",
            "<summary>More</summary>\n<p>inside</p>",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
        assert!(!html.contains("no row") && !html.contains("Nothing"), "{html}");
        assert_eq!(html.matches("<script>").count(), 1, "{html}");
    }

    #[test]
    fn page_loads_nothing_external() {
        let html = document().html();
        for outside in ["http:", "https:", "//cdn", "@import", "src="] {
            assert!(!html.contains(outside), "{outside}");
        }
        assert_eq!(html.matches("url(").count(), html.matches("url(#h").count());
        assert!(html.contains("default-src 'none'"));
    }

    #[test]
    fn a_short_report_has_no_list_of_contents() {
        let mut document = Document::new("t", "");
        document.section("One");
        assert!(!document.html().contains("<nav"));
    }
}
