//! Helpers for checking results.

/// Returns the larger of two errors, or NaN if one of them is NaN.
#[must_use]
pub fn larger(one: f64, other: f64) -> f64 {
    if one.is_nan() || one > other { one } else { other }
}

/// Returns the largest error, or NaN if one is NaN. Returns 0 if there are no errors.
#[must_use]
pub fn largest(errors: impl IntoIterator<Item = f64>) -> f64 {
    errors.into_iter().fold(0.0, larger)
}

#[cfg(test)]
mod tests {
    use super::largest;

    #[test]
    fn nan_is_the_largest() {
        assert_eq!(largest([1.0, 3.0, 2.0]), 3.0);
        assert_eq!(largest([]), 0.0);
        for place in 0..3 {
            let mut errors = [1.0, f64::INFINITY, 2.0];
            errors[place] = f64::NAN;
            assert!(largest(errors).is_nan());
        }
    }
}
