//! Bars: a group for each compared item, with a bar for each of its values.

use crate::{
    axis::{Axis, Range, Scale},
    canvas::{Canvas, Size, fitting, width_of},
    figure::{Drawn, Legend},
    palette::Marks,
    table::{Cell, Table},
};

/// Horizontal bars, in groups from top to bottom.
#[derive(Clone, Debug)]
pub struct Bars {
    /// The title of the plot.
    pub title: String,
    /// The axis of the values.
    pub axis: Axis,
    /// The kind of item that a group is, such as `algorithm`.
    pub of: String,
    /// The names of the bars in a group, in legend order.
    pub series: Vec<String>,
    /// The groups.
    pub groups: Vec<Group>,
    /// Whether the bars of a group follow each other, as parts of a whole. The axis is linear then.
    pub stacked: bool,
}

/// The bars of one item.
#[derive(Clone, Debug)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Its bars.
    pub bars: Vec<Bar>,
}

/// One value.
#[derive(Clone, Debug)]
pub struct Bar {
    /// The index of its name.
    pub series: usize,
    /// Its length.
    pub value: f64,
    /// The interval of the value.
    pub interval: Option<(f64, f64)>,
    /// The value as text.
    pub text: String,
}

/// The number of patterns of bars, including none. It differs from the number of colours, so that
/// both together distinguish more bars.
const PATTERNS: usize = 5;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 50.0;
const BAR: f64 = 15.0;
const BETWEEN: f64 = 11.0;
/// How far beyond the values an interval is shown.
const BEYOND: f64 = 1.3;
/// The width of a bar's value next to it.
const VALUE: f64 = 74.0;

impl Bars {
    fn range(&self) -> Option<Range> {
        let sum = |group: &Group| group.bars.iter().map(|bar| bar.value).sum::<f64>();
        if self.stacked {
            return Range::of(Scale::Linear, self.groups.iter().map(sum));
        }
        let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
        for bar in self.groups.iter().flat_map(|group| &group.bars) {
            (least, most) = (least.min(bar.value), most.max(bar.value));
        }
        let ends = |bar: &Bar| {
            let (low, high) = bar.interval.unwrap_or((bar.value, bar.value));
            [bar.value, low.max(least), high.min(most * BEYOND)]
        };
        let values = self.groups.iter().flat_map(|group| group.bars.iter().flat_map(ends));
        Range::of(self.axis.scale, values).map(Range::for_bars)
    }

    /// Returns the plot for both window sizes; `None` without a value.
    pub(crate) fn drawn(&self) -> Option<Drawn> {
        let range = self.range()?;
        let pictures = Size::BOTH.map(|size| self.picture(size, &range));
        let block = |class: &str| {
            format!("<rect x=\"2\" y=\"2\" width=\"24\" height=\"12\" class=\"{class}\"/>")
        };
        let item = |(index, name): (usize, &String)| Legend {
            name: name.clone(),
            sample: format!(
                "<g class=\"series {}\">{}{}</g>",
                classes(index),
                block("bar"),
                pattern(index).map_or(String::new(), |pattern| block(&pattern)),
            ),
            series: Some(index),
        };
        let is_used = |index: usize| {
            self.groups.iter().flat_map(|group| &group.bars).any(|bar| bar.series == index)
        };
        let named = self.series.iter().enumerate().filter(|(index, _)| is_used(*index));
        let legend = named.map(item).collect();
        let (title, values) = (self.title.clone(), self.values());
        Some(Drawn { kind: "bars", title, legend, pictures, values })
    }

    /// Returns the height of a group's bars, without its name.
    fn height(&self, group: &Group) -> f64 {
        BAR * if self.stacked { 1.0 } else { group.bars.len().max(1) as f64 }
    }

    fn picture(&self, size: Size, range: &Range) -> String {
        let mut canvas = Canvas::new(size);
        let names = self.groups.iter().map(|group| width_of(&group.name)).fold(40.0, f64::max);
        // In narrow windows, a name is above its bars.
        let left = size.pick((names + 16.0).min(330.0), 6.0);
        let above = size.pick(0.0, 16.0);
        let width = size.width() - left - if self.stacked { 20.0 } else { VALUE };
        let each = |group: &Group| self.height(group) + above + BETWEEN;
        let bottom = TOP + self.groups.iter().map(each).sum::<f64>();
        let mut last = f64::NEG_INFINITY;
        for tick in range.ticks(size.pick(9, 5)) {
            let Some(x) = range.position(tick).map(|share| left + share * width) else { continue };
            canvas.line((x, TOP), (x, bottom), "grid");
            let label = (self.axis.label)(tick);
            // Labels that would overlap are left out.
            if x - width_of(&label) / 2.0 > last {
                let classes = if x < 12.0 { "tick" } else { "tick middle" };
                canvas.text((x, bottom + 18.0), classes, &label);
                last = x + width_of(&label) / 2.0 + 8.0;
            }
        }
        let mut y = TOP;
        for group in &self.groups {
            let height = self.height(group);
            match size {
                Size::Wide => {
                    let name = fitting(&group.name, left - 12.0);
                    canvas.text((left - 8.0, y + height / 2.0 + 4.0), "tick end", &name);
                }
                Size::Narrow => {
                    let name = fitting(&group.name, size.width() - left);
                    canvas.text((left, y + 11.0), "tick", &name);
                }
            }
            self.group(&mut canvas, range, group, (left, y + above), width);
            y += each(group);
        }
        canvas.line((left, TOP), (left, bottom), "axis");
        canvas.line((left, bottom), (left + width, bottom), "axis");
        canvas.text((left + width / 2.0, bottom + 42.0), "axis-title middle", &self.axis.title);
        let about = format!("{} of each {}", self.axis.title, self.of);
        canvas.finish(bottom + BOTTOM, &self.title, &about)
    }

    fn group(
        &self,
        canvas: &mut Canvas,
        range: &Range,
        group: &Group,
        (left, mut y): (f64, f64),
        width: f64,
    ) {
        let position = |value: f64| range.position(value).map(|share| share * width);
        let mut behind = 0.0;
        for bar in &group.bars {
            let (from, value) =
                if self.stacked { (behind, behind + bar.value) } else { (0.0, bar.value) };
            let start = if self.stacked { position(from).unwrap_or(0.0) } else { 0.0 };
            let Some(end) = position(value) else { continue };
            let name = self.series.get(bar.series).map_or("", String::as_str);
            let title = format!("{}\n{name}: {}", group.name, bar.text);
            canvas.begin_series(bar.series, &classes(bar.series));
            let long = (end - start).max(if self.stacked { 0.0 } else { 1.5 });
            let (at, size) = ((left + start, y + 1.0), (long, BAR - 2.0));
            canvas.block(at, size, "bar point", &title);
            if let Some(pattern) = pattern(bar.series) {
                canvas.block(at, size, &pattern, "");
            }
            if let (false, Some((low, high))) = (self.stacked, bar.interval)
                && let (Some(low), Some(high)) = (position(low), position(high))
            {
                let middle = y + BAR / 2.0;
                canvas.line((left + low, middle), (left + high, middle), "whisker");
            }
            canvas.end_series();
            if !self.stacked {
                let most =
                    bar.interval.and_then(|(_, high)| position(high)).unwrap_or(end).max(end);
                canvas.text((left + most + 5.0, y + BAR / 2.0 + 4.0), "value", &bar.text);
                y += BAR;
            }
            behind = value;
        }
    }

    fn values(&self) -> Table {
        let mut table = Table::new([self.of.as_str(), "bar", &self.axis.title]).numbers([2]);
        for group in &self.groups {
            for bar in &group.bars {
                let name = self.series.get(bar.series).map_or("", String::as_str);
                let value = Cell::text(&bar.text).sorted_by(bar.value);
                table.row([Cell::text(&group.name), Cell::text(name), value]);
            }
        }
        table
    }
}

fn classes(series: usize) -> String {
    format!("c{}", Marks::of(series).colour)
}

/// Returns the pattern of a series, as in the page; the first one has none.
fn pattern(series: usize) -> Option<String> {
    match series % PATTERNS {
        0 => None,
        pattern => Some(format!("hatch h{pattern}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(series: usize, value: f64) -> Bar {
        Bar { series, value, interval: None, text: format!("{value} us") }
    }

    fn bars(scale: Scale, stacked: bool, bars: Vec<Bar>) -> Bars {
        Bars {
            title: "Claims".to_owned(),
            axis: Axis::new("time, us", scale),
            of: "figure".to_owned(),
            series: vec!["paper".to_owned(), "here".to_owned()],
            groups: vec![Group { name: "reduce of 8 kB".to_owned(), bars }],
            stacked,
        }
    }

    /// Returns where the bars begin, and how long they are.
    fn blocks(picture: &str) -> Vec<(f64, f64)> {
        let number = |text: &str, name: &str| -> f64 {
            let (_, rest) = text.split_once(&format!("{name}=\"")).unwrap();
            rest.split('"').next().unwrap().parse().unwrap()
        };
        let blocks = picture.lines().filter(|line| line.contains("bar point"));
        blocks.map(|line| (number(line, " x"), number(line, " width"))).collect()
    }

    #[test]
    fn bars_are_in_proportion() {
        let plot = bars(Scale::Linear, false, vec![bar(0, 100.0), bar(1, 50.0), bar(1, 0.0)]);
        for picture in plot.drawn().unwrap().pictures {
            let [(_, whole), (_, half), (_, none)] = blocks(&picture)[..] else { panic!() };
            assert!((whole / half - 2.0).abs() < 0.01 && none == 1.5, "{picture}");
        }
        let plot = bars(Scale::Log, false, vec![bar(0, 1000.0), bar(1, 1.0)]);
        let picture = &plot.drawn().unwrap().pictures[0];
        assert!(
            blocks(picture).iter().all(|(_, long)| *long > 10.0),
            "the least is seen: {picture}"
        );
    }

    #[test]
    fn parts_of_a_whole_follow_each_other() {
        let plot = bars(Scale::Linear, true, vec![bar(0, 30.0), bar(1, 70.0)]);
        let picture = &plot.drawn().unwrap().pictures[0];
        let [(first, long), (second, _)] = blocks(picture)[..] else { panic!() };
        assert!((first + long - second).abs() < 0.2, "{picture}");
        assert!(bars(Scale::Log, false, vec![bar(0, 0.0)]).drawn().is_none());
    }
}
