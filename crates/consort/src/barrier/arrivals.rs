//! The threads that have arrived at a barrier, counted in one word.
//!
//! | bits | contents |
//! | --- | --- |
//! | 32 to 63 | the phase, modulo 2^32 |
//! | 16 to 31 | the number of threads in a phase |
//! | 0 to 15 | the number of threads that have arrived |
//!
//! A thread arrives by one addition, which always succeeds. The last thread of a phase subtracts
//! the phase's threads by another addition. Between the two, threads of the next phases may already
//! be counted, so a thread computes its phase from the word's phase and the count that it found.

#![expect(clippy::cast_possible_truncation, reason = "the fields of a word are parts of it")]

use std::{
    sync::atomic::{
        AtomicU64,
        Ordering::{AcqRel, Acquire, Relaxed},
    },
    thread::yield_now,
};

/// The largest number of threads in a phase.
pub(super) const MOST: usize = u16::MAX as usize;

const EXPECTED: u32 = 16;
const PHASE: u32 = 32;

/// The number of a phase, modulo 2^32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Phase(u32);

impl Phase {
    /// Returns whether the phase is over once this many phases are complete.
    #[inline]
    pub(super) fn is_over(self, completed: u64) -> bool {
        self.is_before(Self(completed as u32))
    }

    /// Assumes that the two phases are at most half of the number range apart.
    #[inline]
    fn is_before(self, other: Self) -> bool {
        (other.0.wrapping_sub(self.0) as i32) > 0
    }
}

/// A thread that has arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) phase: Phase,
    /// The number of threads in the phase.
    pub(super) threads: usize,
    /// Whether it is the last of its phase, and must call [`Arrivals::end_phase`].
    pub(super) is_last: bool,
}

/// The fields of the word.
#[derive(Clone, Copy)]
struct Counts {
    phase: u32,
    expected: u64,
    arrived: u64,
}

impl Counts {
    fn of(word: u64) -> Self {
        let low = |bit: u32| word >> bit & MOST as u64;
        Self { phase: (word >> PHASE) as u32, expected: low(EXPECTED), arrived: low(0) }
    }

    fn word(self) -> u64 {
        u64::from(self.phase) << PHASE | self.expected << EXPECTED | self.arrived
    }
}

#[derive(Debug)]
pub(super) struct Arrivals(AtomicU64);

impl Arrivals {
    /// Creates the word for phases of at most [`MOST`] threads; with 0, a phase takes one thread.
    pub(super) const fn new(threads: usize) -> Self {
        let threads = if threads == 0 { 1 } else { threads };
        Self(AtomicU64::new((threads as u64) << EXPECTED))
    }

    /// Counts the calling thread.
    #[inline]
    pub(super) fn arrive(&self) -> Arrival {
        // Each thread's release pairs with the acquire of the last one, because additions to one
        // word form one release sequence.
        let Counts { phase, expected, arrived } = Counts::of(self.0.fetch_add(1, AcqRel));
        let (ahead, number) = if arrived < expected {
            (0, arrived)
        } else {
            (arrived / expected, arrived % expected)
        };
        Arrival {
            phase: Phase(phase.wrapping_add(ahead as u32)),
            threads: expected as usize,
            is_last: number + 1 == expected,
        }
    }

    /// Ends the phase of this last thread, and begins the next one.
    #[inline]
    pub(super) fn end_phase(&self, last: Arrival) {
        self.0.fetch_add((1 << PHASE) - last.threads as u64, Relaxed);
    }

    /// Removes a thread that arrived in this phase. Returns whether it did: it does not if the
    /// phase is over.
    pub(super) fn withdraw(&self, phase: Phase) -> bool {
        self.change(|counts| {
            let is_now = Phase(counts.phase) == phase;
            is_now.then(|| Counts { arrived: counts.arrived - 1, ..counts })
        })
    }

    /// Reduces this phase and all later ones by one thread, down to one. Returns whether that ended
    /// this phase, which then has no last thread.
    pub(super) fn drop_out(&self) -> bool {
        let mut ends = false;
        self.change(|counts| {
            let expected = (counts.expected - 1).max(1);
            ends = counts.arrived >= expected;
            Some(if ends {
                Counts { phase: counts.phase.wrapping_add(1), expected, arrived: 0 }
            } else {
                Counts { expected, ..counts }
            })
        });
        ends
    }

    /// Changes the counts, unless `to` returns `None`. Returns whether it did. Waits until a last
    /// thread that is about to end its phase has done so.
    fn change(&self, mut to: impl FnMut(Counts) -> Option<Counts>) -> bool {
        loop {
            let word = self.0.load(Acquire);
            let counts = Counts::of(word);
            if counts.arrived >= counts.expected {
                yield_now();
                continue;
            }
            let Some(counts) = to(counts) else { return false };
            if self.0.compare_exchange_weak(word, counts.word(), AcqRel, Relaxed).is_ok() {
                return true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use consort_fabric::splitmix64;
    use consort_sandbox::seeds::seeds;

    use super::{Arrival, Arrivals};

    /// Last threads end their phases late, and in any order.
    #[test]
    fn each_phase_takes_n_threads_and_has_one_last() {
        for seed in seeds(500, 10_000, &[]) {
            let mut state = seed;
            let mut below = |limit: usize| splitmix64(&mut state) as usize % limit;
            let threads = 1 + below(5);
            let arrivals = Arrivals::new(threads);
            let mut all: Vec<Arrival> = Vec::new();
            let mut ending: Vec<Arrival> = Vec::new();
            while all.len() < 40 * threads || !ending.is_empty() {
                if below(2) == 0 && all.len() < 40 * threads {
                    all.push(arrivals.arrive());
                    ending.extend(all.last().filter(|one| one.is_last));
                } else if !ending.is_empty() {
                    let one = below(ending.len());
                    arrivals.end_phase(ending.swap_remove(one));
                }
            }
            for (phase, group) in (0..).zip(all.chunks(threads)) {
                assert!(group.iter().all(|one| one.phase.0 == phase), "{seed}: {group:?}");
                let lasts: Vec<bool> = group.iter().map(|one| one.is_last).collect();
                assert_eq!(lasts.iter().filter(|last| **last).count(), 1, "{seed}: {group:?}");
            }
        }
    }

    #[test]
    fn thread_withdraws_only_from_an_open_phase() {
        let arrivals = Arrivals::new(2);
        let first = arrivals.arrive();
        assert!(arrivals.withdraw(first.phase));
        let (second, third) = (arrivals.arrive(), arrivals.arrive());
        assert!(!second.is_last && third.is_last);
        arrivals.end_phase(third);
        assert!(!arrivals.withdraw(second.phase) && third.phase.is_over(1));
        assert!(!arrivals.arrive().phase.is_over(1));
    }

    #[test]
    fn last_missing_thread_ends_the_phase_by_dropping_out() {
        let arrivals = Arrivals::new(3);
        assert!(!arrivals.arrive().is_last && !arrivals.drop_out());
        let last = arrivals.arrive();
        assert!(last.is_last, "of two");
        arrivals.end_phase(last);
        let next = arrivals.arrive();
        assert!(arrivals.drop_out() && next.phase.is_over(2));
        assert!(!arrivals.drop_out() && arrivals.arrive().is_last, "one stays");
    }

    #[test]
    fn the_number_of_a_phase_wraps_around() {
        let arrivals = Arrivals::new(1);
        arrivals.0.fetch_add(u64::from(u32::MAX) << 32, super::Relaxed);
        let last = arrivals.arrive();
        assert!(!last.phase.is_over(u64::from(u32::MAX)) && last.phase.is_over(1 << 32));
        arrivals.end_phase(last);
        assert_eq!(arrivals.arrive().phase.0, 0);
    }
}
