//! A figure of the thesis with the values to compare.
//!
//! Three values stand beside the thesis' own: that of its formulas; that of the simulation with
//! published micro-measurements alone (raw); and that of the simulation with fitted parameters: the
//! overhead of a call, and flags that are reset. The page states the number of fitted parameters.

use super::{
    super::{
        experiment::Outcome,
        quantity::{Quantity, Source},
    },
    machine::MACHINE,
};
use crate::page::Page;

/// A figure: the paper's value, and those to compare.
pub(super) struct Row {
    pub(super) what: String,
    pub(super) unit: &'static str,
    pub(super) paper: Option<f64>,
    pub(super) model: Option<f64>,
    pub(super) raw: f64,
    pub(super) fitted: Option<f64>,
    pub(super) native: Option<f64>,
}

impl Row {
    /// A row with the paper's value of the figure.
    pub(super) fn new(
        source: Source,
        what: impl Into<String>,
        unit: &'static str,
        raw: f64,
    ) -> Self {
        let what = what.into();
        let paper = source.paper(MACHINE, &what);
        Self { what, unit, paper, model: None, raw, fitted: None, native: None }
    }

    pub(super) fn model(self, model: f64) -> Self {
        Self { model: Some(model), ..self }
    }

    pub(super) fn fitted(self, fitted: f64) -> Self {
        Self { fitted: Some(fitted), ..self }
    }
}

/// The rows as a table and as quantities.
pub(super) fn outcome(source: Source, rows: &[Row], verdict: String) -> Outcome {
    let header = ["", "unit", "paper", "model", "simulated", "error", "fitted", "error", "here"];
    let figure = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.2}"));
    let error = |value: Option<f64>, row: &Row| {
        let error = value.zip(row.paper).map(|(value, paper)| value / paper - 1.0);
        error.map_or("-".to_owned(), |error| format!("{:+.1} %", error * 100.0))
    };
    let (mut cells, mut quantities) = (Vec::new(), Vec::new());
    for row in rows {
        let Row { what, unit, paper, model, raw, fitted, native } = row;
        cells.push(vec![
            what.clone(),
            (*unit).to_owned(),
            figure(*paper),
            figure(*model),
            figure(Some(*raw)),
            error(Some(*raw), row),
            figure(*fitted),
            error(*fitted, row),
            figure(*native),
        ]);
        let simulated = [(what.clone(), Some(*raw)), (format!("{what}, fitted"), *fitted)];
        for (quantity, simulated) in simulated {
            if let Some(simulated) = simulated {
                let figure = source.quantity(MACHINE, quantity, unit);
                let figure = Quantity { paper: *paper, model: *model, ..figure };
                quantities.push(figure.simulated(simulated).native(*native));
            }
        }
    }
    let mut page = Page::default();
    page.table(header, cells, 2..=8);
    page.paragraph(
        "model: the thesis' formulas, without contention. simulated: the algorithms that run \
         natively, with the published costs of a line (Table 4.1), distances and contention. \
         fitted: with 4 us a call, 5 us a signal of the kernel's, and flags that are reset. In \
         all, 4 parameters are fitted: those two (fitted only), the time that a line occupies a \
         tile's buffers, and the writes that a router holds. `consort machines scc --source` \
         tells of each. here: this machine, a PE a core, calls in a row, k as large as can be; \
         of many sources, all PEs. Caches that are kept coherent have no buffer to press on.",
    );
    Outcome { verdict, page, quantities }
}
