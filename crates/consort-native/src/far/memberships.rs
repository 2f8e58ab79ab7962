//! Which groups PEs of this process are in, and whether what arrives for another one is early or
//! late.
//!
//! What arrives for a group that all PEs of this process have left is dropped, and what arrives
//! before one has joined is kept. The process of PE 0 numbers the groups, and says with each number
//! below which one all members of all groups have got theirs. A PE here that asks for a number gets
//! none below that. So groups below the bounds of all that ask are left for good, if no PE here is
//! in them, and only younger ones are listed.

use std::collections::{BTreeMap, HashMap};

use consort_fabric::Rank;

/// The last call of each PE of a process in a group: its word, or 0.
pub(super) type LastCalls = Vec<(Rank, u64)>;

/// The groups of the PEs of a process.
pub(super) struct Memberships {
    /// By group, how many PEs of this process have joined it and not left it.
    joined: HashMap<u64, u32>,
    /// The groups that all PEs of this process have left, but for old ones, and their last calls.
    left: BTreeMap<u64, LastCalls>,
    /// Below this number all members of groups have got the group's number.
    numbered: u64,
    /// What that was when those PEs of this process asked that join a group now.
    joining: Vec<u64>,
}

impl Memberships {
    /// Those of a process with so many PEs, which are in the world's group.
    pub(super) fn new(pes: u32) -> Self {
        let joined = HashMap::from([(0, pes)]);
        Self { joined, left: BTreeMap::new(), numbered: 0, joining: Vec::new() }
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
    /// the last calls in groups that they have left, but for old ones.
    pub(super) fn left(&self) -> (u64, Vec<(u64, LastCalls)>) {
        let left = self.left.iter().map(|(&group, calls)| (group, calls.clone()));
        (self.oldest(), left.collect())
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
        self.left = self.left.split_off(&self.oldest());
    }

    /// Notes that a PE of this process has left a group. Returns whether none is left in it.
    pub(super) fn leave(&mut self, group: u64, last_calls: LastCalls) -> bool {
        let Some(joined) = self.joined.get_mut(&group) else { return false };
        *joined -= 1;
        let is_last = *joined == 0;
        if is_last {
            self.joined.remove(&group);
            self.left.insert(group, last_calls);
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
        assert!(groups.leave(2, Vec::new()) && groups.is_late(2));
        assert!(!groups.is_late(1), "a PE joins it");
        groups.end_joining(slow, Some(1));
        assert!(groups.is_in(1) && groups.leave(1, Vec::new()));
        assert!([1, 2].into_iter().all(|group| groups.is_late(group)) && !groups.is_late(3));
        let next = groups.begin_joining();
        groups.note_numbered(4);
        groups.end_joining(next, None);
        assert_eq!(groups.listed(), 0);
        assert!([1, 2, 3].into_iter().all(|group| groups.is_late(group)) && !groups.is_late(4));
    }
}
