//! Deadlock detection: finds and reports PEs that wait for each other in calls of different teams,
//! and PEs that wait for a word that no PE is left to change.
//!
//! A PE that has waited for some milliseconds publishes the call and the group that it waits in. A
//! PE is *stuck* if all members of its call wait or have finished, and the members that have not
//! begun the call are stuck themselves. A member that has begun the call and waits, there or
//! elsewhere, has sent all that it can send without the others. So the stuck PEs are the largest
//! set for which this holds: begin with all waiting PEs, and remove each that waits for a PE
//! outside of the set.
//!
//! Any PE may change a word, and so may a thread that has a handle on symmetric memory. So a PE
//! that waits for a word is stuck if all other PEs are, or have finished, and no thread has a
//! handle.
//!
//! A published wait may be out of date: the PE may have received its message since, and compute
//! inside its call, or inside a nonblocking call that it polls. So all PEs on which the result
//! depends, the stuck PEs and the members that have begun their calls, must poll for their messages
//! several more times, the stuck ones in the same waits, while none of these calls moves. A PE that
//! computes does not poll. A call moves when a PE begins a new wait in it, when a PE yields in it,
//! and when a nonblocking call is complete: while all its PEs wait, it changes in no other way.
//!
//! A PE that awaits credits waits in the first call of the quarter of the window after the credits'
//! quarter: a PE that has begun that call has given its credit.
//!
//! The waiting PE of the lowest rank runs the detection, every few milliseconds, and only in a job
//! with teams besides the world, or in which a PE waits for a word. It holds the directory's lock
//! meanwhile, so that no group's memory is reused. Cost: nothing while no PE waits for long.

use consort_fabric::Rank;

use crate::{
    directory::lock::Locked,
    inbox::geometry::SEQUENCE_BITS,
    launch::{
        failure::{Failure, Members},
        job::Job,
    },
    state::beat::{Beats, Wait, Waits as Published},
    team::{group::Group, memory::GroupMemory},
};

/// How often each PE must have polled since the stuck PEs were found.
const BEATS: u64 = 4;

/// The stuck PEs, each with the number of its wait; the moves of all in their calls; and the beats
/// of all PEs at that time.
#[derive(Debug, Default)]
struct Suspects {
    stuck: Vec<(Rank, u64)>,
    moves: u64,
    beats: Vec<u64>,
}

/// A PE's state for deadlock detection.
#[derive(Debug, Default)]
pub(crate) struct Deadlocks {
    suspects: Suspects,
}

impl Deadlocks {
    /// Records that PE `me` has polled and still waits, in a call of the group or, without one, for
    /// a word. `shares` says whether other threads have handles on its memory. Fails the job if
    /// there is a deadlock.
    #[cold]
    pub(crate) fn beat(
        &mut self,
        job: &Job,
        me: Rank,
        group: &Group,
        call: Option<u64>,
        shares: bool,
    ) {
        let own = &job.states[me.index()].beat;
        let mut beats = own.own();
        beats.beats += 1;
        beats.shares = shares;
        if beats.wait.is_none() {
            beats.wait = Some(match call {
                Some(call) => {
                    Published::In(Wait { group: group.number(), call, word: group.word(call) })
                }
                None => {
                    job.count_word_wait(true);
                    Published::ForWord
                }
            });
            beats.waits += 1;
        }
        own.write(&beats);
        // One PE runs the detection for all.
        if !job.states[..me.index()].iter().any(|state| state.beat.is_waiting())
            && let Some(failure) = self.look(job)
        {
            job.poison(&failure);
        }
    }

    /// Finds the stuck PEs. Reports two of them if they have been stuck long enough.
    fn look(&mut self, job: &Job) -> Option<Failure> {
        let directory = job.directory()?;
        let waits = Waits::of(job, &directory)?;
        let stuck = waits.stuck();
        let moves = if stuck.iter().any(|(_, waiting)| matches!(waiting, Waiting::ForWord)) {
            // A nonblocking call in any group may change the word.
            let groups = directory.groups();
            let moves = |&(at, pes): &_| Some(job.group_memory(at, pes)?.moves());
            groups.iter().map(moves).collect::<Option<Vec<_>>>()?.into_iter().fold(0, add)
        } else {
            stuck.iter().filter_map(|(_, waiting)| Some(waiting.group()?.moves())).fold(0, add)
        };
        let now: Vec<_> =
            stuck.iter().map(|(pe, _)| (*pe, waits.beats[pe.index()].waits)).collect();
        if (self.suspects.moves, &self.suspects.stuck) != (moves, &now) {
            let beats = waits.beats.iter().map(|beats| beats.beats).collect();
            self.suspects = Suspects { stuck: now, moves, beats };
            return None;
        }
        let have_looked = |waiting| waits.all_have_looked(waiting, &self.suspects);
        if !stuck.iter().all(|(_, waiting)| have_looked(waiting)) {
            return None;
        }
        let name = |pe: Rank| Some((pe, waits.waiting(pe)?.name(job, pe, &directory)));
        let of_word = stuck.iter().find(|(_, waiting)| matches!(waiting, Waiting::ForWord));
        if let Some(&(waiting, _)) = of_word {
            let other = stuck.iter().find(|(pe, _)| *pe != waiting);
            return Some(Failure::NobodyLeft {
                waiting,
                other: other.and_then(|(pe, _)| name(*pe)),
            });
        }
        // Each stuck PE waits for another stuck one: after as many steps as there are PEs, the path
        // is in a cycle.
        let next = |pe: Rank| waits.waiting(pe).and_then(Waiting::missing);
        let first = stuck.iter().find_map(|(_, waiting)| waiting.missing())?;
        let one = (0..job.states.len()).try_fold(first, |pe, _| next(pe))?;
        let other = next(one)?;
        Some(Failure::Deadlock { one: name(one)?, other: name(other)? })
    }
}

const fn add(one: u64, other: u64) -> u64 {
    one.wrapping_add(other)
}

/// Withdraws the wait that PE `me` has published.
#[cold]
pub(crate) fn clear(job: &Job, me: Rank) {
    let own = &job.states[me.index()].beat;
    let before = own.own();
    if before.wait == Some(Published::ForWord) {
        job.count_word_wait(false);
    }
    own.write(&Beats { wait: None, shares: false, ..before });
}

/// What a PE waits for.
enum Waiting {
    /// A call of a group, whose memory stays while the directory is locked.
    In(Wait, Box<GroupMemory>),
    /// A word.
    ForWord,
}

impl Waiting {
    fn group(&self) -> Option<&GroupMemory> {
        match self {
            Self::In(_, group) => Some(&**group),
            Self::ForWord => None,
        }
    }

    /// A PE that has not begun the call: only such a PE can hold it up.
    fn missing(&self) -> Option<Rank> {
        let Self::In(wait, group) = self else { return None };
        let mut members = group.members();
        let member = members.find(|member| !group.has_begun(*member, wait.call, wait.word))?;
        group.in_world(member)
    }

    /// The call, where PE `pe` made it, and the team unless it is the world.
    fn name(&self, job: &Job, pe: Rank, directory: &Locked<'_>) -> String {
        let Self::In(wait, group) = self else { return "a wait for a word".to_owned() };
        let call = directory.name(wait.word >> SEQUENCE_BITS);
        let call = call.unwrap_or_else(|| Job::UNKNOWN_CALL.to_owned());
        let team = if wait.group == 0 { Members::default() } else { group.team() };
        let mut members = group.members();
        let member = members.find(|member| group.in_world(*member) == Some(pe));
        let place = member.map(|member| job.place_of(wait.group, group, member, wait.word));
        format!("{call}{}{team}", place.unwrap_or_default())
    }
}

/// The waits of all PEs of the job.
struct Waits {
    beats: Vec<Beats>,
    /// By rank in the world.
    waiting: Vec<Option<Waiting>>,
    world: GroupMemory,
    region: u64,
}

impl Waits {
    /// `None` if the record of some PE cannot be read.
    fn of(job: &Job, directory: &Locked<'_>) -> Option<Self> {
        let beats = job.states.iter().map(|state| state.beat.read());
        let beats: Vec<Beats> = beats.collect::<Option<_>>()?;
        // A PE whose group is freed does not wait any more.
        let waiting = |beats: &Beats| {
            let Published::In(wait) = beats.wait? else { return Some(Waiting::ForWord) };
            let (at, pes) = directory.group(wait.group)?;
            Some(Waiting::In(wait, Box::new(job.group_memory(at, pes)?)))
        };
        let waiting = beats.iter().map(waiting).collect();
        let world = job.world_memory();
        Some(Self { beats, waiting, world, region: job.region() })
    }

    /// The wait of a PE, if it waits.
    fn waiting(&self, pe: Rank) -> Option<&Waiting> {
        self.waiting.get(pe.index())?.as_ref()
    }

    /// Whether all members of the call wait or have finished, and those that have not begun it are
    /// in `stuck`. Whether all other PEs have finished or are in `stuck`, if it waits for a word.
    fn is_stuck(&self, me: Rank, waiting: &Waiting, stuck: &[bool]) -> bool {
        let Waiting::In(wait, group) = waiting else {
            let is_over = |pe: Rank| stuck[pe.index()] || self.world.has_finished(pe, self.region);
            let shares = self.beats.iter().any(|beats| beats.shares);
            return !shares && self.world.members().all(|pe| pe == me || is_over(pe));
        };
        group.members().all(|member| {
            let pe = group.in_world(member).filter(|pe| self.waiting(*pe).is_some());
            if group.has_begun(member, wait.call, wait.word) {
                pe.is_some() || group.has_finished(member, self.region)
            } else {
                pe.is_some_and(|pe| stuck[pe.index()])
            }
        })
    }

    /// The stuck PEs.
    fn stuck(&self) -> Vec<(Rank, &Waiting)> {
        let mut stuck: Vec<bool> = self.waiting.iter().map(Option::is_some).collect();
        loop {
            let is_still = |(pe, (waiting, stuck_so_far)): (Rank, (&Option<Waiting>, &bool))| {
                let waiting = waiting.as_ref().filter(|_| *stuck_so_far);
                waiting.is_some_and(|waiting| self.is_stuck(pe, waiting, &stuck))
            };
            let all = (0..).map(Rank).zip(self.waiting.iter().zip(&stuck));
            let still: Vec<bool> = all.map(is_still).collect();
            if still == stuck {
                break;
            }
            stuck = still;
        }
        let all = (0..).map(Rank).zip(&self.waiting);
        let stuck = all.filter(|(pe, _)| stuck[pe.index()]);
        stuck.filter_map(|(pe, waiting)| Some((pe, waiting.as_ref()?))).collect()
    }

    /// Whether all members of the call have polled for their messages several times since, or have
    /// finished. Members that have not begun it are stuck; those that have begun it wait or have
    /// finished.
    fn all_have_looked(&self, waiting: &Waiting, since: &Suspects) -> bool {
        let looks = |pe: Rank| Some(self.beats.get(pe.index())?.beats - since.beats[pe.index()]);
        let group = waiting.group().unwrap_or(&self.world);
        group.members().all(|member| {
            let looks = || group.in_world(member).and_then(looks);
            group.has_finished(member, self.region) || looks().is_some_and(|looks| looks >= BEATS)
        })
    }
}
