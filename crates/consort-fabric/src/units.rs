//! Text for times, sizes and numbers.

/// Formats a time with three significant digits: `123 ns`, `4.56 us`, `78.9 ms`.
#[must_use]
pub fn time(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns < 999.5 => (ns, "ns"),
        ns if ns < 999_500.0 => (ns / 1e3, "us"),
        ns if ns < 999_500_000.0 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    format!("{} {unit}", number(value))
}

/// Formats a size with the largest unit that divides it: `8 B`, `4 KiB`, `1536 B`.
#[must_use]
pub fn size(bytes: u64) -> String {
    let power = (bytes.trailing_zeros() / 10).min(3);
    match power {
        _ if bytes == 0 => "0 B".to_owned(),
        0 => format!("{bytes} B"),
        power => format!("{} {}iB", bytes >> (10 * power), ["K", "M", "G"][power as usize - 1]),
    }
}

/// Formats a number with three significant digits, or its whole integer part: `0.75`, `12.3`,
/// `1506`.
#[must_use]
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
    }

    #[test]
    fn size_uses_the_largest_exact_unit() {
        let sizes = [0, 8, 1536, 4096, 3 << 20, 1 << 30, 1 << 45].map(size);
        assert_eq!(sizes, ["0 B", "8 B", "1536 B", "4 KiB", "3 MiB", "1 GiB", "32768 GiB"]);
    }
}
