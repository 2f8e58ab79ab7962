//! Times, ratios, sizes, numbers of things and errors as text.

use std::fmt::Display;

use anyhow::Error;

/// A time with three significant digits: `123 ns`, `4.56 us`, `78.9 ms`.
pub fn time(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns < 999.5 => (ns, "ns"),
        ns if ns < 999_500.0 => (ns / 1e3, "us"),
        ns if ns < 999_500_000.0 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    format!("{} {unit}", number(value))
}

/// A ratio: `3.42x`, `118x`.
pub fn ratio(ratio: f64) -> String {
    format!("{}x", number(ratio))
}

/// Half an interval in per cent of its median: `0.4`, `12`, `over 999`, and `-` where there is no
/// interval.
pub fn precision(share: f64) -> String {
    const MOST: f64 = 999.0;
    match 100.0 * share {
        percent if !percent.is_finite() => "-".to_owned(),
        percent if percent > MOST => format!("over {MOST}"),
        percent => format!("{percent:.*}", usize::from(percent < 9.95)),
    }
}

/// A size with the largest unit that divides it: `8 B`, `4 KiB`, `1536 B`.
pub fn size(bytes: u64) -> String {
    let power = (bytes.trailing_zeros() / 10).min(3);
    match power {
        _ if bytes == 0 => "0 B".to_owned(),
        0 => format!("{bytes} B"),
        power => format!("{} {}iB", bytes >> (10 * power), ["K", "M", "G"][power as usize - 1]),
    }
}

/// A number of things: `1 line`, `3 lines`.
pub fn counted<N: Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    let plural = if count == N::from(1) { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// An error with its causes, in one line.
pub fn in_a_line(error: &Error) -> String {
    format!("{error:#}").split_whitespace().collect::<Vec<&str>>().join(" ")
}

/// A number with three significant digits, or all before the point: `0.75`, `12.3`, `1506`.
pub fn number(value: f64) -> String {
    let decimals = match value {
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits() {
        let times = [0.1, 9.996, 123.4, 999.6, 4567.0, 78_900_000.0, 2e9].map(time);
        let expected = ["0.10 ns", "10.0 ns", "123 ns", "1.00 us", "4.57 us", "78.9 ms", "2.00 s"];
        assert_eq!(times, expected);
        assert_eq!([0.5, 12.34, 118.2].map(ratio), ["0.50x", "12.3x", "118x"]);
    }

    /// Of two launches that differ by much, an interval has no bound worth printing.
    #[test]
    fn a_precision_has_three_digits() {
        let shares = [0.004, 0.0996, 0.123, 9.98, 9.991, 6.7e15, f64::INFINITY, f64::NAN];
        let expected = ["0.4", "10", "12", "998", "over 999", "over 999", "-", "-"];
        assert_eq!(shares.map(precision), expected);
    }

    #[test]
    fn the_unit_divides_what_is_shown() {
        let sizes = [0, 8, 1536, 4096, 3 << 20, 1 << 30, 1 << 45].map(size);
        assert_eq!(sizes, ["0 B", "8 B", "1536 B", "4 KiB", "3 MiB", "1 GiB", "32768 GiB"]);
    }
}
