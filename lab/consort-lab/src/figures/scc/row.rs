//! A quantity of the thesis with the values to compare.
//!
//! Three values are compared with the thesis' value: that of its formulas; that of the simulation
//! (raw); and that of the simulation with further parameters, which are used only on request: the
//! overhead of a call, the switch to a handler, and the reset of flags. If a parameter was fitted
//! to a figure, its raw value is also shown as fitted. The page counts the fitted parameters.

use anyhow::Result;
use consort_sim::machines::Machine;

use super::{
    super::{
        experiment::Outcome,
        figure::Figure,
        quantity::{Quantity, text},
    },
    machine::MACHINE,
};
use consort_bench::page::Page;

/// A figure with the paper's value and those to compare.
pub(super) struct Row {
    /// The quantity, with the raw value as the simulated one.
    quantity: Quantity,
    pub(super) raw: f64,
    pub(super) fitted: Option<f64>,
}

impl Row {
    /// Returns a row with the raw value.
    pub(super) fn new(quantity: Quantity, raw: f64) -> Self {
        Self { quantity: quantity.simulated(raw), raw, fitted: None }
    }

    /// Returns a row of a figure with the raw value.
    pub(super) fn of(figure: &'static Figure, raw: f64) -> Self {
        Self::new(figure.on(MACHINE), raw)
    }

    /// Returns a row of a quantity that is not a figure of the thesis.
    pub(super) fn other(name: impl Into<String>, unit: &'static str, raw: f64) -> Self {
        Self::new(Quantity::new(MACHINE, name, unit), raw)
    }

    pub(super) fn model(mut self, model: f64) -> Self {
        self.quantity.model = Some(model);
        self
    }

    /// Marks a figure from which the thesis took the machine's parameters.
    pub(super) fn of_parameters(self) -> Self {
        Self { quantity: self.quantity.into_fitted(), ..self }
    }

    pub(super) fn native(&mut self, native: Option<f64>) {
        self.quantity = self.quantity.clone().native(native);
    }

    /// Returns the ratios of the model's value, and of the raw one, to the paper's.
    pub(super) fn of_paper(&self) -> Option<(f64, f64)> {
        let paper = self.quantity.paper?.number();
        Some((self.quantity.model? / paper, self.raw / paper))
    }

    pub(super) fn fitted(self, fitted: f64) -> Self {
        Self { fitted: Some(fitted), ..self }
    }
}

/// Returns the rows as a table and as quantities.
///
/// # Errors
/// When the machine's description cannot be read.
pub(super) fn outcome(rows: &[Row], verdict: String) -> Result<Outcome> {
    let provenance = Machine::find(MACHINE)?.provenance;
    let header = ["", "unit", "paper", "model", "simulated", "error", "fitted", "error", "here"];
    let value = |one: Option<&Quantity>| {
        let value = one.and_then(|one| one.simulated.or(one.fitted));
        [text(value), one.map_or("-".to_owned(), Quantity::error_text)]
    };
    let (mut cells, mut quantities) = (Vec::new(), Vec::new());
    for Row { quantity, fitted, .. } in rows {
        let fitted = fitted.map(|fitted| quantity.clone().simulated_as_fitted(fitted));
        // If a parameter was fitted to a figure, its raw value is shown as fitted.
        let (raw, fits) = match quantity.fitted {
            Some(_) => (None, Some(quantity)),
            None => (Some(quantity), fitted.as_ref()),
        };
        let ([simulated, error], [fits, error_of_fit]) = (value(raw), value(fits));
        cells.push(vec![
            quantity.quantity.clone(),
            quantity.unit.to_owned(),
            quantity.paper_text(),
            text(quantity.model),
            simulated,
            error,
            fits,
            error_of_fit,
            text(quantity.native),
        ]);
        quantities.push(quantity.clone());
        quantities.extend(fitted);
    }
    let mut page = Page::default();
    page.table(header, cells, 2..=8);
    page.paragraph(format!(
        "model: the thesis' formulas, without contention. simulated: the algorithms that run \
         natively, with the costs of the description, distances and contention. fitted: with 4 us \
         per call, 5 us per switch to the program's handler, and flags that are reset; or a figure \
         to which a parameter was fitted. {} `consort-lab machines {MACHINE} --source` shows each. \
         here: this machine, one PE per core, calls in a row, the largest possible k; with many \
         sources, all PEs. Coherent caches have no message buffer to contend for.",
        provenance.in_words(),
    ));
    Ok(Outcome { verdict, page, quantities })
}
