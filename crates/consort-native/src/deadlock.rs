//! PEs that wait for each other in calls of different teams are found, and told.
//!
//! A PE that has waited for some milliseconds says in which call, of which group. It is *stuck* if
//! in its call all members wait too, or have finished, and those who have not begun that call are
//! stuck themselves: whoever has begun it, and waits here or elsewhere, has sent what it can send
//! without the others. So the stuck PEs are the largest set for which this holds: begin with all
//! that wait, and strike out whoever waits for one that does not.
//!
//! That somebody waits is known from before: it may have got its message since, and compute inside
//! its call, or inside a nonblocking one that it polls meanwhile. So all on whose waiting this
//! rests, the stuck PEs and those who have begun their calls, must look for their messages several
//! times more, the stuck ones in the same waits, while nothing moves in any of these calls. Who
//! computes does not look. A call moves when a PE waits in it for anything new, when it yields
//! there, and when a nonblocking one is complete: it changes in no other way while all its PEs
//! wait.
//!
//! Who waits for credits waits in the first call of the quarter of the window after the one that
//! they are for: a PE that has begun it has given its credit.
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
}

/// Who was found stuck, each in which wait; the moves of all in their calls; and the beats of all
/// PEs by then.
#[derive(Debug, Default)]
struct Suspects {
    stuck: Vec<(Rank, u64)>,
    moves: u64,
    beats: Vec<u64>,
}

#[derive(Debug)]
struct Waits {
    /// By rank in the world.
    of: Vec<Option<Wait>>,
    /// How often each PE has said that it has looked for its message.
    beats: Vec<u64>,
    numbers: u64,
    suspects: Suspects,
}

/// In what the PEs of a job wait.
#[derive(Debug)]
pub(crate) struct Deadlocks(Mutex<Waits>);

impl Deadlocks {
    pub(crate) fn new(pes: usize) -> Self {
        let (of, beats) = (vec![None; pes], vec![0; pes]);
        Self(Mutex::new(Waits { of, beats, numbers: 0, suspects: Suspects::default() }))
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
        self.beats[me.index()] += 1;
        let wait = &mut self.of[me.index()];
        if wait.is_none() {
            let (word, number) = (group.word(rank, call), self.numbers);
            self.numbers += 1;
            *wait = Some(Wait { group: Arc::clone(group), call, word, number });
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
        let now: Vec<_> = waits.iter().map(|(pe, wait)| (*pe, wait.number)).collect();
        if (self.suspects.moves, &self.suspects.stuck) != (moves, &now) {
            self.suspects = Suspects { stuck: now, moves, beats: self.beats.clone() };
            return None;
        }
        // All members of these calls: who has not begun one is stuck, who has waits or has
        // finished.
        let has_looked = |(member, &pe): (Rank, &Rank), wait: &Wait| {
            let at = pe.index();
            wait.group.has_finished(member) || self.beats[at] >= self.suspects.beats[at] + BEATS
        };
        let settled = waits.iter().all(|(_, wait)| {
            (0..).map(Rank).zip(wait.group.ranks()).all(|member| has_looked(member, wait))
        });
        if !settled {
            return None;
        }
        let first = waits.iter().find_map(|(_, wait)| Self::missing(wait))?;
        // Each waits for one that waits: in as many steps as there are PEs the way comes to a ring.
        let next = |pe: Rank| self.of[pe.index()].as_ref().and_then(Self::missing);
        let one = (0..self.of.len()).try_fold(first, |pe, _| next(pe))?;
        let other = next(one)?;
        let name = |pe: Rank| {
            let wait = self.of[pe.index()].as_ref()?;
            Some((pe, call_in(&job.name_of(wait.word), &wait.group.team())))
        };
        Some(Failure::Deadlock { one: name(one)?, other: name(other)? })
    }

    /// A PE that has not begun the call: nobody else can hold it up.
    fn missing(wait: &Wait) -> Option<Rank> {
        let mut members = (0..).map(Rank).zip(wait.group.ranks());
        members.find(|(member, _)| !Self::has_begun(wait, *member)).map(|(_, &pe)| pe)
    }
}
