//! Plots of figures: times over sizes or numbers of PEs, or bars if there is only one of each.

use std::collections::BTreeMap;

use consort_bench::{harness::Figure, units};
use consort_report::{Axis, Bar, Bars, Document, Group, Lines, Point, Scale, Series};
use consort_tuner::TransferClass;

use consort_console::report::axes;

/// The most lines that a plot highlights. A plot with more lines highlights those that are fastest
/// somewhere.
const MOST_LINES: usize = 10;
/// The name of the line of Consort's choices, if they vary.
const CHOICE: &str = "Consort's choice *";
/// The kinds of bars.
const KINDS: [&str; 3] = ["Consort", "other libraries", "limits of the machine"];

/// Adds a section of plots: one for each workload and class of the transfer. `name` returns the
/// name of a line.
pub(crate) fn plots(document: &mut Document, figures: &[Figure], name: &dyn Fn(&Figure) -> String) {
    let mut titles: Vec<&'static str> = figures.iter().map(|figure| figure.bench).collect();
    titles.dedup();
    let (mut has_title, mut looks) = (false, Vec::new());
    for (index, bench) in titles.iter().enumerate() {
        if titles[..index].contains(bench) {
            continue;
        }
        for class in [Some(TransferClass::Near), Some(TransferClass::Far), None] {
            let is_here = |figure: &&Figure| {
                (figure.bench, figure.c2c_class) == (*bench, class) && figure.median_ns.is_some()
            };
            let these: Vec<&Figure> = figures.iter().filter(is_here).collect();
            if these.iter().all(|figure| figure.is_limit()) {
                continue;
            }
            if !has_title {
                document.section("Plots");
                has_title = true;
            }
            let title = title(bench, class, &these);
            plot(document, &title, &these, name, &mut looks);
        }
    }
}

fn title(bench: &str, class: Option<TransferClass>, figures: &[&Figure]) -> String {
    let class = class.map(|class| format!(", cores {class}")).unwrap_or_default();
    let pes = distinct(figures, |figure| Some(u64::from(figure.pes)));
    let pes = match pes[..] {
        [pes] => format!(", {}", units::counted(pes, "PE")),
        _ => String::new(),
    };
    format!("{bench}{pes}{class}")
}

/// Returns the distinct values of figures.
fn distinct(figures: &[&Figure], of: impl Fn(&Figure) -> Option<u64>) -> Vec<u64> {
    let mut values: Vec<u64> = figures.iter().filter_map(|figure| of(figure)).collect();
    values.sort_unstable();
    values.dedup();
    values
}

/// Returns whether Consort chose several algorithms.
fn choices_differ(figures: &[&Figure]) -> bool {
    let mut chosen = figures.iter().filter(|figure| figure.chosen);
    let of = |figure: &&Figure| (figure.algorithm.clone(), figure.params.clone());
    let first = chosen.next().map(of);
    chosen.any(|figure| Some(of(figure)) != first)
}

/// Returns a line's name, with the properties that differ between Consort's figures.
fn full_name(figure: &Figure, all: &[&Figure], name: &dyn Fn(&Figure) -> String) -> String {
    let mut text =
        if figure.chosen && choices_differ(all) { CHOICE.to_owned() } else { name(figure) };
    let differs = |of: fn(&Figure) -> Option<&str>| {
        let mut values = all.iter().filter(|one| one.is_ours()).filter_map(|one| of(one));
        let first = values.next();
        values.any(|value| Some(value) != first)
    };
    let sync: fn(&Figure) -> Option<&str> = |one| one.sync.as_deref();
    let fabric: fn(&Figure) -> Option<&str> = |one| Some(&one.fabric);
    for of in [sync, fabric] {
        if differs(of) && figure.is_ours() {
            text += &of(figure).map_or(String::new(), |value| format!(", {value}"));
        }
    }
    text
}

/// Adds a plot. `looks` are the names of all lines so far: a name looks alike in all plots.
fn plot(
    document: &mut Document,
    title: &str,
    figures: &[&Figure],
    name: &dyn Fn(&Figure) -> String,
    looks: &mut Vec<String>,
) {
    let sizes = distinct(figures, |figure| figure.bytes.map(|bytes| bytes as u64));
    let pes = distinct(figures, |figure| Some(u64::from(figure.pes)));
    let over_sizes = sizes.len() > 1;
    if !over_sizes && pes.len() < 2 {
        bars(document, title, figures, name);
        return;
    }
    let place = |figure: &Figure| -> Option<(f64, String)> {
        if over_sizes {
            let bytes = figure.bytes? as u64;
            Some((bytes as f64, units::size(bytes)))
        } else {
            Some((f64::from(figure.pes), units::counted(figure.pes, "PE")))
        }
    };
    let mut series: Vec<Series> = Vec::new();
    let mut best: BTreeMap<u64, (f64, String)> = BTreeMap::new();
    for figure in figures {
        let (Some((x, x_text)), Some(ns)) = (place(figure), figure.median_ns) else { continue };
        let mut line = full_name(figure, figures, name);
        if over_sizes && pes.len() > 1 {
            line += &format!(", {}", units::counted(figure.pes, "PE"));
        }
        let by =
            if line.starts_with(CHOICE) { format!(" by {}", name(figure)) } else { String::new() };
        let y_text = axes::within(ns, figure.ci95_ns) + &by;
        let point = Point { x, y: ns, interval: figure.ci95_ns, x_text, y_text };
        if !figure.is_limit() {
            let least = best.entry(x.to_bits()).or_insert((ns, line.clone()));
            if ns < least.0 {
                *least = (ns, line.clone());
            }
        }
        match series.iter_mut().find(|one| one.name == line) {
            Some(one) => one.points.push(point),
            None => series
                .push(Series { is_limit: figure.is_limit(), ..Series::new(line, vec![point]) }),
        }
    }
    for one in &mut series {
        one.points.sort_by(|a, b| a.x.total_cmp(&b.x));
        one.look = looks.iter().position(|name| *name == one.name).or_else(|| {
            looks.push(one.name.clone());
            Some(looks.len() - 1)
        });
    }
    if series.iter().filter(|one| !one.is_limit).count() > MOST_LINES {
        let wins = |name: &str| best.values().any(|(_, best)| best == name);
        for one in series.iter_mut().filter(|one| !one.is_limit) {
            one.is_faint = !wins(&one.name) && !one.name.contains('*');
        }
    }
    let x = if over_sizes {
        axes::sizes("Size of a block")
    } else {
        Axis::new("Number of PEs", Scale::Log2)
    };
    let y = times_of(figures, Scale::Log);
    document.curves(&Lines { title: title.to_owned(), x, y, series, diagonal: None });
}

/// Returns the axis for the times of figures.
fn times_of(figures: &[&Figure], scale: Scale) -> Axis {
    let times = figures.iter().filter_map(|figure| figure.median_ns);
    axes::times("Time of a call (median)", scale, times.fold(0.0, f64::max))
}

/// Adds a bar for each figure.
fn bars(
    document: &mut Document,
    title: &str,
    figures: &[&Figure],
    name: &dyn Fn(&Figure) -> String,
) {
    let kind = |figure: &Figure| match (figure.is_ours(), figure.is_limit()) {
        (true, _) => 0,
        (_, false) => 1,
        (_, true) => 2,
    };
    let group = |figure: &&Figure| -> Option<Group> {
        let (ns, interval) = (figure.median_ns?, figure.ci95_ns);
        let text = units::time(ns);
        let bar = Bar { series: kind(figure), value: ns, interval, text };
        Some(Group { name: full_name(figure, figures, name), bars: vec![bar] })
    };
    let scale = axes::scale_of(figures.iter().filter_map(|figure| figure.median_ns));
    let size = figures.first().and_then(|figure| figure.bytes);
    let size = size.filter(|size| figures.iter().all(|figure| figure.bytes == Some(*size)));
    let size = size.map_or(String::new(), |bytes| format!(" of {}", units::size(bytes as u64)));
    document.bars(&Bars {
        title: format!("{title}{size}"),
        axis: times_of(figures, scale),
        of: "library or algorithm".to_owned(),
        series: KINDS[..=figures.iter().map(|one| kind(one)).max().unwrap_or(0)]
            .iter()
            .map(|kind| (*kind).to_owned())
            .collect(),
        groups: figures.iter().filter_map(group).collect(),
        stacked: false,
    });
}

#[cfg(test)]
mod tests {
    use consort_bench::harness::Mode;

    use super::*;

    fn figure(algorithm: &str, bytes: Option<usize>, ns: f64) -> Figure {
        Figure {
            algorithm: Some(algorithm.to_owned()),
            sync: Some("mine".to_owned()),
            bytes,
            median_ns: Some(ns),
            ci95_ns: Some((0.9 * ns, 1.1 * ns)),
            ..Figure::of("broadcast", 2, Mode::Throughput)
        }
    }

    fn html(figures: &[Figure]) -> String {
        let mut document = Document::default();
        let name =
            |figure: &Figure| figure.peer.clone().or(figure.algorithm.clone()).unwrap_or_default();
        plots(&mut document, figures, &name);
        document.html()
    }

    #[test]
    fn several_sizes_draw_curves_and_one_draws_bars() {
        let peer = Figure { peer: Some("std".to_owned()), ..figure("", Some(8), 900.0) };
        let one = [figure("flat", Some(8), 100.0), peer];
        let drawn = html(&one);
        assert!(drawn.contains("figure class=\"plot bars\"") && drawn.contains("other libraries"));
        let several = [&one[..], &[figure("flat", Some(8192), 4000.0)]].concat();
        let drawn = html(&several);
        assert!(drawn.contains("figure class=\"plot lines\""), "{drawn}");
        assert!(drawn.contains("flat\n8 KiB: 4.00 us (95 %: 3.60 us to 4.40 us)"), "{drawn}");
        assert!(drawn.contains("Time of a call (median), us"), "{drawn}");
    }

    #[test]
    fn line_names_hold_only_what_differs() {
        let strict = Figure { sync: Some("strict".to_owned()), ..figure("flat", Some(8), 1.0) };
        let drawn = html(&[strict, figure("flat", Some(64), 2.0)]);
        assert!(drawn.contains("<span>flat, strict</span>"), "{drawn}");
        let drawn = html(&[figure("flat", Some(8), 1.0), figure("flat", Some(64), 2.0)]);
        assert!(drawn.contains("<span>flat</span>"), "{drawn}");
    }

    #[test]
    fn chosen_algorithms_form_one_line() {
        let chosen = |algorithm: &str, bytes, ns| Figure {
            chosen: true,
            ..figure(algorithm, Some(bytes), ns)
        };
        let drawn = html(&[chosen("flat", 8, 1.0), chosen("direct", 64, 2.0)]);
        assert!(drawn.contains("<span>Consort&#39;s choice *</span>"), "{drawn}");
        assert!(drawn.contains("2.20 ns) by direct</title>"), "{drawn}");
        let drawn = html(&[chosen("flat", 8, 1.0), chosen("flat", 64, 2.0)]);
        assert!(drawn.contains("<span>flat</span>"), "{drawn}");
    }

    #[test]
    fn a_line_looks_the_same_in_all_plots() {
        let of = |bench, algorithm| {
            [8, 64].map(|bytes| Figure { bench, ..figure(algorithm, Some(bytes), bytes as f64) })
        };
        let drawn = html(
            &[of("broadcast", "flat"), of("broadcast", "tree"), of("reduce", "tree")].concat(),
        );
        assert_eq!(drawn.matches("<g class=\"series c0\"").count(), 1 + 2, "{drawn}");
        assert_eq!(drawn.matches("<g class=\"series c1\"").count(), 2 * (1 + 2), "{drawn}");
    }

    #[test]
    fn lines_that_are_best_somewhere_stand_out() {
        let many: Vec<Figure> = (0..14_u16)
            .flat_map(|index| {
                let ns = 100.0 + f64::from(index);
                let name = format!("a{index}");
                [figure(&name, Some(8), ns), figure(&name, Some(64), 2.0 * ns)]
            })
            .collect();
        let drawn = html(&many);
        assert_eq!(drawn.matches("faint\" data-s").count(), 2 * 13, "{drawn}");
        assert!(html(&[]).matches("<figure").count() == 0);
    }
}
