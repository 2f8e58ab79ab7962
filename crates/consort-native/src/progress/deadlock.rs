//! PEs that wait for each other in calls of different teams are found and reported.
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
//! has teams besides the world. It holds the directory meanwhile, so that no group's memory becomes
//! another's. Cost: nothing while nobody waits for long.

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

/// How often a PE must have looked for its message since it was found stuck.
const BEATS: u64 = 4;

/// Who was found stuck, each in which wait; the moves of all in their calls; and the beats of all
/// PEs by then.
#[derive(Debug, Default)]
struct Suspects {
    stuck: Vec<(Rank, u64)>,
    moves: u64,
    beats: Vec<u64>,
}

/// A PE's part in finding those that wait for each other.
#[derive(Debug, Default)]
pub(crate) struct Deadlocks {
    suspects: Suspects,
}

impl Deadlocks {
    /// PE `me`, a member of the group, has looked for its message and still waits in `call`.
    /// Fails the job if that will never end.
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
        // One looks for all.
        if !job.states[..me.index()].iter().any(|state| state.beat.is_waiting())
            && let Some(failure) = self.look(job)
        {
            job.poison(&failure);
        }
    }

    /// Finds the stuck PEs; reports two of them if they have been stuck long enough.
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
        // Each waits for one that waits: in as many steps as there are PEs the way comes to a ring.
        let next = |pe: Rank| waits.waiting(pe).and_then(Waiting::missing);
        let first = stuck.iter().find_map(|(_, waiting)| waiting.missing())?;
        let one = (0..job.states.len()).try_fold(first, |pe, _| next(pe))?;
        let other = next(one)?;
        let name = |pe: Rank| Some((pe, waits.waiting(pe)?.name(&directory)));
        Some(Failure::Deadlock { one: name(one)?, other: name(other)? })
    }
}

/// PE `me` waits no more.
#[cold]
pub(crate) fn clear(job: &Job, me: Rank) {
    let own = &job.states[me.index()].beat;
    own.write(&Beats { wait: None, ..own.own() });
}

/// A call that a PE waits in, and its group, which stays where it is while the directory is held.
struct Waiting {
    wait: Wait,
    group: GroupMemory,
}

impl Waiting {
    /// Whether the member has begun the call that is waited in.
    fn has_begun(&self, member: Rank) -> bool {
        self.group.has_begun(member, self.wait.call, self.wait.word)
    }

    /// A PE that has not begun the call: nobody else can hold it up.
    fn missing(&self) -> Option<Rank> {
        let member = self.group.members().find(|member| !self.has_begun(*member))?;
        self.group.in_world(member)
    }

    /// The call, and the team where it is not the world.
    fn name(&self, directory: &Locked<'_>) -> String {
        let call = directory.name(self.wait.word >> SEQUENCE_BITS);
        let call = call.unwrap_or_else(|| Job::UNKNOWN_CALL.to_owned());
        let team = if self.wait.group == 0 { Members::default() } else { self.group.team() };
        format!("{call}{team}")
    }
}

/// In what the PEs of a job wait.
struct Waits {
    beats: Vec<Beats>,
    /// By rank in the world.
    waiting: Vec<Option<Waiting>>,
}

impl Waits {
    /// `None` if a PE does not come to say in what it waits.
    fn of(job: &Job, directory: &Locked<'_>) -> Option<Self> {
        let beats = job.states.iter().map(|state| state.beat.read());
        let beats: Vec<Beats> = beats.collect::<Option<_>>()?;
        // Whose group is gone does not wait any more.
        let waiting = |beats: &Beats| {
            let wait = beats.wait?;
            let (at, pes) = directory.group(wait.group)?;
            Some(Waiting { wait, group: GroupMemory::new(&job.segment, at, pes) })
        };
        let waiting = beats.iter().map(waiting).collect();
        Some(Self { beats, waiting })
    }

    /// In what a PE waits, if it does.
    fn waiting(&self, pe: Rank) -> Option<&Waiting> {
        self.waiting.get(pe.index())?.as_ref()
    }

    /// Whether all members of the call wait too, and those who have not begun it are in `stuck`.
    fn is_stuck(&self, waiting: &Waiting, stuck: &[bool]) -> bool {
        waiting.group.members().all(|member| {
            let pe = waiting.group.in_world(member).filter(|pe| self.waiting(*pe).is_some());
            if waiting.has_begun(member) {
                pe.is_some() || waiting.group.has_finished(member)
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

    /// Whether all members of the call have looked for their messages several times since, or have
    /// finished: who has not begun it is stuck, who has waits or has finished.
    fn all_have_looked(&self, waiting: &Waiting, since: &Suspects) -> bool {
        let looks = |pe: Rank| Some(self.beats.get(pe.index())?.beats - since.beats[pe.index()]);
        waiting.group.members().all(|member| {
            waiting.group.has_finished(member)
                || waiting
                    .group
                    .in_world(member)
                    .and_then(looks)
                    .is_some_and(|looks| looks >= BEATS)
        })
    }
}
