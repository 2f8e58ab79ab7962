//! The standing of a claim: how many of its paper's figures are met.

use std::{cmp::Ordering, fmt};

use crate::figures::{figure::Paper, quantity::Quantity};

/// A figure is met if it is within this factor of the paper's value.
pub const NEAR: f64 = 1.5;

/// The units of ratios.
const RATIOS: [&str; 2] = ["ratio", "x"];
/// The unit of sizes. Machines can be compared by ratios and sizes, but times depend on the
/// machine.
const SIZE: &str = "B";

/// How many of a paper's figures are met, or stay within the paper's limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// The number of figures that are met.
    pub met: usize,
    /// The figures that are not met.
    pub missed: Vec<String>,
}

impl Standing {
    /// Returns the standing on this machine, for the ratios, bytes and limits that the paper gives.
    pub fn here(quantities: &[Quantity]) -> Self {
        let is_comparable = |one: &&Quantity| {
            let is_value = matches!(one.paper, Some(Paper::Value(_)));
            !is_value || RATIOS.contains(&one.unit) || one.unit == SIZE
        };
        Self::of(quantities.iter().filter(is_comparable), |one| one.native)
    }

    /// Returns the standing on simulations of the paper's machines. Figures to which a parameter
    /// was fitted do not count.
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
            if is_met(paper, one.unit, value) {
                standing.met += 1;
            } else {
                standing.missed.push(one.quantity.clone());
            }
        }
        standing
    }

    /// Returns the number of figures that can be compared.
    pub fn count(&self) -> usize {
        self.met + self.missed.len()
    }

    /// Returns one word: `holds`, `partly`, `misses`, or `-` if there is nothing to compare.
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

fn is_met(paper: Paper, unit: &str, value: f64) -> bool {
    match (paper.is_kept(value), paper.number()) {
        (Some(is_kept), _) => is_kept,
        // No value is a multiple of 0.
        (None, 0.0) => value == 0.0,
        (None, paper) => {
            let has_sign = !RATIOS.contains(&unit) || has_sign(paper, value);
            has_sign && (paper / NEAR..=paper * NEAR).contains(&value)
        }
    }
}

/// Returns whether a ratio is on the same side of 1 as the paper's. Any ratio is if the paper's is
/// 1.
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

    const A: &str = "a";

    figures! { _FIGURES of "T8", "": "us":
        TIME("time", A == 10.0)
        "x":
        GAIN("gain", A == 2.0)
        LEAST("least", A >= 2.0)
        MOST("most", A <= 2.0)
        NONE("none", A == 0.0)
        SMALL_GAIN("small gain", A == 1.17)
        SMALL_LOSS("small loss", A == 0.9)
        "B":
        BYTES("bytes", A == 10.0)
    }

    #[test]
    fn figures_are_met_within_a_factor_or_within_limits() {
        for (value, gain, least, most) in
            [(1.0, false, false, true), (2.0, true, true, true), (4.0, false, true, false)]
        {
            for (figure, met) in [(&GAIN, gain), (&LEAST, least), (&MOST, most)] {
                let standing = Standing::simulated(&[figure.on(A).simulated(value)]);
                assert_eq!(standing.met == 1, met, "{} of {value}", figure.id);
                assert_eq!(standing.count(), 1);
            }
        }
        let none = |value| Standing::simulated(&[NONE.on(A).simulated(value)]).word();
        assert_eq!([none(0.0), none(0.1)], ["holds", "misses"]);
    }

    #[test]
    fn small_loss_does_not_meet_a_small_gain() {
        let gain = |value| Standing::simulated(&[SMALL_GAIN.on(A).simulated(value)]).met;
        let loss = |value| Standing::simulated(&[SMALL_LOSS.on(A).simulated(value)]).met;
        assert_eq!([0.9, 1.0, 1.1].map(gain), [0, 0, 1]);
        assert_eq!([0.8, 1.0, 1.1].map(loss), [1, 0, 0]);
    }

    #[test]
    fn times_of_this_machine_are_not_compared() {
        let figures = [TIME.on(A).native(90.0), GAIN.on(A).native(2.1)];
        assert_eq!(Standing::here(&figures).to_string(), "holds 1/1");
        assert_eq!(Standing::simulated(&figures).to_string(), "-");
        assert_eq!(Standing::here(&[BYTES.on(A).native(9.0)]).to_string(), "holds 1/1");
        let standing = Standing::here(&[GAIN.on(A).native(9.0), LEAST.on(A).native(9.0)]);
        assert_eq!(standing.to_string(), "partly 1/2");
        assert_eq!(standing.missed, [GAIN.quantity]);
    }
}
