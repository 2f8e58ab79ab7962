//! The first screen of a tuning run, for newcomers: a few calls in the standard way and by Consort,
//! the number of measured queries, the path of the wisdom, and the next commands.
//!
//! Below the line about the machine it has at most 22 lines of 80 columns.

use std::time::Duration;

use consort::{
    launch::Fabric,
    tune::{Collective, Query},
};
use consort_bench::{
    gain::{self, Median},
    harness::comparison::Point,
    page::Page,
    units::{counted, precision, size, time},
};
use consort_fabric::environment::variable;
use consort_tuner::{Outcome, StopReason, default_path};

use super::page::ReportData;

/// The calls that are shown, if they were measured, the first ones first; and their sizes.
const SHOWN: [(Collective, u64); 4] = [
    (Collective::Barrier, 0),
    (Collective::AllReduce, 8),
    (Collective::Broadcast, 4 << 10),
    (Collective::AllToAll, 64 << 10),
];
/// If fewer of these were measured, others fill up to this number.
const FEWEST: usize = 3;
/// A shorter wait for cores that others used is not mentioned.
const LEAST_WAIT: Duration = Duration::from_millis(500);
/// The most kinds of recorded calls that are shown.
const MOST_RECORDED: usize = 4;

impl ReportData<'_> {
    /// Returns the first screen. `cores` is the number of usable cores, and `busy` says what has
    /// disturbed the run.
    pub(super) fn summary(&self, cores: usize, busy: Option<&str>) -> Page {
        let mut page = Page::default();
        let shown = shown(self.points, cores);
        if !shown.is_empty() {
            calls(&mut page, &shown);
        }
        self.replayed.iter().for_each(|replayed| replayed.show(&mut page, MOST_RECORDED));
        if let Some(busy) = busy {
            page.paragraph(format!("The machine was busy: {busy}; figures may be too high."));
        }
        if !page.parts().is_empty() {
            page.lines("\n");
        }
        page.paragraph(self.counts());
        page.paragraph(self.place());
        page.paragraph(self.next(&shown));
        page
    }

    /// Returns how many queries were measured, and whether there are more.
    fn counts(&self) -> String {
        let Outcome { ending, measured_count, refined_count, kept_count, elapsed, waited, .. } =
            *self.outcome;
        let mut text =
            format!("Queries measured: {measured_count} in {:.0} s", elapsed.as_secs_f64());
        if waited > LEAST_WAIT {
            text += &format!(" ({:.0} s waiting for the cores)", waited.as_secs_f64());
        }
        if refined_count > 0 {
            text += &format!(", {refined_count} of them where the winner changes");
        }
        if kept_count > 0 {
            text += &format!("; {kept_count} kept from before");
        }
        let corrected = self.points.iter().filter(|point| point.corrected.is_some()).count();
        if corrected > 0 {
            text += &format!("; {corrected} changed to simpler algorithms, which were faster");
        }
        text + match ending {
            StopReason::Complete => ".",
            StopReason::OutOfBudget => ". Time ran out: run it again to continue.",
            StopReason::Stopped => ". It was stopped: run it again to continue.",
        }
    }

    /// Returns the path of the wisdom, its contents, and which programs use it.
    fn place(&self) -> String {
        let Outcome { measured_count, kept_count, .. } = *self.outcome;
        let known = self.wisdom.entries().filter(|entry| entry.is_measured()).count();
        let open = self.wisdom.entries().len() - known;
        // These entries are from other runs, for calls that this run did not include.
        let others = known.saturating_sub(measured_count + kept_count);
        let others =
            if others > 0 { format!(" ({others} of them of other calls)") } else { String::new() };
        // If the wisdom holds no more than this run measured or kept, `counts` has said that.
        let contents = if others.is_empty() && open == 0 {
            String::new()
        } else {
            format!(" Its queries: {known} measured{others}, {open} estimated by the model.")
        };
        let path = self.path.display();
        let is_named = variable("CONSORT_WISDOM").is_some();
        let default = default_path(self.wisdom.identity().arrival);
        let is_default = default.is_ok_and(|path| self.fabric.path_of_wisdom(path) == self.path);
        let users = match (is_default, is_named, self.fabric) {
            (true, true, Fabric::Threads) => {
                "Programs use it while CONSORT_WISDOM names it.".to_owned()
            }
            (true, false, Fabric::Threads) => {
                "Every program of yours on this machine uses it from now on.".to_owned()
            }
            (true, true, fabric) => {
                let start = start(fabric);
                format!("Programs that {start} use it while CONSORT_WISDOM does not change.")
            }
            (true, false, fabric) => {
                format!("All programs that {} use it from now on.", start(fabric))
            }
            (false, _, Fabric::Threads) => {
                format!("Programs use it with CONSORT_WISDOM={path} or JobBuilder::wisdom.")
            }
            (false, _, fabric) => {
                format!("Programs that {} use it by JobBuilder::wisdom.", start(fabric))
            }
        };
        format!("Wisdom is in {path}.{contents} {users}")
    }

    /// Returns commands to go on with.
    fn next(&self, shown: &[&Point]) -> String {
        let query = shown.last().map(|point| point.query);
        let call = query.or_else(|| self.wisdom.entries().next().map(|entry| entry.query));
        let call = call.map_or("barrier".to_owned(), |query| match query.collective {
            Collective::Barrier => format!("barrier --pes {}", query.pes),
            other => format!("{other} --bytes {} --pes {}", query.bytes, query.pes),
        });
        let fabric = match self.fabric {
            Fabric::Threads => String::new(),
            fabric => format!(" --fabric {fabric}"),
        };
        format!(
            "Next: `consort explain {call}{fabric}` says why a choice won; `consort tune --verbose` \
             prints all tables; `--report tune.html` draws them."
        )
    }
}

/// Returns how to start programs whose PEs are not threads.
fn start(fabric: Fabric) -> &'static str {
    match fabric {
        Fabric::Mpi(_) => "`mpirun` starts on machines with one process each",
        Fabric::Mixed(_) => "`mpirun` starts so on several machines",
        _ => "`consort run` or `mpirun` starts on one machine",
    }
}

/// Returns a few of these queries, of the largest team whose PEs have a core each if there is one.
pub(super) fn headline(queries: &[Query], cores: usize) -> Vec<Query> {
    let mut queries = queries.to_vec();
    // Stable, so that others keep their order.
    queries.sort_by_key(|query| (query.pes as usize > cores, u32::MAX - query.pes));
    let Some(pes) = queries.first().map(|query| query.pes) else { return Vec::new() };
    let mut few: Vec<Query> = Vec::new();
    for (collective, bytes) in SHOWN {
        let of_it = queries.iter().filter(|one| (one.collective, one.pes) == (collective, pes));
        few.extend(of_it.min_by_key(|query| query.bytes.abs_diff(bytes)));
    }
    let missing = FEWEST.saturating_sub(few.len());
    let others: Vec<Query> = queries.into_iter().filter(|query| !few.contains(query)).collect();
    few.extend(others.into_iter().take(missing));
    few
}

/// Returns the points of the first screen.
fn shown(points: &[Point], cores: usize) -> Vec<&Point> {
    let is_timed = |point: &&Point| point.chosen_ns.is_some() && standard(point).is_some();
    let timed: Vec<&Point> = points.iter().filter(is_timed).collect();
    let queries: Vec<Query> = timed.iter().map(|point| point.query).collect();
    let of = |query: &Query| timed.iter().copied().find(|point| point.query == *query);
    headline(&queries, cores).iter().filter_map(of).collect()
}

/// Returns the time of the thread library, or of the flat tree where PEs have no such library.
fn standard(point: &Point) -> Option<Median> {
    let library = point.library_ns.map(|ns| (ns, point.library_ci95_ns));
    library.or_else(|| Some((point.flat_ns?, point.flat_ci95_ns)))
}

/// Adds a table of these calls.
fn calls(page: &mut Page, points: &[&Point]) {
    let cell = |(ns, ci95): Median| {
        let half = ci95.map(|(low, high)| precision((high - low) / 2.0 / ns));
        half.map_or_else(|| time(ns), |half| format!("{} ± {half}", time(ns)))
    };
    // The team of all calls, if it is the same.
    let team = points.first().map(|first| first.query.pes);
    let team = team.filter(|pes| points.iter().all(|point| point.query.pes == *pes));
    let row = |point: &&Point| {
        let Query { collective, pes, bytes, .. } = point.query;
        let mut call = collective.to_string();
        if collective != Collective::Barrier {
            call += &format!(" of {}", size(bytes));
        }
        if team.is_none() {
            call += &format!(", {}", counted(pes, "PE"));
        }
        let (theirs, ours) = (standard(point)?, (point.chosen_ns?, point.chosen_ci95_ns));
        Some(vec![call, cell(theirs), cell(ours), gain::text(&gain::between(theirs, ours))])
    };
    let has_library = points.iter().any(|point| point.library_ns.is_some());
    let call = team.map_or("call".to_owned(), |pes| format!("on {}", counted(pes, "PE")));
    let standard = if has_library { "threads ± %" } else { "flat tree ± %" };
    let rows = points.iter().filter_map(row).collect();
    page.table([call.as_str(), standard, "Consort ± %", "gain"], rows, [1, 2]);
    page.paragraph(if has_library {
        "threads: the faster barrier of pthread and std, around copies; intervals: 95 %"
    } else {
        "flat tree: each PE exchanges data with the root; intervals: 95 %"
    });
}

#[cfg(test)]
mod tests {
    use consort::{sync_modes::SyncModes, tune::Candidate};
    use consort_fabric::OperatorClass;

    use super::*;

    fn point(collective: Collective, pes: u32, bytes: u64) -> Point {
        let (sync, operator) = (SyncModes::MINE, OperatorClass::Commutative);
        Point {
            query: Query { collective, sync, pes, bytes, operator, symmetric: false },
            library: Some("std"),
            library_ns: Some(900.0),
            library_ci95_ns: Some((880.0, 930.0)),
            flat_ns: Some(500.0),
            flat_ci95_ns: Some((490.0, 510.0)),
            tree_radix: None,
            tree_ns: None,
            tree_ci95_ns: None,
            chosen: Candidate::new("flat"),
            chosen_ns: Some(300.0),
            chosen_ci95_ns: Some((290.0, 310.0)),
            loose_ns: None,
            strict_ns: None,
            corrected: None,
        }
    }

    fn names(points: &[&Point]) -> Vec<String> {
        let name = |point: &&Point| format!("{} {}", point.query.collective, point.query.bytes);
        points.iter().map(name).collect()
    }

    #[test]
    fn calls_are_of_the_largest_team_that_fits_the_cores() {
        let of_team = |pes| {
            [(Collective::Broadcast, 8), (Collective::Broadcast, 4096), (Collective::Barrier, 0)]
                .map(|(collective, bytes)| point(collective, pes, bytes))
        };
        let points = [of_team(8), of_team(2), of_team(4)].concat();
        let of_4 = shown(&points, 4);
        assert_eq!(names(&of_4), ["barrier 0", "broadcast 4096", "broadcast 8"]);
        assert!(of_4.iter().all(|point| point.query.pes == 4));
        assert!(shown(&points, 2).iter().all(|point| point.query.pes == 2));
        assert_eq!(shown(&points, 1)[0].query.pes, 8);
        let mut open = point(Collective::Barrier, 2, 0);
        open.chosen_ns = None;
        assert!(shown(&[open], 2).is_empty());
    }

    #[test]
    fn gains_have_an_interval_and_noise_is_not_reported_as_gain() {
        let of = |points: &[&Point]| {
            let mut page = Page::default();
            calls(&mut page, points);
            consort_console::output::page(&page)
        };
        let mut noisy = point(Collective::AllReduce, 2, 8);
        noisy.library_ci95_ns = Some((100.0, 9000.0));
        let text = of(&[&point(Collective::Barrier, 2, 0), &noisy]);
        assert!(text.contains("on 2 PEs") && text.contains("900 ns ± 2.8 "), "{text}");
        assert!(text.contains("3.00x (2.") && text.contains("no difference found"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let mut alone = point(Collective::Barrier, 2, 0);
        alone.library_ns = None;
        let text = of(&[&alone]);
        assert!(text.contains("flat tree") && text.contains("500 ns"), "{text}");
        let text = of(&[&alone, &point(Collective::Barrier, 8, 0)]);
        assert!(text.contains("barrier, 2 PEs") && text.contains("barrier, 8 PEs"), "{text}");
    }
}
