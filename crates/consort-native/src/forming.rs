//! How PEs come to share a new team's [`Group`].
//!
//! All PEs of a team, the parent, make a new one in a call, so all know it by the parent, the
//! number of teams that the parent has made before, and a colour. What each PE brings to the call
//! lies in a table until all have read it; who comes first out of the call makes the group, and the
//! others of its colour find it in another.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{
            AtomicU64,
            Ordering::{Acquire, Release},
        },
    },
};

use consort_fabric::Rank;

use crate::group::Group;

/// A parent's number, and that of a team among those that it makes.
pub(crate) type Making = (u64, u64);

/// What a PE brings to a split: its colour, if it is to be in any team, and its key.
pub type Choice = (Option<u32>, i64);

#[derive(Default)]
struct Tables {
    /// What each PE of the parent brings, and how many have yet to read it.
    choices: HashMap<Making, (Vec<Choice>, usize)>,
    /// Groups, and how many members have yet to come.
    groups: HashMap<(Making, u32), (Arc<Group>, usize)>,
}

/// The teams that are being made in a job.
#[derive(Default)]
pub(crate) struct Forming {
    tables: Mutex<Tables>,
    made: AtomicU64,
}

impl Forming {
    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there are teams besides the world.
    pub(crate) fn has_made(&self) -> bool {
        self.made.load(Acquire) > 0 // pairs with the release in `group`
    }

    /// Leaves what PE `rank` of a parent of `size` PEs brings, before the call.
    pub(crate) fn bring(&self, making: Making, rank: Rank, size: usize, choice: Choice) {
        let mut tables = self.tables();
        let entry = tables.choices.entry(making);
        entry.or_insert_with(|| (vec![(None, 0); size], size)).0[rank.index()] = choice;
    }

    /// What all have brought, after the call; once a PE.
    pub(crate) fn all(&self, making: Making) -> Vec<Choice> {
        let mut tables = self.tables();
        let Some((choices, readers)) = tables.choices.get_mut(&making) else { return Vec::new() };
        *readers -= 1;
        let (all, last) = (choices.clone(), *readers == 0);
        if last {
            tables.choices.remove(&making);
        }
        all
    }

    /// The group of this colour, for one of `members`, given by their ranks in the world. The first
    /// to come makes it.
    pub(crate) fn group(&self, making: Making, color: u32, members: &[Rank]) -> Arc<Group> {
        let mut tables = self.tables();
        let key = (making, color);
        let (group, others) = tables.groups.entry(key).or_insert_with(|| {
            // Release: pairs with the acquire in `has_made`.
            let number = self.made.fetch_add(1, Release) + 1;
            (Arc::new(Group::new(number, members.into())), members.len())
        });
        *others -= 1;
        let (group, last) = (Arc::clone(group), *others == 0);
        if last {
            tables.groups.remove(&key);
        }
        group
    }
}
