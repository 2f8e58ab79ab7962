//! Decides from three snapshots whether PEs wait forever.
//!
//! The parts of a snapshot may be from different times, but all parts of the next snapshot are
//! later. So if two successive snapshots agree on a fact, it was true at one moment in between.
//! Before that moment, a PE may have stored a message for a near PE; no packet count shows this.
//! The third snapshot shows whether the other PE has polled several times since the second, and
//! therefore has seen the message.

use consort_fabric::Rank;

use super::snapshot::{Activity, PeStatus, Snapshot};

/// How often each PE must have polled since the second snapshot that has the same stuck PEs.
const BEATS: u64 = 4;

/// The reason why PEs wait forever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// A PE waits for a word that no PE is left to change. `other` is another waiting PE, if there
    /// is one.
    NobodyLeft { waiting: Rank, other: Option<Rank> },
    /// A PE waits in a call that another PE has not begun. The other PE waits too.
    Deadlock { one: Rank, other: Rank },
    /// A PE waits in a call that all its members have begun, for something that none of them sends.
    Starved { waiting: Rank },
}

/// The stuck PEs of an earlier snapshot, each with the number of its wait; the activity at that
/// time; and the beats of all PEs in the next snapshot, if that was the same.
#[derive(Debug, Default)]
pub(crate) struct Suspects {
    stuck: Vec<(Rank, u64)>,
    activity: Activity,
    beats: Option<Vec<u64>>,
}

impl Suspects {
    /// Compares a snapshot with the earlier ones, and replaces them if something has happened in
    /// between. Decides if nothing has happened, no packet is in flight, and all PEs have polled in
    /// vain.
    pub(crate) fn judge(&mut self, now: &Snapshot) -> Option<Verdict> {
        let stuck = now.stuck();
        let number = |pe: &Rank| Some((*pe, now.waiting(*pe)?.number));
        let numbered: Vec<_> = stuck.iter().filter_map(number).collect();
        let activity = now.activity(&stuck);
        if (&self.stuck, self.activity) != (&numbered, activity) {
            *self = Self { stuck: numbered, activity, beats: None };
            return None;
        }
        let Some(beats) = &self.beats else {
            let beats = |status: &PeStatus| match status {
                PeStatus::Waits(waiting) => waiting.beats,
                PeStatus::Active | PeStatus::Finished => u64::MAX,
            };
            self.beats = Some(now.statuses.iter().map(beats).collect());
            return None;
        };
        let nothing_is_on_its_way = activity.sent == activity.received;
        (nothing_is_on_its_way && have_polled(now, &stuck, beats)).then(|| verdict(now, &stuck))?
    }
}

/// Returns whether all PEs on which the stuck PEs depend have polled for their messages several
/// times since they had these `beats`, or have finished. Members that have not begun their calls
/// are stuck; members that have begun them wait or have finished.
fn have_polled(now: &Snapshot, stuck: &[Rank], beats: &[u64]) -> bool {
    let has_polled = |pe: Rank| match now.statuses[pe.index()] {
        PeStatus::Finished => true,
        PeStatus::Waits(waiting) => {
            let since = waiting.beats.checked_sub(beats[pe.index()]);
            since.is_some_and(|beats| beats >= BEATS)
        }
        PeStatus::Active => false,
    };
    now.depends_on(stuck).into_iter().all(|pe| pe.is_some_and(has_polled))
}

/// Returns why these stuck PEs wait forever.
fn verdict(now: &Snapshot, stuck: &[Rank]) -> Option<Verdict> {
    if let Some(&waiting) = stuck.iter().find(|pe| now.is_for_word(**pe)) {
        let other = stuck.iter().copied().find(|pe| *pe != waiting);
        return Some(Verdict::NobodyLeft { waiting, other });
    }
    // A stuck PE waits for another stuck PE, unless all members have begun its call. After as many
    // steps as there are PEs, the path is in a cycle.
    let mut waiting = *stuck.first()?;
    for _ in stuck {
        match now.missing(waiting) {
            Some(missing) => waiting = missing,
            None => return Some(Verdict::Starved { waiting }),
        }
    }
    Some(Verdict::Deadlock { one: waiting, other: now.missing(waiting)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        progress::deadlock::snapshot::CallMember,
        state::heartbeat::{Awaited, CallWait, WaitReason},
    };

    /// The activity of a PE in a test.
    #[derive(Clone, Copy)]
    enum Does {
        Computes,
        Ends,
        AwaitsWord,
        /// Waits in call 0 of a group. Each member is given with whether it has begun the call.
        Waits(u64, Awaited, &'static [(u32, bool)]),
    }

    use Does::{AwaitsWord, Computes, Ends, Waits as In};

    const SOME: Awaited = Awaited::Word(9);
    const BOTH: &[(u32, bool)] = &[(0, true), (1, true)];
    const FIRST: &[(u32, bool)] = &[(0, true), (1, false)];
    const SECOND: &[(u32, bool)] = &[(0, false), (1, true)];

    fn snapshot(all: &[Does], beats: u64, activity: Activity) -> Snapshot {
        let mut snapshot = Snapshot::new(all.len());
        for (pe, does) in (0..).map(Rank).zip(all) {
            let member = |&(pe, has_begun)| CallMember { pe: Some(Rank(pe)), has_begun };
            let (wait, members) = match *does {
                Computes => continue,
                Ends => {
                    snapshot.statuses[pe.index()] = PeStatus::Finished;
                    continue;
                }
                AwaitsWord => (WaitReason::ForWord, &[][..]),
                In(group, awaited, members) => {
                    (WaitReason::In(CallWait { group, call: 0, word: 1, awaited }), members)
                }
            };
            let members = members.iter().map(member).collect();
            snapshot.note_wait(pe, wait, (1, beats), |_| Some(members));
        }
        snapshot.groups.insert(1, activity);
        snapshot.all = activity;
        snapshot
    }

    /// Returns the decision about PEs that do the same in three snapshots. They poll often between
    /// the first two, and `beats` times between the last two.
    fn judged(all: &[Does], beats: u64, activity: Activity) -> Option<Verdict> {
        let mut suspects = Suspects::default();
        let mut judge = |beats| suspects.judge(&snapshot(all, beats, activity));
        assert_eq!([judge(7), judge(70)], [None; 2], "two snapshots decide nothing");
        judge(70 + beats)
    }

    fn quiet(all: &[Does]) -> Option<Verdict> {
        judged(all, BEATS, Activity { moves: 3, sent: 5, received: 5 })
    }

    #[test]
    fn cycle_between_groups_is_a_deadlock() {
        let cycle = [In(1, SOME, FIRST), In(2, SOME, SECOND), Ends];
        let verdict = Some(Verdict::Deadlock { one: Rank(1), other: Rank(0) });
        assert!(
            [verdict, Some(Verdict::Deadlock { one: Rank(0), other: Rank(1) })]
                .contains(&quiet(&cycle))
        );
        let late = Activity { moves: 3, sent: 6, received: 5 };
        assert_eq!(judged(&cycle, BEATS, late), None, "a packet is on its way");
        assert_eq!(judged(&cycle, BEATS - 1, Activity::default()), None, "a PE may compute");
    }

    #[test]
    fn move_between_snapshots_restarts_the_search() {
        let cycle = [In(1, SOME, FIRST), In(2, SOME, SECOND)];
        let mut suspects = Suspects::default();
        let mut judge = |beats, moves| {
            suspects
                .judge(&snapshot(&cycle, beats, Activity { moves, ..Activity::default() }))
                .is_some()
        };
        let judged = [(10, 1), (20, 1), (30, 2), (40, 2), (50, 2), (60, 2)];
        let judged = judged.map(|(beats, moves)| judge(beats, moves));
        assert_eq!(judged, [false, false, false, false, true, true]);
    }

    #[test]
    fn call_begun_by_all_is_starved() {
        let starved = Some(Verdict::Starved { waiting: Rank(0) });
        let one = In(1, SOME, BOTH);
        assert_eq!(quiet(&[one, In(1, Awaited::Completion, BOTH)]), starved);
        assert_eq!(quiet(&[one, Ends]), starved);
        // PE 1 is already in another call, which PE 0 has not begun.
        assert_eq!(quiet(&[one, In(2, SOME, SECOND)]), starved);
    }

    #[test]
    fn call_whose_member_computes_does_not_starve() {
        assert_eq!(quiet(&[In(1, SOME, BOTH), Computes]), None);
        assert_eq!(quiet(&[In(1, SOME, FIRST), Computes]), None);
        // In the call, PE 1 waits for something that may come without a message.
        assert_eq!(quiet(&[In(1, SOME, BOTH), In(1, Awaited::Unknown, BOTH)]), None);
    }

    #[test]
    fn word_that_no_pe_can_change_is_found() {
        let expected = Verdict::NobodyLeft { waiting: Rank(0), other: Some(Rank(1)) };
        assert_eq!(quiet(&[AwaitsWord, In(1, SOME, SECOND)]), Some(expected));
        assert_eq!(quiet(&[AwaitsWord, Computes]), None);
    }

    #[test]
    fn finished_pe_that_never_begins_a_call_is_found() {
        let abandoned =
            |other| snapshot(&[In(1, SOME, FIRST), other], 0, Activity::default()).abandoned();
        assert_eq!(abandoned(Ends), Some((Rank(0), Rank(1))));
        assert_eq!(abandoned(Computes), None);
    }
}
