//! The standing of a claim: which of its paper's figures are met.

use std::fmt;

use crate::figures::{
    figure::{Paper, RATIOS, statement},
    quantity::Quantity,
};

/// A value is met within this factor of the paper's. A ratio must also be an effect of the paper's
/// size: its logarithm is within this factor of the paper's.
pub const NEAR: f64 = 1.5;
/// The relative error within which a value is equal to the paper's.
pub const EQUAL: f64 = 0.1;

/// The unit of sizes. Machines can be compared by ratios and sizes, but times depend on the
/// machine.
const SIZE: &str = "B";

/// Whether a value is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is met.
    Met,
    /// It is met, but a parameter was fitted to its figure, so it proves nothing.
    Fitted,
    /// It is not met.
    Missed,
}

impl Verdict {
    /// Returns the verdict on a value of this machine, if it is a ratio, a size, or has a limit.
    pub fn here(quantity: &Quantity) -> Option<Self> {
        let paper = quantity.paper?;
        let is_limit = paper.is_kept(0.0, quantity.unit).is_some();
        let is_comparable = is_limit || RATIOS.contains(&quantity.unit) || quantity.unit == SIZE;
        is_comparable.then(|| Self::of(quantity, quantity.native, Self::Met)).flatten()
    }

    /// Returns the verdict on a simulated or fitted value.
    pub fn simulated(quantity: &Quantity) -> Option<Self> {
        let predicted = Self::of(quantity, quantity.simulated, Self::Met);
        predicted.or(Self::of(quantity, quantity.fitted, Self::Fitted))
    }

    fn of(quantity: &Quantity, value: Option<f64>, if_met: Self) -> Option<Self> {
        let is_met = is_met(quantity.paper?, quantity.unit, value?);
        Some(if is_met { if_met } else { Self::Missed })
    }
}

/// The figures of a paper that are met, or stay within the paper's limit, and the others.
///
/// A figure counts once, whatever the number of sizes, of PEs or of variants for which it was
/// computed: it is met if all its values are met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// The figures that are met.
    pub met: Vec<String>,
    /// The figures that are not met.
    pub missed: Vec<String>,
    /// The figures that are met, but to which a parameter was fitted. They prove nothing, so they
    /// do not count.
    pub fitted: Vec<String>,
}

/// A figure of a paper on a machine, with the values that were computed for it.
struct Compared<'q> {
    statement: &'q str,
    machine: &'static str,
    paper: Paper,
    values: Vec<(&'q Quantity, Verdict)>,
}

impl Compared<'_> {
    /// Returns the verdict on the figure, and the value that stands for it.
    ///
    /// A value is a prediction if no parameter was fitted to it. Each size, number of PEs and
    /// variant needs one. Otherwise a single prediction would make fitted values count.
    fn verdict(&self) -> (Verdict, &Quantity) {
        let is = |verdict: Verdict| move |&&(_, of): &&(&Quantity, Verdict)| of == verdict;
        if let Some((one, _)) = self.values.iter().find(is(Verdict::Missed)) {
            return (Verdict::Missed, one);
        }
        let is_predicted = |one: &Quantity| {
            self.values.iter().filter(is(Verdict::Met)).any(|(other, _)| other.figure == one.figure)
        };
        let (first, _) = self.values[0];
        match self.values.iter().all(|(one, _)| is_predicted(one)) {
            true => (Verdict::Met, first),
            false => (Verdict::Fitted, first),
        }
    }

    /// Returns the name of a value, with its machine if the figures are of several.
    fn name(&self, one: &Quantity, is_of_many: bool) -> String {
        let machine = if is_of_many { format!(" ({})", self.machine) } else { String::new() };
        one.quantity.clone() + &machine
    }
}

impl Standing {
    /// Returns the standing on this machine, for the ratios, bytes and limits that the paper gives.
    pub fn here(quantities: &[Quantity]) -> Self {
        Self::of(quantities, Verdict::here)
    }

    /// Returns the standing on simulations of the paper's machines. A figure to which a parameter
    /// was fitted counts only if it is missed.
    pub fn simulated(quantities: &[Quantity]) -> Self {
        Self::of(quantities, Verdict::simulated)
    }

    fn of(quantities: &[Quantity], verdict: fn(&Quantity) -> Option<Verdict>) -> Self {
        let mut all: Vec<Compared<'_>> = Vec::new();
        for one in quantities {
            let (Some(paper), Some(verdict)) = (one.paper, verdict(one)) else { continue };
            let statement = one.figure.map_or(&*one.quantity, statement);
            let same = |other: &&mut Compared<'_>| {
                (other.statement, other.machine, other.paper) == (statement, one.machine, paper)
            };
            match all.iter_mut().find(same) {
                Some(compared) => compared.values.push((one, verdict)),
                None => {
                    let (machine, values) = (one.machine, vec![(one, verdict)]);
                    all.push(Compared { statement, machine, paper, values });
                }
            }
        }
        let is_of_many = all.windows(2).any(|two| two[0].machine != two[1].machine);
        let mut standing = Self::default();
        for compared in &all {
            let (verdict, one) = compared.verdict();
            let names = match verdict {
                Verdict::Met => &mut standing.met,
                Verdict::Fitted => &mut standing.fitted,
                Verdict::Missed => &mut standing.missed,
            };
            names.push(compared.name(one, is_of_many));
        }
        standing
    }

    /// Returns the number of figures that count.
    pub fn count(&self) -> usize {
        self.met.len() + self.missed.len()
    }

    /// Returns one word: `holds`, `partly`, `misses`, or `-` if there is nothing to compare.
    pub fn word(&self) -> &'static str {
        match (self.met.len(), self.missed.len()) {
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
            count => write!(f, "{} {}/{count}", self.word(), self.met.len()),
        }
    }
}

fn is_met(paper: Paper, unit: &str, value: f64) -> bool {
    let is_ratio = RATIOS.contains(&unit);
    let is_near = |of: f64| (of / NEAR..=of * NEAR).contains(&value);
    match paper {
        Paper::AtMost(_) | Paper::AtLeast(_) => paper.is_kept(value, unit) == Some(true),
        // No value is a multiple of 0.
        Paper::Value(0.0) => value == 0.0,
        Paper::Equal(of) => (value / of - 1.0).abs() <= EQUAL,
        Paper::Value(1.0) if is_ratio => (value - 1.0).abs() <= EQUAL,
        Paper::Value(of) if is_ratio => {
            is_near(of) && (1.0 / NEAR..=NEAR).contains(&(value.ln() / of.ln()))
        }
        Paper::Value(of) => is_near(of),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "a";
    const B: &str = "b";
    const SCC: &str = "scc";

    figures! { _FIGURES of "T2", "": "us":
        TIME("time", A == 10.0)
        LINE_BINOMIAL("1 line", SCC == 16.6)
        "x":
        GAIN("gain", A == 2.0)
        LEAST("least", A >= 2.0, B >= 2.0)
        MOST("most", A <= 2.0)
        NONE("none", A == 0.0)
        SMALL_GAIN("small gain", A == 1.17)
        SMALL_LOSS("small loss", A == 0.9)
        LARGE_GAIN("large gain", A == 10.0)
        EQUAL_TIMES("equal", A == 1.0)
        FASTER("faster", A >= 1.0)
        SLOWER("slower", A <= 1.0)
        "MB/s":
        KNOWN("known", A ~ 35.0)
        OF_SIZES["rate of ", " B"; 8 | 64 => (A >= 1.0), 512 => (A <= 1.0)]
        "share":
        ALWAYS("always", A >= 1.0)
        "B":
        BYTES("bytes", A == 10.0)
    }

    figures! { _RATES of "T3", "": "x":
        MEGABYTE["k=", ""; 2 | 7 | 47 => (SCC >= 1.0)]
    }

    /// Returns whether a value of a figure is met.
    fn is_met(figure: &'static crate::figures::figure::Figure, value: f64) -> bool {
        let standing = Standing::simulated(&[figure.on(A).simulated(value)]);
        assert_eq!(standing.count(), 1);
        standing.met.len() == 1
    }

    #[test]
    fn figures_are_met_within_a_factor_or_within_limits() {
        for (value, gain, least, most) in
            [(1.0, false, false, true), (2.0, true, true, true), (4.0, false, true, false)]
        {
            for (figure, met) in [(&GAIN, gain), (&LEAST, least), (&MOST, most)] {
                assert_eq!(is_met(figure, value), met, "{} of {value}", figure.id);
            }
        }
        assert_eq!([0.0, 0.1].map(|value| is_met(&NONE, value)), [true, false]);
    }

    #[test]
    fn an_effect_is_met_by_one_of_about_its_size() {
        // A gain of 17 % is met by 12 % to 26 %, and no gain or a loss never meets a gain.
        let small = [0.9, 1.0, 1.1, 1.12, 1.26, 1.28].map(|value| is_met(&SMALL_GAIN, value));
        assert_eq!(small, [false, false, false, true, true, false]);
        let loss = [0.8, 0.9, 0.94, 1.0, 1.1].map(|value| is_met(&SMALL_LOSS, value));
        assert_eq!(loss, [false, true, false, false, false]);
        // The logarithm of a large effect leaves more room than the factor.
        let large = [6.6, 6.7, 14.9, 21.0].map(|value| is_met(&LARGE_GAIN, value));
        assert_eq!(large, [false, true, true, false]);
    }

    #[test]
    fn equal_is_within_a_tenth() {
        for (figure, equal) in [(&EQUAL_TIMES, 1.0), (&KNOWN, 35.0)] {
            let near = [0.89, 0.91, 1.09, 1.11].map(|factor| is_met(figure, factor * equal));
            assert_eq!(near, [false, true, true, false], "{}", figure.id);
        }
    }

    #[test]
    fn ratio_within_2_percent_is_not_faster() {
        let faster = [0.99, 1.0, 1.01, 1.03].map(|value| is_met(&FASTER, value));
        assert_eq!(faster, [false, false, false, true]);
        let slower = [1.01, 1.0, 0.99, 0.97].map(|value| is_met(&SLOWER, value));
        assert_eq!(slower, [false, false, false, true]);
        assert_eq!([0.99, 1.0].map(|value| is_met(&ALWAYS, value)), [false, true]);
    }

    #[test]
    fn a_fitted_figure_counts_if_it_is_missed() {
        let fitted = |value| LINE_BINOMIAL.on(SCC).simulated_as_fitted(value);
        let met = Standing::simulated(&[fitted(16.0)]);
        assert_eq!((met.count(), met.fitted.len(), met.word()), (0, 1, "-"));
        let missed = Standing::simulated(&[fitted(30.0)]);
        assert_eq!((missed.count(), missed.fitted.len(), missed.word()), (1, 0, "misses"));
    }

    /// A parameter of the SCC is fitted to one of the three values of this figure.
    #[test]
    fn a_figure_is_fitted_if_one_of_its_values_is() {
        let all: Vec<Quantity> =
            MEGABYTE.iter().map(|figure| figure.on(SCC).simulated(1.5)).collect();
        let is_fitted: Vec<bool> = all.iter().map(|one| one.fitted.is_some()).collect();
        assert_eq!(is_fitted, [false, false, true]);
        let standing = Standing::simulated(&all);
        assert_eq!((standing.count(), &*standing.fitted), (0, &["k=2".to_owned()][..]));
        assert_eq!(Standing::simulated(&all[1..2]).met, ["k=7"]);
    }

    #[test]
    fn figures_of_several_machines_are_named_with_them() {
        let of = |machine| LEAST.on(machine).simulated(1.0);
        assert_eq!(Standing::simulated(&[of(A)]).missed, ["least"]);
        let both = [of(A), LEAST.on(B).simulated(3.0)];
        let standing = Standing::simulated(&both);
        assert_eq!(
            (&*standing.missed, &*standing.met),
            (&["least (a)".to_owned()][..], &["least (b)".to_owned()][..])
        );
    }

    #[test]
    fn a_figure_counts_once() {
        // Raw and fitted: both must be met.
        let raw = LINE_BINOMIAL.on(SCC).simulated(8.0);
        let both = Standing::simulated(&[raw, LINE_BINOMIAL.on(SCC).simulated_as_fitted(16.0)]);
        assert_eq!(
            (both.count(), both.fitted.len(), &*both.missed),
            (1, 0, &["1 line".to_owned()][..])
        );
        // Numbers of PEs.
        let gains = [(16, 2.1), (64, 2.0)];
        let gains = gains.map(|(pes, gain)| GAIN.on(A).with_pes(pes).simulated(gain));
        assert_eq!(Standing::simulated(&gains).to_string(), "holds 1/1");
        // Sizes that share a statement of the paper, on one machine.
        let sizes: Vec<Quantity> =
            OF_SIZES.iter().map(|figure| figure.on(A).simulated(1.0)).collect();
        assert_eq!(Standing::simulated(&sizes).to_string(), "holds 2/2");
        let other = OF_SIZES[1].on(A).with_pes(8).simulated(0.9);
        let sizes = [sizes, vec![other, OF_SIZES[0].on(B).simulated(9.0)]].concat();
        assert_eq!(Standing::simulated(&sizes).to_string(), "partly 1/2");
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
