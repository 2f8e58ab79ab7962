//! Scales, which map values to positions, and round numbers on them.

/// How an axis maps values to positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Proportional, from 0.
    Linear,
    /// All decades have the same length.
    Log,
    /// As `Log`, with powers of two as round numbers.
    Log2,
}

/// An axis: its quantity, unit, scale and labels.
#[derive(Clone, Debug)]
pub struct Axis {
    /// The quantity, with its unit.
    pub title: String,
    /// How it maps values to positions.
    pub scale: Scale,
    /// Formats a round number.
    pub label: fn(f64) -> String,
}

impl Axis {
    /// Creates an axis whose round numbers are written without trailing zeros.
    pub fn new(title: impl Into<String>, scale: Scale) -> Self {
        Self { title: title.into(), scale, label: plain }
    }

    /// Returns the same axis with another format of round numbers.
    #[must_use]
    pub fn labelled(self, label: fn(f64) -> String) -> Self {
        Self { label, ..self }
    }
}

/// The part of an axis that a plot shows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    scale: Scale,
    low: f64,
    high: f64,
}

impl Range {
    /// Returns the range of the values that the scale can show. `None` if there are none.
    pub(crate) fn of(scale: Scale, values: impl Iterator<Item = f64>) -> Option<Self> {
        let is_shown = |value: &f64| value.is_finite() && (scale == Scale::Linear || *value > 0.0);
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(is_shown) {
            (low, high) = (low.min(value), high.max(value));
        }
        (low <= high).then(|| match scale {
            Scale::Linear => {
                let (low, high) = (low.min(0.0), high.max(0.0));
                let wide = (high - low).max(f64::MIN_POSITIVE) * 1.06;
                let high = if high > 0.0 { low + wide } else { high };
                Self { scale, low, high: if high > low { high } else { low + 1.0 } }
            }
            Scale::Log => Self { scale, low: low / 1.15, high: high * 1.15 },
            Scale::Log2 if low == high => Self { scale, low: low / 2.0, high: high * 2.0 },
            Scale::Log2 => Self { scale, low, high },
        })
    }

    /// Returns the range with a margin below, so that the smallest value also has a bar.
    pub(crate) fn for_bars(self) -> Self {
        match self.scale {
            Scale::Linear => self,
            _ => Self { low: 10_f64.powf((self.low / 1.5).log10().floor()), ..self },
        }
    }

    /// Returns the position of a value, from 0 to 1; `None` if the scale cannot show it.
    pub(crate) fn position(&self, value: f64) -> Option<f64> {
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            _ => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        share.is_finite().then(|| share.clamp(0.0, 1.0))
    }

    pub(crate) fn low(&self) -> f64 {
        self.low
    }

    pub(crate) fn high(&self) -> f64 {
        self.high
    }

    /// Returns round numbers in the range: at most `about`, but at least two if the scale has them.
    pub(crate) fn ticks(&self, about: usize) -> Vec<f64> {
        let about = about.max(2);
        let all = match self.scale {
            Scale::Linear => linear_ticks(self.low, self.high, about),
            Scale::Log => {
                let all = log_ticks(self.low, self.high);
                let decades = || {
                    let is_decade = |tick: &f64| (tick.log10() - tick.log10().round()).abs() < 1e-9;
                    all.iter().copied().filter(is_decade).collect::<Vec<f64>>()
                };
                match all.len() {
                    0..=2 => linear_ticks(self.low, self.high, about),
                    count if count > about && decades().len() > 1 => decades(),
                    _ => all,
                }
            }
            Scale::Log2 => {
                let powers = powers_of_two(self.low, self.high);
                if powers.len() > 1 { powers } else { linear_ticks(self.low, self.high, about) }
            }
        };
        if all.len() <= about {
            return all;
        }
        let step = all.len().div_ceil(about);
        all.into_iter().step_by(step).collect()
    }
}

/// Returns multiples of a round step in a range that may begin below 0.
fn linear_ticks(low: f64, high: f64, about: usize) -> Vec<f64> {
    let steps = ticks(high - low, about as f64);
    let step = steps.get(1).copied().unwrap_or(high - low);
    let first = (low / step).ceil();
    (0..=2 * about)
        .map(|index| (first + index as f64) * step)
        .take_while(|&tick| tick <= high)
        .collect()
}

fn powers_of_two(low: f64, high: f64) -> Vec<f64> {
    let first = low.log2().ceil();
    (0..1100)
        .map(|power| (first + f64::from(power)).exp2())
        .take_while(|&tick| tick <= high * (1.0 + 1e-9))
        .collect()
}

/// Returns round numbers from 0 to `most`: multiples of 1, 2 or 5 times a power of ten, at most
/// `about` of them.
pub fn ticks(most: f64, about: f64) -> Vec<f64> {
    if most <= 0.0 {
        return vec![0.0];
    }
    let decade = 10_f64.powf((most / about).log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|times| times * decade);
    let step = step.into_iter().find(|step| most / step <= about).unwrap_or(10.0 * decade);
    (0..).map(|index| f64::from(index) * step).take_while(|&tick| tick <= most).collect()
}

/// Returns the powers of ten between two positive numbers. If there are few, also twice and five
/// times these powers.
pub fn log_ticks(least: f64, most: f64) -> Vec<f64> {
    let decades = (most / least).log10();
    let times: &[f64] = if decades > 3.5 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let first = 10_f64.powf(least.log10().floor());
    (0..)
        .map(|power| first * 10_f64.powi(power))
        .take_while(|&decade| decade <= most)
        .flat_map(|decade| times.iter().map(move |times| times * decade))
        .filter(|tick| (least..=most).contains(tick))
        .collect()
}

/// Formats a number without trailing zeros, with at most three decimal places or three significant
/// ones.
pub fn plain(value: f64) -> String {
    let decimals = match value.abs() {
        small if small > 0.0 && small < 0.01 => {
            let zeros = -small.log10().floor();
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "the number of zeros after the point of a double"
            )]
            let zeros = zeros as usize;
            zeros + 2
        }
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text.is_empty() || text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        assert_eq!(ticks(10.3, 6.0), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(ticks(0.9, 5.0), [0.0, 0.2, 0.4, 0.6000000000000001, 0.8]);
        assert_eq!(ticks(0.0, 5.0), [0.0]);
        assert_eq!(ticks(1000.0, 2.0), [0.0, 500.0, 1000.0]);
        assert_eq!(log_ticks(8.0, 300.0), [10.0, 20.0, 50.0, 100.0, 200.0]);
        assert_eq!(log_ticks(0.5, 50_000.0), [1.0, 10.0, 100.0, 1000.0, 10_000.0]);
        let shown = [12.5, 100.0, 0.6000000000000001, 0.0, 0.000_123_4, -3.0, 1e6].map(plain);
        assert_eq!(shown, ["12.5", "100", "0.6", "0", "0.000123", "-3", "1000000"]);
    }

    fn range(scale: Scale, values: &[f64]) -> Range {
        Range::of(scale, values.iter().copied()).unwrap()
    }

    #[test]
    fn every_value_has_a_position_within_the_range() {
        for scale in [Scale::Linear, Scale::Log, Scale::Log2] {
            for values in [&[8.0, 64.0, 1e6][..], &[5.0], &[100.0, 101.0], &[1e-3, 2.0]] {
                let range = range(scale, values);
                let positions: Vec<f64> =
                    values.iter().filter_map(|&one| range.position(one)).collect();
                assert_eq!(positions.len(), values.len());
                assert!(
                    positions.is_sorted()
                        && positions[0] >= 0.0
                        && positions[positions.len() - 1] <= 1.0
                );
                let ticks = range.ticks(8);
                assert!((1..=8).contains(&ticks.len()), "{scale:?} {values:?}: {ticks:?}");
                let inside = |tick: &f64| (range.low()..=range.high() * 1.001).contains(tick);
                assert!(ticks.iter().all(inside), "{scale:?} {values:?}: {ticks:?}");
            }
        }
        assert_eq!(range(Scale::Log2, &[8.0, 64.0]).ticks(9), [8.0, 16.0, 32.0, 64.0]);
        let position = range(Scale::Log2, &[8.0]).position(8.0).unwrap();
        assert!((position - 0.5).abs() < 1e-9, "{position}");
        assert_eq!(range(Scale::Log, &[100.0, 104.0]).ticks(6), [90.0, 100.0, 110.0]);
        assert_eq!(range(Scale::Log, &[9.0, 900.0]).ticks(5), [10.0, 100.0, 1000.0]);
        assert!(range(Scale::Linear, &[-5.0, 5.0]).ticks(6).contains(&0.0));
        assert!(range(Scale::Log, &[3.0, 40.0]).for_bars().low() < 3.0);
    }

    #[test]
    fn values_that_the_scale_cannot_show_are_left_out() {
        assert!(Range::of(Scale::Log, [0.0, -1.0, f64::NAN].into_iter()).is_none());
        let range = range(Scale::Log, &[0.0, 2.0, f64::INFINITY]);
        assert!(range.high() < 3.0);
        assert_eq!((range.position(0.0), range.position(f64::NAN)), (None, None));
        assert!(Range::of(Scale::Linear, [0.0].into_iter()).unwrap().position(0.0).is_some());
    }
}
