//! Seeds of random tests.
//!
//! Each day a test runs different seeds, from the seed of the day on: more of them in nightly runs
//! than for a change ([`Tier`]). It also runs the seeds that once found a fault. Variables override
//! that:
//!
//! | variables | seeds |
//! | --- | --- |
//! | `TEST_SEED=N` | only seed N |
//! | `TEST_SEED=N TEST_PROGRAMS=M` | M seeds from N on |
//! | `TEST_PROGRAMS=M` | M seeds from a random one on |
//! | `TEST_TIER=night` | from the seed of the day on, as many as in nightly runs |

#![expect(clippy::disallowed_types, reason = "the date of today")]

use std::{
    collections::hash_map::RandomState,
    env,
    hash::{BuildHasher, Hasher},
    ops::Range,
    time::SystemTime,
};

/// The first seed to play.
pub const SEED: &str = "TEST_SEED";

/// The number of seeds to play.
pub const PROGRAMS: &str = "TEST_PROGRAMS";

/// The tier of this run: `change` or `night`.
pub const TIER: &str = "TEST_TIER";

/// A change plays one program in this many; a night plays all.
const FRACTION: u64 = 8;

/// The distance between the first seeds of two days.
const DAY: u64 = 1_000_000;

/// The thoroughness of a test run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// The tests that a change must pass: minutes.
    Change,
    /// Everything: hours.
    Night,
}

impl Tier {
    /// Returns the tier that the environment asks for; `change` unless it says otherwise.
    ///
    /// # Panics
    /// If the variable is set to anything else.
    #[must_use]
    pub fn now() -> Self {
        match env::var(TIER).as_deref() {
            Err(_) | Ok("change") => Self::Change,
            Ok("night") => Self::Night,
            Ok(other) => panic!("{TIER} is `{other}`: expected `change` or `night`"),
        }
    }

    /// Returns one of two values, depending on the tier.
    pub fn of<T>(self, change: T, night: T) -> T {
        match self {
            Self::Change => change,
            Self::Night => night,
        }
    }
}

/// Returns the number in a variable of the environment, if it is set.
///
/// # Panics
/// If it is set to anything else.
#[must_use]
pub fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is `{text}`: expected a number")))
}

/// Returns the seed of the day (UTC).
#[must_use]
pub fn of_the_day() -> u64 {
    let now = SystemTime::UNIX_EPOCH.elapsed().expect("a clock that is set");
    now.as_secs() / (24 * 60 * 60) * DAY
}

/// Returns the seeds of the programs to play, out of `all`: seed `s` plays program `s % all`. A
/// night plays all of them. A change plays one in eight, and eight days play all.
///
/// # Panics
/// As [`seeds`].
#[must_use]
pub fn of_programs(all: u64) -> Range<u64> {
    let part = part_of(all, of_the_day() / DAY);
    let (first, count) = drawn(part.start, Tier::now().of(part.end - part.start, all));
    first..first + count
}

/// Returns the items of `all` to test, drawn as in [`of_programs`].
///
/// # Panics
/// As [`seeds`].
#[must_use]
pub fn some_of<T: Clone>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let all: Vec<T> = all.into_iter().collect();
    let count = all.len() as u64;
    let index = |seed| usize::try_from(seed % count).expect("an index");
    of_programs(count).map(|seed| all[index(seed)].clone()).collect()
}

/// Returns the seeds that a change runs on a day.
fn part_of(all: u64, day: u64) -> Range<u64> {
    let part = all.div_ceil(FRACTION);
    day * part..(day + 1) * part
}

/// Returns the first seed and the number of seeds: the arguments, unless the environment overrides
/// them. Prints them, so that the output of a failed test shows how to repeat it.
fn drawn(first: u64, count: u64) -> (u64, u64) {
    let drawn = match (number(SEED), number(PROGRAMS)) {
        (None, None) => (first, count),
        (Some(seed), count) => (seed, count.unwrap_or(1)),
        (None, Some(count)) => (RandomState::new().build_hasher().finish() >> 16, count),
    };
    eprintln!("{} programs from {SEED}={} on", drawn.1, drawn.0);
    drawn
}

/// Returns the seeds to run: those that once found a fault, then `change` or `night` seeds of the
/// day. If the environment names seeds, returns only those.
///
/// # Panics
/// If a variable is not a number.
pub fn seeds(change: u64, night: u64, once_failed: &[u64]) -> impl Iterator<Item = u64> {
    let is_free = number(SEED).is_none() && number(PROGRAMS).is_none();
    let others = if is_free { once_failed.to_vec() } else { Vec::new() };
    let (first, count) = drawn(of_the_day(), Tier::now().of(change, night));
    others.into_iter().chain(first..first + count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Set when another test runs `say_seeds`.
    const ASKED: &str = "SAY_SEEDS";

    #[test]
    fn say_seeds() {
        if env::var_os(ASKED).is_some() {
            println!("seeds {:?}", seeds(2, 3, &[7]).collect::<Vec<_>>());
        }
    }

    #[test]
    fn changes_of_eight_days_play_all_programs() {
        for all in [1, 42, 100, 128, 4320] {
            let days = 20_000..20_000 + FRACTION;
            let seeds = days.flat_map(|day| part_of(all, day)).map(|seed| seed % all);
            assert_eq!(seeds.collect::<std::collections::BTreeSet<_>>().len() as u64, all);
        }
    }

    /// Returns the seeds that a test program runs with these variables.
    fn played(variables: &[(&str, &str)]) -> Vec<u64> {
        let mut program = Command::new(env::current_exe().expect("this program"));
        program.args(["--exact", "--nocapture", "seeds::tests::say_seeds"]).env(ASKED, "");
        program.env_remove(SEED).env_remove(PROGRAMS).env_remove(TIER);
        let output = program.envs(variables.iter().copied()).output().expect("it starts");
        let text = String::from_utf8(output.stdout).expect("text");
        let list = text.split_once("seeds [").and_then(|(_, rest)| rest.split_once(']'));
        let (list, _) = list.unwrap_or_else(|| panic!("{text}"));
        list.split(", ").map(|seed| seed.parse().expect("a seed")).collect()
    }

    #[test]
    fn seeds_follow_the_day_and_the_tier() {
        let day = of_the_day();
        let few = played(&[]);
        assert!(few == [7, day, day + 1] || few[1] == day + DAY, "{few:?} at {day}");
        assert_eq!(played(&[(TIER, "night")]).len(), 4);
    }

    #[test]
    fn variables_name_the_seeds() {
        assert_eq!(played(&[(SEED, "5")]), [5]);
        assert_eq!(played(&[(SEED, "5"), (PROGRAMS, "3")]), [5, 6, 7]);
        assert_eq!(played(&[(PROGRAMS, "3")]).len(), 3);
    }
}
