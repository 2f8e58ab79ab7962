//! One figure of a paper with the values to compare, as a line of JSON.

use consort_bench::{page::Page, units::number};
use consort_sim::machines::Machine;
use serde::Serialize;

/// What a paper says of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// Its value.
    Value,
    /// That it is at most so much.
    AtMost,
    /// That it is at least so much.
    AtLeast,
}

impl Said {
    /// What stands before the number.
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Value => "",
            Self::AtMost => "< ",
            Self::AtLeast => "> ",
        }
    }

    /// Whether a value keeps to the paper's limit; none if the paper gives a value.
    pub(super) fn is_kept(self, paper: f64, value: f64) -> Option<bool> {
        match self {
            Self::Value => None,
            Self::AtMost => Some(value <= paper),
            Self::AtLeast => Some(value >= paper),
        }
    }
}

/// A figure that a paper gives.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// The paper's machine.
    pub machine: &'static str,
    /// The figure, without the number of PEs.
    pub quantity: &'static str,
    /// The paper's value.
    pub value: f64,
    /// What that is.
    pub said: Said,
}

/// A figure whose value a paper gives.
pub const fn bound(machine: &'static str, quantity: &'static str, value: f64) -> Bound {
    Bound { machine, quantity, value, said: Said::Value }
}

/// A figure of which a paper says that it is at most so much.
pub const fn at_most(machine: &'static str, quantity: &'static str, value: f64) -> Bound {
    Bound { machine, quantity, value, said: Said::AtMost }
}

/// A figure of which a paper says that it is at least so much.
pub const fn at_least(machine: &'static str, quantity: &'static str, value: f64) -> Bound {
    Bound { machine, quantity, value, said: Said::AtLeast }
}

/// A claim, with the figures that its paper gives.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// The claim's name.
    pub claim: &'static str,
    /// The paper's figures.
    pub bounds: &'static [Bound],
}

/// A figure with the values to compare. Unknown values are null.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Quantity {
    /// The claim that it belongs to.
    pub claim: &'static str,
    /// The paper's machine, or `here` for this one.
    pub machine: &'static str,
    /// The figure.
    pub quantity: String,
    /// The same without the number of PEs, as in [`Bound`] and in descriptions of machines.
    #[serde(skip)]
    pub(super) figure: String,
    /// Its unit.
    pub unit: &'static str,
    /// The paper's value.
    pub paper: Option<f64>,
    /// What that is.
    #[serde(skip)]
    pub said: Said,
    /// The value of an analytic model of the paper's machine.
    pub model: Option<f64>,
    /// The value on the paper's machine, simulated.
    pub simulated: Option<f64>,
    /// The same, if a parameter of the machine was fitted to this figure: then it predicts nothing.
    pub fitted: Option<f64>,
    /// The value on this machine.
    pub native: Option<f64>,
    /// The relative error of the simulated or fitted figure, or else of the model's, against the
    /// paper's; none against 0, or a limit.
    pub rel_error: Option<f64>,
    /// Whether the simulated figure keeps to the paper's limit; none if the paper gives a value.
    pub holds: Option<bool>,
}

/// Rounds to three digits after the point: no value is more exact.
fn thousandths(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

impl Source {
    /// What the paper says of a figure of its machine.
    fn bound(&self, machine: &str, quantity: &str) -> Option<&'static Bound> {
        let same = |bound: &&Bound| (bound.machine, bound.quantity) == (machine, quantity);
        self.bounds.iter().find(same)
    }

    /// The paper's value of a figure of its machine.
    pub fn paper(&self, machine: &str, quantity: &str) -> Option<f64> {
        self.bound(machine, quantity).map(|bound| bound.value)
    }

    /// A quantity of a machine of the paper, with the paper's value.
    pub fn quantity(
        &self,
        machine: &'static str,
        quantity: impl Into<String>,
        unit: &'static str,
    ) -> Quantity {
        let quantity = quantity.into();
        let bound = self.bound(machine, &quantity);
        Quantity {
            claim: self.claim,
            machine,
            unit,
            paper: bound.map(|bound| bound.value),
            said: bound.map_or(Said::Value, |bound| bound.said),
            figure: quantity.clone(),
            quantity,
            model: None,
            simulated: None,
            fitted: None,
            native: None,
            rel_error: None,
            holds: None,
        }
    }
}

impl Quantity {
    /// The same quantity for this many PEs.
    pub fn with_pes(mut self, pes: u32) -> Self {
        self.quantity += &format!(", {pes} PEs");
        self
    }

    /// Adds the value on this machine.
    pub fn native(self, native: impl Into<Option<f64>>) -> Self {
        Self { native: native.into().map(thousandths), ..self }
    }

    /// Adds the value on the paper's machine, simulated: as fitted if its description says that a
    /// parameter was fitted to this figure.
    pub fn simulated(self, simulated: f64) -> Self {
        let value = Some(thousandths(simulated));
        let is_fitted = Machine::find(self.machine)
            .is_ok_and(|it| it.provenance.fitted_to(self.claim, &self.figure).next().is_some());
        let (as_simulated, as_fitted) = if is_fitted { (None, value) } else { (value, None) };
        let error = |paper: f64| Some(thousandths(simulated / paper - 1.0));
        let holds = self.paper.and_then(|paper| self.said.is_kept(paper, simulated));
        let rel_error = self.paper.filter(|&paper| holds.is_none() && paper != 0.0);
        let rel_error = rel_error.and_then(error);
        Self { simulated: as_simulated, fitted: as_fitted, rel_error, holds, ..self }
    }

    /// The same as fitted: the paper took the machine's parameters from this very figure.
    pub(super) fn into_fitted(self) -> Self {
        Self { simulated: None, fitted: self.simulated.or(self.fitted), ..self }
    }

    fn is_simulated(&self) -> bool {
        self.simulated.or(self.fitted).is_some()
    }

    /// The paper's value or limit as text.
    pub fn paper_text(&self) -> String {
        self.said.sign().to_owned() + &text(self.paper)
    }

    /// The simulated value as text, or else the fitted one, marked as such, or the model's.
    pub fn simulated_text(&self) -> String {
        match self.fitted {
            Some(fitted) => text(Some(fitted)) + " fitted",
            None => text(self.simulated.or(self.model)),
        }
    }

    /// The relative error against the paper as text, or whether its limit holds.
    pub fn error_text(&self) -> String {
        match (self.holds, self.rel_error) {
            (Some(true), _) => "holds".to_owned(),
            (Some(false), _) => "missed".to_owned(),
            (None, Some(error)) => format!("{:+.0} %", error * 100.0),
            (None, None) => "-".to_owned(),
        }
    }
}

/// A value of a quantity as text; `-` if there is none.
pub fn text(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), number)
}

/// The machines that quantities were simulated on, each once.
pub fn simulated_machines<'q>(all: impl IntoIterator<Item = &'q Quantity>) -> Vec<&'static str> {
    let mut machines = Vec::new();
    for one in all {
        if one.is_simulated() && !machines.contains(&one.machine) {
            machines.push(one.machine);
        }
    }
    machines
}

/// Adds a table of the simulated quantities of each machine, and a sentence that says where the
/// numbers of this machine are from.
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
            let more = format!("`consort-lab machines {name} --source` says where each is from.");
            page.paragraph(format!("{name}: {from} {more}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_are_these() {
        const BOUNDS: &[Bound] = &[bound("niagara2-x4", "reduce 8 kB strict radix 4", 1774.0)];
        let source = Source { claim: "H6", bounds: BOUNDS };
        let figure = source.quantity("niagara2-x4", "reduce 8 kB strict radix 4", "us");
        let json = serde_json::to_string(&figure.native(12.3456)).unwrap();
        let expected = concat!(
            r#"{"claim":"H6","machine":"niagara2-x4","quantity":"reduce 8 kB strict radix 4","#,
            r#""unit":"us","paper":1774.0,"model":null,"simulated":null,"fitted":null,"#,
            r#""native":12.346,"rel_error":null,"holds":null}"#
        );
        assert_eq!(json, expected);
    }

    #[test]
    fn what_a_parameter_is_fitted_to_is_not_simulated() {
        let source = Source { claim: "T7", bounds: &[] };
        let of = |what| source.quantity("scc", what, "x").simulated(3.0);
        let fitted = of("puts of 1 line, 48 cores, slowest / least");
        assert_eq!((fitted.simulated, fitted.fitted), (None, Some(3.0)));
        let source = Source { claim: "H4", ..source };
        let crossover = source.quantity(
            "barcelona-x8",
            "reduce, crossover loose, direct and knomial_get",
            "doubles",
        );
        assert_eq!(crossover.with_pes(32).simulated(4.0).fitted, Some(4.0), "of any number of PEs");
        let simulated = of("puts of 1 line, 24 cores, mean / one's");
        assert_eq!((simulated.simulated, simulated.fitted), (Some(3.0), None));
    }

    #[test]
    fn a_limit_holds_or_not_and_has_no_error() {
        const BOUNDS: &[Bound] =
            &[at_most("a", "most", 2.0), at_least("a", "least", 2.0), bound("a", "value", 2.0)];
        let source = Source { claim: "T8", bounds: BOUNDS };
        for (simulated, holds) in [(1.0, [true, false]), (2.0, [true; 2]), (3.0, [false, true])] {
            let of = |what| source.quantity("a", what, "x").simulated(simulated);
            assert_eq!([of("most").holds, of("least").holds], holds.map(Some));
            assert_eq!([of("most").rel_error, of("least").rel_error], [None; 2]);
            assert_eq!((of("value").holds, of("none").holds), (None, None));
            assert_eq!(of("value").rel_error, Some(simulated / 2.0 - 1.0));
        }
    }
}
