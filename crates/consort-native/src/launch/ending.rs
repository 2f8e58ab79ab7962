//! Orderly shutdown of a job whose PEs are processes. A forked child of one of them is not part of
//! the job, and exits independently.

use std::sync::atomic::Ordering::Relaxed;

use consort_fabric::Rank;

use super::{job::Job, reason::ENDED};
use crate::processes::pe_process::JoinedLaunch;
use consort_machine::wait::spin_budget::SpinBudget;

/// A snapshot of the waits of all PEs of a job.
#[derive(Debug)]
pub struct WaitSnapshot {
    for_word: Option<Rank>,
    /// Changes when a wait begins or ends.
    waits: u64,
    /// For each PE, how often it has checked what it waits for.
    looks: Vec<u64>,
}

/// How often each PE must have checked in the same wait.
const LOOKS: u64 = 4;

impl WaitSnapshot {
    /// Returns the first PE that waits for a word, if all PEs are in the same waits as in `before`
    /// and have checked several times since.
    #[must_use]
    pub fn is_permanent(&self, before: &Self) -> Option<Rank> {
        let mut looks = self.looks.iter().zip(&before.looks);
        let have_looked = looks.all(|(now, before)| now.wrapping_sub(*before) >= LOOKS);
        self.for_word.filter(|_| self.has_same_waits_as(before) && have_looked)
    }

    /// Returns whether no wait has begun or ended since `before`.
    #[must_use]
    pub fn has_same_waits_as(&self, before: &Self) -> bool {
        self.waits == before.waits
    }
}

impl Job {
    /// Returns the launch that this process is in, if the PEs are processes.
    fn own_joined(&self) -> Option<&JoinedLaunch> {
        self.joined.as_ref().filter(|_| self.is_current())
    }

    /// Records that the programs of this process have ended, if the PEs are processes. They have
    /// ended successfully unless the job has failed.
    pub fn end(&self) {
        self.announce_end();
        if let Some(joined) = self.own_joined() {
            joined.end();
            if joined.have_all_ended() {
                self.wake_all();
            }
        }
    }

    /// Returns whether a PE has ended the job on purpose. A signal handler may call it.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.header.poison.kind() == Some(ENDED)
    }

    /// Returns the waits of all PEs, in calls or for words of heaps. `None` if some PE does not
    /// wait, or if no PE waits for a word.
    #[must_use]
    pub fn wait_snapshot(&self) -> Option<WaitSnapshot> {
        let mut all = WaitSnapshot { for_word: None, waits: 0, looks: Vec::new() };
        for (pe, state) in (0..).map(Rank).zip(self.states.iter()) {
            // Relaxed: the caller compares the numbers of several snapshots.
            let sleeps = state.word_sleeps.load(Relaxed);
            let beats = state.heartbeat.read()?;
            if sleeps.is_multiple_of(2) {
                beats.wait.as_ref()?;
                all.looks.push(beats.beats);
            } else {
                all.for_word = all.for_word.or(Some(pe));
                all.looks.push(state.word_looks.load(Relaxed));
            }
            all.waits = all.waits.wrapping_add(sleeps).wrapping_add(beats.waits);
        }
        all.for_word.is_some().then_some(all)
    }

    /// Undoes [`Job::end`]: this process's program continues, for example after a second
    /// initialization.
    pub fn resume(&self) {
        if let Some(joined) = self.own_joined() {
            joined.resume();
        }
    }

    /// Waits until the programs of all PEs have ended successfully, if the PEs are processes. Also
    /// returns if the job has failed.
    pub fn await_end(&self) {
        self.shut_down();
        if let Some(joined) = self.own_joined() {
            let test = || (joined.have_all_ended() || self.is_poisoned()).then_some(());
            let place = self.parking_slot(joined.member.rank());
            place.wait(SpinBudget::new(self.config().fits()), None, test);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unchanged_waits_are_endless_after_enough_looks() {
        let at = |waits, looks: [u64; 2]| WaitSnapshot {
            for_word: Some(Rank(1)),
            waits,
            looks: looks.to_vec(),
        };
        let before = at(7, [100, 5]);
        assert_eq!(at(7, [104, 8]).is_permanent(&before), None);
        assert_eq!(at(8, [900, 900]).is_permanent(&before), None);
        assert_eq!(at(7, [104, 9]).is_permanent(&before), Some(Rank(1)));
    }
}
