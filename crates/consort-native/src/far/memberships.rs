//! Which groups PEs of this process are in, and whether what arrives for another one is early or
//! late.
//!
//! What arrives for a group that all PEs of this process have left is dropped, and what arrives
//! before one has joined is kept. The process of PE 0 numbers the groups, and says with each number
//! below which one all members of all groups have got theirs. A PE here that asks for a number gets
//! none below that. So groups below the bounds of all that ask are left for good, if no PE here is
//! in them.
//!
//! Other processes may still have PEs in a group that is left, and these may wait in vain. To find
//! that, what is known of younger groups is kept, and of old ones that were among the last
//! [`MOST_OLD`] to be left.

use std::collections::{BTreeMap, HashMap};

use consort_fabric::Rank;

use crate::progress::deadlock::snapshot::Pulse;

/// Old groups are kept until this many others have been left after them.
const MOST_OLD: u64 = 256;

/// The last call of each PE of a process in a group: its word, or 0.
pub(super) type LastCalls = Vec<(Rank, u64)>;

/// A group that all PEs of a process have left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Left {
    pub(super) last_calls: LastCalls,
    /// The moves and packets of this process in the group. Packets that arrive after it has left
    /// count too.
    pub(super) pulse: Pulse,
}

/// The groups of the PEs of a process.
pub(super) struct Memberships {
    /// By group, how many PEs of this process have joined it and not left it.
    joined: HashMap<u64, u32>,
    /// The groups that all PEs of this process have left, but for old ones, each with how many were
    /// left before it.
    left: BTreeMap<u64, (u64, Left)>,
    /// How many groups were left, and the moves in all of them.
    leaves: u64,
    left_moves: u64,
    /// Below this number all members of groups have got the group's number.
    numbered: u64,
    /// What that was when those PEs of this process asked that join a group now.
    joining: Vec<u64>,
}

impl Memberships {
    /// Those of a process with so many PEs, which are in the world's group.
    pub(super) fn new(pes: u32) -> Self {
        let joined = HashMap::from([(0, pes)]);
        Self {
            joined,
            left: BTreeMap::new(),
            leaves: 0,
            left_moves: 0,
            numbered: 0,
            joining: Vec::new(),
        }
    }

    /// Whether a PE of this process is in a group.
    pub(super) fn is_in(&self, group: u64) -> bool {
        self.joined.contains_key(&group)
    }

    /// The groups that PEs of this process are in.
    pub(super) fn groups(&self) -> Vec<u64> {
        self.joined.keys().copied().collect()
    }

    /// A number below which PEs of this process have left all groups that they are not in, and
    /// what is known of groups that they have left.
    pub(super) fn left(&self) -> (u64, Vec<(u64, Left)>) {
        let left = self.left.iter().map(|(&group, (_, left))| (group, left.clone()));
        (self.oldest(), left.collect())
    }

    /// The moves of PEs of this process in groups that all of them have left.
    pub(super) fn left_moves(&self) -> u64 {
        self.left_moves
    }

    /// Counts a packet of a group that has arrived; returns whether it is late.
    pub(super) fn count_late(&mut self, group: u64) -> bool {
        if self.is_in(group) {
            return false;
        }
        if let Some((_, left)) = self.left.get_mut(&group) {
            left.pulse.received += 1;
        }
        self.is_late(group)
    }

    /// Whether all PEs of this process that are ever in a group have left it, if none is in it.
    pub(super) fn is_late(&self, group: u64) -> bool {
        group < self.oldest() || self.left.contains_key(&group)
    }

    /// The groups that PEs of this process still join are not below this number.
    fn oldest(&self) -> u64 {
        self.joining.iter().copied().fold(self.numbered, u64::min)
    }

    /// Notes that a PE of this process is going to ask for the number of a group that it joins.
    /// Returns what [`Self::end_joining`] takes.
    pub(super) fn begin_joining(&mut self) -> u64 {
        self.joining.push(self.numbered);
        self.numbered
    }

    /// Notes below which number all members of groups have got the group's number.
    pub(super) fn note_numbered(&mut self, numbered: u64) {
        self.numbered = self.numbered.max(numbered);
    }

    /// Notes that a PE of this process has joined a group, or none.
    pub(super) fn end_joining(&mut self, begun: u64, group: Option<u64>) {
        if let Some(group) = group {
            *self.joined.entry(group).or_default() += 1;
        }
        if let Some(at) = self.joining.iter().position(|&one| one == begun) {
            self.joining.swap_remove(at);
        }
        let (oldest, leaves) = (self.oldest(), self.leaves);
        self.left.retain(|&group, (before, _)| group >= oldest || leaves - *before <= MOST_OLD);
    }

    /// Notes that a PE of this process has left a group. Returns whether none is left in it.
    pub(super) fn leave(&mut self, group: u64, left: impl FnOnce() -> Left) -> bool {
        let Some(joined) = self.joined.get_mut(&group) else { return false };
        *joined -= 1;
        let is_last = *joined == 0;
        if is_last {
            self.joined.remove(&group);
            let left = left();
            self.left_moves = self.left_moves.wrapping_add(left.pulse.moves);
            self.left.insert(group, (self.leaves, left));
            self.leaves += 1;
        }
        is_last
    }

    /// How many groups are listed that are left.
    #[cfg(test)]
    pub(super) fn listed(&self) -> usize {
        self.left.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_early_is_not_late() {
        let mut groups = Memberships::new(1);
        let [slow, quick] = [(); 2].map(|()| groups.begin_joining());
        groups.note_numbered(3); // the answer for group 1 has come, too
        groups.end_joining(quick, Some(2));
        assert!(groups.leave(2, Left::default) && groups.is_late(2));
        assert!(!groups.is_late(1), "a PE joins it");
        groups.end_joining(slow, Some(1));
        assert!(groups.is_in(1) && groups.leave(1, Left::default));
        assert!([1, 2].into_iter().all(|group| groups.is_late(group)) && !groups.is_late(3));
        let next = groups.begin_joining();
        groups.note_numbered(4);
        groups.end_joining(next, None);
        assert!([1, 2, 3].into_iter().all(|group| groups.is_late(group)) && !groups.is_late(4));
    }

    /// What arrives late, too: other processes count what they have sent.
    #[test]
    fn groups_that_were_left_are_known_for_a_while() {
        let mut groups = Memberships::new(1);
        let pulse = Pulse { moves: 3, sent: 2, received: 1 };
        let left = || Left { last_calls: vec![(Rank(0), 5)], pulse };
        let visit = |groups: &mut Memberships, group: u64| {
            let begun = groups.begin_joining();
            groups.note_numbered(group + 1);
            groups.end_joining(begun, Some(group));
            assert!(!groups.count_late(group) && groups.leave(group, left));
        };
        visit(&mut groups, 1);
        assert!(groups.count_late(1));
        for group in 2..=MOST_OLD {
            visit(&mut groups, group);
        }
        let known = |groups: &Memberships| groups.left().1.into_iter().find(|(of, _)| *of == 1);
        let late = Left { pulse: Pulse { received: 2, ..pulse }, ..left() };
        assert_eq!(known(&groups), Some((1, late)));
        visit(&mut groups, MOST_OLD + 1);
        visit(&mut groups, MOST_OLD + 2);
        assert_eq!(known(&groups), None);
        assert!(groups.count_late(1));
        assert_eq!(groups.left_moves(), 3 * (MOST_OLD + 2));
    }
}
