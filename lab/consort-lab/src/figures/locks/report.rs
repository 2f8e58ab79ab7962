//! Quantities of the thesis next to the simulated ones, as a page.

use super::{
    super::{
        experiment::Outcome,
        quantity::{Quantity, add_tables},
    },
    curves::{Curves, least, most},
    run::Point,
};
use consort_bench::page::{self, Page};

/// Quantities, and lines that show how they are computed.
#[derive(Default)]
pub(super) struct Report {
    quantities: Vec<Quantity>,
    page: Page,
}

impl Report {
    /// Adds a quantity. Returns its value.
    pub(super) fn add(&mut self, quantity: Quantity, simulated: f64) -> f64 {
        self.quantities.push(quantity.simulated(simulated));
        simulated
    }

    /// Adds a figure that depends on details of the schedule: its least and its most, by seed. It
    /// is met if both are.
    pub(super) fn add_spread(&mut self, quantity: &Quantity, by_seed: Vec<f64>) {
        let seeds = by_seed.len();
        for (which, value) in [("least", least(by_seed.clone())), ("most", most(by_seed))] {
            self.add(quantity.clone().named(&format!(", {which} of {seeds} seeds")), value);
        }
    }

    /// Adds a quantity that is not a figure of the thesis.
    pub(super) fn add_other(
        &mut self,
        machine: &'static str,
        name: impl Into<String>,
        unit: &'static str,
        simulated: f64,
    ) {
        self.add(Quantity::new(machine, name, unit), simulated);
    }

    /// Adds a table that shows how the figures are computed. All columns but the first are numbers.
    pub(super) fn table(&mut self, header: &[&str], rows: Vec<Vec<String>>) {
        let numbers = 1..header.len();
        self.page.table(header.iter().copied(), rows, numbers);
    }

    /// Adds curves: their subject, their unit, and the numbers on the axis.
    pub(super) fn curves(
        &mut self,
        (values, by): (&str, &str),
        curves: &Curves,
        value: impl Fn(&Point) -> f64,
    ) {
        let way = |(name, points): (&str, &[Point])| {
            (name.to_owned(), points.iter().map(&value).collect())
        };
        self.page.curves(page::Curves {
            values: values.to_owned(),
            by: by.to_owned(),
            numbers: curves.numbers().map(f64::from).collect(),
            ways: curves.rows().map(way).collect(),
        });
    }

    /// Returns the outcome.
    pub(super) fn finish(mut self, verdict: String) -> Outcome {
        add_tables(&mut self.page, &self.quantities);
        if self.quantities.iter().any(|quantity| quantity.holds.is_some()) {
            let text = "Paper, with < or >: a limit, where the paper has no figure; the \
                        simulation stays within it, or misses it.";
            self.page.paragraph(text);
        }
        let verdict = verdict + &self.missed_limits();
        Outcome { verdict, page: self.page, quantities: self.quantities }
    }

    /// Returns which of the paper's limits do not hold. The standing of the claim has the numbers:
    /// several rows may be one figure, and a parameter may be fitted to a limit that holds.
    fn missed_limits(&self) -> String {
        let is_of_one = self.quantities.windows(2).all(|two| two[0].machine == two[1].machine);
        let name = |quantity: &Quantity| match is_of_one {
            true => quantity.quantity.clone(),
            false => format!("{} ({})", quantity.quantity, quantity.machine),
        };
        let missed = self.quantities.iter().filter(|quantity| quantity.holds == Some(false));
        let missed: Vec<String> = missed.map(name).collect();
        match &missed[..] {
            [] => String::new(),
            _ => format!("; outside the thesis' limits: {}", missed.join("; ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::machines::TILE, *};
    use consort_bench::page::Part;

    figures! { _FIGURES of "T8", "": "x":
        VALUE("value", TILE == 4.0)
        MOST("most", TILE <= 2.0)
        LEAST("least", TILE >= 2.0)
    }

    #[test]
    fn missed_limit_is_named() {
        let mut report = Report::default();
        for figure in [&VALUE, &MOST, &LEAST] {
            report.add(figure.on(TILE), 1.0);
        }
        let cells =
            |one: &Quantity| [one.paper_text(), one.simulated_text(), one.error_text()].join(" ");
        let rows: Vec<String> = report.quantities.iter().map(cells).collect();
        assert_eq!(rows, ["4.00 1.00 -75 %", "< 2.00 1.00 holds", "> 2.00 1.00 missed"]);
        let Outcome { verdict, page, .. } = report.finish("So".to_owned());
        let is_explained =
            |part: &Part| matches!(part, Part::Paragraph(text) if text.contains("misses it"));
        assert!(page.parts().iter().any(is_explained), "{page:?}");
        assert_eq!(verdict, "So; outside the thesis' limits: least");
    }
}
