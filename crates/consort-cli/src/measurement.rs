//! A command that measures: it notes the machine's state at its start, and tells it with the
//! results.

use std::{
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use anyhow::Result;
use consort::Fabric;
use consort_bench::{
    environment::{Context, Switches, Watch},
    harness::places,
};
use serde::Serialize;

use crate::{interrupt, output};

/// The commit of this build.
const COMMIT: &str = env!("CONSORT_COMMIT");

/// A measurement in progress.
#[derive(Debug)]
pub(crate) struct Measurement {
    /// Set by an interrupt.
    pub(crate) stop: Arc<AtomicBool>,
    watch: Watch,
    begun: Context,
    /// Whether no result depends on the load of the machine.
    simulated: bool,
}

/// An object of a result with its context, in one line.
#[derive(Serialize)]
struct InContext<'c, T> {
    #[serde(flatten)]
    object: &'c T,
    context: &'c Context,
}

impl Measurement {
    /// Begins a measurement with `pes` PEs at most, which ends once `stop` is set.
    pub(crate) fn begin(pes: u32, stop: Arc<AtomicBool>) -> Self {
        let watch = Watch::begin(pes);
        let begun = Context::begin(&watch, COMMIT);
        Self { stop, watch, begun, simulated: false }
    }

    /// The same, for results of simulations alone: the load of the machine does not disturb them.
    pub(crate) fn of_simulations_alone(self, simulated: bool) -> Self {
        Self { simulated, ..self }
    }

    /// What so many PEs of a fabric are where they are started. Warns on standard error if an MPI
    /// starts them all on one machine.
    ///
    /// # Errors
    /// When they cannot be started, or lie on machines in another way than the fabric says.
    pub(crate) fn found(&self, fabric: Fabric, pes: u32) -> Result<Fabric> {
        let found = places::found(fabric, pes, &self.stop)?;
        if found.shape().is_none() && found != fabric {
            tracing::warn!(
                "the MPI starts all {pes} PEs on one machine: they are {found}, and measured as \
                 with --fabric {found}"
            );
        }
        Ok(found)
    }

    /// The time since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.watch.elapsed()
    }

    /// The machine, the date, the build and the load, in a line.
    pub(crate) fn line(&self) -> String {
        self.begun.to_string()
    }

    /// The same as lines for people.
    pub(crate) fn heading(&self) -> String {
        output::wrapped(&self.line())
    }

    /// What has disturbed the measurement so far.
    pub(crate) fn busy(&self, switches: &Switches) -> Option<String> {
        self.watch.busy(switches).filter(|_| !self.simulated)
    }

    /// Warns on standard error of what has disturbed the measurement so far.
    pub(crate) fn warn(&self, switches: &Switches) {
        if let Some(busy) = self.busy(switches) {
            tracing::warn!("{}", sentence(&busy));
        }
        if let Some(slept) = self.watch.suspended() {
            let slept = output::overrun::seconds(slept);
            tracing::warn!(
                "the machine was suspended for {slept} meanwhile; no time and no budget counts that"
            );
        }
    }

    /// Writes JSON objects in their context if a file is named for them, and prints a text below
    /// its heading otherwise. Warns if the measurement was disturbed.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn tell<T: Serialize>(
        &self,
        switches: &Switches,
        json: Option<&PathBuf>,
        objects: &[T],
        text: impl FnOnce() -> String,
    ) -> Result<()> {
        let Some(path) = json else {
            let busy = self.busy(switches).map(|busy| output::wrapped(&sentence(&busy)));
            let busy = busy.unwrap_or_default();
            return output::print(&format!("{}{busy}{}", self.heading(), text()));
        };
        self.warn(switches);
        let ended = self.begun.end(&self.watch, switches, interrupt::is_set(&self.stop));
        let context = &Context { busy: self.busy(switches), ..ended };
        let objects: Vec<_> = objects.iter().map(|object| InContext { object, context }).collect();
        output::write_json_lines(path, &objects)
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
