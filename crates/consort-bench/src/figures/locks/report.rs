//! Figures of the thesis with the simulated ones, as a page.

use anyhow::Result;
use consort_sim::machines::Threads;

use super::{
    super::{
        experiment::Outcome,
        quantity::{Quantity, Source},
    },
    machines::coherent,
};
use crate::{page::Page, units::counted};

/// Figures, and lines that show how they come about.
pub(super) struct Report {
    source: Source,
    machines: Vec<&'static str>,
    quantities: Vec<Quantity>,
    page: Page,
}

impl Report {
    /// An empty report on these machines.
    pub(super) fn new(source: Source, machines: &[&'static str]) -> Self {
        let (machines, quantities) = (machines.to_vec(), Vec::new());
        Self { source, machines, quantities, page: Page::default() }
    }

    /// Adds a figure. Returns it.
    pub(super) fn add(
        &mut self,
        machine: &'static str,
        what: impl Into<String>,
        unit: &'static str,
        simulated: f64,
    ) -> f64 {
        self.quantities.push(self.source.quantity(machine, what, unit).simulated(simulated));
        simulated
    }

    /// Adds a table that shows how the figures come about. All columns but the first are numbers.
    pub(super) fn table(&mut self, header: &[&str], rows: Vec<Vec<String>>) {
        let numbers = 1..header.len();
        self.page.table(header.iter().copied(), rows, numbers);
    }

    /// The outcome.
    pub(super) fn finish(mut self, verdict: String) -> Result<Outcome> {
        let figure =
            |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.2}"));
        let error =
            |error: Option<f64>| error.map_or("-".to_owned(), |e| format!("{:+.0} %", e * 1e2));
        let rows = self.quantities.iter().map(|quantity| {
            vec![
                quantity.machine.to_owned(),
                quantity.quantity.clone(),
                quantity.unit.to_owned(),
                figure(quantity.paper),
                figure(quantity.simulated),
                error(quantity.rel_error),
            ]
        });
        let header = ["machine", "", "unit", "paper", "simulated", "error"];
        self.page.table(header, rows.collect(), 3..=5);
        for machine in &self.machines {
            let threads = coherent(machine)?.threads;
            let fitted = threads.map_or(Vec::new(), |Threads { fitted, .. }| fitted);
            let names =
                if fitted.is_empty() { String::new() } else { format!(": {}", fitted.join(", ")) };
            let count = counted(fitted.len() as u64, "parameter");
            self.page.paragraph(format!(
                "{machine}: {count} fitted to the paper's figures{names}. The others are published \
                 micro-measurements or stated assumptions: `consort machines {machine} --source`."
            ));
        }
        Ok(Outcome { verdict, page: self.page, quantities: self.quantities })
    }
}
