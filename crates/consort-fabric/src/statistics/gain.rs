//! The ratio of two measured times, with its interval: how much faster one way is than another.
//!
//! If two ways took turns, block by block, they are compared by the ratios of neighbouring blocks,
//! so that slow changes of the machine cancel. The launch is the unit that varies, as in
//! `launches`. Two measurements of separate runs are independent, so their intervals are combined:
//! on a logarithmic scale, the distance from the ratio to an end is the root of the sum of squares
//! of the two distances from the medians to their ends (Donner and Zou, "Closed-form confidence
//! intervals for functions of the normal mean and standard deviation", 2012, section 2).

use std::fmt;

use super::{Summary, TAIL, launches, median};

/// Whether the new way is faster, by its gain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// It is faster: the whole interval is above 1, and the ratio is above the band around 1.
    Faster,
    /// It is slower: the whole interval is below 1, and the ratio is below that band.
    Slower,
    /// It is as fast as the old one: the whole interval is within a band around 1.
    Same,
    /// The interval is too wide to tell, or the difference is too small to matter.
    Undecided,
}

/// How many times as fast a new way is as an old one: the old time divided by the new time.
///
/// Its `Display` is the gain for people: `1.35x (1.20x to 1.52x)`, or `no difference found (0.93x
/// to 1.10x)` if the interval includes 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gain {
    /// The ratio of the two medians.
    pub ratio: f64,
    /// The 95 % confidence interval: low, high.
    pub ci95: (f64, f64),
}

impl Gain {
    /// With fewer launches, a difference between two ways counts as undecided.
    pub const SURE_LAUNCHES: usize = 8;

    /// Returns the gain of a way that took turns with the old one. `pairs` are the times of
    /// neighbouring blocks, old and new, by launch; empty launches do not count. The new way is the
    /// winner among `rivals` ways that were compared with the old one, at least 1: the interval is
    /// wider for more rivals, so that with 95 % confidence none of them seems better or worse by
    /// chance (Bonferroni). Returns `None` for fewer than eight launches, or fewer than the
    /// confidence needs.
    #[must_use]
    pub fn paired(pairs: &[Vec<(f64, f64)>], rivals: usize) -> Option<Self> {
        let tail = TAIL / rivals.max(1) as f64;
        let ratios: Vec<Vec<f64>> = pairs
            .iter()
            .filter(|launch| !launch.is_empty())
            .map(|launch| launch.iter().map(|(old, new)| old / new).collect())
            .collect();
        // Equal ways are all in one order with this probability.
        let chance = 0.5_f64.powi(i32::try_from(ratios.len()).unwrap_or(i32::MAX));
        if ratios.len() < Self::SURE_LAUNCHES || chance > tail {
            return None;
        }
        let launches: Vec<&[f64]> = ratios.iter().map(Vec::as_slice).collect();
        let mut medians: Vec<f64> =
            launches.iter().map(|launch| median(&mut launch.to_vec())).collect();
        let ratio = median(&mut medians);
        let ci95 = launches::interval(&launches, &mut medians, tail);
        Some(Self { ratio, ci95 })
    }

    /// Returns the gain between the times of two separate runs.
    #[must_use]
    pub fn between(old: &Summary, new: &Summary) -> Self {
        let below = |one: &Summary| (one.median / one.ci95.0).ln();
        let above = |one: &Summary| (one.ci95.1 / one.median).ln();
        let ratio = old.median / new.median;
        let low = below(old).hypot(above(new));
        let high = above(old).hypot(below(new));
        Self { ratio, ci95: (ratio / low.exp(), ratio * high.exp()) }
    }

    /// Returns what the gain says, if ways whose times differ by at most this share of the time,
    /// such as 0.05, count as the same.
    #[must_use]
    pub fn verdict(&self, band: f64) -> Verdict {
        let Self { ratio, ci95: (low, high) } = *self;
        let (least, most) = (1.0 / (1.0 + band), 1.0 + band);
        match () {
            () if low >= least && high <= most => Verdict::Same,
            () if low > 1.0 && ratio > most => Verdict::Faster,
            () if high < 1.0 && ratio < least => Verdict::Slower,
            () => Verdict::Undecided,
        }
    }
}

impl fmt::Display for Gain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |ratio: f64| {
            let digits = if ratio < 10.0 { 2 } else { usize::from(ratio < 100.0) };
            format!("{ratio:.digits$}x")
        };
        let (low, high) = (text(self.ci95.0), text(self.ci95.1));
        match self.verdict(0.0) {
            Verdict::Faster | Verdict::Slower => {
                f.pad(&format!("{} ({low} to {high})", text(self.ratio)))
            }
            Verdict::Same | Verdict::Undecided => {
                f.pad(&format!("no difference found ({low} to {high})"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::splitmix64;

    /// Draws blocks of two ways by launch. Both feel how the machine changes; the new one takes
    /// `new` times as long.
    fn turns(state: &mut u64, count: usize, new: f64) -> Vec<Vec<(f64, f64)>> {
        let mut unit = || (splitmix64(state) >> 11) as f64 / (1_u64 << 53) as f64;
        let mut launch = || {
            let (places, machine) = (0.95 + 0.1 * unit(), 100.0 * (1.0 + 3.0 * unit()));
            (0..8).map(|_| (machine * (1.0 + 0.1 * unit()), machine * new * places)).collect()
        };
        (0..count).map(|_| launch()).collect()
    }

    #[test]
    fn turns_show_difference_that_the_machine_hides() {
        let gain = Gain::paired(&turns(&mut 1, 10, 0.8), 1).unwrap();
        assert_eq!(gain.verdict(0.05), Verdict::Faster, "{gain:?}");
        assert!((1.2..1.45).contains(&gain.ratio), "{gain:?}");
        let gain = Gain::paired(&turns(&mut 1, 10, 1.3), 1).unwrap();
        assert_eq!(gain.verdict(0.05), Verdict::Slower, "{gain:?}");
    }

    #[test]
    fn few_launches_leave_the_gain_open() {
        assert_eq!(Gain::paired(&turns(&mut 2, 7, 0.1), 1), None);
        let eight = turns(&mut 2, 8, 0.1);
        assert!(Gain::paired(&eight, 6).is_some());
        assert_eq!(Gain::paired(&eight, 7), None, "seven rivals need nine launches");
        assert!(Gain::paired(&[&eight[..], &[vec![]]].concat(), 7).is_none());
    }

    /// Of ways that are equally fast, the best of several seems faster by chance in few runs.
    #[test]
    fn winner_of_equal_rivals_is_seldom_called_faster() {
        let mut state = 3;
        let mut is_wrong = || {
            let rivals = [(); 4].map(|()| turns(&mut state, 10, 1.05));
            rivals.iter().any(|one| {
                Gain::paired(one, 4).is_some_and(|gain| gain.verdict(0.0) == Verdict::Faster)
            })
        };
        let wrong = (0..400).filter(|_| is_wrong()).count();
        assert!(wrong <= 4, "{wrong} of 400");
    }

    #[test]
    fn separate_runs_combine_their_intervals() {
        let of = |median, ci95| Summary { median, ci95, p99: median, count: 20 };
        let gain = Gain::between(&of(30.0, (27.0, 33.0)), &of(10.0, (9.0, 11.0)));
        assert!((gain.ratio - 3.0).abs() < 1e-9);
        assert!((2.5..2.7).contains(&gain.ci95.0) && (3.3..3.6).contains(&gain.ci95.1), "{gain:?}");
        let wide = Gain::between(&of(23.4, (1.0, 234.0)), &of(1.01, (0.9, 1.2)));
        assert_eq!(wide.verdict(0.05), Verdict::Undecided, "{wide:?}");
        assert_eq!(wide.ratio, 23.4 / 1.01);
    }

    #[test]
    fn same_needs_an_interval_within_the_band() {
        let verdict = |ratio, low, high| Gain { ratio, ci95: (low, high) }.verdict(0.05);
        assert_eq!(verdict(1.0, 0.96, 1.04), Verdict::Same);
        assert_eq!(verdict(1.02, 1.01, 1.04), Verdict::Same);
        assert_eq!(verdict(1.0, 0.96, 1.06), Verdict::Undecided);
        assert_eq!(verdict(1.06, 1.01, 1.09), Verdict::Faster);
        assert_eq!(verdict(0.90, 0.80, 0.99), Verdict::Slower);
    }

    /// If the machine has two states, the interval may begin at the ratio and end far from it.
    #[test]
    fn difference_within_the_band_is_undecided() {
        let verdict = |ratio, low, high| Gain { ratio, ci95: (low, high) }.verdict(0.05);
        assert_eq!(verdict(1.01, 1.01, 1.39), Verdict::Undecided);
        assert_eq!(verdict(0.99, 0.72, 0.99), Verdict::Undecided);
    }

    #[test]
    fn gain_prints_with_its_interval() {
        let text = |ratio, low, high| Gain { ratio, ci95: (low, high) }.to_string();
        assert_eq!(text(1.349, 1.2, 1.52), "1.35x (1.20x to 1.52x)");
        assert_eq!(text(142.6, 63.94, 2228.4), "143x (63.9x to 2228x)");
        assert_eq!(text(1.01, 0.931, 1.1), "no difference found (0.93x to 1.10x)");
    }
}
