//! What all PEs of a job do at some time: which of them wait, and for what.

use std::collections::{BTreeMap, BTreeSet};

use consort_fabric::Rank;

use crate::state::beat::{Awaited, Waits};

/// How much has happened in the calls of a group so far. All of these only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pulse {
    /// New waits, yields, and ends of nonblocking calls.
    pub(crate) moves: u64,
    /// Packets between processes that share no memory.
    pub(crate) sent: u64,
    pub(crate) received: u64,
}

impl Pulse {
    /// The sums of two pulses.
    pub(crate) const fn and(self, other: Self) -> Self {
        Self {
            moves: self.moves.wrapping_add(other.moves),
            sent: self.sent.wrapping_add(other.sent),
            received: self.received.wrapping_add(other.received),
        }
    }
}

/// A member of a call for which a PE waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    /// Its rank in the world, if it is known.
    pub(crate) pe: Option<Rank>,
    pub(crate) has_begun: bool,
}

/// A wait of a PE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) wait: Waits,
    /// The number of the wait among those of the PE.
    pub(crate) number: u64,
    /// How often the PE has polled in all of its waits.
    pub(crate) beats: u64,
    /// The members of the call that it waits in.
    pub(crate) members: Vec<Member>,
}

impl Waiting {
    /// A PE that has not begun the call: only such a PE can hold it up.
    pub(crate) fn missing(&self) -> Option<Rank> {
        self.members.iter().find(|member| !member.has_begun)?.pe
    }

    fn group(&self) -> Option<u64> {
        match self.wait {
            Waits::In(wait) => Some(wait.group),
            Waits::ForWord => None,
        }
    }
}

/// What a PE does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It computes, as far as is known.
    #[default]
    Active,
    /// It makes no more calls.
    Finished,
    Waits(Waiting),
}

/// What all PEs do.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    /// By rank in the world.
    pub(crate) standings: Vec<Standing>,
    /// Of each group in whose calls PEs wait.
    pub(crate) groups: BTreeMap<u64, Pulse>,
    /// Of all that may change a word.
    pub(crate) all: Pulse,
    /// Whether threads that run no PE may change words.
    pub(crate) shares: bool,
}

impl Snapshot {
    /// The wait of a PE, if it waits.
    pub(crate) fn waiting(&self, pe: Rank) -> Option<&Waiting> {
        match self.standings.get(pe.index())? {
            Standing::Waits(waiting) => Some(waiting),
            Standing::Active | Standing::Finished => None,
        }
    }

    fn has_finished(&self, pe: Rank) -> bool {
        self.standings.get(pe.index()) == Some(&Standing::Finished)
    }

    /// All PEs that wait.
    pub(crate) fn all_waiting(&self) -> impl Iterator<Item = (Rank, &Waiting)> {
        let pes = (0..).map(Rank).take(self.standings.len());
        pes.filter_map(|pe| Some((pe, self.waiting(pe)?)))
    }

    /// Whether a member waits in the same call for something that may come without a message.
    fn is_open(&self, waiting: &Waiting) -> bool {
        let Waits::In(wait) = waiting.wait else { return false };
        let waits = |member: &Member| self.waiting(member.pe?);
        waiting.members.iter().filter_map(waits).any(|other| match other.wait {
            Waits::In(other) => {
                (other.group, other.call) == (wait.group, wait.call)
                    && other.awaited == Awaited::Unknown
            }
            Waits::ForWord => false,
        })
    }

    /// Whether nobody but the PEs in `stuck` can end a PE's wait: see the rules in `deadlock`.
    fn is_stuck(&self, me: Rank, waiting: &Waiting, stuck: &BTreeSet<Rank>) -> bool {
        if waiting.wait == Waits::ForWord {
            let is_over = |pe: Rank| pe == me || stuck.contains(&pe) || self.has_finished(pe);
            return !self.shares && (0..).map(Rank).take(self.standings.len()).all(is_over);
        }
        let all_have_begun = waiting.members.iter().all(|member| member.has_begun);
        let can_do_nothing = |member: &Member| match member.pe {
            Some(pe) if member.has_begun => self.waiting(pe).is_some() || self.has_finished(pe),
            Some(pe) => stuck.contains(&pe),
            None => false,
        };
        waiting.members.iter().all(can_do_nothing) && !(all_have_begun && self.is_open(waiting))
    }

    /// The stuck PEs: all that wait, without each whose wait a PE outside of the set may end.
    pub(crate) fn stuck(&self) -> BTreeSet<Rank> {
        let mut stuck: BTreeSet<Rank> = self.all_waiting().map(|(pe, _)| pe).collect();
        loop {
            let is_still = |pe: &Rank| {
                self.waiting(*pe).is_some_and(|waiting| self.is_stuck(*pe, waiting, &stuck))
            };
            let still: BTreeSet<Rank> = stuck.iter().copied().filter(is_still).collect();
            if still.len() == stuck.len() {
                return stuck;
            }
            stuck = still;
        }
    }

    /// How much has happened so far in all that may end the waits of these PEs.
    pub(crate) fn pulse(&self, stuck: &BTreeSet<Rank>) -> Pulse {
        let waits = || stuck.iter().filter_map(|pe| self.waiting(*pe));
        if waits().any(|waiting| waiting.wait == Waits::ForWord) {
            return self.all;
        }
        let groups: BTreeSet<u64> = waits().filter_map(Waiting::group).collect();
        let pulses = groups.iter().filter_map(|group| self.groups.get(group));
        pulses.fold(Pulse::default(), |sum, pulse| sum.and(*pulse))
    }

    /// A PE that waits in a call, and one that has finished without it.
    pub(crate) fn abandoned(&self) -> Option<(Rank, Rank)> {
        self.all_waiting().find_map(|(pe, waiting)| {
            let missing = waiting.members.iter().filter(|member| !member.has_begun);
            let mut missing = missing.filter_map(|member| member.pe);
            Some((pe, missing.find(|missing| self.has_finished(*missing))?))
        })
    }
}
