//! `consort tune`: measures which algorithm is the fastest for each query, and saves the result as
//! wisdom.
//!
//! 1. Existing wisdom is loaded, and saved immediately to check that it can be.
//! 2. The search runs for most of the budget; `watch` shows it, and saves from time to time.
//! 3. A comparison measures the gain over a thread library and simpler algorithms.
//! 4. `summary` writes the first screen of the result, `page` all tables, and `plots` the plots.
//!
//! With `--record`, the queries are those that programs have called, and the new choices are
//! compared with the old ones (`mix`).
//!
//! The command may be interrupted at any time: it saves the entries found so far, and its next run
//! continues. With `--check` nothing is tuned: the choices are compared with all other candidates.

mod check;
mod mix;
mod page;
mod plots;
mod summary;
mod watch;

use consort_console::{
    args::{self, MOST_PES},
    interrupt,
    measurement::Measurement,
    output::overrun,
    report::{Findings, add_page},
    require,
    results::Results,
};
use std::{
    num::NonZeroUsize,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::atomic::AtomicBool,
    time::Duration,
};

use anyhow::{Result, ensure};
use consort::{
    launch::Fabric,
    sync_modes::SyncModes,
    tune::{Algorithms, Arrival, Collective, Query},
};
use consort_bench::harness::{NativeWorkbench, comparison};
use consort_report::Document;
use consort_tuner::{
    Entry, Grid, Identity, IdentityMismatch, Rigour, Search, StopReason, Wisdom, WisdomError,
    Workload, inconsistencies,
};

use crate::wisdom_file::{self, advised, set_aside};
use check::Request;
use mix::RecordedCalls;
use page::ReportData;
use watch::{Meter, Watch};

/// The budget divided by the time of the comparison, and the time limit of the comparison.
const COMPARISON_SHARE: u32 = 6;
const COMPARISON_MOST: Duration = Duration::from_secs(10);
/// The least time for each call beyond the first screen, if there is more than one: enough for
/// several launches, without which a time has no interval.
const COMPARISON_LEAST: Duration = Duration::from_millis(200);
/// The exit status of a failed check.
const CHECK_FAILED: u8 = 3;

const EXAMPLE: &str = "Example: consort tune --pes 4 --report tune.html";

const EXAMPLES: &str = "\
Examples:
  consort tune                                all sizes, in a minute
  consort tune --collective reduce --pes 4    what one program needs
  consort tune --rigour patient --budget 600  all candidates, with time for it
  consort tune --check --sample 20            how good are the choices?
  consort tune --report tune.html             with maps of the winners
  consort tune --record calls.toml            what a program has recorded
  consort tune --fabric processes             for programs under consort run
  consort tune --fabric mpi --pes 2           for two processes under mpirun
  consort tune --fabric mixed --pes 4         for four, mixed with shared memory

A program records its calls if you run it with CONSORT_RECORD=calls.toml.

Ctrl-C keeps the choices so far; the next run goes on from there.";

/// Find the fastest algorithm for each call, and save it as wisdom
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = EXAMPLE, after_long_help = EXAMPLES)]
pub(crate) struct Tune {
    /// threads (default), processes, mpi or mixed
    ///
    /// The PEs: threads; processes of `consort run`; mpi, processes of the mpirun in PATH; or mixed,
    /// the same, with shared memory on each machine. mpi:2 has 2 PEs per process, and mpi:2:in-turn
    /// deals ranks to processes in turn. Each has its own file.
    #[arg(long, value_name = "FABRIC", default_value = "threads", hide_default_value = true)]
    fabric: Fabric,
    /// estimate, measure (default), patient, exhaustive
    ///
    /// How hard to try.
    #[arg(long, default_value = "measure", hide_default_value = true)]
    rigour: Rigour,
    /// Seconds to take at most
    #[arg(long, value_name = "SECONDS", default_value = "50", value_parser = args::seconds)]
    budget: Duration,
    /// Team sizes, most important first
    ///
    /// The default is the powers of two up to the usable cores, and four times as many PEs.
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = args::pes)]
    pes: Vec<u32>,
    /// Only these, such as barrier,all_reduce
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    collective: Vec<Collective>,
    /// Message sizes, such as 8,4k,1M
    ///
    /// The default is 8 B to 4 MiB, refined where the winner changes.
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',',
        value_parser = args::size_of_doubles)]
    bytes: Vec<u64>,
    /// Synchronization modes, such as strict,mine/all
    ///
    /// The default is mine,strict,loose; from --rigour patient on, the other six after these.
    #[arg(long, value_name = "MODE,...", value_delimiter = ',')]
    sync: Vec<SyncModes>,
    /// How PEs arrive at calls: together, or skewed, each after random work of up to 2 us; a
    /// program sets it by `JobBuilder::arrival`
    #[arg(long, value_name = "ARRIVAL", default_value = "together", hide_short_help = true)]
    arrival: Arrival,
    /// The wisdom to improve [default: the user's]
    ///
    /// CONSORT_WISDOM changes the default.
    #[arg(long, value_name = "FILE")]
    wisdom: Option<PathBuf>,
    /// Measure again what was measured before
    #[arg(long)]
    retune: bool,
    /// Tune the calls that a program has recorded
    ///
    /// They are tuned, then measured again. Frequent and long calls get more time; several files
    /// are added up.
    #[arg(long, value_name = "FILE",
        conflicts_with_all = ["pes", "collective", "bytes", "sync"])]
    record: Vec<PathBuf>,
    /// Measure how good the choices are, tune nothing
    ///
    /// The exit status is 3 if fewer than 90 % of the choices are within 10 % of the best.
    #[arg(long, conflicts_with = "retune")]
    check: bool,
    /// Check N queries, evenly spread, instead of all
    #[arg(long, value_name = "N", requires = "check", hide_short_help = true)]
    sample: Option<NonZeroUsize>,
    /// Compare more calls, and print all tables
    #[arg(long)]
    verbose: bool,
    #[command(flatten)]
    results: Results,
}

impl Tune {
    /// Tunes, or checks.
    ///
    /// # Errors
    /// When wisdom cannot be read or written, or measuring fails.
    pub(crate) fn run(&self) -> Result<ExitCode> {
        self.results.check()?;
        self.check_processes()?;
        let most = if self.record.is_empty() { self.grid().pes.into_iter().max() } else { None };
        let measurement = Measurement::begin(most.unwrap_or(u32::MAX), interrupt::stop_flag()?);
        let found = |fabric| Self { fabric, ..self.clone() }.run_found(&measurement);
        let ended = self.found(&measurement).and_then(found);
        ended.or_else(|error| interrupt::ending_with(error, &measurement.stop))
    }

    /// Tunes, or checks, once the kind of PEs is known.
    fn run_found(&self, measurement: &Measurement) -> Result<ExitCode> {
        let path = wisdom_file::path(self.wisdom.as_ref(), self.arrival, self.fabric)?;
        let mut meter = Meter::new(self.budget);
        let result = if self.check {
            self.check(&path, measurement, &mut meter)
        } else {
            self.tune(&path, measurement, &mut meter).map(|()| ExitCode::SUCCESS)
        };
        meter.finish();
        result
    }

    /// Returns the fabric of the PEs where they are started. It must be the same for all team
    /// sizes.
    fn found(&self, measurement: &Measurement) -> Result<Fabric> {
        let mut found = None;
        for &pes in &self.pes {
            let other = measurement.found(self.fabric, pes)?;
            let fabric = *found.get_or_insert(other);
            ensure!(
                fabric == other,
                "--pes {pes}: these PEs are {other}, but those of --pes {} are {fabric}, with \
                 separate wisdom: tune each alone",
                self.pes[0]
            );
        }
        Ok(found.unwrap_or(self.fabric))
    }

    /// Checks the team sizes on an MPI's processes. They have no default.
    fn check_processes(&self) -> Result<()> {
        let Some(shape) = self.fabric.shape() else { return Ok(()) };
        args::check_environment(self.fabric)?;
        require!(
            !self.pes.is_empty() || !self.record.is_empty(),
            "--fabric {}: give the number of PEs of your programs with --pes",
            self.fabric
        );
        self.pes.iter().try_for_each(|&pes| args::check_processes(shape, pes))
    }

    /// Returns the identity of the wisdom to tune.
    fn identity(&self) -> Identity {
        self.algorithms().identity().clone().with(self.arrival)
    }

    fn algorithms(&self) -> &'static Algorithms {
        Algorithms::of(self.fabric)
    }

    fn grid(&self) -> Grid {
        let cores = self.algorithms().cores();
        let many = if cores < 32 { cores.saturating_mul(4) } else { cores.saturating_mul(2) };
        let many = u32::try_from(many).unwrap_or(u32::MAX).min(MOST_PES);
        let mut grid = Grid::new(cores, &[many]);
        set(&mut grid.pes, &self.pes);
        set(&mut grid.collectives, &self.collective);
        if self.rigour >= Rigour::Patient {
            grid.syncs = Grid::every_sync();
        }
        set(&mut grid.syncs, &self.sync);
        set(&mut grid.bytes, &self.bytes);
        grid.bytes.sort_unstable();
        grid.bytes.dedup();
        grid
    }

    /// Returns the recorded calls, if requested.
    fn recorded(&self, wisdom: &Wisdom) -> Result<Option<RecordedCalls>> {
        let is_asked = !self.record.is_empty();
        is_asked.then(|| RecordedCalls::load(&self.record, self.algorithms(), wisdom)).transpose()
    }

    fn tune(&self, path: &Path, measurement: &Measurement, meter: &mut Meter) -> Result<()> {
        let stop = &*measurement.stop;
        let mut wisdom = load_to_extend(path, &self.identity())?;
        let recorded = self.recorded(&wisdom)?;
        wisdom.save(path)?;
        let compares = self.rigour > Rigour::Estimate;
        let comparison = (self.budget / COMPARISON_SHARE).min(COMPARISON_MOST);
        let budget = if compares { self.budget - comparison } else { self.budget };

        let grid = self.grid();
        let workload = recorded.as_ref().map_or_else(|| (&grid).into(), RecordedCalls::workload);
        let retune = self.retune || recorded.is_some();
        let mut bench = NativeWorkbench::new(self.fabric, Some(&wisdom));
        let mut watch = Watch::new(meter, path, stop);
        let cores = self.algorithms().cores();
        let search = Search { workload, rigour: self.rigour, budget, retune, cores, stop };
        let outcome = search.run(&mut bench, &mut wisdom, &mut watch);
        let (failure, won) = (watch.failure.take(), std::mem::take(&mut watch.won));
        if let Some(busy) = measurement.busy(bench.switches()) {
            wisdom.mark_busy(&won, &busy);
        }
        // Also after a failure: entries that were found before it are kept.
        wisdom.save(path)?;
        if let Some(failure) = failure {
            return Err(failure.into());
        }
        let outcome = outcome?;
        let (mut points, mut replayed) = (Vec::new(), None);
        if compares && outcome.ending != StopReason::Stopped {
            let left = self.budget.saturating_sub(measurement.elapsed()).min(comparison);
            match &recorded {
                Some(recorded) => replayed = Some(recorded.replay(&wisdom, left, stop, meter)?),
                None => points = self.compare(&grid, &wisdom, left, stop, meter)?,
            }
            let corrected: Vec<Entry> =
                points.iter().filter_map(|point| point.corrected.clone()).collect();
            if !corrected.is_empty() {
                let queries: Vec<Query> = corrected.iter().map(|entry| entry.query).collect();
                corrected.into_iter().for_each(|entry| wisdom.insert(entry));
                if let Some(busy) = measurement.busy(bench.switches()) {
                    wisdom.mark_busy(&queries, &busy);
                }
                wisdom.save(path)?;
            }
        }
        meter.finish();
        warn_if_over(measurement.elapsed(), self.budget, &bench);
        let contradictions = inconsistencies(&wisdom);
        let story = ReportData {
            fabric: self.fabric,
            grid: recorded.is_none().then_some(&grid),
            path,
            wisdom: &wisdom,
            outcome: &outcome,
            points: &points,
            replayed: replayed.as_ref(),
            contradictions: &contradictions,
        };
        let busy = measurement.busy(bench.switches());
        let cores = self.algorithms().cores();
        let summary = story.summary(cores, busy.as_deref());
        let mut page = story.page();
        let findings = Findings {
            objects: &[story.json()],
            rows: Some(story.rows()?),
            page: &page.clone(),
            plots: &|document: &mut Document| {
                // The head of a report says whether the machine was busy.
                add_page(document, &story.summary(cores, None));
                plots::plots(document, &story);
            },
        };
        if self.results.are_for_programs() {
            measurement.warn(bench.switches());
        }
        measurement.present_with(bench.switches(), &self.results, &findings, || {
            // At the end, where a terminal shows it.
            if self.verbose {
                page.lines("\n");
                page.append(&summary);
            } else {
                page = summary.clone();
            }
            measurement.print_below_heading(&page)
        })
    }

    /// Compares the choices with a thread library and simpler algorithms. The calls of the first
    /// screen take all of the time, or half of it if others are shown too. Each of the others gets
    /// at least [`COMPARISON_LEAST`], so some are left out.
    fn compare(
        &self,
        grid: &Grid,
        wisdom: &Wisdom,
        budget: Duration,
        stop: &AtomicBool,
        meter: &mut Meter,
    ) -> Result<Vec<comparison::Point>> {
        let all = comparison::queries(grid);
        let few = summary::headline(&all, self.algorithms().cores());
        let shows_all =
            self.verbose || self.results.report.is_some() || self.results.are_for_programs();
        let others = in_turn(&all).into_iter().filter(|query| shows_all && !few.contains(query));
        let most = (budget / 2).as_millis() / COMPARISON_LEAST.as_millis();
        let others: Vec<Query> = others.take(usize::try_from(most)?.max(1)).collect();
        let of_few = if others.is_empty() { budget } else { budget / 2 };
        let mut points = Vec::new();
        for (queries, budget) in [(few, of_few), (others, budget - of_few)] {
            let show = |done, all, next: &str| meter.show(done, all, next);
            points.extend(comparison::run(self.fabric, &queries, wisdom, budget, stop, show)?);
        }
        points.sort_by_key(|point| all.iter().position(|query| *query == point.query));
        Ok(points)
    }

    fn check(&self, path: &Path, measurement: &Measurement, meter: &mut Meter) -> Result<ExitCode> {
        let stop = &*measurement.stop;
        let wisdom = Wisdom::load(path, &self.identity()).map_err(advised)?;
        let workload = match self.recorded(&wisdom)? {
            Some(recorded) => recorded.workload(),
            None => Workload::from(&self.grid()),
        };
        let Self { sample, budget, .. } = *self;
        let request =
            Request { workload: &workload, sample_count: sample.map(Into::into), budget, stop };
        let mut bench = NativeWorkbench::new(self.fabric, Some(&wisdom));
        let checked = check::run(&request, &mut bench, &wisdom, meter)?;
        meter.finish();
        warn_if_over(measurement.elapsed(), budget, &bench);
        let findings = Findings {
            objects: std::slice::from_ref(&checked),
            rows: Some(checked.rows()?),
            page: &checked.page(path, true),
            plots: &|document: &mut Document| checked.plot(document),
        };
        if self.results.are_for_programs() {
            measurement.warn(bench.switches());
        }
        measurement.present_with(bench.switches(), &self.results, &findings, || {
            measurement.print(bench.switches(), &checked.page(path, self.verbose))
        })?;
        Ok(match checked.passed {
            true => ExitCode::SUCCESS,
            false if interrupt::is_set(stop) => interrupt::ending(stop),
            false => ExitCode::from(CHECK_FAILED),
        })
    }
}

/// Returns one query of each collective, then another of each, and so on, because there may not be
/// enough time for all. The first ones of a collective are far apart: 0, 4, 2, 6, 1, 5, 3, 7 of 8.
fn in_turn(queries: &[Query]) -> Vec<Query> {
    let of_each = queries.chunk_by(|one, other| one.collective == other.collective);
    let of_each: Vec<&[Query]> = of_each.collect();
    let most = of_each.iter().map(|queries| queries.len()).max().unwrap_or(0);
    let mut places: Vec<usize> = (0..most).collect();
    places.sort_by_key(|place| place.reverse_bits());
    let nth = |place: usize| of_each.iter().filter_map(move |queries| queries.get(place).copied());
    places.into_iter().flat_map(nth).collect()
}

/// Warns if tuning took much longer than the budget: a launch takes at least as long as its calls.
fn warn_if_over(taken: Duration, budget: Duration, bench: &NativeWorkbench) {
    let why = bench.longest_launch().map_or_else(String::new, |(query, count, time)| {
        let time = overrun::seconds(time);
        format!("one launch of {count} candidates of {query} takes {time}")
    });
    overrun::warn_if_over(taken, budget, &why);
}

/// Replaces values by the requested ones, if there are any.
fn set<T: Clone>(values: &mut Vec<T>, asked: &[T]) {
    if !asked.is_empty() {
        *values = asked.to_vec();
    }
}

/// Returns the wisdom to continue from: the file's, if it fits, without the entries whose
/// algorithms have changed. If all of them have, the file is set aside. A file that is not wisdom
/// of this machine is not touched.
fn load_to_extend(path: &Path, identity: &Identity) -> Result<Wisdom> {
    let error = match Wisdom::load(path, identity) {
        Ok(wisdom) => {
            warn_of_outdated(path, &wisdom);
            return Ok(wisdom);
        }
        Err(WisdomError::NotFound { .. }) => return Ok(Wisdom::new(identity.clone())),
        Err(error) => error,
    };
    match &error {
        WisdomError::IdentityMismatch {
            mismatch: IdentityMismatch::OtherAlgorithms { .. },
            ..
        }
        | WisdomError::OtherFormat { .. } => {
            let aside = set_aside(path)?.unwrap_or_default();
            tracing::warn!("{error}; it is kept as {}, and tuning starts over", aside.display());
            Ok(Wisdom::new(identity.clone()))
        }
        _ => Err(advised(error)),
    }
}

/// Warns how many entries of the file are tuned again.
fn warn_of_outdated(path: &Path, wisdom: &Wisdom) {
    if wisdom.outdated() > 0 {
        tracing::warn!(
            "{}: ignored {} entries, because their algorithms have changed",
            path.display(),
            wisdom.outdated()
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_each_collective_are_compared_in_turn() {
        let all = comparison::queries(&Grid::new(2, &[8]));
        let order = in_turn(&all);
        assert_eq!(order.len(), all.len());
        assert!(all.iter().all(|query| order.contains(query)));
        let collectives = Grid::COLLECTIVES.len();
        assert!(order[..collectives].iter().map(|query| query.collective).eq(Grid::COLLECTIVES));
        let broadcasts = order.iter().filter(|query| query.collective == Collective::Broadcast);
        let broadcasts: Vec<(u32, u64)> =
            broadcasts.map(|query| (query.pes, query.bytes)).take(4).collect();
        assert_eq!(broadcasts, [(2, 8), (8, 8), (2, 32 << 10), (8, 32 << 10)]);
    }
}
