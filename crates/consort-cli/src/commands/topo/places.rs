//! PEs that are processes: their places, and the times of messages.

use std::{process::ExitCode, sync::atomic::AtomicBool};

use anyhow::Result;
use consort_bench::{
    environment::Switches,
    harness::placement::{Distance, PePlace, PeRelation, PlacementSurvey, SurveyResult},
    page::Page,
    units::counted,
};
use consort_fabric::statistics::median;
use consort_report::{Bar, Bars, Document, Group};
use serde::Serialize;
use serde_json::Value;

use consort_console::{
    interrupt,
    measurement::Measurement,
    output::{progress::Progress, time},
    report::{Findings, axes},
    results::Results,
};

/// The most bars of a report.
const MOST_BARS: usize = 40;

/// The output of `--json`.
#[derive(Serialize)]
struct PlacesOutput<'r> {
    pes: u32,
    #[serde(flatten)]
    surveyed: &'r SurveyResult,
}

/// Starts the PEs, measures and prints.
///
/// # Errors
/// When they cannot be started or fail, or the output file cannot be written.
pub(super) fn run(survey: &PlacementSurvey, results: &Results) -> Result<ExitCode> {
    let measurement = Measurement::begin(survey.pes, interrupt::stop_flag()?);
    let surveyed = match measure(survey, &measurement.stop) {
        Err(error) => return interrupt::ending_with(error, &measurement.stop),
        Ok(surveyed) => surveyed,
    };
    let report = PlacesOutput { pes: survey.pes, surveyed: &surveyed };
    let rows = surveyed.distances.iter().map(serde_json::to_value);
    let findings = Findings {
        objects: &[report],
        rows: Some(rows.collect::<Result<Vec<Value>, _>>()?),
        page: &page(&surveyed),
        plots: &|document| plot(document, &surveyed),
    };
    measurement.present(&Switches::default(), results, &findings)?;
    Ok(interrupt::ending(&measurement.stop))
}

/// Measures, with a progress bar on a terminal that shows the elapsed time.
fn measure(survey: &PlacementSurvey, stop: &AtomicBool) -> Result<SurveyResult> {
    Progress::new("measuring").during(survey.budget, || survey.run(stop))
}

/// Adds the times to a report, with a bar for each pair.
fn plot(document: &mut Document, surveyed: &SurveyResult) {
    let all = &surveyed.distances;
    let shown = &all[..all.len().min(MOST_BARS)];
    let of_all = match all.len() {
        all if all > shown.len() => format!(", the first {MOST_BARS} of {all} pairs"),
        _ => String::new(),
    };
    let times = || shown.iter().map(|distance| distance.one_way_ns);
    let group = |distance: &Distance| {
        let series = PeRelation::EVERY.iter().position(|between| *between == distance.between);
        let (value, interval) = (distance.one_way_ns, Some(distance.range_ns));
        let bar = Bar { series: series.unwrap_or(0), value, interval, text: time(value) };
        Group { name: format!("PEs {} and {}", distance.a, distance.b), bars: vec![bar] }
    };
    document.section("Messages");
    document.bars(&Bars {
        title: format!("A message of 8 bytes, one way{of_all}"),
        axis: axes::times("Time (median)", axes::scale_of(times()), times().fold(0.0, f64::max)),
        of: "pair of PEs".to_owned(),
        series: PeRelation::EVERY.map(|between| name(between).to_owned()).into(),
        groups: shown.iter().map(group).collect(),
        stacked: false,
    });
}

/// Returns the page for people.
fn page(surveyed: &SurveyResult) -> Page {
    let SurveyResult { fabric, places, distances } = surveyed;
    let count = |of: fn(&PePlace) -> u32| places.iter().map(of).max().map_or(0, |most| most + 1);
    let mut page = Page::default();
    page.paragraph(format!(
        "{} of {} ({fabric}) on {}",
        counted(places.len() as u64, "PE"),
        processes(count(|place| place.process)),
        counted(count(|place| place.machine), "machine"),
    ));
    if shares_cores(places) {
        page.paragraph(
            "A machine has fewer cores than PEs: the times show the scheduler's time slices.",
        );
    }
    page.lines("\n");
    of_places(&mut page, places);
    if !distances.is_empty() {
        page.lines("\nA message of 8 bytes, one way: half a round trip of puts with signals\n");
        of_distances(&mut page, distances);
    }
    page
}

fn processes(count: u32) -> String {
    if count == 1 { "1 process".to_owned() } else { format!("{count} processes") }
}

/// Returns whether PEs wait for each other's time slices.
fn shares_cores(places: &[PePlace]) -> bool {
    places.iter().any(|place| {
        let here = places.iter().filter(|other| other.machine == place.machine);
        here.count() > place.cores
    })
}

/// Adds a line for each process.
fn of_places(page: &mut Page, places: &[PePlace]) {
    let mut rows = Vec::new();
    for process in 0.. {
        let mut its = places.iter().filter(|place| place.process == process).peekable();
        let Some(first) = its.peek() else { break };
        let (machine, host) = (first.machine.to_string(), first.host.clone());
        let ranks: Vec<String> = its.map(|place| place.pe.to_string()).collect();
        rows.push(vec![process.to_string(), machine, host, ranks.join(", ")]);
    }
    page.table(["process", "machine", "name", "PEs"], rows, [0, 1]);
}

/// Adds a line for each kind of pairs.
fn of_distances(page: &mut Page, distances: &[Distance]) {
    let mut rows = Vec::new();
    for between in PeRelation::EVERY {
        let its = distances.iter().filter(|distance| distance.between == between);
        let mut all: Vec<f64> = its.map(|distance| distance.one_way_ns).collect();
        if all.is_empty() {
            continue;
        }
        let middle = median(&mut all);
        let [fastest, middle, slowest] = [all[0], middle, all[all.len() - 1]].map(time);
        let name = name(between).to_owned();
        rows.push(vec![name, all.len().to_string(), fastest, middle, slowest]);
    }
    page.table(["between", "pairs", "fastest", "median", "slowest"], rows, 1..5);
}

fn name(between: PeRelation) -> &'static str {
    match between {
        PeRelation::Threads => "threads of a process",
        PeRelation::Processes => "processes of a machine",
        PeRelation::Machines => "machines",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_processes_and_kinds_of_pairs() {
        let place = |pe, cores| PePlace {
            pe,
            process: pe / 2,
            machine: pe / 2,
            host: format!("h{}", pe / 2),
            cores,
        };
        let distance = |a, b, between, one_way_ns| Distance {
            a,
            b,
            between,
            one_way_ns,
            range_ns: (one_way_ns, one_way_ns),
        };
        let distances = vec![
            distance(0, 1, PeRelation::Threads, 100.0),
            distance(0, 2, PeRelation::Machines, 7000.0),
            distance(0, 3, PeRelation::Machines, 9000.0),
        ];
        let places = |cores| (0..4).map(|pe| place(pe, cores)).collect();
        let fabric = "mpi:2".parse().unwrap();
        let text = consort_console::output::page(&page(&SurveyResult {
            fabric,
            places: places(2),
            distances,
        }));
        let lines: Vec<Vec<&str>> =
            text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(text.lines().next(), Some("4 PEs of 2 processes (mpi:2) on 2 machines"));
        assert!(lines.contains(&vec!["1", "1", "h1", "2,", "3"]), "{text}");
        let machines = ["machines", "2", "7.00", "us", "8.00", "us", "9.00", "us"];
        assert!(lines.contains(&machines.to_vec()), "{text}");
        assert!(!text.contains("processes of a machine") && !text.contains("scheduler"), "{text}");
        let shared = consort_console::output::page(&page(&SurveyResult {
            fabric,
            places: places(1),
            distances: Vec::new(),
        }));
        assert!(shared.contains("scheduler's") && !shared.contains("8 bytes"), "{shared}");
    }
}
