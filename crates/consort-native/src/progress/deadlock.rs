//! Deadlock detection: finds and reports PEs that wait for each other in calls of different teams.
//!
//! A PE that has waited for some milliseconds publishes the call and the group that it waits in. A
//! PE is *stuck* if all members of its call wait or have finished, and the members that have not
//! begun the call are stuck themselves. A member that has begun the call and waits, there or
//! elsewhere, has sent all that it can send without the others. So the stuck PEs are the largest
//! set for which this holds: begin with all waiting PEs, and remove each that waits for a PE
//! outside of the set.
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
//! with teams besides the world. It holds the directory's lock meanwhile, so that no group's memory
//! is reused. Cost: nothing while no PE waits for long.

use consort_fabric::Rank;

use crate::{
    directory::lock::Locked,
    inbox::geometry::SEQUENCE_BITS,
    launch::{
        failure::{Failure, Members},
        job::Job,
    },
    state::beat::{Beats, Wait},
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
    /// Records that PE `me`, a member of the group, has polled for its message and still waits in
    /// `call`. Fails the job if there is a deadlock.
    #[cold]
    pub(crate) fn beat(&mut self, job: &Job, me: Rank, group: &Group, call: u64) {
        let own = &job.states[me.index()].beat;
        let mut beats = own.own();
        beats.beats += 1;
        if beats.wait.is_none() {
            let word = group.word(call);
            beats.wait = Some(Wait { group: group.number(), call, word });
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
        let moves = stuck.iter().map(|(_, waiting)| waiting.group.moves());
        let moves = moves.fold(0, u64::wrapping_add);
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
        // Each stuck PE waits for another stuck one: after as many steps as there are PEs, the path
        // is in a cycle.
        let next = |pe: Rank| waits.waiting(pe).and_then(Waiting::missing);
        let first = stuck.iter().find_map(|(_, waiting)| waiting.missing())?;
        let one = (0..job.states.len()).try_fold(first, |pe, _| next(pe))?;
        let other = next(one)?;
        let name = |pe: Rank| Some((pe, waits.waiting(pe)?.name(&directory)));
        Some(Failure::Deadlock { one: name(one)?, other: name(other)? })
    }
}

/// Withdraws the wait that PE `me` has published.
#[cold]
pub(crate) fn clear(job: &Job, me: Rank) {
    let own = &job.states[me.index()].beat;
    own.write(&Beats { wait: None, ..own.own() });
}

/// A call that a PE waits in, and its group. The group's memory stays while the directory is
/// locked.
struct Waiting {
    wait: Wait,
    group: GroupMemory,
}

impl Waiting {
    /// Whether the member has begun that call.
    fn has_begun(&self, member: Rank) -> bool {
        self.group.has_begun(member, self.wait.call, self.wait.word)
    }

    /// A PE that has not begun the call: only such a PE can hold it up.
    fn missing(&self) -> Option<Rank> {
        let member = self.group.members().find(|member| !self.has_begun(*member))?;
        self.group.in_world(member)
    }

    /// The call, and the team unless it is the world.
    fn name(&self, directory: &Locked<'_>) -> String {
        let call = directory.name(self.wait.word >> SEQUENCE_BITS);
        let call = call.unwrap_or_else(|| Job::UNKNOWN_CALL.to_owned());
        let team = if self.wait.group == 0 { Members::default() } else { self.group.team() };
        format!("{call}{team}")
    }
}

/// The waits of all PEs of the job.
struct Waits {
    beats: Vec<Beats>,
    /// By rank in the world.
    waiting: Vec<Option<Waiting>>,
    region: u64,
}

impl Waits {
    /// `None` if the record of some PE cannot be read.
    fn of(job: &Job, directory: &Locked<'_>) -> Option<Self> {
        let beats = job.states.iter().map(|state| state.beat.read());
        let beats: Vec<Beats> = beats.collect::<Option<_>>()?;
        // A PE whose group is freed does not wait any more.
        let waiting = |beats: &Beats| {
            let wait = beats.wait?;
            let (at, pes) = directory.group(wait.group)?;
            Some(Waiting { wait, group: GroupMemory::new(&job.segment, at, pes) })
        };
        let waiting = beats.iter().map(waiting).collect();
        Some(Self { beats, waiting, region: job.region() })
    }

    /// The wait of a PE, if it waits.
    fn waiting(&self, pe: Rank) -> Option<&Waiting> {
        self.waiting.get(pe.index())?.as_ref()
    }

    /// Whether all members of the call wait or have finished, and those that have not begun it are
    /// in `stuck`.
    fn is_stuck(&self, waiting: &Waiting, stuck: &[bool]) -> bool {
        waiting.group.members().all(|member| {
            let pe = waiting.group.in_world(member).filter(|pe| self.waiting(*pe).is_some());
            if waiting.has_begun(member) {
                pe.is_some() || waiting.group.has_finished(member, self.region)
            } else {
                pe.is_some_and(|pe| stuck[pe.index()])
            }
        })
    }

    /// The stuck PEs.
    fn stuck(&self) -> Vec<(Rank, &Waiting)> {
        let mut stuck: Vec<bool> = self.waiting.iter().map(Option::is_some).collect();
        loop {
            let is_still = |(waiting, stuck_so_far): (&Option<Waiting>, &bool)| {
                let waiting = waiting.as_ref().filter(|_| *stuck_so_far);
                waiting.is_some_and(|waiting| self.is_stuck(waiting, &stuck))
            };
            let still: Vec<bool> = self.waiting.iter().zip(&stuck).map(is_still).collect();
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
        waiting.group.members().all(|member| {
            waiting.group.has_finished(member, self.region)
                || waiting
                    .group
                    .in_world(member)
                    .and_then(looks)
                    .is_some_and(|looks| looks >= BEATS)
        })
    }
}
