//! `consort-lab calibrate`: measures single operations of this machine, and writes its description.
//!
//! The description is the machine `host`, on which every simulation can run. It contains no times
//! of collectives. `consort-lab predict` shows how well it predicts such times.

use super::machine_page;
use consort_console::{
    args, interrupt,
    measurement::Measurement,
    output::{self, progress::Progress},
    refuse,
};
use std::{fs, path::PathBuf, time::Duration};

use crate::{
    calibration::{self, Plan, description},
    simulation::machines,
};
use anyhow::{Context, Result};
use consort_bench::environment::Switches;
use consort_machine::topology::Topology;
use consort_sim::machines::Machine;
use consort_tuner::replace_file;

const EXAMPLES: &str = "\
Examples:
  consort-lab calibrate                       describe this machine
  consort-lab calibrate --output ./mine.toml  write the description elsewhere
  consort-lab predict                         compare with measurements
  consort-lab sim reduce --machine host       simulate on it";

/// Measure this machine and describe it, to simulate it as `host`
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Calibrate {
    /// Approximate time to take, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "6", value_parser = args::seconds)]
    budget: Duration,
    /// The description to write [default: host.toml next to the wisdom]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Calibrate {
    /// Measures, writes and prints.
    ///
    /// # Errors
    /// When a thread cannot be bound, the machine is too unsteady, or the file cannot be written.
    pub(crate) fn run(&self) -> Result<()> {
        let path = match &self.output {
            Some(path) if path.extension().is_none_or(|extension| extension != "toml") => {
                refuse!("{} must end in .toml, like all descriptions", path.display())
            }
            Some(path) => path.clone(),
            None => machines::host_path()?,
        };
        let unwritable = || format!("cannot write {}", path.display());
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(unwritable)?;
        }
        output::files::try_to_write(&path)?;
        let measurement = Measurement::begin(u32::MAX, interrupt::stop_flag()?);
        let topology = Topology::discover();
        let plan = Plan::of(&topology);
        let progress = Progress::new("calibrating");
        // An interrupt ends it: half a description is useless.
        let show = |share| {
            progress.show(share);
            interrupt::end_if_set(&measurement.stop, &progress);
        };
        let measured = calibration::measure(&plan, self.budget, show)
            .context("cannot measure this machine")?;
        drop(progress);
        let why = "each cache and memory is read at least once, and rounds between cores \
                   whose transfer time changes meanwhile are repeated";
        measurement.warn(&Switches::default());
        output::overrun::warn_if_over(measurement.elapsed(), self.budget, why);
        let text = description(&plan, &measured, &topology.machine_key(), &measurement.line());
        // Do not write a description that cannot be read back.
        let machine = Machine::parse(&path.to_string_lossy(), &text)?;
        replace_file(&path, &text).with_context(unwritable)?;
        output::print(&machine_page::page(&machine))?;
        output::print(&format!("\nWritten to {}\n", path.display()))
    }
}
