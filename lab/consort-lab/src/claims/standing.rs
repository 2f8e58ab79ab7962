//! How a claim stands: how many of its paper's figures are met.

use std::{cmp::Ordering, fmt};

use crate::figures::quantity::{Quantity, Said};

/// A figure is met within this factor of the paper's value.
pub const NEAR: f64 = 1.5;

/// The units of ratios.
const RATIOS: [&str; 2] = ["ratio", "x"];
/// That of sizes. Machines can be compared by ratios and sizes; times are a machine's own.
const SIZE: &str = "B";

/// How many of a paper's figures are met, or keep to the paper's limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Those that are met.
    pub met: usize,
    /// Those that are not.
    pub missed: Vec<String>,
}

impl Standing {
    /// On this machine: of the ratios, bytes and limits that the paper gives.
    pub fn here(quantities: &[Quantity]) -> Self {
        let is_comparable = |one: &&Quantity| {
            one.said != Said::Value || RATIOS.contains(&one.unit) || one.unit == SIZE
        };
        Self::of(quantities.iter().filter(is_comparable), |one| one.native)
    }

    /// On the paper's machines, simulated. Figures that a parameter was fitted to do not count.
    pub fn simulated(quantities: &[Quantity]) -> Self {
        Self::of(quantities.iter(), |one| one.simulated)
    }

    fn of<'q>(
        quantities: impl Iterator<Item = &'q Quantity>,
        value: impl Fn(&Quantity) -> Option<f64>,
    ) -> Self {
        let mut standing = Self::default();
        for one in quantities {
            let (Some(paper), Some(value)) = (one.paper, value(one)) else { continue };
            if is_met(one, paper, value) {
                standing.met += 1;
            } else {
                standing.missed.push(one.quantity.clone());
            }
        }
        standing
    }

    /// The number of figures that can be compared.
    pub fn count(&self) -> usize {
        self.met + self.missed.len()
    }

    /// In a word: `holds`, `partly`, `misses`, or `-` if there is nothing to compare.
    pub fn word(&self) -> &'static str {
        match (self.met, self.missed.len()) {
            (0, 0) => "-",
            (_, 0) => "holds",
            (0, _) => "misses",
            _ => "partly",
        }
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count() {
            0 => f.write_str("-"),
            count => write!(f, "{} {}/{count}", self.word(), self.met),
        }
    }
}

fn is_met(of: &Quantity, paper: f64, value: f64) -> bool {
    match of.said {
        Said::AtMost => value <= paper,
        Said::AtLeast => value >= paper,
        // None of something is no ratio.
        Said::Value if paper == 0.0 => value == 0.0,
        Said::Value => {
            let has_sign = !RATIOS.contains(&of.unit) || has_sign(paper, value);
            has_sign && (paper / NEAR..=paper * NEAR).contains(&value)
        }
    }
}

/// Whether a ratio is a gain where the paper's is one, and a loss where that is a loss.
fn has_sign(paper: f64, value: f64) -> bool {
    match paper.total_cmp(&1.0) {
        Ordering::Less => value < 1.0,
        Ordering::Equal => true,
        Ordering::Greater => value > 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::quantity::{Bound, Source, at_least, at_most, bound};

    const BOUNDS: &[Bound] = &[
        bound("a", "time", 10.0),
        bound("a", "gain", 2.0),
        bound("a", "bytes", 10.0),
        at_least("a", "least", 2.0),
        at_most("a", "most", 2.0),
        bound("a", "none", 0.0),
        bound("a", "small gain", 1.17),
        bound("a", "small loss", 0.9),
    ];

    fn figure(what: &str, unit: &'static str) -> Quantity {
        Source { claim: "T8", bounds: BOUNDS }.quantity("a", what, unit)
    }

    #[test]
    fn figures_are_met_within_a_factor_or_within_limits() {
        for (value, gain, least, most) in
            [(1.0, false, false, true), (2.0, true, true, true), (4.0, false, true, false)]
        {
            for (what, met) in [("gain", gain), ("least", least), ("most", most)] {
                let figures = [figure(what, "x").simulated(value)];
                let standing = Standing::simulated(&figures);
                assert_eq!(standing.met == 1, met, "{what} of {value}");
                assert_eq!(standing.count(), 1);
            }
        }
        let none = |value| Standing::simulated(&[figure("none", "x").simulated(value)]).word();
        assert_eq!([none(0.0), none(0.1)], ["holds", "misses"]);
    }

    #[test]
    fn a_small_gain_is_no_loss() {
        let is_met = |what, value| Standing::simulated(&[figure(what, "x").simulated(value)]).met;
        assert_eq!([0.9, 1.0, 1.1].map(|value| is_met("small gain", value)), [0, 0, 1]);
        assert_eq!([0.8, 1.0, 1.1].map(|value| is_met("small loss", value)), [1, 0, 0]);
    }

    #[test]
    fn times_of_this_machine_are_not_compared() {
        let figures = [figure("time", "us").native(90.0), figure("gain", "ratio").native(2.1)];
        assert_eq!(Standing::here(&figures).to_string(), "holds 1/1");
        assert_eq!(Standing::simulated(&figures).to_string(), "-");
        assert_eq!(Standing::here(&[figure("bytes", "B").native(9.0)]).to_string(), "holds 1/1");
        let figures = [figure("gain", "x").native(9.0), figure("least", "x").native(9.0)];
        let standing = Standing::here(&figures);
        assert_eq!(
            (standing.to_string(), &*standing.missed),
            ("partly 1/2".into(), &["gain".to_owned()][..])
        );
    }
}
