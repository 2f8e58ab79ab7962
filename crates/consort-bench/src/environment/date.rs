//! The date in UTC.

#![expect(clippy::disallowed_types, reason = "dates for readers")]

use std::time::{SystemTime, UNIX_EPOCH};

const DAY_SECONDS: u64 = 24 * 60 * 60;

/// Returns the current date and time in UTC, as `2026-11-23T02:12:47Z`.
#[must_use]
pub fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    date(since.as_secs())
}

/// Returns the date `seconds` after the beginning of 1970 (RFC 3339).
fn date(seconds: u64) -> String {
    let (year, month, day) = civil(seconds / DAY_SECONDS);
    let rest = seconds % DAY_SECONDS;
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Returns year, month and day, `days` after the beginning of 1970 in the Gregorian calendar.
fn civil(days: u64) -> (u64, u64, u64) {
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let (mut year, mut left) = (1970, days);
    while left >= 365 + u64::from(is_leap(year)) {
        left -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if left < length {
            break;
        }
        left -= length;
        month += 1;
    }
    (year, month, left + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values are from `date --utc --date @N`.
    #[test]
    fn dates_match_the_calendar() {
        assert_eq!(date(0), "1970-01-01T00:00:00Z");
        assert_eq!(date(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(date(951_868_799), "2000-02-29T23:59:59Z");
        assert_eq!(date(1_735_689_599), "2024-12-31T23:59:59Z");
        assert_eq!(date(1_772_323_200), "2026-03-01T00:00:00Z");
        assert_eq!(date(4_107_542_400), "2100-03-01T00:00:00Z");
    }
}
