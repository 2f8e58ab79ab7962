//! A quantity with the values to compare, as a line of JSON and as cells of tables.

use consort_bench::{page::Page, units::number};
use consort_sim::machines::Machine;
use serde::Serialize;

use super::figure::{Figure, Paper};

/// A quantity with the values to compare. Unknown values are null.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Quantity {
    /// The claim that it belongs to.
    pub claim: &'static str,
    /// The paper's machine, or `here` for this one.
    pub machine: &'static str,
    /// Its name.
    pub quantity: String,
    /// The id of its figure in the paper, if the paper has it on this machine.
    pub figure: Option<&'static str>,
    /// Its unit.
    pub unit: &'static str,
    /// The paper's value or limit.
    pub paper: Option<Paper>,
    /// The value of an analytic model of the paper's machine.
    pub model: Option<f64>,
    /// The value on a simulation of the paper's machine.
    pub simulated: Option<f64>,
    /// The same, if a parameter of the machine was fitted to this figure. Then the value is not a
    /// prediction.
    pub fitted: Option<f64>,
    /// The value on this machine.
    pub native: Option<f64>,
    /// The relative error of the simulated or fitted figure, or else of the model's, against the
    /// paper's. It is missing if the paper has 0 or a limit.
    pub rel_error: Option<f64>,
    /// Whether the simulated figure stays within the paper's limit. It is missing if the paper
    /// gives a value.
    pub holds: Option<bool>,
}

/// Rounds to three decimals. No value is more exact.
fn thousandths(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

impl Figure {
    /// Returns this quantity on a machine, with the paper's value or limit if it has one there.
    pub fn on(&'static self, machine: &'static str) -> Quantity {
        let paper = self.paper(machine);
        let figure = paper.map(|_| self.id);
        Quantity { paper, figure, ..Quantity::new(machine, self.quantity, self.unit) }
    }
}

impl Quantity {
    /// Returns a quantity that no paper has. The claim is added when its experiment ends.
    pub fn new(machine: &'static str, quantity: impl Into<String>, unit: &'static str) -> Self {
        Self { machine, quantity: quantity.into(), unit, ..Self::default() }
    }

    /// Returns the same quantity, with an addition to its name.
    pub(super) fn named(mut self, more: &str) -> Self {
        self.quantity += more;
        self
    }

    /// Returns the same quantity for this many PEs.
    pub fn with_pes(self, pes: u32) -> Self {
        self.named(&format!(", {pes} PEs"))
    }

    /// Returns the same quantity for these algorithms. It keeps the paper's value only if they are
    /// the paper's.
    pub(super) fn by(self, algorithms: &str, is_published: bool) -> Self {
        let named = self.named(&format!(", {algorithms}"));
        if is_published { named } else { named.unpublished() }
    }

    /// Returns the same quantity without the paper's value, which is for another variant.
    pub(super) fn unpublished(self) -> Self {
        Self { paper: None, figure: None, ..self }
    }

    /// Adds the value on this machine.
    pub fn native(self, native: impl Into<Option<f64>>) -> Self {
        Self { native: native.into().map(thousandths), ..self }
    }

    /// Adds the value on a simulation of the paper's machine. It counts as fitted if the machine's
    /// description says that a parameter was fitted to this figure.
    pub fn simulated(self, simulated: f64) -> Self {
        self.simulated_with(simulated, false)
    }

    /// Returns the same, simulated with the parameters that are used only on request.
    pub(crate) fn simulated_as_fitted(self, simulated: f64) -> Self {
        self.named(", fitted").simulated_with(simulated, true)
    }

    fn simulated_with(self, simulated: f64, all_fitted: bool) -> Self {
        let value = Some(thousandths(simulated));
        let is_fitted = self.figure.is_some_and(|id| {
            let fits = |it: Machine| it.provenance.is_fitted_to(id, all_fitted);
            Machine::find(self.machine).is_ok_and(fits)
        });
        let (as_simulated, as_fitted) = if is_fitted { (None, value) } else { (value, None) };
        let holds = self.paper.and_then(|paper| paper.is_kept(simulated, self.unit));
        let rel_error = match self.paper {
            Some(Paper::Value(paper) | Paper::Equal(paper)) if paper != 0.0 => {
                Some(thousandths(simulated / paper - 1.0))
            }
            _ => None,
        };
        Self { simulated: as_simulated, fitted: as_fitted, rel_error, holds, ..self }
    }

    /// Returns the same as fitted, because the paper derived the machine's parameters from this
    /// figure.
    pub(super) fn into_fitted(self) -> Self {
        Self { simulated: None, fitted: self.simulated.or(self.fitted), ..self }
    }

    fn is_simulated(&self) -> bool {
        self.simulated.or(self.fitted).is_some()
    }

    /// Returns the paper's value or limit as text.
    pub fn paper_text(&self) -> String {
        self.paper.map_or("-".to_owned(), |paper| paper.to_string())
    }

    /// Returns the simulated value as text, or else the fitted one, marked as such, or the model's.
    pub fn simulated_text(&self) -> String {
        match self.fitted {
            Some(fitted) => text(Some(fitted)) + " fitted",
            None => text(self.simulated.or(self.model)),
        }
    }

    /// Returns the relative error against the paper as text, or whether its limit holds.
    pub fn error_text(&self) -> String {
        match (self.holds, self.rel_error) {
            (Some(true), _) => "holds".to_owned(),
            (Some(false), _) => "missed".to_owned(),
            (None, Some(error)) => format!("{:+.0} %", error * 100.0),
            (None, None) => "-".to_owned(),
        }
    }
}

/// Returns a value of a quantity as text, or `-` if there is none.
pub fn text(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), number)
}

/// Returns the machines that quantities were simulated on, each once.
pub fn simulated_machines<'q>(all: impl IntoIterator<Item = &'q Quantity>) -> Vec<&'static str> {
    let mut machines = Vec::new();
    for one in all {
        if one.is_simulated() && !machines.contains(&one.machine) {
            machines.push(one.machine);
        }
    }
    machines
}

/// Adds a table of the simulated quantities of each machine, and a sentence about the sources of
/// the machine's numbers.
pub fn add_tables(page: &mut Page, quantities: &[Quantity]) {
    for machine in simulated_machines(quantities) {
        let row = |one: &Quantity| {
            let [paper, simulated] = [one.paper_text(), one.simulated_text()];
            vec![one.quantity.clone(), one.unit.to_owned(), paper, simulated, one.error_text()]
        };
        let of = quantities.iter().filter(|one| one.is_simulated() && one.machine == machine);
        page.lines("\n");
        page.table([machine, "unit", "paper", "simulated", "error"], of.map(row).collect(), 2..=4);
        if let Ok(machine) = Machine::find(machine) {
            let (name, from) = (&machine.name, machine.provenance.in_words());
            let more = format!("`consort-lab machines {name} --source` shows the source of each.");
            page.paragraph(format!("{name}: {from} {more}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "a";
    const SCC: &str = "scc";
    const BARCELONA: &str = "barcelona-x8";

    figures! { _FIGURES of "T2", "": "us":
        VALUE("value", A == 1774.0)
        MOST("most", A <= 2.0)
        LEAST("least", A >= 2.0)
        LINE_BINOMIAL("1 line", SCC == 16.6)
    }

    #[test]
    fn json_has_expected_keys_and_values() {
        let json = serde_json::to_string(&VALUE.on(A).native(12.3456)).unwrap();
        let expected = concat!(
            r#"{"claim":"","machine":"a","quantity":"value","figure":"T2.VALUE","#,
            r#""unit":"us","paper":1774.0,"#,
            r#""model":null,"simulated":null,"fitted":null,"native":12.346,"rel_error":null,"#,
            r#""holds":null}"#
        );
        assert_eq!(json, expected);
    }

    #[test]
    fn figure_to_which_a_parameter_was_fitted_is_not_simulated() {
        let values = |one: Quantity| (one.simulated, one.fitted);
        let (is_simulated, is_fitted) = ((Some(3.0), None), (None, Some(3.0)));
        // The overhead of a call is fitted to it, and is used only on request.
        assert_eq!(values(LINE_BINOMIAL.on(SCC).simulated(3.0)), is_simulated);
        assert_eq!(values(LINE_BINOMIAL.on(SCC).simulated_as_fitted(3.0)), is_fitted);
        assert_eq!(values(LINE_BINOMIAL.on(SCC).with_pes(32).simulated_as_fitted(3.0)), is_fitted);
        assert_eq!(values(LINE_BINOMIAL.on(BARCELONA).simulated_as_fitted(3.0)), is_simulated);
        assert_eq!(
            values(LINE_BINOMIAL.on(SCC).unpublished().simulated_as_fitted(3.0)),
            is_simulated
        );
    }

    #[test]
    fn limit_has_no_relative_error() {
        for (simulated, holds) in [(1.0, [true, false]), (2.0, [true; 2]), (3.0, [false, true])] {
            let [most, least] = [&MOST, &LEAST].map(|one| one.on(A).simulated(simulated));
            assert_eq!([most.holds, least.holds], holds.map(Some));
            assert_eq!([most.rel_error, least.rel_error], [None; 2]);
        }
        let value = VALUE.on(A).simulated(3.0 * 1774.0);
        assert_eq!((value.holds, value.rel_error), (None, Some(2.0)));
        assert_eq!([&MOST, &VALUE].map(|one| one.on(A).paper_text()), ["< 2.00", "1774"]);
    }
}
