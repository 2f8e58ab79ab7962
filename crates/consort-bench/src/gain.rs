//! Gains between results that consist of a median and its interval.

use consort_fabric::statistics::{Gain, Summary, Verdict};

use crate::units::{number, ratio};

/// A median with its 95 % confidence interval; results of a single sample have none.
pub type Median = (f64, Option<(f64, f64)>);

/// Returns how many times as fast `new` is as `old`. Without the interval of both, the gain's
/// interval has all positive numbers, so that nothing is decided.
#[must_use]
pub fn between(old: Median, new: Median) -> Gain {
    let summary = |(median, ci95): Median| Summary {
        median,
        ci95: ci95.unwrap_or((0.0, f64::INFINITY)),
        p99: median,
        count: 1,
    };
    Gain::between(&summary(old), &summary(new))
}

/// Returns the interval of a gain; `None` if it has all positive numbers.
#[must_use]
pub fn interval(gain: &Gain) -> Option<(f64, f64)> {
    let (low, high) = gain.ci95;
    (low > 0.0 && high.is_finite()).then_some((low, high))
}

/// Formats a gain with its interval in at most 20 letters, as in `4.72x (3.65 to 30.1)`.
#[must_use]
pub fn text(gain: &Gain) -> String {
    match (interval(gain), gain.verdict(0.0)) {
        (None, _) => "too few launches".to_owned(),
        (Some((low, high)), Verdict::Faster | Verdict::Slower) => {
            format!("{} ({} to {})", ratio(gain.ratio), number(low), number(high))
        }
        (Some(_), Verdict::Same | Verdict::Undecided) => "no difference found".to_owned(),
    }
}

/// Formats a gain for a narrow column. A decided gain has its ratio and interval, as in
/// `4.72x (3.65 to 30.1)`. `~` means that no difference was found, and `?` that there were too few
/// launches.
#[must_use]
pub fn brief(gain: &Gain) -> String {
    match (interval(gain), gain.verdict(0.0)) {
        (None, _) => "?".to_owned(),
        (Some(_), Verdict::Faster | Verdict::Slower) => text(gain),
        (Some(_), Verdict::Same | Verdict::Undecided) => "~".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_without_interval_decides_nothing() {
        let gain = between((10.0, Some((9.9, 10.1))), (1.0, None));
        assert_eq!((gain.ratio, gain.verdict(0.05)), (10.0, Verdict::Undecided));
        assert_eq!(interval(&gain), None);
        assert_eq!((text(&gain).as_str(), brief(&gain).as_str()), ("too few launches", "?"));
        let gain = between((10.0, Some((9.9, 10.1))), (1.0, Some((0.9, 1.1))));
        assert_eq!(gain.verdict(0.05), Verdict::Faster);
        assert_eq!(interval(&gain), Some(gain.ci95));
        assert_eq!([text(&gain), brief(&gain)], ["10.0x (9.09 to 11.1)"; 2]);
        let gain = between((10.0, Some((5.0, 20.0))), (9.0, Some((8.0, 10.0))));
        assert_eq!((text(&gain).as_str(), brief(&gain).as_str()), ("no difference found", "~"));
    }
}
