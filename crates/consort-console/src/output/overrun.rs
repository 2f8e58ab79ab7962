//! Prints a line that says why a command took longer than its budget.

use std::time::Duration;

/// A command may take this many times its budget, ...
const MOST: f64 = 1.5;
/// ... plus this much to start and to print.
const START: Duration = Duration::from_millis(300);

/// Warns if a command took longer than allowed. `why` names the parts that take that time.
pub fn warn_if_over(taken: Duration, budget: Duration, why: &str) {
    if let Some(line) = line(taken, budget, why) {
        tracing::warn!("{line}");
    }
}

fn line(taken: Duration, budget: Duration, why: &str) -> Option<String> {
    let is_over = taken > START + Duration::try_from_secs_f64(MOST * budget.as_secs_f64()).ok()?;
    is_over.then(|| format!("took {}, not {}: {why}", seconds(taken), seconds(budget)))
}

/// Returns the parts of a measurement that take time, and how much.
pub fn parts(parts: impl IntoIterator<Item = (String, Duration)>) -> String {
    let noticeable = parts.into_iter().filter(|(_, time)| *time >= START / 3);
    let parts: Vec<String> =
        noticeable.map(|(what, time)| format!("{what} {}", seconds(time))).collect();
    if parts.is_empty() { "many short parts".to_owned() } else { parts.join(", ") }
}

/// Returns a time in seconds, like budgets.
pub fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budget_may_be_exceeded_by_half_and_start_time() {
        let ms = Duration::from_millis;
        assert_eq!(line(ms(1800), ms(1000), "x"), None);
        let late = line(ms(2060), ms(1000), "a call takes 1 s").unwrap();
        assert_eq!(late, "took 2.1 s, not 1.0 s: a call takes 1 s");
        assert_eq!(line(ms(300), ms(0), "x"), None);
        assert_eq!(line(ms(1), Duration::MAX, "x"), None);
    }

    #[test]
    fn short_parts_are_left_out() {
        let (s, ms) = (Duration::from_secs, Duration::from_millis);
        let all = [("a launch".to_owned(), s(3)), ("limits".to_owned(), ms(2))];
        assert_eq!(parts(all), "a launch 3.0 s");
        assert_eq!(parts([("limits".to_owned(), ms(2))]), "many short parts");
    }
}
