//! Where and how long a claim's experiment runs, and what it comes to.

use consort::Waiting;

use super::quantity::{Quantity, Source};
use crate::page::Page;

/// Where and how long a claim's experiment runs.
pub struct Experiment<'e> {
    /// The claim that it is for.
    pub source: Source,
    /// The number of PEs that was asked for.
    pub pes: Option<u32>,
    /// The usable cores.
    pub cores: u32,
    /// How long to measure, about.
    pub budget: std::time::Duration,
    /// Is told which share is done.
    pub show: &'e dyn Fn(f64),
}

/// The outcome of an experiment.
pub struct Outcome {
    /// How the claim stands here, in a few words.
    pub verdict: String,
    /// The figure or table.
    pub page: Page,
    /// The figures.
    pub quantities: Vec<Quantity>,
}

impl Experiment<'_> {
    /// The numbers of PEs to run with: as asked for, or the claim's.
    pub fn team_sizes(&self, of_claim: &[u32]) -> Vec<u32> {
        self.pes.map_or(of_claim.to_vec(), |pes| vec![pes])
    }

    /// The number of PEs to run with, as asked for, or one a core.
    pub fn team_size(&self) -> u32 {
        self.pes.unwrap_or(self.cores.max(2))
    }

    /// A line that says what so many PEs mean here.
    pub fn placement(&self, pes: u32) -> String {
        let cores = self.cores;
        let waiting = Waiting::suited(pes as usize, cores as usize);
        if pes <= cores {
            return format!("{pes} PEs, one a core, waiting by {waiting}, calls in a row");
        }
        let plural = if cores == 1 { "" } else { "s" };
        format!(
            "{pes} PEs share {cores} core{plural}, waiting by {waiting}, calls in a row: the \
             scheduler's times, more than the algorithm's"
        )
    }
}
