//! The groups that PEs of this process are in, and whether a packet for another group is early or
//! late.
//!
//! Packets for a group that all PEs of this process have left are dropped. Packets that arrive
//! before a PE of this process has joined their group are kept. The process of PE 0 numbers the
//! groups. With each number it sends a bound: all members of all groups below the bound have their
//! numbers. From then on, a PE of this process that asks for a number gets none below the bound. So
//! if no PE of this process is in a group, and its number is below the bounds of all PEs that are
//! asking, no PE of this process will join it again.
//!
//! Other processes may still have PEs in a group that this process has left, and these may wait
//! forever. To detect that, this process keeps records of newer groups, and of the last
//! [`MOST_OLD`] old groups that it has left.

use std::collections::HashMap;

use consort_fabric::Rank;

use crate::progress::deadlock::snapshot::Activity;

/// An old group's record is kept until this many other groups have been left after it.
const MOST_OLD: u64 = 256;

/// The last call of each PE of a process in a group: its word, or 0 if there is none.
pub(super) type LastCalls = Vec<(Rank, u64)>;

/// A group that all PEs of a process have left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LeftGroup {
    pub(super) last_calls: LastCalls,
    /// The moves and packets of this process in the group. Packets that arrive after the process
    /// has left count too.
    pub(super) activity: Activity,
}

/// The record of a left group.
struct LeftRecord {
    group: u64,
    /// The number of groups that were left before it.
    before: u64,
    left: LeftGroup,
}

pub(super) struct Memberships {
    /// The number of PEs of this process that have joined a group and not left it, by group.
    joined: HashMap<u64, u32>,
    /// The groups that all PEs of this process have left, except old ones.
    left: Vec<LeftRecord>,
    /// The number of groups that have been left, and of the moves in them.
    leaves: u64,
    left_moves: u64,
    /// All members of groups below this number have got the group's number.
    numbered: u64,
    /// The value of `numbered` when each PE of this process that is joining a group asked for its
    /// number.
    joining: Vec<u64>,
}

impl Memberships {
    /// Returns the memberships of a process with `pes` PEs, which are in the world's group.
    pub(super) fn new(pes: u32) -> Self {
        let joined = HashMap::from([(0, pes)]);
        Self {
            joined,
            left: Vec::new(),
            leaves: 0,
            left_moves: 0,
            numbered: 0,
            joining: Vec::new(),
        }
    }

    /// Returns whether a PE of this process is in a group.
    pub(super) fn is_in(&self, group: u64) -> bool {
        self.joined.contains_key(&group)
    }

    /// Returns the groups that PEs of this process are in.
    pub(super) fn groups(&self) -> Vec<u64> {
        self.joined.keys().copied().collect()
    }

    /// Returns a number below which PEs of this process have left all groups that they are not in,
    /// and the records of groups that they have left.
    pub(super) fn left(&self) -> (u64, Vec<(u64, LeftGroup)>) {
        let left = self.left.iter().map(|one| (one.group, one.left.clone()));
        (self.oldest(), left.collect())
    }

    /// Returns the number of moves of PEs of this process in groups that all of them have left.
    pub(super) fn left_moves(&self) -> u64 {
        self.left_moves
    }

    /// Counts a packet of a group that has arrived. Returns whether it is late.
    pub(super) fn count_late(&mut self, group: u64) -> bool {
        if self.is_in(group) {
            return false;
        }
        if let Some(known) = self.left.iter_mut().find(|one| one.group == group) {
            known.left.activity.received += 1;
        }
        self.is_late(group)
    }

    /// Returns whether no PE of this process will join a group again. Called only if none is in it.
    pub(super) fn is_late(&self, group: u64) -> bool {
        group < self.oldest() || self.left.iter().any(|one| one.group == group)
    }

    /// Returns a number such that no PE of this process is joining a group below it.
    fn oldest(&self) -> u64 {
        self.joining.iter().copied().fold(self.numbered, u64::min)
    }

    /// Records that a PE of this process is about to ask for the number of a group that it joins.
    /// Returns the argument of [`Self::end_joining`].
    pub(super) fn begin_joining(&mut self) -> u64 {
        self.joining.push(self.numbered);
        self.numbered
    }

    /// Records a number below which all members of groups have got the group's number.
    pub(super) fn note_numbered(&mut self, numbered: u64) {
        self.numbered = self.numbered.max(numbered);
    }

    /// Records that a PE of this process has joined a group, or has failed to join one.
    pub(super) fn end_joining(&mut self, begun: u64, group: Option<u64>) {
        if let Some(group) = group {
            *self.joined.entry(group).or_default() += 1;
        }
        if let Some(at) = self.joining.iter().position(|&one| one == begun) {
            self.joining.swap_remove(at);
        }
        let (oldest, leaves) = (self.oldest(), self.leaves);
        self.left.retain(|one| one.group >= oldest || leaves - one.before <= MOST_OLD);
    }

    /// Records that a PE of this process has left a group. Returns whether it was the last one.
    pub(super) fn leave(&mut self, group: u64, left: impl FnOnce() -> LeftGroup) -> bool {
        let Some(joined) = self.joined.get_mut(&group) else { return false };
        *joined -= 1;
        let is_last = *joined == 0;
        if is_last {
            self.joined.remove(&group);
            let left = left();
            self.left_moves = self.left_moves.wrapping_add(left.activity.moves);
            self.left.retain(|one| one.group != group); // its last PE left it more than once
            self.left.push(LeftRecord { group, before: self.leaves, left });
            self.leaves += 1;
        }
        is_last
    }

    /// Returns the number of groups that have been left and are still recorded.
    #[cfg(test)]
    pub(super) fn listed(&self) -> usize {
        self.left.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_being_joined_is_not_late() {
        let mut groups = Memberships::new(1);
        let [slow, quick] = [(); 2].map(|()| groups.begin_joining());
        groups.note_numbered(3); // the reply for group 1 has arrived too
        groups.end_joining(quick, Some(2));
        assert!(groups.leave(2, LeftGroup::default) && groups.is_late(2));
        assert!(!groups.is_late(1), "a PE joins it");
        groups.end_joining(slow, Some(1));
        assert!(groups.is_in(1) && groups.leave(1, LeftGroup::default));
        assert!([1, 2].into_iter().all(|group| groups.is_late(group)) && !groups.is_late(3));
        let next = groups.begin_joining();
        groups.note_numbered(4);
        groups.end_joining(next, None);
        assert!([1, 2, 3].into_iter().all(|group| groups.is_late(group)) && !groups.is_late(4));
    }

    /// Late packets are counted too, because other processes count what they have sent.
    #[test]
    fn left_groups_are_remembered_for_a_while() {
        let mut groups = Memberships::new(1);
        let activity = Activity { moves: 3, sent: 2, received: 1 };
        let left = || LeftGroup { last_calls: vec![(Rank(0), 5)], activity };
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
        let late = LeftGroup { activity: Activity { received: 2, ..activity }, ..left() };
        assert_eq!(known(&groups), Some((1, late)));
        visit(&mut groups, MOST_OLD + 1);
        visit(&mut groups, MOST_OLD + 2);
        assert_eq!(known(&groups), None);
        assert_eq!(groups.listed() as u64, MOST_OLD + 1);
        assert!(groups.count_late(1));
        assert_eq!(groups.left_moves(), 3 * (MOST_OLD + 2));
    }
}
