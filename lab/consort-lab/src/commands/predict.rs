//! `consort-lab predict`: compares predictions with measurements. Calls of threads are predicted
//! from this machine's description. Calls of an MPI's processes are predicted from the times of
//! messages between two processes.

mod plots;

use super::named;
use consort_console::{
    args, interrupt,
    measurement::Measurement,
    output::{self, progress::Progress, time},
    refuse,
    report::Findings,
    require,
    results::Results,
};
use std::{process::ExitCode, time::Duration};

use crate::prediction::{Basis, Call, Parameters, Predicted, Prediction};
use anyhow::Result;
use clap::value_parser;
use consort::{
    launch::{Fabric, ProcessShape},
    sync_modes::{SyncMode, SyncModes},
};
use consort_bench::{environment::Switches, page::Page, units::size};
use consort_report::Document;
use consort_tuner::TransferClass;
use serde_json::{Value, json};

const EXAMPLES: &str = "\
Examples:
  consort-lab calibrate && consort-lab predict    check the description
  consort-lab predict --sync strict --bytes 8,8k  of these calls
  consort-lab predict --machine ./mine.toml       by another description
  consort-lab predict --fabric mpi --pes 2        processes of an MPI";

/// The synchronization modes of calls between threads.
const SYNCS: [SyncModes; 2] = [SyncModes::MINE, SyncModes::STRICT];
/// The sizes of blocks, for threads and for processes.
const SIZES_BYTES: [&[usize]; 2] =
    [&[8, 64, 512, 4 << 10, 32 << 10, 256 << 10, 1 << 20], &[8, 8 << 10, 1 << 20]];

/// Compare predictions with measurements of threads or MPI processes
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Predict {
    /// A description of this machine, as written by `consort-lab calibrate` [default: host]
    #[arg(long, value_name = "NAME|FILE")]
    machine: Option<String>,
    /// The fabric of the PEs: threads, or mpi for processes that the mpirun in PATH starts, with
    /// one PE each. With mpi, no machine description is needed
    #[arg(long, value_name = "FABRIC", default_value = "threads")]
    fabric: Fabric,
    /// Number of PEs
    #[arg(long, value_name = "N", default_value = "2",
        value_parser = value_parser!(u32).range(2..))]
    pes: u32,
    /// Sizes in bytes of broadcasts and reductions [default: 8,64,512,4k,32k,256k,1M; for mpi
    /// 8,8k,1M]
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = args::block)]
    bytes: Vec<usize>,
    /// Synchronization modes: strict, mine, or ENTRY/EXIT as in mine/all [default: mine,strict; for
    /// mpi mine/all, so that calls do not overlap]
    #[arg(long, value_name = "MODES", value_delimiter = ',')]
    sync: Vec<SyncModes>,
    /// Approximate time to simulate and measure, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = args::seconds)]
    budget: Duration,
    #[command(flatten)]
    results: Results,
}

impl Predict {
    /// Simulates, measures and prints.
    ///
    /// # Errors
    /// When there is no description, it has too few PEs, or measuring fails.
    pub(crate) fn run(&self) -> Result<ExitCode> {
        self.results.check()?;
        let measurement = Measurement::begin(self.pes, interrupt::stop_flag()?);
        if let Some(sync) = self.sync.iter().find(|sync| sync.exit == SyncMode::None) {
            refuse!(
                "--sync {sync}: calls that return early need special buffers; use \
                strict, mine, or another mode that ends in mine or all"
            );
        }
        let between = self.fabric == Fabric::Mpi(ProcessShape::SINGLE);
        require!(
            between || self.fabric == Fabric::Threads,
            "--fabric {}: only threads and mpi with one PE per process can be predicted",
            self.fabric
        );
        require!(!between || self.machine.is_none(), "--machine cannot be used with --fabric mpi");
        require!(
            !between || self.sync.is_empty(),
            "--sync cannot be used with --fabric mpi, which uses mine/all"
        );
        let machine = self.machine.as_deref().unwrap_or("host");
        let machine = (!between).then(|| named::machine(machine)).transpose()?;
        let syncs = if self.sync.is_empty() { &SYNCS } else { &self.sync[..] };
        let usual = SIZES_BYTES[usize::from(between)];
        let sizes_bytes = if self.bytes.is_empty() { usual } else { &self.bytes[..] };
        let progress = Progress::new("measuring");
        let prediction = Prediction {
            pes: self.pes,
            sizes_bytes,
            syncs,
            budget: self.budget,
            stop: &measurement.stop,
        };
        let show = |what: &str, share| {
            progress.rename(what);
            progress.show(share);
        };
        let predicted = match &machine {
            Some(machine) => prediction.on_cores(machine, &show),
            None => prediction.between_processes(&show),
        };
        drop(progress);
        let predicted = match predicted {
            Err(error) => return interrupt::ending_with(error, &measurement.stop),
            Ok(predicted) => predicted,
        };
        let objects = std::slice::from_ref(&predicted);
        let none = Switches::default();
        let plots = |document: &mut Document| {
            plots::plots(document, &predicted);
            if let Some(machine) = &machine {
                document.section("The description");
                document.facts([(machine.name.as_str(), machine.provenance.in_words())]);
            }
        };
        let (rows, page) = (Some(rows(&predicted)?), &page(&predicted));
        measurement.present(
            &none,
            &self.results,
            &Findings { objects, rows, page, plots: &plots },
        )?;
        let calls = predicted.calls.len() + predicted.missing;
        let why = output::overrun::parts([
            (format!("simulating {calls} calls"), predicted.simulating),
            (format!("a launch of {calls} calls"), predicted.longest_launch),
        ]);
        output::overrun::warn_if_over(measurement.elapsed(), self.budget, &why);
        Ok(interrupt::ending(&measurement.stop))
    }
}

/// Returns a row for each call.
fn rows(predicted: &Predicted) -> Result<Vec<Value>> {
    let row = |call: &Call| {
        let mut row = serde_json::to_value(call)?;
        row["machine"] = json!(predicted.machine);
        Ok(row)
    };
    predicted.calls.iter().map(row).collect()
}

fn page(predicted: &Predicted) -> Page {
    let mut page = Page::default();
    match predicted.basis {
        Basis::Cores { transfer_ns, class } => {
            of_cores(&mut page, predicted, transfer_ns, class);
        }
        Basis::Network(parameters) => of_network(&mut page, predicted, &parameters),
    }
    if predicted.missing > 0 {
        let class = match predicted.basis {
            Basis::Cores { class, .. } => format!(" of cores that are {class}"),
            Basis::Network(_) => String::new(),
        };
        page.lines(format!("{} calls have no figure{class}.\n", predicted.missing));
    }
    page
}

fn percent(share: f64) -> String {
    format!("{:+.0} %", share * 100.0)
}

fn of_cores(page: &mut Page, predicted: &Predicted, transfer_ns: f64, class: TransferClass) {
    let Predicted { machine, pes, median_error, worst_error, .. } = predicted;
    let row = |call: &Call| {
        vec![
            call.query.to_string(),
            call.candidate.brief(),
            time(call.predicted_ns),
            time(call.measured_ns),
            percent(call.error),
        ]
    };
    page.lines(format!(
        "{machine}, {pes} PEs, calls in a row, cores {class}: one-way transfer {}\n\n",
        time(transfer_ns)
    ));
    let header = ["call", "algorithm", "predicted", "measured", "error"];
    page.table(header, predicted.calls.iter().map(row).collect(), 2..5);
    page.lines(format!(
        "\nMedian error: {:.0} %, at most {:.0} %\n",
        median_error * 100.0,
        worst_error * 100.0,
    ));
}

fn of_network(page: &mut Page, predicted: &Predicted, parameters: &Parameters) {
    let Parameters { loggp, copy_gbps } = parameters;
    let row = |call: &Call| {
        let shown = |value: Option<f64>, of: fn(f64) -> String| value.map_or("-".to_owned(), of);
        let name = call.query.collective.to_string();
        vec![
            if call.query.bytes == 0 {
                name
            } else {
                format!("{name} of {}", size(call.query.bytes))
            },
            time(call.measured_ns),
            shown(call.model_ns, time),
            shown(call.model_error, percent),
            time(call.predicted_ns),
            percent(call.error),
        ]
    };
    let mut algorithms: Vec<String> =
        predicted.calls.iter().map(|call| call.candidate.to_string()).collect();
    algorithms.dedup();
    let errors = |median: f64, worst: f64| {
        format!("median {:.0} %, at most {:.0} %", median * 100.0, worst * 100.0)
    };
    let of_model = predicted.model_median_error.zip(predicted.model_worst_error);
    let of_model = of_model.map_or("-".to_owned(), |(median, worst)| errors(median, worst));
    page.paragraph(format!(
        "{} PEs that are processes of an MPI, calls in a row, each with a barrier at its end",
        predicted.pes
    ));
    page.paragraph(format!(
        "by messages between PEs 0 and 1: L = {}, o = {}, g = {}, G = {:.3} ns a byte; copies at \
         {copy_gbps:.1} GB/s",
        time(loggp.latency_ns),
        time(loggp.overhead_ns),
        time(loggp.gap_ns),
        loggp.gap_per_byte_ns,
    ));
    page.lines("\n");
    let header = ["call", "measured", "LogGP", "error", "simulated", "error"];
    page.table(header, predicted.calls.iter().map(row).collect(), 1..6);
    page.lines("\n");
    page.paragraph(format!("by {}", algorithms.join(", ")));
    let simulated = errors(predicted.median_error, predicted.worst_error);
    page.lines(format!("Error of LogGP: {of_model}\nof the simulation: {simulated}\n"));
}
