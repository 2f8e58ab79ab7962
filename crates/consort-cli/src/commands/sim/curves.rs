//! Times by size, or throughputs: a table and curves in text, and curves as SVG.

use consort::{Candidate, Query};
use consort_bench::{
    harness::Mode,
    page::Page,
    simulation::{Conditions, Simulated},
};
use consort_report::{log_ticks, plain, ticks};

use crate::output::{
    brief,
    svg::{Anchor, FAINT, INK, Svg},
    time, wrapped,
};

/// The columns of a table that fit beside the sizes.
const COLUMNS: usize = 8;
/// Rows of the curves in text.
const ROWS: usize = 18;
/// Characters between two sizes.
const STEP: usize = 4;
/// Colours for all kinds of colour vision (Okabe and Ito 2008).
const INKS: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"];

/// The position of the curves in the picture.
const LEFT: f64 = 80.0;
const TOP: f64 = 80.0;
const WIDTH: f64 = 700.0;
const HEIGHT: f64 = 440.0;

/// The simulations of one algorithm, by size.
struct Curve<'a> {
    candidate: &'a Candidate,
    points: Vec<&'a Simulated>,
}

fn curves(all: &[Simulated]) -> Vec<Curve<'_>> {
    let mut curves: Vec<Curve<'_>> = Vec::new();
    for one in all {
        match curves.iter_mut().find(|curve| *curve.candidate == one.program.candidate) {
            Some(curve) => curve.points.push(one),
            None => curves.push(Curve { candidate: &one.program.candidate, points: vec![one] }),
        }
    }
    curves
}

fn sizes_bytes(all: &[Simulated]) -> Vec<usize> {
    let mut sizes: Vec<usize> = all.iter().map(|one| one.program.bytes()).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// `a`, `b` and so on; `?` after `z`.
fn letter(index: usize) -> char {
    u8::try_from(index)
        .ok()
        .filter(|&index| index < 26)
        .map_or('?', |index| char::from(b'a' + index))
}

/// The vertical scale: logarithmic for times, linear for throughputs.
struct Scale {
    mode: Mode,
    least: f64,
    most: f64,
}

impl Scale {
    fn of(all: &[Simulated]) -> Self {
        let mode = all.first().map_or(Mode::Latency, |one| one.program.mode);
        let values = || all.iter().map(|one| Self::value(mode, one));
        let most = values().fold(0.0, f64::max);
        match mode {
            // The margins avoid a scale of length 0 if all times are equal.
            Mode::Latency => {
                let least = values().fold(f64::INFINITY, f64::min);
                Self { mode, least: least / 1.1, most: most * 1.1 }
            }
            Mode::Throughput => Self { mode, least: 0.0, most: most * 1.05 },
        }
    }

    fn value(mode: Mode, one: &Simulated) -> f64 {
        match mode {
            Mode::Latency => one.call_ns,
            Mode::Throughput => one.mbps().unwrap_or(0.0),
        }
    }

    /// The position from 0 at the bottom to 1 at the top.
    fn place(&self, value: f64) -> f64 {
        match self.mode {
            Mode::Latency => (value / self.least).ln() / (self.most / self.least).ln(),
            Mode::Throughput => value / self.most,
        }
    }

    /// Round values; of throughputs about this many.
    fn ticks(&self, about: f64) -> Vec<f64> {
        match self.mode {
            Mode::Latency => log_ticks(self.least, self.most),
            Mode::Throughput => ticks(self.most, about),
        }
    }

    fn label(&self, value: f64) -> String {
        match self.mode {
            Mode::Latency => time(value),
            Mode::Throughput => format!("{value:.2}"),
        }
    }

    fn name(&self) -> &'static str {
        match self.mode {
            Mode::Latency => "latency",
            Mode::Throughput => "MB/s",
        }
    }
}

/// Adds a table with a column for each algorithm, and the curves.
pub(super) fn show(page: &mut Page, conditions: &Conditions, all: &[Simulated]) {
    let (curves, sizes) = (curves(all), sizes_bytes(all));
    let scale = Scale::of(all);
    page.lines("\n");
    for (index, curve) in curves.iter().enumerate() {
        page.lines(format!("{}  {}\n", letter(index), brief(curve.candidate)));
    }
    for (block, some) in curves.chunks(COLUMNS).enumerate() {
        let mut header = vec!["lines".to_owned(), "bytes".to_owned()];
        let name = |index| format!("{} {}", letter(block * COLUMNS + index), scale.name());
        header.extend((0..some.len()).map(name));
        let numbers = 0..header.len();
        let mut rows = Vec::new();
        for &bytes in &sizes {
            let mut row = vec![(bytes / conditions.line_bytes).to_string(), bytes.to_string()];
            row.extend(some.iter().map(|curve| {
                let point = curve.points.iter().find(|point| point.program.bytes() == bytes);
                point.map_or("-".to_owned(), |point| scale.label(Scale::value(scale.mode, point)))
            }));
            rows.push(row);
        }
        page.lines("\n");
        page.table(header, rows, numbers);
    }
    page.lines("\n");
    page.lines(drawn(conditions, &curves, &sizes, &scale));
}

fn drawn(
    conditions: &Conditions,
    curves: &[Curve<'_>],
    sizes_bytes: &[usize],
    scale: &Scale,
) -> String {
    let mut grid = vec![vec![' '; sizes_bytes.len() * STEP]; ROWS];
    for (index, curve) in curves.iter().enumerate() {
        for point in &curve.points {
            let from_top = (1.0 - scale.place(Scale::value(scale.mode, point))) * ROWS as f64;
            let row = (0..ROWS - 1).find(|&row| from_top < row as f64 + 1.0).unwrap_or(ROWS - 1);
            let column =
                sizes_bytes.iter().position(|&bytes| bytes == point.program.bytes()).unwrap_or(0);
            let cell = &mut grid[row][column * STEP + STEP / 2];
            *cell = if *cell == ' ' { letter(index) } else { '*' };
        }
    }
    let labels = scale.ticks(6.0);
    let mut text = String::new();
    for (row, cells) in grid.iter().enumerate() {
        let within = |&&value: &&f64| {
            let from_top = (1.0 - scale.place(value)) * ROWS as f64;
            (row as f64..row as f64 + 1.0).contains(&from_top)
                || (row == ROWS - 1 && from_top >= ROWS as f64)
        };
        let label = labels.iter().find(within).map_or(String::new(), |&value| match scale.mode {
            Mode::Latency => time(value),
            Mode::Throughput => format!("{} MB/s", plain(value)),
        });
        let cells: String = cells.iter().collect();
        text += &format!("{label:>10} |{}\n", cells.trim_end());
    }
    text += &format!("{:>10} +{}\n{:>12}", "", "-".repeat(sizes_bytes.len() * STEP), "");
    for (index, bytes) in sizes_bytes.iter().enumerate() {
        let label = short(bytes / conditions.line_bytes);
        text += &if index % 2 == 0 { format!("{label:^STEP$}") } else { " ".repeat(STEP) };
    }
    text = text.trim_end().to_owned() + " lines\n";
    let overlaps = grid.iter().flatten().any(|&cell| cell == '*');
    text + &if overlaps { wrapped("* stands for several.") } else { String::new() }
}

/// A count in four characters at most.
fn short(count: usize) -> String {
    match count {
        count if count >= 1 << 20 => format!("{}M", count >> 20),
        count if count >= 1 << 10 => format!("{}k", count >> 10),
        count => count.to_string(),
    }
}

/// The curves as SVG.
pub(super) fn picture(conditions: &Conditions, all: &[Simulated]) -> String {
    let (curves, sizes) = (curves(all), sizes_bytes(all));
    let scale = Scale::of(all);
    let mut svg = Svg::new(1120.0);
    let machine = &conditions.machine;
    let of = all.first().map_or(String::new(), |one| {
        let Query { collective, pes, .. } = one.program.query;
        format!("{collective} on {}, {pes} PEs", machine.name)
    });
    let title = format!("{of}: {} by size", scale.mode.name());
    svg.text((20.0, 30.0), 19, Anchor::Start, &title);
    let subtitle = format!("{} · {}", machine.title, conditions.how());
    svg.text((20.0, 52.0), 13, Anchor::Start, &subtitle);
    let x = |index: usize| LEFT + (index as f64 + 0.5) / sizes.len() as f64 * WIDTH;
    let y = |value: f64| TOP + (1.0 - scale.place(value)) * HEIGHT;
    for value in scale.ticks(10.0) {
        svg.line((LEFT, y(value)), (LEFT + WIDTH, y(value)), FAINT, 1.0);
        let label = match scale.mode {
            Mode::Latency => format!("{} us", plain(value / 1e3)),
            Mode::Throughput => format!("{} MB/s", plain(value)),
        };
        svg.text((LEFT - 8.0, y(value) + 4.0), 12, Anchor::End, &label);
    }
    svg.line((LEFT, TOP), (LEFT, TOP + HEIGHT), INK, 1.0);
    svg.line((LEFT, TOP + HEIGHT), (LEFT + WIDTH, TOP + HEIGHT), INK, 1.0);
    for (index, bytes) in sizes.iter().enumerate() {
        let label = short(bytes / conditions.line_bytes);
        svg.text((x(index), TOP + HEIGHT + 18.0), 12, Anchor::Middle, &label);
    }
    let axis = format!("lines of {} B", conditions.line_bytes);
    svg.text((LEFT + WIDTH / 2.0, TOP + HEIGHT + 40.0), 13, Anchor::Middle, &axis);
    for (index, curve) in curves.iter().enumerate() {
        let (ink, dashed) = (INKS[index % INKS.len()], index / INKS.len() % 2 == 1);
        let place = |point: &&Simulated| {
            let column =
                sizes.iter().position(|&bytes| bytes == point.program.bytes()).unwrap_or(0);
            (x(column), y(Scale::value(scale.mode, point)))
        };
        let points: Vec<(f64, f64)> = curve.points.iter().map(place).collect();
        svg.curve(&points, ink, dashed);
        for (&at, point) in points.iter().zip(&curve.points) {
            let label = scale.label(Scale::value(scale.mode, point));
            let title = format!("{}, {} B: {label}", curve.candidate, point.program.bytes());
            svg.disc(at, 3.0, ink, &title);
        }
        let height = TOP + 10.0 + 22.0 * index as f64;
        svg.curve(&[(LEFT + WIDTH + 20.0, height), (LEFT + WIDTH + 50.0, height)], ink, dashed);
        let name = brief(curve.candidate);
        svg.text((LEFT + WIDTH + 58.0, height + 4.0), 12, Anchor::Start, &name);
    }
    svg.finish((TOP + HEIGHT + 60.0).max(TOP + 30.0 + 22.0 * curves.len() as f64))
}
