//! The settings and the outcome of a claim's experiment.

use std::sync::atomic::AtomicBool;

use consort::{Waiting, launch::Fabric};

use super::quantity::Quantity;
use consort_bench::{page::Page, units::counted};

/// The settings of a claim's experiment.
#[derive(Clone, Copy)]
pub struct Experiment<'e> {
    /// The kind of PEs.
    pub fabric: Fabric,
    /// The requested number of PEs.
    pub pes: Option<u32>,
    /// Whether to produce all figures, however long that takes.
    pub whole: bool,
    /// The usable cores.
    pub cores: u32,
    /// The approximate measuring time.
    pub budget: std::time::Duration,
    /// Ends measuring after the present block once it is set.
    pub stop: &'e AtomicBool,
    /// Receives the completed share.
    pub show: &'e dyn Fn(f64),
}

/// The outcome of an experiment.
pub struct Outcome {
    /// The result for the claim, in a few words.
    pub verdict: String,
    /// The figure or table.
    pub page: Page,
    /// The figures.
    pub quantities: Vec<Quantity>,
}

impl Outcome {
    /// Returns the outcome of an experiment that cannot run, with the reason.
    pub fn unmeasured(why: &str) -> Self {
        let verdict = format!("not measured: {why}");
        Self { verdict, page: Page::default(), quantities: Vec::new() }
    }
}

impl Experiment<'_> {
    /// Returns the numbers of PEs to run with: the requested one, or one for each core and those of
    /// `oversubscribed` that are larger.
    pub fn team_sizes(&self, oversubscribed: &[u32]) -> Vec<u32> {
        let size = self.team_size();
        let more = oversubscribed.iter().filter(|&&pes| self.pes.is_none() && pes > size);
        std::iter::once(&size).chain(more).copied().collect()
    }

    /// Returns the number of PEs to run with: the requested one, or one for each core.
    pub fn team_size(&self) -> u32 {
        self.pes.unwrap_or(self.cores.max(2))
    }

    /// Returns a line on the placement of this many PEs on this machine.
    pub fn placement(&self, pes: u32) -> String {
        if let Some(shape) = self.fabric.shape() {
            let each = shape.pes_each;
            return format!("{pes} PEs, {each} in each process of an MPI, calls in a row");
        }
        let cores = self.cores;
        let waiting = Waiting::default();
        if pes <= cores {
            return format!("{pes} PEs, one per core, waiting by {waiting}, calls in a row");
        }
        format!(
            "{pes} PEs share {}, waiting by {waiting}, calls in a row: the times show \
             the scheduler more than the algorithm",
            counted(cores, "core")
        )
    }
}
