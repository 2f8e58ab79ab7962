//! Decides by two snapshots whether PEs wait in vain.

use std::collections::BTreeSet;

use consort_fabric::Rank;

use super::snapshot::{Member, Pulse, Snapshot, Standing};
use crate::state::beat::Waits;

/// How often each PE must have polled since the stuck PEs were found.
const BEATS: u64 = 4;

/// Why PEs wait in vain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// A PE waits for a word that no PE is left to change. Another one waits, too, if any does.
    NobodyLeft { waiting: Rank, other: Option<Rank> },
    /// A PE waits in a call that another one has not begun, which waits itself.
    Deadlock { one: Rank, other: Rank },
    /// A PE waits in a call that all its members have begun, for what none of them sends.
    Starved { waiting: Rank },
}

/// The stuck PEs of an earlier snapshot, each with the number of its wait; what had happened by
/// then; and the beats of all PEs at that time.
#[derive(Debug, Default)]
pub(crate) struct Suspects {
    stuck: Vec<(Rank, u64)>,
    pulse: Pulse,
    beats: Vec<u64>,
}

impl Suspects {
    /// Compares a snapshot with the earlier one, which it replaces if something has happened in
    /// between. Decides if nothing has, nothing is on its way, and all have polled in vain.
    pub(crate) fn judge(&mut self, now: &Snapshot) -> Option<Verdict> {
        let stuck = now.stuck();
        let number = |pe: &Rank| Some((*pe, now.waiting(*pe)?.number));
        let numbered: Vec<_> = stuck.iter().filter_map(number).collect();
        let pulse = now.pulse(&stuck);
        if (&self.stuck, self.pulse) != (&numbered, pulse) {
            let beats = |standing: &Standing| match standing {
                Standing::Waits(waiting) => waiting.beats,
                Standing::Active | Standing::Finished => u64::MAX,
            };
            let beats = now.standings.iter().map(beats).collect();
            *self = Self { stuck: numbered, pulse, beats };
            return None;
        }
        let nothing_is_on_its_way = pulse.sent == pulse.received;
        let all_have_polled = stuck.iter().all(|pe| self.have_polled(now, *pe));
        (nothing_is_on_its_way && all_have_polled).then(|| verdict(now, &stuck))?
    }

    /// Whether all on whom a stuck PE depends have polled for their messages several times since,
    /// or have finished. Members that have not begun its call are stuck; those that have begun it
    /// wait or have finished.
    fn have_polled(&self, now: &Snapshot, pe: Rank) -> bool {
        let has_polled = |pe: Rank| match &now.standings[pe.index()] {
            Standing::Finished => true,
            Standing::Waits(waiting) => {
                let before = self.beats[pe.index()];
                waiting.beats.checked_sub(before).is_some_and(|beats| beats >= BEATS)
            }
            Standing::Active => false,
        };
        let Some(waiting) = now.waiting(pe) else { return false };
        if waiting.wait == Waits::ForWord {
            return (0..).map(Rank).take(now.standings.len()).all(has_polled);
        }
        let has_polled = |member: &Member| member.pe.is_some_and(has_polled);
        waiting.members.iter().all(has_polled)
    }
}

/// Why these PEs, which are stuck, wait in vain.
fn verdict(now: &Snapshot, stuck: &BTreeSet<Rank>) -> Option<Verdict> {
    let waits = |pe: &Rank| now.waiting(*pe).map(|waiting| waiting.wait);
    if let Some(&waiting) = stuck.iter().find(|pe| waits(pe) == Some(Waits::ForWord)) {
        let other = stuck.iter().copied().find(|pe| *pe != waiting);
        return Some(Verdict::NobodyLeft { waiting, other });
    }
    // A stuck PE waits for another stuck one, or all have begun its call. After as many steps as
    // there are PEs, the path is in a cycle.
    let mut waiting = *stuck.first()?;
    for _ in stuck {
        match now.waiting(waiting)?.missing() {
            Some(missing) => waiting = missing,
            None => return Some(Verdict::Starved { waiting }),
        }
    }
    let other = now.waiting(waiting)?.missing()?;
    Some(Verdict::Deadlock { one: waiting, other })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        progress::deadlock::snapshot::Waiting,
        state::beat::{Awaited, Wait},
    };

    /// A wait in call 0 of a group, whose members are given with whether they have begun it.
    fn waits(group: u64, awaited: Awaited, members: &[(u32, bool)]) -> Standing {
        let member = |&(pe, has_begun)| Member { pe: Some(Rank(pe)), has_begun };
        Standing::Waits(Waiting {
            wait: Waits::In(Wait { group, call: 0, word: 1, awaited }),
            number: 1,
            beats: 0,
            members: members.iter().map(member).collect(),
        })
    }

    /// What is decided of PEs that do the same in two snapshots, in which they have polled so
    /// often, while packets of group 1 are on their way or not.
    fn judged(standings: &[Standing], beats: u64, pulse: Pulse) -> Option<Verdict> {
        let mut suspects = Suspects::default();
        let snapshot = |beats| {
            let mut snapshot = Snapshot { standings: standings.to_vec(), ..Snapshot::default() };
            for standing in &mut snapshot.standings {
                if let Standing::Waits(waiting) = standing {
                    waiting.beats = beats;
                }
            }
            snapshot.groups.insert(1, pulse);
            snapshot.all = pulse;
            snapshot
        };
        assert_eq!(suspects.judge(&snapshot(7)), None, "one snapshot decides nothing");
        suspects.judge(&snapshot(7 + beats))
    }

    fn quiet(standings: &[Standing]) -> Option<Verdict> {
        judged(standings, BEATS, Pulse { moves: 3, sent: 5, received: 5 })
    }

    #[test]
    fn cycle_between_groups_is_a_deadlock() {
        let standings = [
            waits(1, Awaited::Word(0), &[(0, true), (1, false)]),
            waits(2, Awaited::Word(0), &[(0, false), (1, true), (2, true)]),
            Standing::Finished,
        ];
        assert_eq!(quiet(&standings), Some(Verdict::Deadlock { one: Rank(0), other: Rank(1) }));
        let late = Pulse { moves: 3, sent: 6, received: 5 };
        assert_eq!(judged(&standings, BEATS, late), None, "a packet is on its way");
        let same = Pulse::default();
        assert_eq!(judged(&standings, BEATS - 1, same), None, "a PE may compute");
    }

    #[test]
    fn call_that_all_have_begun_starves() {
        let both = [(0, true), (1, true)];
        let all = [waits(1, Awaited::Word(9), &both), waits(1, Awaited::Completion, &both)];
        assert_eq!(quiet(&all), Some(Verdict::Starved { waiting: Rank(0) }));
        let left = [waits(1, Awaited::Word(9), &both), Standing::Finished];
        assert_eq!(quiet(&left), Some(Verdict::Starved { waiting: Rank(0) }));
        // PE 1 is in another call already, which PE 0 has not begun.
        let next = waits(2, Awaited::Word(9), &[(0, false), (1, true)]);
        let ahead = [waits(1, Awaited::Word(9), &both), next];
        assert_eq!(quiet(&ahead), Some(Verdict::Starved { waiting: Rank(0) }));
    }

    #[test]
    fn call_whose_member_computes_does_not_starve() {
        let both = [(0, true), (1, true)];
        let one = waits(1, Awaited::Word(9), &both);
        assert_eq!(quiet(&[one.clone(), Standing::Active]), None);
        let late = waits(1, Awaited::Word(9), &[(0, true), (1, false)]);
        assert_eq!(quiet(&[late, Standing::Active]), None);
        // What PE 1 waits for in the call may come without a message.
        assert_eq!(quiet(&[one, waits(1, Awaited::Unknown, &both)]), None);
    }

    #[test]
    fn word_that_nobody_is_left_to_change_is_found() {
        let word = Standing::Waits(Waiting {
            wait: Waits::ForWord,
            number: 1,
            beats: 0,
            members: Vec::new(),
        });
        let late = waits(1, Awaited::Word(9), &[(0, false), (1, true)]);
        let expected = Verdict::NobodyLeft { waiting: Rank(0), other: Some(Rank(1)) };
        assert_eq!(quiet(&[word.clone(), late]), Some(expected));
        assert_eq!(quiet(&[word, Standing::Active]), None);
    }

    #[test]
    fn finished_pe_that_never_begins_a_call_is_found() {
        let late = waits(1, Awaited::Word(9), &[(0, true), (1, false)]);
        let snapshot = |standings| Snapshot { standings, ..Snapshot::default() };
        let left = snapshot(vec![late.clone(), Standing::Finished]);
        assert_eq!(left.abandoned(), Some((Rank(0), Rank(1))));
        assert_eq!(snapshot(vec![late, Standing::Active]).abandoned(), None);
    }
}
