//! Bars of text characters.

/// Returns a bar of up to `width` characters for a value up to `most`. Every positive value is
/// visible.
pub(super) fn bar(value: f64, most: f64, width: usize) -> String {
    let share = if most > 0.0 { (value / most).clamp(0.0, 1.0) } else { 0.0 };
    let cells = (1..=width).filter(|&cell| (cell as f64 - 0.5) / width as f64 <= share).count();
    "#".repeat(if value > 0.0 { cells.max(1) } else { cells })
}

/// Returns a bar on a logarithmic scale that starts at `least`.
pub(super) fn log_bar(value: f64, least: f64, most: f64, width: usize) -> String {
    if value <= 0.0 || least <= 0.0 || most <= least {
        return bar(value, most, width);
    }
    bar((value / least).ln().max(f64::MIN_POSITIVE), (most / least).ln(), width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_in_proportion() {
        let bars = [0.0, 0.001, 0.5, 1.0, 7.0].map(|value| bar(value, 1.0, 10).len());
        assert_eq!(bars, [0, 1, 5, 10, 10]);
        assert_eq!(bar(1.0, 0.0, 10), "#");
    }

    #[test]
    fn all_decades_have_equal_length() {
        let bars = [1.0, 10.0, 100.0, 1000.0].map(|value| log_bar(value, 1.0, 1000.0, 30).len());
        assert_eq!(bars, [1, 10, 20, 30]);
    }
}
