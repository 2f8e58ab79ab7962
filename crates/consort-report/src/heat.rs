//! Heat maps: a cell for each pair of a row and a column. The colour of a cell shows its class.

use crate::{
    canvas::{Canvas, Size, fitting, width_of},
    figure::{Drawn, Legend},
    palette::COLOURS,
    table::{Cell, Table},
};

/// A map of classes.
#[derive(Clone, Debug)]
pub struct Heat {
    /// The title of the plot.
    pub title: String,
    /// The title of the columns.
    pub x_title: String,
    /// The title of the rows.
    pub y_title: String,
    /// The title of the cells' values.
    pub value_title: String,
    /// The columns' names.
    pub columns: Vec<String>,
    /// The rows' names and their cells, one per column.
    pub rows: Vec<(String, Vec<Option<HeatCell>>)>,
    /// The classes, in legend order.
    pub classes: Vec<String>,
    /// Whether the classes are steps of one value, from little to much, at most five.
    pub is_ramp: bool,
}

/// A cell.
#[derive(Clone, Debug)]
pub struct HeatCell {
    /// Its class.
    pub class: usize,
    /// A few letters that are shown if they fit; for classes without order, the class's letter.
    pub mark: String,
    /// The value as text.
    pub text: String,
}

const TOP: f64 = 30.0;
const BOTTOM: f64 = 50.0;
const ROW: f64 = 24.0;
/// The widest cell.
const COLUMN: f64 = 64.0;

impl Heat {
    /// Returns the letter of a class, which distinguishes it from others of its colour.
    pub fn letter(class: usize) -> String {
        let letter = |index: usize| char::from(b'A' + u8::try_from(index % 26).unwrap_or(0));
        match class / 26 {
            0 => letter(class).to_string(),
            round => format!("{}{}", letter(round - 1), letter(class)),
        }
    }

    /// Returns the plot for both window sizes; `None` without a cell.
    pub(crate) fn drawn(&self) -> Option<Drawn> {
        let mut cells = self.rows.iter().flat_map(|(_, cells)| cells);
        cells.any(Option::is_some).then_some(())?;
        let is_used = |class| {
            self.rows.iter().flat_map(|(_, cells)| cells).flatten().any(|cell| cell.class == class)
        };
        let item = |(index, name): (usize, &String)| {
            let letter = if self.is_ramp { String::new() } else { Self::letter(index) };
            Legend {
                name: name.clone(),
                sample: format!(
                    "<g class=\"series {}\"><rect x=\"2\" y=\"0\" width=\"24\" height=\"16\" \
                     class=\"cell\"/><text x=\"14\" y=\"12\" class=\"mark middle\">{letter}</text>\
                     </g>",
                    self.colour(index)
                ),
                series: is_used(index).then_some(index),
            }
        };
        // Several maps may share the classes, and with them colours and letters.
        let named = self.classes.iter().enumerate();
        let named = named.filter(|(index, _)| self.is_ramp || is_used(*index));
        Some(Drawn {
            kind: "heat",
            title: self.title.clone(),
            legend: named.map(item).collect(),
            pictures: Size::BOTH.map(|size| self.picture(size)),
            values: self.values(),
        })
    }

    fn colour(&self, class: usize) -> String {
        match self.is_ramp {
            true => format!("r{}", class.min(4)),
            false => format!("c{}", class % COLOURS),
        }
    }

    fn picture(&self, size: Size) -> String {
        let mut canvas = Canvas::new(size);
        let names = self.rows.iter().map(|(name, _)| width_of(name)).fold(20.0, f64::max);
        let left = (names + 14.0).min(size.pick(260.0, 130.0));
        let count = self.columns.len().max(1) as f64;
        let cell = ((size.width() - left - 8.0) / count).min(COLUMN);
        let bottom = TOP + ROW * self.rows.len() as f64;
        for (row, (name, cells)) in self.rows.iter().enumerate() {
            let y = TOP + ROW * row as f64;
            canvas.text((left - 8.0, y + 16.0), "tick end", &fitting(name, left - 12.0));
            for (column, one) in cells.iter().enumerate() {
                let at = (left + cell * column as f64, y);
                match one {
                    Some(one) => {
                        let title = format!("{name}, {}\n{}", self.columns[column], one.text);
                        canvas.begin_series(one.class, &self.colour(one.class));
                        canvas.block(at, (cell - 1.0, ROW - 1.0), "cell point", &title);
                        if width_of(&one.mark) <= cell + 2.0 {
                            let middle = (at.0 + cell / 2.0, y + 16.0);
                            canvas.text(middle, "mark middle", &one.mark);
                        }
                        canvas.end_series();
                    }
                    None => canvas.block(at, (cell - 1.0, ROW - 1.0), "empty", ""),
                }
            }
        }
        let widest = self.columns.iter().map(|name| width_of(name)).fold(10.0, f64::max);
        let mut step = 1;
        while (widest + 8.0) > cell * step as f64 && step < self.columns.len() {
            step *= 2;
        }
        for (index, name) in self.columns.iter().enumerate().step_by(step) {
            let x = left + cell * (index as f64 + 0.5);
            canvas.text((x, bottom + 18.0), "tick middle", name);
        }
        canvas.text((2.0, 14.0), "axis-title", &self.y_title);
        let middle = left + cell * count / 2.0;
        canvas.text((middle, bottom + 42.0), "axis-title middle", &self.x_title);
        let about = format!("{} by {} and {}", self.value_title, self.y_title, self.x_title);
        canvas.finish(bottom + BOTTOM, &self.title, &about)
    }

    fn values(&self) -> Table {
        let titles = [self.y_title.as_str(), self.x_title.as_str(), self.value_title.as_str()];
        let mut table = Table::new(titles);
        for (name, cells) in &self.rows {
            for (column, cell) in self.columns.iter().zip(cells) {
                if let Some(cell) = cell {
                    table.row([Cell::text(name), Cell::text(column), Cell::text(&cell.text)]);
                }
            }
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_has_a_distinct_letter() {
        let letters = [0, 25, 26, 27, 60].map(Heat::letter);
        assert_eq!(letters, ["A", "Z", "AA", "AB", "BI"]);
    }

    #[test]
    fn cells_that_are_missing_are_empty() {
        let cell = |class| {
            Some(HeatCell { class, mark: Heat::letter(class), text: format!("class {class}") })
        };
        let mut heat = Heat {
            title: "Fastest algorithm".to_owned(),
            x_title: "bytes".to_owned(),
            y_title: "mode".to_owned(),
            value_title: "algorithm".to_owned(),
            columns: vec!["8 B".to_owned(), "1 KiB".to_owned()],
            rows: vec![
                ("loose".to_owned(), vec![cell(0), cell(8)]),
                ("b".to_owned(), vec![cell(1), None]),
            ],
            classes: (0..9).map(|class| format!("class {class}")).collect(),
            is_ramp: false,
        };
        let drawn = heat.drawn().unwrap();
        assert_eq!(drawn.legend.len(), 3, "only the classes of this map are named");
        let named = drawn.legend.iter().filter_map(|item| item.series);
        assert_eq!(named.collect::<Vec<_>>(), [0, 1, 8]);
        for picture in &drawn.pictures {
            assert_eq!(picture.matches("cell point").count(), 3, "{picture}");
            assert_eq!(picture.matches("class=\"empty\"").count(), 1, "{picture}");
            assert!(picture.contains("<title>loose, 1 KiB\nclass 8"), "{picture}");
        }
        heat.rows = vec![("b".to_owned(), vec![None, None])];
        assert!(heat.drawn().is_none());
    }
}
