//! Statistics of repeated measurements: median, its confidence interval, and the tail.
//!
//! `launches` computes the interval if a program was launched several times. [`Gain`] is the ratio
//! of two measurements.
//!
//! Times on shared machines are skewed, so nothing here assumes a distribution. The interval
//! consists of order statistics. The true median of `n` sorted samples is between the `k`-th from
//! below and the `k`-th from above with the probability `1 - 2 P(X < k)`, where `X` is binomial
//! with `n` trials of probability one half (Hollander and Wolfe, "Nonparametric Statistical
//! Methods", section 3.6; Hoefler and Belli, "Scientific Benchmarking of Parallel Computing
//! Systems", SC 2015). The interval uses the largest `k` that leaves 95 %: exactly up to 1000
//! samples, by the normal approximation beyond that. Below six samples no such `k` exists, and the
//! interval is the range.

mod gain;
pub mod launches;

pub use gain::{Gain, Verdict};

/// The probability outside an interval of 95 % at each end.
const TAIL: f64 = 0.025;
/// Up to this many samples, binomial probabilities are summed; `0.5^n` is a normal number there.
const EXACT_COUNT: usize = 1000;

/// The median, its 95 % confidence interval, and the 99th percentile, in the samples' unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The middle sample, or the mean of the two middle ones.
    pub median: f64,
    /// The 95 % non-parametric confidence interval of the median: lower and upper end.
    pub ci95: (f64, f64),
    /// The smallest sample that 99 % of all samples do not exceed.
    pub p99: f64,
    /// The number of samples.
    pub count: usize,
}

impl Summary {
    /// Summarizes `samples`, in any order.
    ///
    /// # Panics
    /// If there are none.
    #[must_use]
    pub fn of(samples: &[f64]) -> Summary {
        let mut sorted = samples.to_vec();
        let median = median(&mut sorted);
        let count = sorted.len();
        let below = interval_rank(count, TAIL);
        let p99_rank = (count * 99).div_ceil(100);
        Summary {
            median,
            ci95: (sorted[below], sorted[count - 1 - below]),
            p99: sorted[p99_rank - 1],
            count,
        }
    }

    /// Returns half the width of the interval, relative to the median: 0.02 is "within 2 %". The
    /// precision of a single sample is unknown: the result is infinite.
    #[must_use]
    pub fn precision(&self) -> f64 {
        if self.count < 2 {
            return f64::INFINITY;
        }
        (self.ci95.1 - self.ci95.0) / 2.0 / self.median.abs()
    }
}

/// Returns the median of `samples`; sorts them.
///
/// # Panics
/// If there are none.
pub fn median(samples: &mut [f64]) -> f64 {
    assert!(!samples.is_empty(), "no samples to take the median of");
    samples.sort_unstable_by(f64::total_cmp);
    let upper = samples[samples.len() / 2];
    let lower = samples[(samples.len() - 1) / 2];
    f64::midpoint(lower, upper)
}

/// Returns how many of `count` sorted samples are outside the interval at each end, if at most
/// `tail` of the probability is; for more than [`EXACT_COUNT`] samples, for 95 %.
fn interval_rank(count: usize, tail: f64) -> usize {
    if count > EXACT_COUNT {
        // k = n/2 - 1.96 sqrt(n)/2, in integers: 1.96 = sqrt(38416) / 100.
        let half_width = (38_416 * count).isqrt().div_ceil(200);
        return (count / 2).saturating_sub(half_width);
    }
    let mut outside = 0;
    let mut chance = 0.5_f64.powi(i32::try_from(count).unwrap_or(i32::MAX));
    let mut total = chance;
    while total <= tail && outside < count / 2 {
        outside += 1;
        chance *= (count - outside + 1) as f64 / outside as f64;
        total += chance;
    }
    outside.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_odd_and_even_counts() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(&mut [7.0]), 7.0);
    }

    #[test]
    #[should_panic(expected = "no samples")]
    fn median_of_nothing_is_an_error() {
        median(&mut []);
    }

    /// The classical table of the sign test at 95 %: the ranks of the lower end, from 1.
    #[test]
    fn interval_matches_the_published_table() {
        let table = [(5, 1), (6, 1), (9, 2), (10, 2), (12, 3), (15, 4), (20, 6), (25, 8), (50, 18)];
        for (count, rank) in table {
            assert_eq!(interval_rank(count, TAIL) + 1, rank, "of {count} samples");
        }
    }

    /// Where the approximation replaces the exact sum, the rank changes by at most one.
    #[test]
    fn approximation_agrees_with_the_exact_rank() {
        assert_eq!(interval_rank(1000, TAIL), 468);
        assert!(interval_rank(1001, TAIL).abs_diff(468) <= 1);
        assert!(interval_rank(1001, TAIL) <= 469);
    }

    #[test]
    fn summary_of_a_hundred_samples_has_median_interval_and_p99() {
        let samples: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        let summary = Summary::of(&samples);
        assert_eq!(summary.median, 50.5);
        assert_eq!(summary.ci95, (40.0, 61.0));
        assert_eq!(summary.p99, 99.0);
        assert_eq!(summary.count, 100);
        assert!((summary.precision() - 10.5 / 50.5).abs() < 1e-12);
    }

    #[test]
    fn summary_of_one_is_that_sample() {
        let summary = Summary::of(&[2.5]);
        assert_eq!((summary.median, summary.ci95, summary.p99), (2.5, (2.5, 2.5), 2.5));
    }
}
