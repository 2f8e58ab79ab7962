//! The report of a tuning run, for newcomers: the gain, the fastest algorithms, the costs of the
//! modes, contradictions, and the path of the wisdom.

use std::{
    collections::BTreeMap,
    env,
    path::{Path, PathBuf},
};

use consort::{Collective, Fabric, Query, SyncModes};
use consort_bench::{asked::describe, harness::comparison::Point, units};
use consort_fabric::OperatorClass;
use consort_tuner::{
    Confidence, Ending, Entry, Grid, Inconsistency, Outcome, Wisdom, default_path,
};
use serde::Serialize;

use super::mix::Replayed;
use crate::output::{brief, finish, ratio, record::Record, table, time};

/// The most contradictions that are shown.
const MOST_CONTRADICTIONS: usize = 4;

/// The output of `--json`.
#[derive(Debug, Serialize)]
pub(super) struct Report<'s> {
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
    replayed: Option<&'s Replayed>,
    contradictions: Vec<String>,
}

/// The data of a report.
pub(super) struct Story<'s> {
    /// What the PEs are.
    pub(super) fabric: Fabric,
    /// The grid, unless what was recorded is tuned.
    pub(super) grid: Option<&'s Grid>,
    pub(super) path: &'s Path,
    pub(super) wisdom: &'s Wisdom,
    pub(super) outcome: &'s Outcome,
    pub(super) points: &'s [Point],
    pub(super) replayed: Option<&'s Replayed>,
    pub(super) contradictions: &'s [Inconsistency],
}

impl Story<'_> {
    pub(super) fn json(&self) -> Report<'_> {
        Report {
            wisdom: self.path.to_owned(),
            machine: self.wisdom.identity().machine.clone(),
            ending: match self.outcome.ending {
                Ending::Complete => "complete",
                Ending::OutOfBudget => "out-of-budget",
                Ending::Stopped => "stopped",
            },
            elapsed_seconds: self.outcome.elapsed.as_secs_f64(),
            measured_count: self.outcome.measured_count,
            refined_count: self.outcome.refined_count,
            kept_count: self.outcome.kept_count,
            entries: self.wisdom.entries().map(Record::from).collect(),
            comparison: self.points.to_vec(),
            replayed: self.replayed,
            contradictions: self.contradictions.iter().map(contradiction).collect(),
        }
    }

    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        if !self.points.is_empty() {
            text += &gains(self.points);
            text += &strictness(self.points);
        }
        text += &self.replayed.map(Replayed::text).unwrap_or_default();
        text += &self.grid.map(|grid| winners(grid, self.wisdom)).unwrap_or_default();
        text += &contradictions(self.contradictions);
        text + &self.ending()
    }

    /// The summary of the run, and the path of the wisdom.
    fn ending(&self) -> String {
        let Outcome { ending, measured_count, refined_count, kept_count, elapsed, .. } =
            *self.outcome;
        let mut text = format!(
            "\nQueries measured: {measured_count} in {:.0} s, {refined_count} of them where the \
             winner changes",
            elapsed.as_secs_f64()
        );
        if kept_count > 0 {
            text += &format!("; {kept_count} kept from before");
        }
        text += ".\n";
        let known = self.wisdom.entries().filter(|entry| entry.is_measured()).count();
        let open = self.wisdom.entries().len() - known;
        text += &format!("Wisdom is in {}", self.path.display());
        // What was measured in other runs, of calls that this one was not asked for.
        let others = known.saturating_sub(measured_count + kept_count);
        let others =
            if others > 0 { format!(" ({others} of them of other calls)") } else { String::new() };
        text += &format!(":\n{known} queries measured{others}, {open} estimated by the model.\n");
        text += match ending {
            Ending::Complete => "",
            Ending::OutOfBudget => "The time was over: run it again to go on.\n",
            Ending::Stopped => "It was stopped: run it again to go on.\n",
        };
        let default = default_path(self.wisdom.identity().arrival);
        let is_default = default.is_ok_and(|path| self.fabric.path_of_wisdom(path) == self.path);
        let is_named = env::var_os("CONSORT_WISDOM").is_some_and(|path| !path.is_empty());
        let path = self.path.display();
        text += &match (is_default, is_named, self.fabric) {
            (true, true, Fabric::Threads) => {
                "Programs use it while CONSORT_WISDOM names it.\n".to_owned()
            }
            (true, false, Fabric::Threads) => {
                "Every program of yours on this machine uses it from now on.\n".to_owned()
            }
            (true, true, fabric) => {
                let start = start(fabric);
                format!("Programs that {start} use it while CONSORT_WISDOM does not change.\n")
            }
            (true, false, fabric) => {
                let start = start(fabric);
                format!("All programs that {start} use it from now on.\n")
            }
            (false, _, Fabric::Threads) => {
                format!("Programs use it with CONSORT_WISDOM={path} or Pes::wisdom.\n")
            }
            (false, _, fabric) => {
                format!("Programs that {} use it by Pes::wisdom.\n", start(fabric))
            }
        };
        text + "`consort explain` shows how a choice was won.\n"
    }
}

/// How programs are started whose PEs are no threads.
fn start(fabric: Fabric) -> &'static str {
    match fabric {
        Fabric::Mpi(_) => "`mpirun` starts on machines with one process each",
        Fabric::Mixed(_) => "`mpirun` starts so on several machines",
        _ => "`consort run` or `mpirun` starts on one machine",
    }
}

/// A table of the choices against the thread library and simpler algorithms.
fn gains(points: &[Point]) -> String {
    let sync = points
        .iter()
        .map(|point| &point.query)
        .find(|query| query.collective != Collective::Barrier)
        .map(|query| format!(", mode {}", query.sync))
        .unwrap_or_default();
    let has_library = points.iter().any(|point| point.library.is_some());
    let columns =
        ["collective", "PEs", "bytes", "threads", "flat", "tree (radix)", "tuned", "by", "gain"];
    let mut table = table(columns);
    let time_or_dash = |ns: Option<f64>| ns.map_or("-".to_owned(), time);
    for point in points {
        let Point { query, library_ns, flat_ns, tree_radix, tree_ns, .. } = point;
        let radix = tree_radix.map(|radix| format!(" ({radix})")).unwrap_or_default();
        table.add_row([
            query.collective.to_string(),
            query.pes.to_string(),
            size(query),
            time_or_dash(*library_ns),
            time_or_dash(*flat_ns),
            time_or_dash(*tree_ns) + &radix,
            time_or_dash(point.chosen_ns),
            brief(&point.chosen),
            point.gain().map_or("-".to_owned(), ratio),
        ]);
    }
    let mut text = format!("Time of a call, in a row of calls{sync}\n");
    if has_library {
        text += "threads: the faster of pthread's and std's; gain: threads / tuned\n";
    }
    text + &finish(table, &[1, 2, 3, 4, 5, 6, 8])
}

/// A table of the ratios of Strict to Loose.
fn strictness(points: &[Point]) -> String {
    let mut rows: BTreeMap<(Collective, u32), BTreeMap<u64, String>> = BTreeMap::new();
    let mut sizes = Vec::new();
    for point in points {
        let Some(strictness) = point.strictness() else { continue };
        let Query { collective, pes, bytes, .. } = point.query;
        rows.entry((collective, pes)).or_default().insert(bytes, ratio(strictness));
        sizes.push(bytes);
    }
    if rows.is_empty() {
        return String::new();
    }
    sizes.sort_unstable();
    sizes.dedup();
    let mut table = table(["collective", "PEs"]);
    let header = ["collective".to_owned(), "PEs".to_owned()].into_iter();
    table.set_header(header.chain(sizes.iter().map(|&size| units::size(size))));
    for ((collective, pes), ratios) in rows {
        let own = [collective.to_string(), pes.to_string()].into_iter();
        let ratios = sizes.iter().map(|size| ratios.get(size).cloned().unwrap_or_default());
        table.add_row(own.chain(ratios));
    }
    let numbers: Vec<usize> = (1..sizes.len() + 2).collect();
    format!("\nTime of a Strict call / a Loose call\n{}", finish(table, &numbers))
}

/// A table of the fastest algorithms by size, for each mode.
fn winners(grid: &Grid, wisdom: &Wisdom) -> String {
    let mut table = table(["collective", "PEs", "mode", "fastest, by size"]);
    let mut any = false;
    for &collective in grid.collectives.iter().filter(|&&c| c != Collective::Barrier) {
        for &pes in &grid.pes {
            for &sync in &grid.syncs {
                let row = row(wisdom, collective, pes, sync);
                if let Some(ranges) = ranges(&row) {
                    any = true;
                    table.add_row([
                        collective.to_string(),
                        pes.to_string(),
                        sync.to_string(),
                        ranges,
                    ]);
                }
            }
        }
    }
    if !any {
        return String::new();
    }
    format!("\nWho wins in symmetric memory, as measured\n{}", finish(table, &[1]))
}

/// The measured entries for symmetric memory and commutative operators, by size.
fn row(wisdom: &Wisdom, collective: Collective, pes: u32, sync: SyncModes) -> Vec<&Entry> {
    let operator = OperatorClass::Commutative;
    let is_in = |entry: &&Entry| {
        let bytes = entry.query.bytes;
        let wanted = Query { collective, sync, pes, bytes, operator, symmetric: true };
        entry.is_measured() && entry.query == wanted
    };
    wisdom.entries().filter(is_in).collect()
}

/// The winners by size, as in `flat, from 512 B direct`. A change of a parameter, or a tie, is no
/// change of the winner.
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

/// The contradictions with the largest ratios, and their number.
fn contradictions(contradictions: &[Inconsistency]) -> String {
    let count = contradictions.len();
    if count == 0 {
        return String::new();
    }
    let ratio_of = |one: &Inconsistency| one.less_ns / one.more_ns;
    let mut worst: Vec<&Inconsistency> = contradictions.iter().collect();
    worst.sort_by(|one, other| ratio_of(other).total_cmp(&ratio_of(one)));
    let mut table = table(["does less", "time", "does more", "time", "ratio"]);
    for one in worst.into_iter().take(MOST_CONTRADICTIONS) {
        table.add_row([
            describe(&one.less),
            time(one.less_ns),
            describe_all(&one.more),
            time(one.more_ns),
            ratio(ratio_of(one)),
        ]);
    }
    let worst = if count > MOST_CONTRADICTIONS { ", the largest of them" } else { "" };
    format!(
        "\nContradictions, noise or room for a better algorithm: {count}{worst}\n{}",
        finish(table, &[1, 3, 4])
    )
}

fn describe_all(queries: &[Query]) -> String {
    queries.iter().map(describe).collect::<Vec<_>>().join(" and then ")
}

fn contradiction(one: &Inconsistency) -> String {
    let Inconsistency { less, less_ns, more, more_ns } = one;
    let (less, more) = (describe(less), describe_all(more));
    format!("{less} takes {less_ns} ns, {more} only {more_ns} ns")
}

/// A point's size; nothing for a barrier.
fn size(query: &Query) -> String {
    if query.collective == Collective::Barrier { String::new() } else { units::size(query.bytes) }
}
