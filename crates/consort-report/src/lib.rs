//! Reports of measurements as one HTML file.
//!
//! A [`Document`] consists of headings, text, [`Table`]s and plots: [`Lines`] over a size,
//! [`Bars`], and a [`Heat`] map. [`Document::html`] writes all of it into one file that needs no
//! network. Plots are SVG. Each is generated twice, for wide and for narrow windows. A report also
//! works without its script, which adds sorting, highlighting, and values at the pointer. All texts
//! are escaped.
//!
//! 1. `document`: the parts; `table`: tables and their cells; `page`: the file, with its style and
//!    its script;
//! 2. `axis`: scales and round numbers; `palette`: colours, markers and dashes;
//! 3. `lines`, `bars`, `heat`: the plots; `figure`: a plot with its legend and its values;
//!    `canvas`: the elements of SVG; `markup`: escaping.

mod axis;
mod bars;
mod canvas;
mod document;
mod figure;
mod heat;
mod lines;
mod markup;
mod page;
mod palette;
mod table;

pub use axis::{Axis, Scale, log_ticks, plain, ticks};
pub use bars::{Bar, Bars, Group};
pub use document::Document;
pub use heat::{Heat, HeatCell};
pub use lines::{Lines, Point, Series};
pub use markup::{escaped, titled};
pub use table::{Cell, Table, Tone};
