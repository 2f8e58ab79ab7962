//! Figures of the thesis with the simulated ones, as a page.

use anyhow::{Result, ensure};

use super::{
    super::{
        experiment::Outcome,
        quantity::{Quantity, Source, add_tables},
    },
    curves::Curves,
    run::Point,
};
use consort_bench::page::{self, Page};

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

    /// Adds curves: what, in which unit, by which numbers.
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

    /// The outcome.
    ///
    /// # Errors
    /// When the paper has a figure that was not added.
    pub(super) fn finish(mut self, verdict: String) -> Result<Outcome> {
        for bound in self.source.bounds {
            let same =
                |one: &Quantity| (one.machine, &*one.quantity) == (bound.machine, bound.quantity);
            ensure!(self.quantities.iter().any(same), "no figure {}", bound.quantity);
        }
        add_tables(&mut self.page, &self.quantities);
        if self.quantities.iter().any(|quantity| quantity.holds.is_some()) {
            let text = "Paper, with < or >: a limit, where the paper has no figure; what is \
                        simulated holds to it, or has missed it.";
            self.page.paragraph(text);
        }
        let verdict = verdict + &self.limits();
        Ok(Outcome { verdict, page: self.page, quantities: self.quantities })
    }

    /// How many of the paper's limits hold, and which ones do not.
    fn limits(&self) -> String {
        let name = |quantity: &Quantity| match self.machines[..] {
            [_] => quantity.quantity.clone(),
            _ => format!("{} ({})", quantity.quantity, quantity.machine),
        };
        let missed = self.quantities.iter().filter(|quantity| quantity.holds == Some(false));
        let missed: Vec<String> = missed.map(name).collect();
        let all = self.quantities.iter().filter(|quantity| quantity.holds.is_some()).count();
        match (all, missed.len()) {
            (0, _) => String::new(),
            (_, 0) => format!("; {all} of {all} limits hold"),
            (_, not) => format!("; {} of {all} limits hold, not: {}", all - not, missed.join("; ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            super::quantity::{Bound, at_least, at_most, bound},
            machines::TILE,
        },
        *,
    };
    use consort_bench::page::Part;

    const BOUNDS: &[Bound] =
        &[bound(TILE, "value", 4.0), at_most(TILE, "most", 2.0), at_least(TILE, "least", 2.0)];

    #[test]
    fn a_limit_that_is_missed_is_named() {
        let mut report = Report::new(Source { claim: "T8", bounds: BOUNDS }, &[TILE]);
        for what in ["value", "most", "least"] {
            report.add(TILE, what, "x", 1.0);
        }
        let cells =
            |one: &Quantity| [one.paper_text(), one.simulated_text(), one.error_text()].join(" ");
        let rows: Vec<String> = report.quantities.iter().map(cells).collect();
        assert_eq!(rows, ["4.00 1.00 -75 %", "< 2.00 1.00 holds", "> 2.00 1.00 missed"]);
        let Outcome { verdict, page, .. } = report.finish("So".to_owned()).unwrap();
        let is_told =
            |part: &Part| matches!(part, Part::Paragraph(text) if text.contains("missed"));
        assert!(page.parts().iter().any(is_told), "{page:?}");
        assert_eq!(verdict, "So; 1 of 2 limits hold, not: least");
    }

    #[test]
    fn no_figure_of_the_paper_is_left_out() {
        let report = Report::new(Source { claim: "T8", bounds: BOUNDS }, &[TILE]);
        assert_eq!(report.finish(String::new()).err().unwrap().to_string(), "no figure value");
    }
}
