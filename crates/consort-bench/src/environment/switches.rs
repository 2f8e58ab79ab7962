//! Counts how often measuring threads, one per core, lost their cores to other threads.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Switches per second and PE that do not indicate competitors: the kernel's own threads and timers
/// take a core about ten times a second...
const OF_EACH_PE: f64 = 10.0;
/// ... and this often regardless of the number of PEs. A program that competes for a core takes it
/// every few milliseconds, and takes several cores in turn: about a hundred times a second.
const BESIDES: f64 = 20.0;
/// Switches of each PE in each launch that do not indicate competitors either: even a short launch
/// on an idle machine may have one.
const OF_EACH_LAUNCH: f64 = 1.0;
/// With fewer switches in total, nothing is reported.
const FEWEST: u64 = 10;

/// The involuntary switches of all measuring threads, if each PE had a core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct Switches {
    count: u64,
    seconds: f64,
    /// The number of switches that do not indicate competitors.
    expected: f64,
}

impl Switches {
    /// Returns the switches of `pes` PEs that measured for `time` in one launch.
    #[must_use]
    pub fn of(count: u64, pes: u32, time: Duration) -> Self {
        let seconds = time.as_secs_f64();
        let a_second = BESIDES + OF_EACH_PE * f64::from(pes);
        let expected = a_second * seconds + OF_EACH_LAUNCH * f64::from(pes);
        Self { count, seconds, expected }
    }

    /// Adds the switches of another launch.
    pub fn add(&mut self, other: Self) {
        self.count += other.count;
        self.seconds += other.seconds;
        self.expected += other.expected;
    }

    /// Returns the switches per second, if they indicate that others use the cores too.
    pub(super) fn too_many(&self) -> Option<f64> {
        let too_many = self.count >= FEWEST && self.count as f64 > self.expected;
        too_many.then(|| self.count as f64 / self.seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_frequent_switches_count_as_competition() {
        let second = Duration::from_secs(1);
        assert_eq!(Switches::of(40, 2, second).too_many(), None);
        assert_eq!(Switches::of(150, 2, second).too_many(), Some(150.0));
        assert_eq!(Switches::of(9, 2, Duration::from_millis(1)).too_many(), None, "too few");
        let launch = Switches::of(2, 2, Duration::from_millis(20));
        let launches = (0..20).fold(launch, |mut sum, _| {
            sum.add(launch);
            sum
        });
        assert_eq!(launches.too_many(), None, "those of launches");
        let mut all = Switches::of(150, 2, second);
        for _ in 0..9 {
            all.add(Switches::of(0, 2, second));
        }
        assert_eq!(all.too_many(), None, "15 a second");
        assert_eq!(Switches::default().too_many(), None);
    }
}
