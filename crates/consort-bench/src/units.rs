//! Text for times, ratios, sizes, counts and errors.

use std::fmt::Display;

use anyhow::Error;

/// Formats a time with three significant digits: `123 ns`, `4.56 us`, `78.9 ms`.
pub fn time(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns < 999.5 => (ns, "ns"),
        ns if ns < 999_500.0 => (ns / 1e3, "us"),
        ns if ns < 999_500_000.0 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    format!("{} {unit}", number(value))
}

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

/// Formats a size with the largest unit that divides it: `8 B`, `4 KiB`, `1536 B`.
pub fn size(bytes: u64) -> String {
    let power = (bytes.trailing_zeros() / 10).min(3);
    match power {
        _ if bytes == 0 => "0 B".to_owned(),
        0 => format!("{bytes} B"),
        power => format!("{} {}iB", bytes >> (10 * power), ["K", "M", "G"][power as usize - 1]),
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

/// Formats a number with three significant digits, or its whole integer part: `0.75`, `12.3`,
/// `1506`.
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

    #[test]
    fn a_precision_has_few_digits() {
        let shares = [0.000_4, 0.009, 0.0996, 0.12, 9.99, 1e15, f64::INFINITY].map(precision);
        assert_eq!(shares, ["0.0", "0.9", "10", "12", "999", ">999", "-"]);
    }

    #[test]
    fn size_uses_the_largest_exact_unit() {
        let sizes = [0, 8, 1536, 4096, 3 << 20, 1 << 30, 1 << 45].map(size);
        assert_eq!(sizes, ["0 B", "8 B", "1536 B", "4 KiB", "3 MiB", "1 GiB", "32768 GiB"]);
    }
}
