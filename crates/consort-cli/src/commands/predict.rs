//! `consort predict`: compares predictions by this machine's description with measurements.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use anyhow::{Result, bail};
use clap::value_parser;
use consort::{SyncMode, SyncModes};
use consort_bench::{
    asked::describe,
    environment::Switches,
    prediction::{Predicted, Prediction},
    simulation::machines,
};

use crate::{
    args, interrupt,
    measurement::Measurement,
    output::{self, brief, finish, progress::Progress, table, time},
};

const EXAMPLES: &str = "\
Examples:
  consort calibrate && consort predict           is the description any good?
  consort predict --sync strict --bytes 8,8k     of these calls
  consort predict --machine ./mine.toml          of another description of this machine";

/// Compare predictions by the description of this machine with measurements
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Predict {
    /// A description of this machine, by `consort calibrate`
    #[arg(long, value_name = "NAME|FILE", default_value = "host")]
    machine: String,
    /// Number of PEs
    #[arg(long, value_name = "N", default_value = "2",
        value_parser = value_parser!(u32).range(2..))]
    pes: u32,
    /// Sizes in bytes of broadcasts and reductions
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = args::block,
        default_value = "8,64,512,4k,32k,256k,1M")]
    bytes: Vec<usize>,
    /// Synchronization modes: strict, mine, or ENTRY/EXIT as in mine/all
    #[arg(long, value_name = "MODES", value_delimiter = ',', default_value = "mine,strict")]
    sync: Vec<SyncModes>,
    /// Seconds to simulate and measure for, about
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = args::seconds)]
    budget: Duration,
    /// Write one JSON object, to the file or else to standard output (`-`)
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-",
        value_parser = args::writable())]
    json: Option<PathBuf>,
}

impl Predict {
    /// Simulates, measures and prints.
    ///
    /// # Errors
    /// When there is no description, it has too few PEs, or measuring fails.
    pub(crate) fn run(&self) -> Result<ExitCode> {
        let measurement = Measurement::begin(self.pes, interrupt::stop_flag()?);
        if let Some(sync) = self.sync.iter().find(|sync| sync.exit == SyncMode::None) {
            bail!(
                "--sync {sync}: calls that return early need buffers of their own kind; use \
                strict, mine, or others that end in mine or all"
            );
        }
        let machine = machines::find(&self.machine)?;
        let progress = Progress::new("measuring");
        let prediction = Prediction {
            pes: self.pes,
            sizes_bytes: &self.bytes,
            syncs: &self.sync,
            budget: self.budget,
            stop: &measurement.stop,
        };
        let predicted = prediction.run(&machine, &|what, share| {
            progress.rename(what);
            progress.show(share);
        })?;
        drop(progress);
        let objects = std::slice::from_ref(&predicted);
        let none = Switches::default();
        measurement.tell(&none, self.json.as_ref(), objects, || text(&predicted))?;
        let calls = predicted.calls.len() + predicted.missing;
        let why = output::overrun::parts([
            (format!("simulating {calls} calls"), predicted.simulating),
            (format!("a launch of {calls} calls"), predicted.longest_launch),
        ]);
        output::overrun::tell(measurement.elapsed(), self.budget, &why);
        Ok(interrupt::ending(&measurement.stop))
    }
}

fn text(predicted: &Predicted) -> String {
    let mut table = table(["call", "algorithm", "predicted", "measured", "error"]);
    for call in &predicted.calls {
        table.add_row([
            describe(&call.query),
            brief(&call.candidate),
            time(call.predicted_ns),
            time(call.measured_ns),
            format!("{:+.0} %", call.error * 100.0),
        ]);
    }
    let mut text = format!(
        "{}, {} PEs, calls in a row, cores {}: one-way transfer {}\n\n",
        predicted.machine,
        predicted.pes,
        predicted.class,
        time(predicted.transfer_ns),
    );
    text += &finish(table, &[2, 3, 4]);
    text += &format!("\nMedian error: {:.0} %\n", predicted.median_error * 100.0);
    if predicted.missing > 0 {
        text += &format!(
            "{} calls have no figure of cores that are {}.\n",
            predicted.missing, predicted.class
        );
    }
    text
}
