//! PEs that wait for each other in calls of different teams are found, and told.
//!
//! A PE that has waited for some milliseconds says in which call, of which group. It is *stuck* if
//! in its call all members wait too, or have finished, and those who have not begun that call are
//! stuck themselves: whoever has begun it, and waits here or elsewhere, has sent what it can send
//! without the others. So the stuck PEs are the largest set for which this holds: begin with all
//! that wait, and strike out whoever waits for one that does not.
//!
//! What was sent may still lie unread, and a call may go on step by step while all its PEs wait. So
//! those who are found stuck must stay so, in the same waits, while each of them looks for its
//! message several times, and nobody in any of these calls waits for anything new.
//!
//! Of all that wait the PE of the lowest rank looks, every few milliseconds, and only in a job that
//! has teams besides the world. Cost: nothing while nobody waits for long.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use consort_fabric::Rank;

use crate::{
    group::Group,
    job::{Failure, Job, call_in},
};

/// How often a PE must have looked for its message since it was found stuck.
const BEATS: u64 = 4;

/// A call that a PE waits in.
#[derive(Clone, Debug)]
struct Wait {
    group: Arc<Group>,
    call: u64,
    /// The word of the call.
    word: u64,
    /// Tells this wait from all others.
    number: u64,
    /// Polls that the PE has said.
    beats: u64,
}

/// Who was found stuck: PE, wait, and its beats by then; and the moves of all in their calls.
#[derive(Debug, Default)]
struct Suspects {
    stuck: Vec<(Rank, u64, u64)>,
    moves: u64,
}

#[derive(Debug)]
struct Waits {
    /// By rank in the world.
    of: Vec<Option<Wait>>,
    numbers: u64,
    suspects: Suspects,
}

/// In what the PEs of a job wait.
#[derive(Debug)]
pub(crate) struct Deadlocks(Mutex<Waits>);

impl Deadlocks {
    pub(crate) fn new(pes: usize) -> Self {
        let of = vec![None; pes];
        Self(Mutex::new(Waits { of, numbers: 0, suspects: Suspects::default() }))
    }

    fn waits(&self) -> MutexGuard<'_, Waits> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// PE `me` has looked for its message and still waits in `call` of `group`. Fails the job if
    /// that will never end.
    #[cold]
    pub(crate) fn beat(&self, job: &Job, me: Rank, group: &Arc<Group>, rank: Rank, call: u64) {
        let mut waits = self.waits();
        waits.beat(me, group, rank, call);
        // One looks for all.
        if waits.of[..me.index()].iter().all(Option::is_none)
            && let Some(failure) = waits.look(job)
        {
            job.poison(failure);
        }
    }

    /// PE `me` waits no more.
    #[cold]
    pub(crate) fn clear(&self, me: Rank) {
        self.waits().of[me.index()] = None;
    }
}

impl Waits {
    fn beat(&mut self, me: Rank, group: &Arc<Group>, rank: Rank, call: u64) {
        match &mut self.of[me.index()] {
            Some(wait) => wait.beats += 1,
            none => {
                let (word, number) = (group.word(rank, call), self.numbers);
                self.numbers += 1;
                let group = Arc::clone(group);
                *none = Some(Wait { group, call, word, number, beats: 0 });
            }
        }
    }

    /// Whether the member has begun the call that is waited in.
    fn has_begun(wait: &Wait, member: Rank) -> bool {
        wait.group.has_begun(member, wait.call, wait.word)
    }

    /// Whether all members of the call wait too, and those who have not begun it are in `stuck`.
    fn is_stuck(&self, wait: &Wait, stuck: &[bool]) -> bool {
        let members = (0..).map(Rank).zip(wait.group.ranks());
        members.into_iter().all(|(member, &pe)| {
            let waits = self.of[pe.index()].is_some();
            if Self::has_begun(wait, member) {
                waits || wait.group.has_finished(member)
            } else {
                waits && stuck[pe.index()]
            }
        })
    }

    /// Finds the stuck PEs; tells of two of them if they have been stuck long enough.
    fn look(&mut self, job: &Job) -> Option<Failure> {
        let mut stuck: Vec<bool> = self.of.iter().map(Option::is_some).collect();
        loop {
            let still: Vec<bool> = (self.of.iter().zip(&stuck))
                .map(|(wait, &stuck_so_far)| {
                    stuck_so_far && wait.as_ref().is_some_and(|wait| self.is_stuck(wait, &stuck))
                })
                .collect();
            if still == stuck {
                break;
            }
            stuck = still;
        }
        let waits: Vec<(Rank, &Wait)> = (0..)
            .map(Rank)
            .zip(&self.of)
            .filter(|(pe, _)| stuck[pe.index()])
            .filter_map(|(pe, wait)| Some((pe, wait.as_ref()?)))
            .collect();
        let moves = waits.iter().map(|(_, wait)| wait.group.moves()).sum();
        let now: Vec<_> = waits.iter().map(|(pe, wait)| (*pe, wait.number, wait.beats)).collect();
        let before = &self.suspects;
        let same = before.moves == moves
            && before.stuck.len() == now.len()
            && before.stuck.iter().zip(&now).all(|(then, now)| (then.0, then.1) == (now.0, now.1));
        if !same {
            self.suspects = Suspects { stuck: now, moves };
            return None;
        }
        let settled = before.stuck.iter().zip(&now).all(|(then, now)| now.2 >= then.2 + BEATS);
        let name = |wait: &Wait| call_in(&job.name_of(wait.word), &wait.group.team());
        // Nobody but who has not begun a call can hold it up.
        let (pe, wait, missing) = waits.iter().filter(|_| settled).find_map(|(pe, wait)| {
            let mut members = (0..).map(Rank).zip(wait.group.ranks());
            let missing = members.find(|(member, _)| !Self::has_begun(wait, *member))?;
            Some((*pe, *wait, *missing.1))
        })?;
        let elsewhere = self.of[missing.index()].as_ref()?;
        Some(Failure::Deadlock { one: (pe, name(wait)), other: (missing, name(elsewhere)) })
    }
}
