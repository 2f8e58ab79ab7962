//! `consort-lab sim`: simulates a collective on a described machine.
//!
//! 1. `arguments`: the arguments; `options`: the checked arguments, as a list of programs;
//!    `candidates`: the algorithms;
//! 2. `page`: the tables of the text output; `plots`: the plots of a report;
//! 3. `picture`: the tree of messages, and the timeline of each PE, in `svg`.

mod arguments;
mod candidates;
mod options;
mod page;
mod picture;
mod plots;
mod svg;

use std::{process::ExitCode, time::Instant};

use crate::simulation::{Program, Simulated};
use anyhow::{Result, bail};
use consort_bench::units;
use consort_sim::SimulationError;

pub(crate) use arguments::Sim;
use consort_console::{
    interrupt,
    measurement::Measurement,
    output::{self, progress::Progress},
    report::Findings,
};
use options::Options;

impl Sim {
    /// Checks the options, simulates, writes files and prints.
    ///
    /// # Errors
    /// When options contradict each other, none of the algorithms can be simulated, or a file
    /// cannot be written.
    pub(crate) fn run(&self) -> Result<ExitCode> {
        self.results.check()?;
        let flag = interrupt::stop_flag()?;
        // The load of this machine is not reported: simulated figures do not depend on it.
        let measurement = Measurement::begin(1, flag.clone()).of_simulations_alone(true);
        let stop = &*flag;
        let Options { conditions, simulation, programs, mut left_out } = Options::of(self)?;
        let progress = Progress::new(&format!("simulating {}", conditions.machine.name));
        let weight = |program: &Program| program.query.bytes as f64 + 4096.0;
        let whole: f64 = programs.iter().map(weight).sum();
        let begun = Instant::now();
        let deadline = begun.checked_add(self.budget);
        let simulation = deadline.map_or(simulation.clone(), |it| simulation.deadline(it));
        let (mut done, mut all) = (0.0, Vec::new());
        for program in programs {
            let share = weight(&program) / whole;
            // After an interrupt, show the figures of the finished simulations.
            if !all.is_empty() && interrupt::is_set(stop) {
                break;
            }
            let is_first = all.is_empty();
            let show = |part: f64| {
                progress.show(done + part * share);
                if is_first {
                    interrupt::end_if_set(stop, &progress);
                }
            };
            let (candidate, bytes) = (&program.candidate, program.query.bytes);
            let name = format!("{candidate}, {}", units::size(bytes));
            match Simulated::of(program, &simulation, &show) {
                Ok(simulated) => all.push(simulated),
                Err(error) if is_out_of_time(&error) => left_out.push(format!(
                    "{name}: not simulated within {}; raise --budget",
                    output::overrun::seconds(self.budget)
                )),
                Err(error) => return Err(error),
            }
            done += share;
        }
        drop(progress);
        left_out.dedup();
        if all.is_empty() {
            bail!("nothing was simulated: {}", left_out.join("; "));
        }

        if let (Some(path), [only]) = (&self.trace, &all[..]) {
            let mut text = Vec::new();
            only.trace.write(&mut text)?;
            output::save(path, &String::from_utf8(text)?)?;
        }
        if let (Some(path), [only]) = (&self.picture, &all[..]) {
            output::save(path, &picture::picture(&conditions, only))?;
        }
        let records: Vec<_> = all.iter().map(|one| one.record(&conditions)).collect();
        let page = page::page(&conditions, &all, &left_out, self.sweep);
        let findings = Findings {
            objects: &records,
            rows: None,
            page: &page,
            plots: &|document| plots::plots(document, &conditions, &all),
        };
        let text = || output::print(&output::page(&page));
        self.results.write(&records, None, text, || measurement.report(&findings))?;
        Ok(interrupt::ending(stop))
    }
}

fn is_out_of_time(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(SimulationError::OutOfTime))
}
