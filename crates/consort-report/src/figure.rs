//! A plot with its title, its legend, and its values as a table.

use crate::{markup::escaped, table::Table};

/// A plot, drawn for wide and for narrow windows.
#[derive(Debug)]
pub(crate) struct Drawn {
    pub(crate) kind: &'static str,
    pub(crate) title: String,
    pub(crate) legend: Vec<Legend>,
    pub(crate) pictures: [String; 2],
    pub(crate) values: Table,
}

/// A line of a legend: a name next to a sample of 28 by 16.
#[derive(Debug)]
pub(crate) struct Legend {
    pub(crate) name: String,
    pub(crate) sample: String,
    /// The series that it represents, if it can be highlighted.
    pub(crate) series: Option<usize>,
}

impl Drawn {
    pub(crate) fn html(&self) -> String {
        let Self { kind, title, legend, pictures, values } = self;
        let title = escaped(title);
        let mut text =
            format!("<figure class=\"plot {kind}\">\n<figcaption>{title}</figcaption>\n");
        text += "<ul class=\"legend\">\n";
        for Legend { name, sample, series } in legend {
            let sample = format!("<svg viewBox=\"0 0 28 16\" aria-hidden=\"true\">{sample}</svg>");
            let name = escaped(name);
            text += &match series {
                Some(series) => format!(
                    "<li><button type=\"button\" data-s=\"{series}\" aria-pressed=\"false\">\
                     {sample}<span>{name}</span></button></li>\n"
                ),
                None => format!("<li>{sample}<span>{name}</span></li>\n"),
            };
        }
        text += "</ul>\n";
        text += &pictures.concat();
        text + &format!(
            "<details><summary>Values</summary>\n{}</details>\n</figure>\n",
            values.html()
        )
    }
}
