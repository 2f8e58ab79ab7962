//! A command that measures: it records the machine's state at its start, and reports it with the
//! results.

use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use anyhow::Result;
use consort::launch::Fabric;
use consort_bench::{
    environment::{Context, Switches, Watch},
    harness::placement,
    page::Page,
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    interrupt, output,
    report::{self, Findings},
    results::Results,
};

/// The commit of this build.
const COMMIT: &str = env!("CONSORT_COMMIT");

/// A measurement in progress.
#[derive(Debug)]
pub struct Measurement {
    /// Set by an interrupt.
    pub stop: Arc<AtomicBool>,
    watch: Watch,
    begun: Context,
    /// Whether no result depends on the load of the machine.
    simulated: bool,
}

/// An object of a result, together with its context: one line of JSON.
#[derive(Serialize)]
struct WithContext<'c, T> {
    #[serde(flatten)]
    object: &'c T,
    context: &'c Context,
}

impl Measurement {
    /// Begins a measurement with at most `pes` PEs, which ends once `stop` is set.
    pub fn begin(pes: u32, stop: Arc<AtomicBool>) -> Self {
        let watch = Watch::begin(pes);
        let begun = Context::begin(&watch, COMMIT);
        Self { stop, watch, begun, simulated: false }
    }

    /// Returns the same for simulated results only: the load of the machine does not disturb them.
    pub fn of_simulations_alone(self, simulated: bool) -> Self {
        Self { simulated, ..self }
    }

    /// Starts `pes` PEs and returns their fabric with the placement that was found. Warns on
    /// standard error if an MPI starts them all on one machine.
    ///
    /// # Errors
    /// When they cannot be started, or their placement on machines differs from the fabric's.
    pub fn found(&self, fabric: Fabric, pes: u32) -> Result<Fabric> {
        let found = placement::found(fabric, pes, &self.stop)?;
        if found.shape().is_none() && found != fabric {
            tracing::warn!(
                "the MPI starts all {pes} PEs on one machine, so this measures --fabric {found}"
            );
        }
        Ok(found)
    }

    /// Returns the time since the start.
    pub fn elapsed(&self) -> Duration {
        self.watch.elapsed()
    }

    /// Returns the machine's key.
    pub fn machine(&self) -> &str {
        &self.begun.machine
    }

    /// Returns the machine, the date, the build and the load, in a line.
    pub fn line(&self) -> String {
        self.begun.to_string()
    }

    /// Returns the same as lines for people.
    pub fn heading(&self) -> String {
        output::wrapped(&self.line())
    }

    /// Returns the disturbances of the measurement so far.
    pub fn busy(&self, switches: &Switches) -> Option<String> {
        self.watch.busy(switches).filter(|_| !self.simulated)
    }

    /// Warns on standard error about the disturbances of the measurement so far.
    pub fn warn(&self, switches: &Switches) {
        if let Some(busy) = self.busy(switches) {
            tracing::warn!("{}", sentence(&busy));
        }
        if let Some(slept) = self.watch.suspended() {
            let slept = output::overrun::seconds(slept);
            tracing::warn!(
                "the machine was suspended for {slept}; times and the budget do not include this"
            );
        }
    }

    /// Writes results with their context to the requested destinations. Prints them as text below a
    /// heading, unless a program reads them. Warns if the measurement was disturbed.
    ///
    /// # Errors
    /// When some could not be written.
    pub fn present<T: Serialize>(
        &self,
        switches: &Switches,
        results: &Results,
        findings: &Findings<'_, T>,
    ) -> Result<()> {
        if results.are_for_programs() {
            self.warn(switches);
        }
        self.present_with(switches, results, findings, || self.print(switches, findings.page))
    }

    /// Prints a page below its heading.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub fn print(&self, switches: &Switches, page: &Page) -> Result<()> {
        let busy = self.busy(switches).map(|busy| output::wrapped(&sentence(&busy)));
        let (busy, page) = (busy.unwrap_or_default(), output::page(page));
        output::print(&format!("{}{busy}{page}", self.heading()))
    }

    /// Prints a page, whose text already says whether the machine was busy, below its heading.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub fn print_below_heading(&self, page: &Page) -> Result<()> {
        output::print(&(self.heading() + &output::page(page)))
    }

    /// Like [`Self::present`], but calls `text` to print the text.
    ///
    /// # Errors
    /// When some could not be written.
    pub fn present_with<T: Serialize>(
        &self,
        switches: &Switches,
        results: &Results,
        findings: &Findings<'_, T>,
        text: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let ended = self.begun.end(&self.watch, switches, interrupt::is_set(&self.stop));
        let context = &Context { busy: self.busy(switches), ..ended };
        let objects: Vec<_> =
            findings.objects.iter().map(|object| WithContext { object, context }).collect();
        let in_context = |row: &Value| {
            let mut row = row.clone();
            row["context"] = json!(context);
            row
        };
        let rows: Option<Vec<Value>> =
            findings.rows.as_ref().map(|rows| rows.iter().map(in_context).collect());
        let report = || report::report(context, findings).html();
        results.write(&objects, rows.as_deref(), text, report)
    }

    /// Returns the report of results that have no context.
    pub fn report<T>(&self, findings: &Findings<'_, T>) -> String {
        let is_interrupted = interrupt::is_set(&self.stop);
        let context = self.begun.end(&self.watch, &Switches::default(), is_interrupted);
        report::report(&Context { busy: None, ..context }, findings).html()
    }
}

fn sentence(busy: &str) -> String {
    format!("the machine was busy: {busy}; figures may be too high")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_times_depend_on_the_load() {
        let many = Switches::of(1000, 2, Duration::from_secs(1));
        let begin = |simulated| {
            Measurement::begin(1, Arc::default()).of_simulations_alone(simulated).busy(&many)
        };
        assert!(begin(false).is_some());
        assert_eq!(begin(true), None);
    }
}
