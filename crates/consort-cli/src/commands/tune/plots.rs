//! Plots of a tuning run: the choices by size, their times, and the times of simpler algorithms and
//! of a thread library.

use std::collections::BTreeMap;

use consort::{
    sync_modes::SyncModes,
    tune::{Collective, Query},
};
use consort_bench::{
    harness::comparison::Point as Compared,
    units::{counted, size},
};
use consort_report::{Bar, Bars, Document, Group, Heat, HeatCell, Lines, Point, Scale, Series};
use consort_tuner::{Entry, Grid, Wisdom};

use super::page::{ReportData, row};
use consort_console::{output::time, report::axes};

/// Adds a section for each collective.
pub(super) fn plots(document: &mut Document, story: &ReportData<'_>) {
    let Some(grid) = story.grid else { return };
    let all: Vec<(Collective, Rows<'_>)> = grid
        .collectives
        .iter()
        .map(|&collective| (collective, rows(grid, story.wisdom, collective)))
        .collect();
    let algorithms = algorithms(all.iter().flat_map(|(_, rows)| rows));
    for (collective, rows) in all {
        let points: Vec<&Compared> =
            story.points.iter().filter(|point| point.query.collective == collective).collect();
        let has_sizes = collective != Collective::Barrier && !rows.is_empty();
        if !has_sizes && points.is_empty() {
            continue;
        }
        document.section(collective.to_string());
        if has_sizes {
            choices(document, collective, &rows, &algorithms);
            times(document, collective, &rows);
        }
        compared(document, collective, &points);
    }
}

/// The entries of a collective in symmetric memory, by number of PEs and mode.
type Rows<'w> = Vec<Row<'w>>;

type Row<'w> = ((u32, SyncModes), Vec<&'w Entry>);

fn rows<'w>(grid: &Grid, wisdom: &'w Wisdom, collective: Collective) -> Rows<'w> {
    let kinds = grid.pes.iter().flat_map(|&pes| grid.syncs.iter().map(move |&sync| (pes, sync)));
    let rows = kinds.map(|(pes, sync)| ((pes, sync), row(wisdom, collective, pes, sync)));
    rows.filter(|(_, entries)| !entries.is_empty()).collect()
}

fn name((pes, sync): (u32, SyncModes)) -> String {
    format!("{}, {sync}", counted(pes, "PE"))
}

/// Returns the algorithms of all collectives, the most frequent first: an algorithm has one colour
/// and one letter in all maps.
fn algorithms<'w, 'r>(rows: impl Iterator<Item = &'r Row<'w>>) -> Vec<String>
where
    'w: 'r,
{
    let mut wins: BTreeMap<&str, usize> = BTreeMap::new();
    for entry in rows.flat_map(|(_, entries)| entries) {
        *wins.entry(entry.choice.algorithm.as_str()).or_default() += 1;
    }
    let mut algorithms: Vec<(&str, usize)> = wins.into_iter().collect();
    algorithms.sort_by_key(|(name, wins)| (usize::MAX - wins, *name));
    algorithms.into_iter().map(|(name, _)| name.to_owned()).collect()
}

/// Adds a map of the choices, those that the model estimated too.
fn choices(
    document: &mut Document,
    collective: Collective,
    rows: &Rows<'_>,
    algorithms: &[String],
) {
    let entries = rows.iter().flat_map(|(_, entries)| entries);
    let mut sizes: Vec<u64> = entries.map(|entry| entry.query.bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let cell = |entry: &&Entry| {
        let class = algorithms.iter().position(|name| *name == entry.choice.algorithm)?;
        let text = format!(
            "{}: {} ({})",
            entry.choice.brief(),
            axes::within(entry.median_ns, entry.ci95_ns),
            entry.confidence
        );
        let doubt = if entry.is_measured() { "" } else { "?" };
        Some(HeatCell { class, mark: Heat::letter(class) + doubt, text })
    };
    let map_row = |(kind, entries): &((u32, SyncModes), Vec<&Entry>)| {
        let at = |bytes: &u64| entries.iter().find(|entry| entry.query.bytes == *bytes);
        (name(*kind), sizes.iter().map(|bytes| at(bytes).and_then(cell)).collect())
    };
    document.heat(&Heat {
        title: format!("{collective}: the choices in symmetric memory (?: by the model)"),
        x_title: "Size of a block, bytes".to_owned(),
        y_title: "PEs and mode of synchronization".to_owned(),
        value_title: "Choice".to_owned(),
        columns: sizes.iter().map(|&bytes| size(bytes)).collect(),
        rows: rows.iter().map(map_row).collect(),
        classes: algorithms.to_vec(),
        is_ramp: false,
    });
}

/// Adds curves of the measured times of the choices.
fn times(document: &mut Document, collective: Collective, rows: &Rows<'_>) {
    let point = |entry: &&Entry| {
        let (bytes, ns) = (entry.query.bytes, entry.median_ns);
        let y_text = format!("{} by {}", axes::within(ns, entry.ci95_ns), entry.choice.brief());
        Point { x: bytes as f64, y: ns, interval: entry.ci95_ns, x_text: size(bytes), y_text }
    };
    let series = |(kind, entries): &((u32, SyncModes), Vec<&Entry>)| {
        let measured = entries.iter().filter(|entry| entry.is_measured());
        Series::new(name(*kind), measured.map(point).collect())
    };
    let mut series: Vec<Series> = rows.iter().map(series).collect();
    series.retain(|one| !one.points.is_empty());
    let all = series.iter().flat_map(|one| one.points.iter().map(|point| point.y));
    document.curves(&Lines {
        title: format!("{collective}: the time of the choices"),
        x: axes::sizes("Size of a block"),
        y: axes::times("Time of a call (median)", Scale::Log, all.fold(0.0, f64::max)),
        series,
        diagonal: None,
    });
}

/// Adds bars of the choices next to simpler algorithms and the thread library.
fn compared(document: &mut Document, collective: Collective, points: &[&Compared]) {
    const WAYS: [&str; 4] = ["tuned", "k-nomial tree", "flat tree", "thread library"];
    let of = |&Compared { chosen_ns, tree_ns, flat_ns, library_ns, .. }: &Compared| {
        [chosen_ns, tree_ns, flat_ns, library_ns]
    };
    let group = |point: &&Compared| {
        let intervals =
            [point.chosen_ci95_ns, point.tree_ci95_ns, point.flat_ci95_ns, point.library_ci95_ns];
        let bars = of(point).into_iter().zip(intervals).enumerate();
        let bars = bars.filter_map(|(series, (ns, interval))| {
            let value = ns?;
            Some(Bar { series, value, interval, text: time(value) })
        });
        let Query { pes, bytes, .. } = point.query;
        let sized = if bytes > 0 { format!(", {}", size(bytes)) } else { String::new() };
        Group { name: format!("{}{sized}", counted(pes, "PE")), bars: bars.collect() }
    };
    let all = || points.iter().flat_map(|point| of(point)).flatten();
    document.bars(&Bars {
        title: format!("{collective}: tuned, and by simpler means"),
        axis: axes::times(
            "Time of a call",
            axes::scale_of(points.iter().flat_map(|point| of(point)).flatten()),
            all().fold(0.0, f64::max),
        ),
        of: "call".to_owned(),
        series: WAYS.map(str::to_owned).into(),
        groups: points.iter().map(group).collect(),
        stacked: false,
    });
}
