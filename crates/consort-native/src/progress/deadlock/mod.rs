//! Deadlock detection: finds and reports PEs that wait forever. They wait for each other in calls
//! of different teams, for a word that no PE is left to change, or in a call for more than its
//! algorithm sends.
//!
//! | file | what |
//! | --- | --- |
//! | `snapshot` | what all PEs do at one time, and which of them are stuck |
//! | `verdict` | decides, from three snapshots |
//! | `describe` | describes the wait of a PE as text |
//!
//! A PE that has waited for a check interval publishes its call and the call's group. A PE is
//! *stuck* if all members of its call wait or have finished, and the members that have not begun
//! the call are also stuck. A member that has begun the call and waits, in any call, has sent
//! everything that it can send without the others. So the stuck PEs are the largest set with this
//! property. To find it, begin with all waiting PEs, and remove each PE that waits for a PE outside
//! of the set. If all members have begun a call, and one of them waits in it for something that may
//! come without a message, also remove the PEs in that call. Any PE, and any thread with a handle,
//! may change a word. So a PE that waits for a word is stuck if all other PEs are stuck or have
//! finished, and no thread has a handle.
//!
//! A published wait may be out of date: the PE may now have its message, and be computing. So all
//! PEs on which the result depends must poll for their messages several more times, the stuck PEs
//! in the same waits, while none of these calls moves. A call moves when a PE begins a new wait in
//! it or yields, and when a nonblocking call completes. A PE that computes does not poll. A PE that
//! waits for credits counts as waiting in the first call of the quarter of the window after the
//! credits' quarter, because a PE that has begun that call has given its credit.
//!
//! The waiting PE with the lowest rank runs the detection for all PEs that share memory, at each of
//! its checks (`Config::check_interval`). If some PE is far, `far::census` asks the other
//! processes.

use consort_fabric::Rank;

use self::{
    describe::Description,
    snapshot::{Activity, CallMember, PeStatus, Snapshot},
    verdict::Suspects,
};
use crate::{
    directory::lock::LockedDirectory,
    far::census::Census,
    launch::{failure::Failure, job::Job},
    state::heartbeat::{Awaited, CallWait, HeartbeatRecord, WaitReason},
    team::{group::Group, memory::GroupMemory},
};

pub(crate) mod describe;
pub(crate) mod snapshot;
pub(crate) mod verdict;

/// A PE's state for deadlock detection.
#[derive(Debug, Default)]
pub(crate) struct DeadlockDetector {
    suspects: Suspects,
    census: Census,
}

impl DeadlockDetector {
    /// Records that PE `me` has polled and still waits, in a call of the group or, if `call` is
    /// `None`, for a word. `shares` means that other threads have handles to its memory. Fails the
    /// job if PEs wait forever.
    #[cold]
    pub(crate) fn note_poll(
        &mut self,
        job: &Job,
        me: Rank,
        group: &Group,
        call: Option<(u64, Awaited)>,
        shares: bool,
    ) {
        let own = &job.states[me.index()].heartbeat;
        let mut beats = own.own();
        beats.beats += 1;
        beats.shares = shares;
        if beats.wait.is_none() {
            beats.waits += 1;
            self.census.begin_wait(job);
        }
        beats.wait = Some(match call {
            Some((call, awaited)) => WaitReason::In(CallWait {
                group: group.number(),
                call,
                word: group.word(call),
                awaited,
            }),
            None => WaitReason::ForWord,
        });
        own.write(&beats);
        // One PE of a process runs the detection for all.
        let is_first = !(0..me.0)
            .map(Rank)
            .any(|pe| job.is_watched_here(pe) && job.states[pe.index()].heartbeat.is_waiting());
        if !is_first {
            return;
        }
        let failure = if job.has_far() { self.census.look(job) } else { self.look(job) };
        if let Some(failure) = failure {
            job.poison(&failure);
        }
    }

    /// Looks for PEs that wait forever, if all PEs share memory.
    fn look(&mut self, job: &Job) -> Option<Failure> {
        let now = snapshot(job, &job.directory()?)?;
        let verdict = self.suspects.judge(&now)?;
        verdict.failure(|pe| Some(Description::of(job, pe)?.complete(job, &now, pe)))
    }
}

/// Withdraws the wait that PE `me` has published.
#[cold]
pub(crate) fn clear(job: &Job, me: Rank) {
    let own = &job.states[me.index()].heartbeat;
    own.write(&HeartbeatRecord { wait: None, shares: false, ..own.own() });
}

/// Returns what all PEs do, if they share memory. `None` if the record of some PE cannot be read,
/// or this process cannot map a group's memory. The directory is locked, so that no group's memory
/// is reused.
fn snapshot(job: &Job, directory: &LockedDirectory<'_>) -> Option<Snapshot> {
    let world = job.world_memory();
    let mut now = Snapshot::new(job.states.len());
    // Read beats before moves, or a PE's move between the two reads would not count.
    let beats = job.states.iter().map(|state| state.heartbeat.read());
    let beats: Vec<HeartbeatRecord> = beats.collect::<Option<_>>()?;
    for (pe, beats) in (0..).map(Rank).zip(&beats) {
        now.shares |= beats.shares;
        match beats.wait {
            Some(wait) => now.note_wait(pe, wait, (beats.waits, beats.beats), |wait| {
                let (at, pes) = directory.group(wait.group)?;
                Some(members(&job.group_memory(at, pes)?, wait))
            }),
            None if world.has_finished(pe, job.region()) => {
                now.statuses[pe.index()] = PeStatus::Finished;
            }
            None => {}
        }
    }
    let moves = |(at, pes)| Some(job.group_memory(at, pes)?.moves());
    for group in now.pending_groups() {
        let moves = directory.group(group).map_or(Some(0), moves)?;
        now.groups.insert(group, Activity { moves, ..Activity::default() });
    }
    if now.pes().any(|pe| now.is_for_word(pe)) {
        // A nonblocking call in any group may change the word.
        for group in directory.groups() {
            now.all.moves = now.all.moves.wrapping_add(moves(group)?);
        }
    }
    Some(now)
}

/// Returns the members of a group, and whether they have begun the call in which a PE waits.
fn members(group: &GroupMemory, wait: &CallWait) -> Vec<CallMember> {
    let member = |rank| CallMember {
        pe: group.in_world(rank),
        has_begun: group.has_begun(rank, wait.call, wait.word),
    };
    group.members().map(member).collect()
}
