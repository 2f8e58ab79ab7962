//! Summaries of samples from several launches of a program.
//!
//! A launch fixes the placement of threads and pages, so samples of one launch are alike, and many
//! of them say nothing about the next launch (Kalibera and Jones, "Rigorous Benchmarking in
//! Reasonable Time", ISMM 2013). So the launch is the unit that varies. The estimate is the median
//! of the launches' medians. Its interval is a two-level bootstrap (Davison and Hinkley, "Bootstrap
//! Methods and their Application", 1997, section 3.8): it draws as many launches as there are, with
//! replacement, and from each launch as many samples as it has, but at most 32; 2.5 % of the
//! estimates are left out at each end. For few launches a bootstrap is too narrow. So the interval
//! also includes the order-statistics interval of the launches' medians and, for fewer than eight
//! launches, that by Student's t.

use super::{Summary, TAIL, interval_rank, median};
use crate::splitmix64;

/// The seed of all draws: the same samples give the same interval.
pub const SEED: u64 = 2009;
/// The number of times that a set of launches is drawn.
const DRAWS: usize = 200;
/// How often samples are drawn from each launch; a drawn launch uses one of these draws.
const LAUNCH_DRAWS: usize = 16;
/// The most samples drawn from a launch: with more, its median hardly changes.
const MOST_SAMPLES: usize = 32;

/// Summarizes samples by launch; empty launches do not count. Returns `None` if all are empty.
#[must_use]
pub fn summary(launches: &[Vec<f64>]) -> Option<Summary> {
    let launches: Vec<&[f64]> =
        launches.iter().map(Vec::as_slice).filter(|launch| !launch.is_empty()).collect();
    let all: Vec<f64> = launches.concat();
    if launches.is_empty() {
        return None;
    }
    let mut medians: Vec<f64> =
        launches.iter().map(|launch| median(&mut launch.to_vec())).collect();
    let estimate = median(&mut medians);
    let ci95 = match launches.as_slice() {
        [_] => Summary::of(&all).ci95,
        launches => {
            let (low, high) = interval(launches, &mut medians, TAIL);
            let few = of_few(&medians);
            (low.min(few.0), high.max(few.1))
        }
    };
    Some(Summary { median: estimate, ci95, ..Summary::of(&all) })
}

/// Returns the interval, by bootstrap and by order statistics, of the median of the launches'
/// medians, which it sorts. At most `tail` of the probability is outside at each end.
pub(super) fn interval(launches: &[&[f64]], medians: &mut [f64], tail: f64) -> (f64, f64) {
    medians.sort_unstable_by(f64::total_cmp);
    let outside = interval_rank(medians.len(), tail);
    let (low, high) = bootstrap(launches, tail);
    (low.min(medians[outside]), high.max(medians[medians.len() - 1 - outside]))
}

/// Returns the interval of two to seven medians by Student's t on their logarithms, because times
/// are positive and differ by factors. It is centred on their median. For other numbers of medians,
/// it consists of the median only.
fn of_few(medians: &[f64]) -> (f64, f64) {
    /// 97.5 % quantiles, by degrees of freedom from 1 on.
    const QUANTILES: [f64; 6] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447];
    let (count, centre) = (medians.len() as f64, median(&mut medians.to_vec()));
    let freedom = medians.len().saturating_sub(1);
    let quantile = freedom.checked_sub(1).and_then(|index| QUANTILES.get(index));
    let mean = medians.iter().map(|median| median.ln()).sum::<f64>() / count;
    let squares: f64 = medians.iter().map(|median| (median.ln() - mean).powi(2)).sum();
    let half = quantile.map_or(0.0, |t| t * (squares / freedom as f64 / count).sqrt());
    if half.is_finite() { (centre / half.exp(), centre * half.exp()) } else { (centre, centre) }
}

/// Returns the interval of the bootstrap.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a part of the number of draws"
)]
fn bootstrap(launches: &[&[f64]], tail: f64) -> (f64, f64) {
    let mut state = SEED;
    let mut below = |end: usize| usize::try_from(splitmix64(&mut state) % end as u64).unwrap_or(0);
    let mut drawn = Vec::with_capacity(MOST_SAMPLES);
    let mut of_launch = |launch: &&[f64]| {
        [(); LAUNCH_DRAWS].map(|()| {
            drawn.clear();
            let count = launch.len().min(MOST_SAMPLES);
            drawn.extend((0..count).map(|_| launch[below(launch.len())]));
            median(&mut drawn)
        })
    };
    let medians: Vec<[f64; LAUNCH_DRAWS]> = launches.iter().map(&mut of_launch).collect();
    let mut drawn = vec![0.0; launches.len()];
    let mut estimate = || {
        for place in &mut drawn {
            *place = medians[below(launches.len())][below(LAUNCH_DRAWS)];
        }
        median(&mut drawn)
    };
    let mut estimates: Vec<f64> = (0..DRAWS).map(|_| estimate()).collect();
    estimates.sort_unstable_by(f64::total_cmp);
    let outside = (DRAWS as f64 * tail) as usize;
    (estimates[outside], estimates[DRAWS - 1 - outside])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws launches around 100 that differ by up to `between`, and their samples by `within`.
    fn drawn(state: &mut u64, count: usize, between: f64, within: f64) -> Vec<Vec<f64>> {
        let mut unit = || (splitmix64(state) >> 11) as f64 / (1_u64 << 53) as f64;
        (0..count)
            .map(|_| {
                let centre = 100.0 + between * unit();
                (0..20).map(|_| centre + within * unit()).collect()
            })
            .collect()
    }

    #[test]
    fn many_samples_of_few_launches_stay_imprecise() {
        let launches = drawn(&mut 1, 8, 20.0, 0.1);
        let of_launches = summary(&launches).unwrap();
        let of_samples = Summary::of(&launches.concat());
        assert!(of_launches.precision() > 0.02, "{of_launches:?}");
        assert_eq!((of_launches.count, of_launches.p99), (160, of_samples.p99));
        let steady = summary(&drawn(&mut 1, 8, 0.0, 0.1)).unwrap();
        assert!(steady.precision() < 0.001, "{steady:?}");
    }

    /// Among pairs of measurements of the same thing, few have intervals that do not overlap.
    #[test]
    fn two_measurements_of_one_thing_agree() {
        let mut state = 7;
        let all: Vec<Summary> =
            (0..120).map(|_| summary(&drawn(&mut state, 8, 20.0, 5.0)).unwrap()).collect();
        let apart = |pair: &&[Summary]| {
            let [one, other] = pair else { return false };
            one.ci95.1 < other.ci95.0 || other.ci95.1 < one.ci95.0
        };
        let count = all.chunks(2).filter(apart).count();
        assert!(count <= 3, "{count} of 60 pairs are apart");
        let covers = |one: &&Summary| one.ci95.0 <= 112.5 && 112.5 <= one.ci95.1;
        let covered = all.iter().filter(covers).count();
        assert!(covered >= 104, "{covered} of 120 intervals have the true median");
    }

    /// The same for two to seven launches, whose range would contain the median far too seldom.
    #[test]
    fn interval_of_few_launches_is_wide_enough() {
        let mut state = 5;
        for count in 2..8 {
            let all = (0..200).map(|_| summary(&drawn(&mut state, count, 20.0, 5.0)).unwrap());
            let covered = all.filter(|one| one.ci95.0 <= 112.5 && 112.5 <= one.ci95.1).count();
            assert!(covered >= 180, "{covered} of 200 intervals of {count} launches");
        }
    }

    #[test]
    fn two_launches_give_wide_interval_and_one_its_range() {
        let two = summary(&[vec![2.0, 2.0, 2.0], vec![], vec![2.5]]).unwrap();
        assert_eq!((two.median, two.count), (2.25, 4));
        assert!((0.5..0.6).contains(&two.ci95.0) && (9.0..9.5).contains(&two.ci95.1), "{two:?}");
        let one = summary(&[vec![1.0, 2.0, 3.0]]).unwrap();
        assert_eq!((one.median, one.ci95), (2.0, (1.0, 3.0)));
        assert_eq!(summary(&[vec![], vec![]]), None);
        let single = summary(&[vec![4.0]]).unwrap();
        assert!(single.precision().is_infinite());
    }

    #[test]
    fn the_same_samples_have_the_same_interval() {
        let launches = drawn(&mut 3, 9, 10.0, 10.0);
        assert_eq!(summary(&launches), summary(&launches));
    }
}
