//! Axes of times, sizes and counts, in suitable units.

use consort_bench::units;
use consort_report::{Axis, Scale, plain};

/// Returns an axis of times in nanoseconds, with a unit that suits the longest.
pub fn times(what: &str, scale: Scale, longest_ns: f64) -> Axis {
    let (unit, label): (&str, fn(f64) -> String) = match longest_ns {
        ns if ns < 2e3 => ("ns", plain),
        ns if ns < 2e7 => ("us", |ns| plain(ns / 1e3)),
        _ => ("ms", |ns| plain(ns / 1e6)),
    };
    Axis::new(format!("{what}, {unit}"), scale).labelled(label)
}

/// Returns an axis of sizes in bytes.
pub fn sizes(what: &str) -> Axis {
    Axis::new(format!("{what}, bytes"), Scale::Log2).labelled(size)
}

/// Returns a size on an axis.
pub fn size(bytes: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a round number of bytes"
    )]
    let whole = bytes.round() as u64;
    units::size(whole)
}

/// Returns the time and its interval as text.
pub fn within(ns: f64, ci95_ns: Option<(f64, f64)>) -> String {
    let interval = ci95_ns
        .map(|(low, high)| format!(" (95 %: {} to {})", units::time(low), units::time(high)));
    units::time(ns) + &interval.unwrap_or_default()
}

/// Returns a logarithmic scale if small values would be invisible next to large ones.
pub fn scale_of(values: impl Iterator<Item = f64>) -> Scale {
    const MOST: f64 = 30.0;
    let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
    for value in values.filter(|value| *value > 0.0) {
        (least, most) = (least.min(value), most.max(value));
    }
    if most > MOST * least { Scale::Log } else { Scale::Linear }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_suits_the_values() {
        let of = |ns| {
            let axis = times("Time", Scale::Log, ns);
            (axis.title, (axis.label)(ns))
        };
        assert_eq!(of(500.0), ("Time, ns".to_owned(), "500".to_owned()));
        assert_eq!(of(5000.0), ("Time, us".to_owned(), "5".to_owned()));
        assert_eq!(of(5e8), ("Time, ms".to_owned(), "500".to_owned()));
        assert_eq!(size(1024.0), "1 KiB");
        assert_eq!(within(5000.0, Some((4500.0, 5500.0))), "5.00 us (95 %: 4.50 us to 5.50 us)");
        assert_eq!(scale_of([1.0, 20.0, 0.0].into_iter()), Scale::Linear);
        assert_eq!(scale_of([1.0, 200.0].into_iter()), Scale::Log);
    }
}
