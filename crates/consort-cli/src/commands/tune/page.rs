//! All results of a tuning run: the gains, the fastest algorithms, the costs of the modes, and
//! contradictions. `summary` selects the results that a newcomer needs.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::Result;
use consort::{
    launch::Fabric,
    sync_modes::SyncModes,
    tune::{Collective, Query},
};
use consort_bench::{gain, harness::comparison::Point, page::Page, units};
use consort_fabric::OperatorClass;
use consort_tuner::{Confidence, Entry, Grid, Inconsistency, Outcome, StopReason, Wisdom};
use serde::Serialize;
use serde_json::Value;

use super::mix::ReplayResult;
use crate::wisdom_file::Record;
use consort_console::output::{ratio, time};

/// The most kinds of recorded calls that are shown.
const MOST_RECORDED: usize = 20;
/// The most contradictions that are shown.
const MOST_CONTRADICTIONS: usize = 4;

/// The output of `--json`.
#[derive(Debug, Serialize)]
pub(super) struct TuneOutput<'s> {
    wisdom: PathBuf,
    machine: String,
    ending: &'static str,
    elapsed_seconds: f64,
    measured_count: usize,
    refined_count: usize,
    kept_count: usize,
    entries: Vec<Record>,
    comparison: Vec<Point>,
    /// Recorded calls, before and after; null without `--record`.
    replayed: Option<&'s ReplayResult>,
    contradictions: Vec<String>,
}

/// The data of a report.
pub(super) struct ReportData<'s> {
    /// The fabric of the PEs.
    pub(super) fabric: Fabric,
    /// The grid, unless recorded calls are tuned.
    pub(super) grid: Option<&'s Grid>,
    pub(super) path: &'s Path,
    pub(super) wisdom: &'s Wisdom,
    pub(super) outcome: &'s Outcome,
    pub(super) points: &'s [Point],
    pub(super) replayed: Option<&'s ReplayResult>,
    pub(super) contradictions: &'s [Inconsistency],
}

impl ReportData<'_> {
    pub(super) fn json(&self) -> TuneOutput<'_> {
        TuneOutput {
            wisdom: self.path.to_owned(),
            machine: self.wisdom.identity().machine.clone(),
            ending: match self.outcome.ending {
                StopReason::Complete => "complete",
                StopReason::OutOfBudget => "out-of-budget",
                StopReason::Stopped => "stopped",
            },
            elapsed_seconds: self.outcome.elapsed.as_secs_f64(),
            measured_count: self.outcome.measured_count,
            refined_count: self.outcome.refined_count,
            kept_count: self.outcome.kept_count,
            entries: self.wisdom.entries().map(Record::from).collect(),
            comparison: self.points.to_vec(),
            replayed: self.replayed,
            contradictions: self.contradictions.iter().map(ToString::to_string).collect(),
        }
    }

    /// Returns a row for each entry of the wisdom.
    pub(super) fn rows(&self) -> Result<Vec<Value>> {
        let rows = self.wisdom.entries().map(|entry| serde_json::to_value(Record::from(entry)));
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns all tables.
    pub(super) fn page(&self) -> Page {
        let mut page = Page::default();
        if !self.points.is_empty() {
            gains(&mut page, self.points);
            strictness(&mut page, self.points);
        }
        self.replayed.iter().for_each(|replayed| replayed.show(&mut page, MOST_RECORDED));
        self.grid.iter().for_each(|grid| winners(&mut page, grid, self.wisdom));
        contradictions(&mut page, self.contradictions);
        page
    }
}

/// Adds a table of the choices against the thread library and simpler algorithms.
fn gains(page: &mut Page, points: &[Point]) {
    let sync = points
        .iter()
        .map(|point| &point.query)
        .find(|query| query.collective != Collective::Barrier)
        .map(|query| format!(", mode {}", query.sync))
        .unwrap_or_default();
    let has_library = points.iter().any(|point| point.library.is_some());
    let columns =
        ["collective", "PEs", "bytes", "threads", "flat", "tree (radix)", "tuned", "by", "gain"];
    let time_or_dash = |ns: Option<f64>| ns.map_or("-".to_owned(), time);
    let mut rows = Vec::new();
    for point in points {
        let Point { query, library_ns, flat_ns, tree_radix, tree_ns, .. } = point;
        let radix = tree_radix.map(|radix| format!(" ({radix})")).unwrap_or_default();
        rows.push(vec![
            query.collective.to_string(),
            query.pes.to_string(),
            size(query),
            time_or_dash(*library_ns),
            time_or_dash(*flat_ns),
            time_or_dash(*tree_ns) + &radix,
            time_or_dash(point.chosen_ns),
            point.chosen.brief(),
            point.gain().map_or("-".to_owned(), |gain| gain::brief(&gain)),
        ]);
    }
    page.lines(format!("Time of a call, in a row of calls{sync}\n"));
    if has_library {
        page.lines(
            "threads: the faster of pthread's and std's\n\
             gain: threads / tuned, with its 95 % interval\n\
             ~: no difference found; ?: too few launches\n",
        );
    }
    page.table(columns, rows, [1, 2, 3, 4, 5, 6, 8]);
}

/// Adds a table of the ratios of Strict to Loose.
fn strictness(page: &mut Page, points: &[Point]) {
    let mut all: BTreeMap<(Collective, u32), BTreeMap<u64, String>> = BTreeMap::new();
    let mut sizes = Vec::new();
    for point in points {
        let Some(strictness) = point.strictness() else { continue };
        let Query { collective, pes, bytes, .. } = point.query;
        all.entry((collective, pes)).or_default().insert(bytes, ratio(strictness));
        sizes.push(bytes);
    }
    if all.is_empty() {
        return;
    }
    sizes.sort_unstable();
    sizes.dedup();
    let header = ["collective".to_owned(), "PEs".to_owned()].into_iter();
    let header = header.chain(sizes.iter().map(|&size| units::size(size)));
    let mut rows = Vec::new();
    for ((collective, pes), ratios) in all {
        let own = [collective.to_string(), pes.to_string()].into_iter();
        let ratios = sizes.iter().map(|size| ratios.get(size).cloned().unwrap_or_default());
        rows.push(own.chain(ratios).collect());
    }
    page.lines("\nTime of a Strict call / a Loose call\n");
    page.table(header, rows, 1..sizes.len() + 2);
}

/// Adds a table of the fastest algorithms by size, for each mode.
fn winners(page: &mut Page, grid: &Grid, wisdom: &Wisdom) {
    let mut rows = Vec::new();
    for &collective in grid.collectives.iter().filter(|&&c| c != Collective::Barrier) {
        for &pes in &grid.pes {
            for &sync in &grid.syncs {
                let mut row = row(wisdom, collective, pes, sync);
                row.retain(|entry| entry.is_measured());
                if let Some(ranges) = ranges(&row) {
                    rows.push(vec![
                        collective.to_string(),
                        pes.to_string(),
                        sync.to_string(),
                        ranges,
                    ]);
                }
            }
        }
    }
    if !rows.is_empty() {
        page.lines("\nThe fastest algorithms in symmetric memory, as measured\n");
        page.table(["collective", "PEs", "mode", "fastest, by size"], rows, [1]);
    }
}

/// Returns the entries for symmetric memory and commutative operators, by size.
pub(super) fn row(
    wisdom: &Wisdom,
    collective: Collective,
    pes: u32,
    sync: SyncModes,
) -> Vec<&Entry> {
    let operator = OperatorClass::Commutative;
    let is_in = |entry: &&Entry| {
        let bytes = entry.query.bytes;
        let wanted = Query { collective, sync, pes, bytes, operator, symmetric: true };
        entry.query == wanted
    };
    wisdom.entries().filter(is_in).collect()
}

/// Returns the winners by size, as in `flat, from 512 B direct`. A changed parameter, or a tie,
/// does not change the winner.
fn ranges(row: &[&Entry]) -> Option<String> {
    let mut winner = row.first()?.choice.algorithm.as_str();
    let mut text = winner.to_owned();
    for entry in &row[1..] {
        let second = entry.runner_up.as_ref().map(|second| second.candidate.algorithm.as_str());
        let is_tie = entry.confidence == Confidence::Tie && second == Some(winner);
        if entry.choice.algorithm != winner && !is_tie {
            winner = &entry.choice.algorithm;
            text += &format!(", from {} {winner}", units::size(entry.query.bytes));
        }
    }
    Some(text)
}

/// Adds the contradictions with the largest ratios, and their number.
fn contradictions(page: &mut Page, contradictions: &[Inconsistency]) {
    let count = contradictions.len();
    if count == 0 {
        return;
    }
    let ratio_of = |one: &Inconsistency| one.less_ns / one.more_ns;
    let mut worst: Vec<&Inconsistency> = contradictions.iter().collect();
    worst.sort_by(|one, other| ratio_of(other).total_cmp(&ratio_of(one)));
    let mut rows = Vec::new();
    for one in worst.into_iter().take(MOST_CONTRADICTIONS) {
        rows.push(vec![
            one.less.to_string(),
            time(one.less_ns),
            describe_all(&one.more),
            time(one.more_ns),
            ratio(ratio_of(one)),
        ]);
    }
    let worst = if count > MOST_CONTRADICTIONS { ", the largest of them" } else { "" };
    page.lines(format!("\nContradictions, noise or room for a better algorithm: {count}{worst}\n"));
    page.table(["does less", "time", "does more", "time", "ratio"], rows, [1, 3, 4]);
}

fn describe_all(queries: &[Query]) -> String {
    queries.iter().map(Query::to_string).collect::<Vec<_>>().join(" and then ")
}

/// Returns the size of a point; nothing for a barrier.
fn size(query: &Query) -> String {
    if query.collective == Collective::Barrier { String::new() } else { units::size(query.bytes) }
}
