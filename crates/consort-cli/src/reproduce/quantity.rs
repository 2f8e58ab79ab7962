//! One figure of a paper, and what stands beside it, as a line of JSON.

use serde::Serialize;

/// A figure. What is not known is null.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Quantity {
    pub(super) claim: &'static str,
    /// The paper's machine.
    pub(super) machine: &'static str,
    pub(super) quantity: String,
    pub(super) unit: &'static str,
    /// What the paper says.
    pub(super) paper: Option<f64>,
    /// What an analytic model says of the paper's machine.
    pub(super) model: Option<f64>,
    /// What the simulated machine of the paper shows.
    pub(super) simulated: Option<f64>,
    /// What this machine shows.
    pub(super) native: Option<f64>,
    /// The simulated figure, or else the model's, against the paper's.
    pub(super) rel_error: Option<f64>,
}

impl Quantity {
    /// A figure of the paper's and this machine's.
    pub(super) fn native(
        claim: &'static str,
        machine: &'static str,
        quantity: String,
        unit: &'static str,
        paper: Option<f64>,
        native: Option<f64>,
    ) -> Self {
        let native = native.map(|value| (value * 1000.0).round() / 1000.0);
        Self {
            claim,
            machine,
            quantity,
            unit,
            paper,
            model: None,
            simulated: None,
            native,
            rel_error: None,
        }
    }
}

impl Quantity {
    /// A figure of the paper's machine, simulated: what it is, its unit, and what the paper says.
    pub(super) fn simulated(
        claim: &'static str,
        machine: &'static str,
        (quantity, unit, paper): (String, &'static str, Option<f64>),
        (model, simulated, native): (Option<f64>, f64, Option<f64>),
    ) -> Self {
        let blank = Self::native(claim, machine, quantity, unit, paper, native);
        let rel_error = paper.map(|paper| simulated / paper - 1.0);
        Self { model, simulated: Some(simulated), rel_error, ..blank }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_are_these() {
        let quantity = "reduce 8 kB strict radix 4".to_owned();
        let figure =
            Quantity::native("H6", "niagara2-x4", quantity, "us", Some(1774.0), Some(12.3456));
        let json = serde_json::to_string(&figure).unwrap();
        let expected = concat!(
            r#"{"claim":"H6","machine":"niagara2-x4","quantity":"reduce 8 kB strict radix 4","#,
            r#""unit":"us","paper":1774.0,"model":null,"simulated":null,"native":12.346,"#,
            r#""rel_error":null}"#
        );
        assert_eq!(json, expected);
    }
}
