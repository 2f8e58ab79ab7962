//! A snapshot of the states of all PEs of a job: which of them wait, and in which call or for which
//! word.

use std::collections::HashMap;

use consort_fabric::Rank;

use crate::state::heartbeat::{Awaited, CallWait, WaitReason};

/// How much has happened so far in the calls of a group. All these numbers only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Activity {
    /// The number of new waits, yields, and ends of nonblocking calls.
    pub(crate) moves: u64,
    /// The number of packets between processes that share no memory.
    pub(crate) sent: u64,
    pub(crate) received: u64,
}

impl Activity {
    pub(crate) const fn and(self, other: Self) -> Self {
        Self {
            moves: self.moves.wrapping_add(other.moves),
            sent: self.sent.wrapping_add(other.sent),
            received: self.received.wrapping_add(other.received),
        }
    }
}

/// A member of a call in which a PE waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallMember {
    /// The member's rank in the world, if it is known.
    pub(crate) pe: Option<Rank>,
    pub(crate) has_begun: bool,
}

/// A call in which PEs wait.
#[derive(Debug)]
struct PendingCall {
    wait: CallWait,
    members: Vec<CallMember>,
    /// Whether a PE waits in the call for something that may come without a message.
    is_open: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WaitingPe {
    /// The index of the call in which the PE waits; `None` if it waits for a word.
    call: Option<usize>,
    /// The number of this wait among the waits of the PE.
    pub(crate) number: u64,
    /// How often the PE has polled, in all its waits.
    pub(crate) beats: u64,
}

/// The state of a PE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PeStatus {
    /// The PE computes, as far as is known.
    #[default]
    Active,
    /// The PE makes no more calls.
    Finished,
    Waits(WaitingPe),
}

/// The states of all PEs.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    /// The state of each PE, by rank in the world.
    pub(crate) statuses: Vec<PeStatus>,
    calls: Vec<PendingCall>,
    /// The indices of the calls, by group, number and word.
    indices: HashMap<[u64; 3], usize>,
    /// The activity of each group in whose calls PEs wait.
    pub(crate) groups: HashMap<u64, Activity>,
    /// The activity of everything that may change a word.
    pub(crate) all: Activity,
    /// Whether threads that do not run a PE may change words.
    pub(crate) shares: bool,
}

impl Snapshot {
    /// Returns a snapshot in which all PEs compute.
    pub(crate) fn new(pes: usize) -> Self {
        Self { statuses: vec![PeStatus::Active; pes], ..Self::default() }
    }

    /// Records the wait of a PE. `members` returns the members of the call in which it waits, or
    /// `None` if the call's group has been freed: then the PE does not wait any more.
    pub(crate) fn note_wait(
        &mut self,
        pe: Rank,
        wait: WaitReason,
        (number, beats): (u64, u64),
        members: impl FnOnce(&CallWait) -> Option<Vec<CallMember>>,
    ) {
        let call = match wait {
            WaitReason::ForWord => None,
            WaitReason::In(wait) => match self.call_of(wait, members) {
                Some(call) => {
                    self.calls[call].is_open |= wait.awaited == Awaited::Unknown;
                    Some(call)
                }
                None => return,
            },
        };
        if let Some(status) = self.statuses.get_mut(pe.index()) {
            *status = PeStatus::Waits(WaitingPe { call, number, beats });
        }
    }

    /// Returns the index of a call, which is added if it is new.
    fn call_of(
        &mut self,
        wait: CallWait,
        members: impl FnOnce(&CallWait) -> Option<Vec<CallMember>>,
    ) -> Option<usize> {
        let key = [wait.group, wait.call, wait.word];
        if let Some(&index) = self.indices.get(&key) {
            return Some(index);
        }
        let members = members(&wait)?;
        self.indices.insert(key, self.calls.len());
        self.calls.push(PendingCall { wait, members, is_open: false });
        Some(self.calls.len() - 1)
    }

    pub(crate) fn pending_groups(&self) -> Vec<u64> {
        distinct(self.calls.iter().map(|call| call.wait.group).collect())
    }

    pub(crate) fn waiting(&self, pe: Rank) -> Option<&WaitingPe> {
        match self.statuses.get(pe.index())? {
            PeStatus::Waits(waiting) => Some(waiting),
            PeStatus::Active | PeStatus::Finished => None,
        }
    }

    /// Returns the call in which a PE waits, and its members. `None` if the PE waits for a word or
    /// does not wait.
    pub(crate) fn call(&self, pe: Rank) -> Option<(&CallWait, &[CallMember])> {
        let call = &self.calls[self.waiting(pe)?.call?];
        Some((&call.wait, &call.members))
    }

    pub(crate) fn is_for_word(&self, pe: Rank) -> bool {
        self.waiting(pe).is_some_and(|waiting| waiting.call.is_none())
    }

    /// Returns a PE that has not begun the call in which `pe` waits. Only such a PE can hold the
    /// call up.
    pub(crate) fn missing(&self, pe: Rank) -> Option<Rank> {
        self.call(pe)?.1.iter().find(|member| !member.has_begun)?.pe
    }

    fn has_finished(&self, pe: Rank) -> bool {
        self.statuses.get(pe.index()) == Some(&PeStatus::Finished)
    }

    pub(crate) fn pes(&self) -> impl Iterator<Item = Rank> + use<> {
        (0..u32::try_from(self.statuses.len()).unwrap_or(u32::MAX)).map(Rank)
    }

    /// Returns whether only the PEs in `stuck`, by rank, can end a wait in this call.
    fn is_stuck(&self, call: &PendingCall, stuck: &[bool]) -> bool {
        let all_have_begun = call.members.iter().all(|member| member.has_begun);
        let can_do_nothing = |member: &CallMember| match member.pe {
            Some(pe) if member.has_begun => self.waiting(pe).is_some() || self.has_finished(pe),
            Some(pe) => stuck.get(pe.index()) == Some(&true),
            None => false,
        };
        call.members.iter().all(can_do_nothing) && !(all_have_begun && call.is_open)
    }

    /// Returns the stuck PEs, by rank: all waiting PEs, except those whose waits a PE outside of
    /// the set may end.
    pub(crate) fn stuck(&self) -> Vec<Rank> {
        let mut stuck: Vec<bool> = self.pes().map(|pe| self.waiting(pe).is_some()).collect();
        loop {
            let calls: Vec<bool> =
                self.calls.iter().map(|call| self.is_stuck(call, &stuck)).collect();
            let is_over = |pe: Rank| stuck[pe.index()] || self.has_finished(pe);
            let words = !self.shares && self.pes().all(is_over);
            let is_still = |pe: Rank| {
                stuck[pe.index()]
                    && self.waiting(pe).is_some_and(|one| one.call.map_or(words, |at| calls[at]))
            };
            let still: Vec<bool> = self.pes().map(is_still).collect();
            if still == stuck {
                return self.pes().filter(|pe| stuck[pe.index()]).collect();
            }
            stuck = still;
        }
    }

    /// Returns how much has happened so far in everything that may end the waits of these PEs.
    pub(crate) fn activity(&self, stuck: &[Rank]) -> Activity {
        if stuck.iter().any(|pe| self.is_for_word(*pe)) {
            return self.all;
        }
        let groups = stuck.iter().filter_map(|pe| Some(self.call(*pe)?.0.group));
        let groups = distinct(groups.collect());
        let activities = groups.iter().filter_map(|group| self.groups.get(group));
        activities.fold(Activity::default(), |sum, activity| sum.and(*activity))
    }

    /// Returns the PEs that might end the waits of these PEs: the members of their calls, or all
    /// PEs if one waits for a word. `None` stands for an unknown PE.
    pub(crate) fn depends_on(&self, stuck: &[Rank]) -> Vec<Option<Rank>> {
        let mut is_stuck = vec![false; self.calls.len()];
        for call in stuck.iter().filter_map(|pe| self.waiting(*pe)?.call) {
            is_stuck[call] = true;
        }
        let calls = self.calls.iter().zip(is_stuck).filter(|(_, is_stuck)| *is_stuck);
        let members = calls.flat_map(|(call, _)| &call.members);
        let mut pes: Vec<Option<Rank>> = members.map(|member| member.pe).collect();
        if stuck.iter().any(|pe| self.is_for_word(*pe)) {
            pes.extend(self.pes().map(Some));
        }
        pes
    }

    /// Returns a PE that waits in a call, and a PE that has finished without making this call.
    pub(crate) fn abandoned(&self) -> Option<(Rank, Rank)> {
        let finished = |call: &PendingCall| {
            let missing = call.members.iter().filter(|member| !member.has_begun);
            missing.filter_map(|member| member.pe).find(|pe| self.has_finished(*pe))
        };
        let finished: Vec<Option<Rank>> = self.calls.iter().map(finished).collect();
        self.pes().find_map(|pe| Some((pe, finished[self.waiting(pe)?.call?]?)))
    }
}

/// Returns the numbers in ascending order, each once.
fn distinct(mut numbers: Vec<u64>) -> Vec<u64> {
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}
