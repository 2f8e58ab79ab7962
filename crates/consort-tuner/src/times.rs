//! The range and the rounding of times in wisdom.

use std::ops::RangeInclusive;

/// The range of times in wisdom, in nanoseconds: from their resolution to eleven days. Longer times
/// and NaN become the longest.
pub(crate) const TIMES_NS: RangeInclusive<f64> = 0.1..=1e15;

/// Returns a time as wisdom stores it: to a tenth of a nanosecond, within [`TIMES_NS`].
pub(crate) fn rounded_ns(time_ns: f64) -> f64 {
    if time_ns.is_nan() {
        return *TIMES_NS.end();
    }
    ((time_ns * 10.0).round() / 10.0).clamp(*TIMES_NS.start(), *TIMES_NS.end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_into_the_range_that_wisdom_keeps() {
        assert_eq!(rounded_ns(12.34), 12.3);
        assert_eq!(rounded_ns(0.0), 0.1);
        assert_eq!(rounded_ns(f64::NAN), 1e15);
        assert_eq!(rounded_ns(f64::INFINITY), 1e15);
        assert_eq!(rounded_ns(rounded_ns(7.77)), 7.8);
    }
}
