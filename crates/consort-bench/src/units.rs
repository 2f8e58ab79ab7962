//! Text for times, ratios, sizes, counts and errors.

use std::fmt::Display;

use anyhow::Error;

pub use consort_fabric::units::{number, size, time};

/// Formats a ratio: `3.42x`, `118x`.
pub fn ratio(ratio: f64) -> String {
    format!("{}x", number(ratio))
}

/// Formats half an interval, relative to its median, in per cent: `0.9`, `12`. It is unknown for a
/// single sample: `-`. For a few samples far apart it could be any number, by Student's t: `>999`.
pub fn precision(share: f64) -> String {
    match 100.0 * share {
        percent if !percent.is_finite() => "-".to_owned(),
        percent if percent >= 999.5 => ">999".to_owned(),
        percent => format!("{percent:.*}", usize::from(percent < 9.95)),
    }
}

/// Formats a count: `1 line`, `3 lines`.
pub fn counted<N: Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    let plural = if count == N::from(1) { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// Formats an error with its causes, in one line.
pub fn in_a_line(error: &Error) -> String {
    format!("{error:#}").split_whitespace().collect::<Vec<&str>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_has_three_digits() {
        assert_eq!([0.5, 12.34, 118.2].map(ratio), ["0.50x", "12.3x", "118x"]);
    }

    #[test]
    fn a_precision_has_few_digits() {
        let shares = [0.000_4, 0.009, 0.0996, 0.12, 9.99, 1e15, f64::INFINITY].map(precision);
        assert_eq!(shares, ["0.0", "0.9", "10", "12", "999", ">999", "-"]);
    }
}
