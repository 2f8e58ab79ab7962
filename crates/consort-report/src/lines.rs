//! Curves over a size: one line per series, with its interval as a band.

use crate::{
    axis::{Axis, Range},
    canvas::{Canvas, Size, width_of},
    figure::{Drawn, Legend},
    palette::Marks,
    table::{Cell, Table},
};

/// Curves over a size.
#[derive(Clone, Debug)]
pub struct Lines {
    /// The title of the plot.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The series, in legend order.
    pub series: Vec<Series>,
    /// The name of a line where both values are equal; with it, both axes have the same range.
    pub diagonal: Option<String>,
}

/// The points of one line.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Its points, from left to right.
    pub points: Vec<Point>,
    /// Whether it is a limit, with which others are compared.
    pub is_limit: bool,
    /// Whether it stays in the background until its name is pointed at.
    pub is_faint: bool,
    /// Whether its points are joined.
    pub is_joined: bool,
    /// The number that determines its colour, marker and dashes, if it is not that of the series:
    /// with it, a line looks alike in all plots of a page.
    pub look: Option<usize>,
}

impl Series {
    /// Creates a line.
    pub fn new(name: impl Into<String>, points: Vec<Point>) -> Self {
        let name = name.into();
        Self { name, points, is_limit: false, is_faint: false, is_joined: true, look: None }
    }
}

/// A point, with its values as text.
#[derive(Clone, Debug)]
pub struct Point {
    /// The horizontal value.
    pub x: f64,
    /// The vertical value.
    pub y: f64,
    /// The interval of the vertical value.
    pub interval: Option<(f64, f64)>,
    /// The horizontal value as text.
    pub x_text: String,
    /// The vertical value as text.
    pub y_text: String,
}

/// The heights of the part between the axes, and the space around it.
const HEIGHTS: [f64; 2] = [320.0, 250.0];
const TOP: f64 = 30.0;
const BOTTOM: f64 = 50.0;
const RIGHT: f64 = 22.0;
/// How far beyond the values an interval is shown.
const BEYOND: f64 = 1.6;

/// The geometry that all parts of a drawing share.
struct Frame {
    x: Range,
    y: Range,
    left: f64,
    width: f64,
    height: f64,
}

impl Frame {
    fn position_x(&self, value: f64) -> Option<f64> {
        Some(self.left + self.x.position(value)? * self.width)
    }

    fn position_y(&self, value: f64) -> Option<f64> {
        Some(TOP + (1.0 - self.y.position(value)?) * self.height)
    }

    fn at(&self, x: f64, y: f64) -> Option<(f64, f64)> {
        self.position_x(x).zip(self.position_y(y))
    }
}

impl Lines {
    fn points(&self) -> impl Iterator<Item = &Point> {
        self.series.iter().flat_map(|series| &series.points)
    }

    /// Returns the ranges of both axes; `None` without a point that both can show.
    fn ranges(&self) -> Option<(Range, Range)> {
        let (least, most) = self
            .points()
            .map(|point| point.y)
            .filter(|y| y.is_finite())
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), y| {
                (least.min(y), most.max(y))
            });
        // With few samples, intervals may span so many decades that the lines would not be visible.
        let heights = |point: &Point| {
            let (low, high) = point.interval.unwrap_or((point.y, point.y));
            [point.y, low.max(least / BEYOND), high.min(most * BEYOND)]
        };
        let ys = || self.points().flat_map(heights);
        let xs = || self.points().map(|point| point.x);
        if self.diagonal.is_some() {
            let both = Range::of(self.y.scale, xs().chain(ys()))?;
            return Some((both, both));
        }
        Some((Range::of(self.x.scale, xs())?, Range::of(self.y.scale, ys())?))
    }

    /// Returns the plot for both window sizes; `None` without a point.
    pub(crate) fn drawn(&self) -> Option<Drawn> {
        let (x, y) = self.ranges()?;
        let pictures = Size::BOTH.map(|size| self.picture(size, x, y));
        let mut legend: Vec<Legend> = self
            .series
            .iter()
            .enumerate()
            .map(|(index, series)| {
                let sample = self.sample(index);
                Legend { name: series.name.clone(), sample, series: Some(index) }
            })
            .collect();
        legend.extend(self.diagonal.clone().map(|name| Legend {
            name,
            sample: "<path d=\"M1 15L27 1\" class=\"limit\"/>".to_owned(),
            series: None,
        }));
        Some(Drawn {
            kind: "lines",
            title: self.title.clone(),
            legend,
            pictures,
            values: self.values(),
        })
    }

    fn marks(&self, index: usize) -> Marks {
        Marks::of(self.series[index].look.unwrap_or(index))
    }

    fn classes(&self, index: usize) -> String {
        let Series { is_limit, is_faint, .. } = self.series[index];
        if is_limit {
            return "limit".to_owned();
        }
        let faint = if is_faint { " faint" } else { "" };
        format!("c{}{faint}", self.marks(index).colour)
    }

    /// Returns the line and the marker of a series, 28 by 16.
    fn sample(&self, index: usize) -> String {
        let (marks, series) = (self.marks(index), &self.series[index]);
        let classes = self.classes(index).replace(" faint", "");
        let dashes = if series.is_limit { String::new() } else { marks.dashes() };
        let line = if series.is_joined {
            format!("<path d=\"M0 8H28\" class=\"curve\"{dashes}/>")
        } else {
            String::new()
        };
        let marker = marks.marker((14.0, 8.0), 4.0);
        let marker = if series.is_limit {
            String::new()
        } else {
            format!("<path d=\"{marker}\" class=\"point\"/>")
        };
        format!("<g class=\"series {classes}\">{line}{marker}</g>")
    }

    fn picture(&self, size: Size, x: Range, y: Range) -> String {
        let mut canvas = Canvas::new(size);
        let height = size.pick(HEIGHTS[0], HEIGHTS[1]);
        let y_ticks: Vec<(f64, String)> =
            y.ticks(size.pick(8, 6)).into_iter().map(|tick| (tick, (self.y.label)(tick))).collect();
        let widest = y_ticks.iter().map(|(_, label)| width_of(label)).fold(20.0, f64::max);
        let left = widest + 14.0;
        let frame = Frame { x, y, left, width: size.width() - left - RIGHT, height };
        self.axes(&mut canvas, &frame, &y_ticks);
        if self.diagonal.is_some()
            && let (Some(from), Some(to)) =
                (frame.at(x.low(), y.low()), frame.at(x.high(), y.high()))
        {
            canvas.line(from, to, "limit");
        }
        for index in 0..self.series.len() {
            self.curve(&mut canvas, &frame, index);
        }
        let about = format!("{} over {}, {} lines", self.y.title, self.x.title, self.series.len());
        canvas.finish(TOP + height + BOTTOM, &self.title, &about)
    }

    fn axes(&self, canvas: &mut Canvas, frame: &Frame, y_ticks: &[(f64, String)]) {
        let Frame { left, width, height, .. } = *frame;
        let (right, bottom) = (left + width, TOP + height);
        for (tick, label) in y_ticks {
            let Some(y) = frame.position_y(*tick) else { continue };
            canvas.line((left, y), (right, y), "grid");
            canvas.text((left - 8.0, y + 4.0), "tick end", label);
        }
        // As many labels as fit next to each other.
        let widest = |ticks: &[f64]| {
            ticks.iter().map(|&tick| width_of(&(self.x.label)(tick))).fold(24.0, f64::max)
        };
        let mut ticks = frame.x.ticks(40);
        while ticks.len() > 2 && widest(&ticks) + 14.0 > width / (ticks.len() - 1) as f64 {
            ticks = ticks.into_iter().step_by(2).collect();
        }
        for tick in ticks {
            let Some(x) = frame.position_x(tick) else { continue };
            canvas.line((x, TOP), (x, bottom), "grid");
            let label = (self.x.label)(tick);
            // At the edge of the picture, a label would be cut off.
            let most = left + width + RIGHT - width_of(&label) / 2.0;
            canvas.text((x.min(most), bottom + 18.0), "tick middle", &label);
        }
        canvas.line((left, bottom), (right, bottom), "axis");
        canvas.line((left, TOP), (left, bottom), "axis");
        canvas.text((2.0, 14.0), "axis-title", &self.y.title);
        canvas.text((left + width / 2.0, bottom + 42.0), "axis-title middle", &self.x.title);
    }

    fn curve(&self, canvas: &mut Canvas, frame: &Frame, index: usize) {
        let (marks, series) = (self.marks(index), &self.series[index]);
        let positioned: Vec<(&Point, (f64, f64))> = series
            .points
            .iter()
            .filter_map(|point| Some((point, frame.at(point.x, point.y)?)))
            .collect();
        canvas.begin_series(index, &self.classes(index));
        let ends: Vec<(f64, f64, f64)> = positioned
            .iter()
            .filter_map(|(point, (x, _))| {
                let (low, high) = point.interval?;
                Some((*x, frame.position_y(low)?, frame.position_y(high)?))
            })
            .collect();
        if series.is_joined && ends.len() > 1 && ends.len() == positioned.len() {
            let there = ends.iter().map(|(x, _, high)| (*x, *high));
            let back = ends.iter().rev().map(|(x, low, _)| (*x, *low));
            let outline: Vec<(f64, f64)> = there.chain(back).collect();
            canvas.path(&(path_of(&outline) + "Z"), "band", "", "");
        } else {
            for (x, low, high) in ends {
                canvas.line((x, low), (x, high), "whisker");
            }
        }
        if series.is_joined && positioned.len() > 1 {
            let line: Vec<(f64, f64)> = positioned.iter().map(|(_, at)| *at).collect();
            let dashes = if series.is_limit { String::new() } else { marks.dashes() };
            canvas.path(&path_of(&line), "curve", &dashes, "");
        }
        for (point, at) in positioned {
            let title = format!("{}\n{}: {}", series.name, point.x_text, point.y_text);
            let size = if series.is_limit { 2.0 } else { 3.6 };
            canvas.path(&marks.marker(at, size), "point", "", &title);
        }
        canvas.end_series();
    }

    fn values(&self) -> Table {
        let mut table = Table::new(["line", &self.x.title, &self.y.title]).numbers([1, 2]);
        for series in &self.series {
            for point in &series.points {
                table.row([
                    Cell::text(&series.name),
                    Cell::text(&point.x_text).sorted_by(point.x),
                    Cell::text(&point.y_text).sorted_by(point.y),
                ]);
            }
        }
        table
    }
}

fn path_of(points: &[(f64, f64)]) -> String {
    let point = |(x, y): &(f64, f64)| format!("{x:.1} {y:.1}");
    format!("M{}", points.iter().map(point).collect::<Vec<_>>().join("L"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::Scale;

    fn point(x: f64, y: f64, interval: Option<(f64, f64)>) -> Point {
        Point { x, y, interval, x_text: format!("{x} B"), y_text: format!("{y} us") }
    }

    fn lines(series: Vec<Series>) -> Lines {
        Lines {
            title: "Latency".to_owned(),
            x: Axis::new("size, bytes", Scale::Log2),
            y: Axis::new("time, us", Scale::Log),
            series,
            diagonal: None,
        }
    }

    #[test]
    fn line_has_one_band_and_a_marker_per_point() {
        let points = vec![point(8.0, 1.0, Some((0.9, 1.1))), point(64.0, 2.0, Some((1.9, 2.3)))];
        let drawn = lines(vec![Series::new("a<b", points)]).drawn().unwrap();
        assert_eq!(drawn.legend.len(), 1);
        for picture in &drawn.pictures {
            assert_eq!(picture.matches("class=\"point\"").count(), 2, "{picture}");
            assert_eq!(picture.matches("class=\"band\"").count(), 1, "{picture}");
            assert_eq!(picture.matches("axis-title").count(), 2, "{picture}");
            assert!(picture.contains("<title>a&lt;b\n64 B: 2 us"), "{picture}");
        }
    }

    #[test]
    fn single_point_has_a_whisker_and_none_draws_nothing() {
        let look = Series { look: Some(5), ..Series::new("five", vec![point(8.0, 1.0, None)]) };
        let drawn = lines(vec![look]).drawn().unwrap();
        let marker = Marks::of(5).marker((14.0, 8.0), 4.0);
        assert!(drawn.legend[0].sample.contains("series c5"), "{:?}", drawn.legend);
        assert!(drawn.legend[0].sample.contains(&marker), "{:?}", drawn.legend);
        let alone = Series::new("one", vec![point(8.0, 1.0, Some((0.9, 1.1)))]);
        let picture = &lines(vec![alone]).drawn().unwrap().pictures[0];
        assert!(picture.contains("whisker") && !picture.contains("\"curve\""), "{picture}");
        assert!(lines(vec![Series::new("none", Vec::new())]).drawn().is_none());
        assert!(lines(vec![Series::new("zero", vec![point(8.0, 0.0, None)])]).drawn().is_none());
    }

    #[test]
    fn every_point_lies_between_the_axes() {
        let points = (3..24).map(|power| {
            let bytes = f64::from(1 << power);
            point(bytes, bytes / 7.0, Some((bytes / 9.0, bytes / 5.0)))
        });
        let plot = lines(vec![Series::new("one", points.collect())]);
        let (x, y) = plot.ranges().unwrap();
        for size in Size::BOTH {
            let frame = Frame { x, y, left: 50.0, width: size.width() - 72.0, height: 250.0 };
            for point in plot.points() {
                let (x, y) = frame.at(point.x, point.y).unwrap();
                assert!((50.0..=size.width() - 22.0).contains(&x) && (TOP..=280.0).contains(&y));
            }
        }
    }
}
