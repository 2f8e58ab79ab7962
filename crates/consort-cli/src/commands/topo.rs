//! `consort topo`: the parts of this machine, and the transfers between its cores.
//!
//! The figures are the limits to which the benchmarks' ratios refer. They change within seconds on
//! shared machines. So each pair of processors is measured several times, spread over the whole
//! run. The median is printed, and pairs that changed between near and far are named.
//!
//! For PEs that are processes, it shows their places and the times of messages (`places`).

mod heat;
mod places;
mod text;

use consort_console::{
    args, interrupt, measurement::Measurement, output::progress::Progress, report::Findings,
    require, results::Results, this_machine::MachineInfo,
};
use std::{io, process::ExitCode, sync::atomic::AtomicBool, time::Duration};

use anyhow::Result;
use consort::launch::{Fabric, ProcessShape};
use consort_bench::{
    environment::Switches,
    harness::placement::PlacementSurvey,
    limits::survey::{self, Plan},
};
use consort_machine::topology::Topology;
use consort_report::Document;
use serde_json::Value;

use text::TopoOutput;

const EXAMPLES: &str = "\
Examples:
  consort topo                                this machine
  consort topo --report topo.html             the same with a map, for a browser
  consort topo --fabric mpi:2 --pes 4         two MPI processes with 2 PEs each
  consort topo --fabric mixed --pes 4         four, which share memory on a host
  consort topo --fabric processes --budget 1  processes of this machine";

/// Show the processor, its caches, and the latency between its cores
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Topo {
    /// threads (default), processes, mpi or mixed
    ///
    /// Show this machine (threads); or where the PEs of `consort run` (processes) or of an MPI (such
    /// as mpi:2 or mixed, see `consort tune`) are, and the latency between them.
    #[arg(long, value_name = "FABRIC", default_value = "threads", hide_default_value = true)]
    fabric: Fabric,
    /// The number of PEs [default: those of two processes]
    #[arg(long, value_name = "N", value_parser = args::pes)]
    pes: Option<u32>,
    #[command(flatten)]
    results: Results,
    /// Measure between all, not between a sample of 16
    #[arg(long)]
    all: bool,
    /// Seconds to measure for, in total; 0: nothing
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = args::seconds)]
    budget: Duration,
}

impl Topo {
    /// Reads, measures and prints.
    ///
    /// # Errors
    /// When the output file cannot be written, or PEs cannot be started. Any other error of
    /// measuring is part of the output.
    pub(crate) fn run(&self) -> Result<ExitCode> {
        self.results.check()?;
        if self.fabric == Fabric::Threads {
            require!(self.pes.is_none(), "--pes: only with --fabric processes, mpi or mixed");
            return self.here();
        }
        let shape = self.fabric.shape().unwrap_or(ProcessShape::SINGLE);
        let of_two = || u32::try_from(shape.pes_each.saturating_mul(2)).unwrap_or(args::MOST_PES);
        let pes = self.pes.unwrap_or_else(of_two);
        args::check_environment(self.fabric)?;
        args::check_processes(shape, pes)?;
        let survey =
            PlacementSurvey { fabric: self.fabric, pes, all: self.all, budget: self.budget };
        places::run(&survey, &self.results)
    }

    /// Shows this machine.
    fn here(&self) -> Result<ExitCode> {
        let measurement = Measurement::begin(u32::MAX, interrupt::stop_flag()?);
        let topology = Topology::discover();
        let measured = (!self.budget.is_zero())
            .then(|| measure(&Plan::new(&topology, self.all, self.budget), &measurement.stop))
            .transpose();
        let (measured, not_measured) = match measured {
            Ok(measured) => (measured, None),
            Err(error) => (None, Some(error.to_string())),
        };
        let report = TopoOutput { machine: MachineInfo::of(&topology), measured, not_measured };
        let plots = |document: &mut Document| {
            if let Some(measured) = &report.measured {
                heat::plot(document, &measured.transfers);
            }
        };
        let findings = Findings {
            objects: std::slice::from_ref(&report),
            rows: Some(transfers(&report)?),
            page: &text::page(&report),
            plots: &plots,
        };
        measurement.present(&Switches::default(), &self.results, &findings)?;
        Ok(interrupt::ending(&measurement.stop))
    }
}

/// Returns a row for each pair of processors.
fn transfers(report: &TopoOutput) -> Result<Vec<Value>> {
    let transfers = report.measured.iter().flat_map(|measured| &measured.transfers);
    Ok(transfers.map(serde_json::to_value).collect::<Result<_, _>>()?)
}

/// Measures, with a progress bar on a terminal. An interrupt discards the incomplete survey.
fn measure(plan: &Plan, stop: &AtomicBool) -> io::Result<survey::SurveyFigures> {
    let progress = Progress::new("measuring");
    survey::run(plan, |what, done, all| {
        progress.rename(what);
        progress.show(done as f64 / all as f64);
        interrupt::end_if_set(stop, &progress);
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        topo: Topo,
    }

    fn parse(words: &[&str]) -> Option<Topo> {
        let words = ["topo"].iter().chain(words);
        Line::try_parse_from(words).ok().map(|line| line.topo)
    }

    #[test]
    fn json_goes_to_standard_output_or_a_file() {
        let json = |words: &[&str]| parse(words).unwrap().results.json;
        assert_eq!(json(&[]), None);
        assert_eq!(json(&["--json"]), Some("-".into()));
        assert_eq!(json(&["--json", "--all"]), Some("-".into()));
        assert_eq!(json(&["--json=out.json"]), Some("out.json".into()));
        assert!(parse(&["--json", "out.json"]).is_none());
    }

    #[test]
    fn budget_is_a_number_of_seconds() {
        assert_eq!(parse(&[]).unwrap().budget, Duration::from_secs(5));
        assert_eq!(parse(&["--budget", "0.25"]).unwrap().budget, Duration::from_millis(250));
        for budget in ["soon", "-1", "inf", "nan"] {
            assert!(parse(&[&format!("--budget={budget}")]).is_none(), "{budget}");
        }
    }

    /// A whole run with the smallest budget, on any machine.
    #[test]
    fn the_file_is_one_json_object() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("topo.json");
        let mut topo = parse(&["--budget", "0.000000001"]).unwrap();
        topo.results.json = Some(path.clone());
        topo.run().unwrap();
        let json = fs::read_to_string(path).unwrap();
        let object: serde_json::Value = serde_json::from_str(&json).unwrap();
        for key in ["processor", "machine_key", "cores", "caches", "usable_cores"] {
            assert!(!object[key].is_null(), "{key} in {json}");
        }
        if object["not_measured"].is_null() {
            assert_eq!(object["bandwidths"].as_array().unwrap().len(), 3);
        }
    }
}
