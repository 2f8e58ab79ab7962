//! The settings and the outcome of a claim's experiment.

use std::sync::atomic::AtomicBool;

use consort::{Fabric, Waiting};

use super::quantity::Quantity;
use consort_bench::{page::Page, units::counted};

/// The settings of a claim's experiment.
#[derive(Clone, Copy)]
pub struct Experiment<'e> {
    /// What the PEs are.
    pub fabric: Fabric,
    /// The number of PEs that was asked for.
    pub pes: Option<u32>,
    /// Whether it is to have all figures, however long that takes.
    pub whole: bool,
    /// The usable cores.
    pub cores: u32,
    /// The approximate measuring time.
    pub budget: std::time::Duration,
    /// Ends measuring with the present block once it is set.
    pub stop: &'e AtomicBool,
    /// Receives the share that is complete.
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
    /// That of an experiment that cannot be done, and why.
    pub fn unmeasured(why: &str) -> Self {
        let verdict = format!("not measured: {why}");
        Self { verdict, page: Page::default(), quantities: Vec::new() }
    }
}

impl Experiment<'_> {
    /// The numbers of PEs to run with: the one that was asked for, or one for each core, and those
    /// of `oversubscribed` that are more.
    pub fn team_sizes(&self, oversubscribed: &[u32]) -> Vec<u32> {
        let size = self.team_size();
        let more = oversubscribed.iter().filter(|&&pes| self.pes.is_none() && pes > size);
        std::iter::once(&size).chain(more).copied().collect()
    }

    /// The number of PEs to run with: the one that was asked for, or one for each core.
    pub fn team_size(&self) -> u32 {
        self.pes.unwrap_or(self.cores.max(2))
    }

    /// A line on the placement of this many PEs on this machine.
    pub fn placement(&self, pes: u32) -> String {
        if let Some(shape) = self.fabric.shape() {
            let each = shape.pes_each;
            return format!("{pes} PEs, {each} in each process of an MPI, calls in a row");
        }
        let cores = self.cores;
        let waiting = Waiting::default();
        if pes <= cores {
            return format!("{pes} PEs, one a core, waiting by {waiting}, calls in a row");
        }
        format!(
            "{pes} PEs share {}, waiting by {waiting}, calls in a row: the scheduler's times, more \
             than the algorithm's",
            counted(cores, "core")
        )
    }
}
