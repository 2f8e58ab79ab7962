//! Reports of the waits of a process's PEs, for another process that looks for deadlocks.
//!
//! A report is made while the link is locked, so nothing is sent or delivered at that time. The
//! reports of all processes form a snapshot, although they are from different times: each process
//! makes a second report only after the first reports of all processes have arrived. If the second
//! reports agree with the first, all of them were true at one moment in between.

use std::collections::HashMap;

use consort_fabric::Rank;

use super::{
    link::Link,
    memberships::{LastCalls, LeftGroup},
    packet::Field,
    traffic::Counts,
};
use crate::{
    launch::job::Job,
    progress::deadlock::snapshot::{Activity, CallMember, PeStatus, Snapshot},
    state::heartbeat::{Awaited, CallWait, HeartbeatRecord, WaitReason},
    team::memory::{GroupMemory, is_before},
};

/// The state of a PE. It does not list the members of the call in which the PE waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PeReport {
    Computes,
    Finished,
    Waits { wait: WaitReason, number: u64, beats: u64 },
}

/// The states of a process's PEs in a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct GroupReport {
    number: u64,
    activity: Activity,
    /// The PEs that have joined the group, by rank in the world, each with the word of its last
    /// call, or 0 if there is none.
    last_calls: LastCalls,
    /// All members, by rank in the world, if a PE of the process waits in the group.
    members: Vec<Rank>,
}

/// The states of a process's PEs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    /// Whether the process awaits no reply, and no long data is in flight from it or to it.
    is_quiet: bool,
    /// Whether other threads have handles to symmetric memory.
    shares: bool,
    /// The activity of all groups and of symmetric memory.
    all: Activity,
    pes: Vec<(Rank, PeReport)>,
    groups: Vec<GroupReport>,
    /// The groups that all PEs of the process have left: these, and all below `left_below` that are
    /// not in `groups`.
    left: Vec<(u64, LeftGroup)>,
    left_below: u64,
}

impl Report {
    /// Returns whether a PE of the process waits.
    pub(super) fn has_waiting(&self) -> bool {
        self.pes.iter().any(|(_, pe_report)| matches!(pe_report, PeReport::Waits { .. }))
    }

    /// Returns whether all PEs of the process that are ever in a group have left it.
    fn has_left(&self, group: u64) -> bool {
        let is_in = self.groups.iter().any(|report| report.number == group);
        let has_left = || self.left.iter().any(|(number, _)| *number == group);
        !is_in && (group < self.left_below || has_left())
    }

    /// Returns whether no process of these PEs awaits anything that may end a wait.
    pub(super) fn are_quiet(reports: &[Self], pes: &[Rank]) -> bool {
        let is_theirs = |report: &Self| report.pes.iter().any(|(pe, _)| pes.contains(pe));
        reports.iter().all(|report| report.is_quiet || !is_theirs(report))
    }

    /// Returns what all PEs do, as far as processes have reported.
    pub(super) fn merged(reports: &[Self], pes: u32) -> Option<Snapshot> {
        let groups = || reports.iter().flat_map(|report| &report.groups);
        let mut members: HashMap<u64, &[Rank]> = HashMap::new();
        let mut last_calls = HashMap::new();
        let mut activities: HashMap<u64, Activity> = HashMap::new();
        for group in groups() {
            let activity = activities.entry(group.number).or_default();
            *activity = activity.and(group.activity);
            if !group.members.is_empty() {
                members.insert(group.number, &group.members);
            }
            let calls = group.last_calls.iter().map(|&(pe, word)| ((group.number, pe), word));
            last_calls.extend(calls);
        }
        // PEs that have left a group have ended their calls there, and others may wait forever.
        for (number, left) in reports.iter().flat_map(|report| &report.left) {
            let activity = activities.entry(*number).or_default();
            *activity = activity.and(left.activity);
            last_calls.extend(left.last_calls.iter().map(|&(pe, word)| ((*number, pe), word)));
        }
        let reporters =
            reports.iter().flat_map(|report| report.pes.iter().map(move |(pe, _)| (*pe, report)));
        let reporters: HashMap<Rank, &Self> = reporters.collect();
        let member = |pe: Rank, wait: &CallWait| {
            let last = last_calls.get(&(wait.group, pe)).copied();
            let has_left = || reporters.get(&pe).is_some_and(|report| report.has_left(wait.group));
            if last.is_none() && has_left() {
                return None; // its process has kept no record of the group
            }
            let has_begun = last.is_some_and(|last| last != 0 && !is_before(last, wait.word));
            Some(CallMember { pe: Some(pe), has_begun })
        };
        let members = |wait: &CallWait| {
            members.get(&wait.group)?.iter().map(|&pe| member(pe, wait)).collect()
        };
        let mut now = Snapshot::new(pes as usize);
        for &(pe, pe_report) in reports.iter().flat_map(|report| &report.pes) {
            match pe_report {
                PeReport::Computes => {}
                PeReport::Finished => *now.statuses.get_mut(pe.index())? = PeStatus::Finished,
                PeReport::Waits { wait, number, beats } => {
                    now.note_wait(pe, wait, (number, beats), members);
                }
            }
        }
        now.groups = activities;
        now.all = reports.iter().fold(Activity::default(), |sum, report| sum.and(report.all));
        now.shares = reports.iter().any(|report| report.shares);
        Some(now)
    }
}

impl Job {
    /// Returns what the PEs of this process do. `None` if the job has failed, a record cannot be
    /// read, or a group's memory cannot be mapped.
    pub(super) fn report(&self, link: &mut Link) -> Option<Report> {
        let directory = self.directory()?;
        let world = self.world_memory();
        let own = || (0..self.config().pes).map(Rank).filter(|&pe| self.is_here(pe));
        let (left_below, left) = link.memberships.left();
        let is_quiet = link.is_quiet();
        let mut report = Report { is_quiet, left, left_below, ..Report::default() };
        for pe in own() {
            let HeartbeatRecord { wait, waits: number, beats, shares } =
                self.states[pe.index()].heartbeat.read()?;
            report.shares |= shares;
            let pe_report = match wait {
                Some(wait) => PeReport::Waits { wait, number, beats },
                // A PE that has finished begins no call after those that are looked up below.
                None if world.has_finished(pe, self.region()) => PeReport::Finished,
                None => PeReport::Computes,
            };
            report.pes.push((pe, pe_report));
        }
        let mut moves = link.memberships.left_moves();
        for number in link.memberships.groups() {
            let Some((at, pes)) = directory.group(number) else { continue };
            let memory = self.group_memory(at, pes)?;
            let group = self.report_of(&report, number, &memory);
            moves = moves.wrapping_add(group.activity.moves);
            let Counts { sent, received } = link.traffic.of(number);
            let activity = Activity { sent, received, ..group.activity };
            report.groups.push(GroupReport { activity, ..group });
        }
        // Packets for groups that no PE of this process has joined yet were received too.
        for number in link.early.keys().copied().collect::<Vec<_>>() {
            let Counts { sent, received } = link.traffic.of(number);
            let activity = Activity { moves: 0, sent, received };
            report.groups.push(GroupReport { number, activity, ..GroupReport::default() });
        }
        let Counts { sent, received } = link.traffic.all;
        report.all = Activity { moves, sent, received };
        Some(report)
    }

    /// Returns what the PEs of this process have done in a group that they leave, without its
    /// packets.
    pub(super) fn left(&self, group: u64) -> LeftGroup {
        let place = self.directory().and_then(|directory| directory.group(group));
        let memory = place.and_then(|(at, pes)| self.group_memory(at, pes));
        let group = memory.map(|memory| self.report_of(&Report::default(), group, &memory));
        let GroupReport { last_calls, activity, .. } = group.unwrap_or_default();
        LeftGroup { last_calls, activity }
    }

    fn report_of(&self, report: &Report, number: u64, memory: &GroupMemory) -> GroupReport {
        let members = || memory.members().filter_map(|rank| Some((rank, memory.in_world(rank)?)));
        let own = members().filter(|(_, pe)| self.is_here(*pe));
        let is_here = |pe_report: &PeReport| match pe_report {
            PeReport::Waits { wait: WaitReason::In(wait), .. } => wait.group == number,
            _ => false,
        };
        let is_waited_in = report.pes.iter().any(|(_, pe_report)| is_here(pe_report));
        let mut group = GroupReport { number, ..GroupReport::default() };
        for (rank, pe) in own {
            group.last_calls.push((pe, memory.last_call(rank)));
            group.activity.moves = group.activity.moves.wrapping_add(memory.moves_of(rank));
        }
        if is_waited_in {
            group.members = members().map(|(_, pe)| pe).collect();
        }
        group
    }
}

impl Field for Activity {
    fn write(&self, words: &mut Vec<u64>) {
        words.extend([self.moves, self.sent, self.received]);
    }

    fn read(words: &mut &[u64]) -> Option<Self> {
        let [moves, sent, received] = *words.split_off(..3)?.first_chunk()?;
        Some(Self { moves, sent, received })
    }
}

impl Field for PeReport {
    fn write(&self, words: &mut Vec<u64>) {
        let (kind, number, beats) = match *self {
            Self::Computes => return words.push(0),
            Self::Finished => return words.push(1),
            Self::Waits { wait: WaitReason::ForWord, number, beats } => (2, number, beats),
            Self::Waits { wait: WaitReason::In(_), number, beats } => (3, number, beats),
        };
        words.extend([kind, number, beats]);
        if let Self::Waits {
            wait: WaitReason::In(CallWait { group, call, word, awaited }), ..
        } = *self
        {
            words.extend([group, call, word, awaited.encode()]);
        }
    }

    fn read(words: &mut &[u64]) -> Option<Self> {
        let kind = u64::read(words)?;
        if kind < 2 {
            return Some(if kind == 0 { Self::Computes } else { Self::Finished });
        }
        let (number, beats) = Field::read(words)?;
        let wait = match kind {
            2 => WaitReason::ForWord,
            3 => {
                let [group, call, word, awaited] = *words.split_off(..4)?.first_chunk()?;
                WaitReason::In(CallWait { group, call, word, awaited: Awaited::decode(awaited) })
            }
            _ => return None,
        };
        Some(Self::Waits { wait, number, beats })
    }
}

impl Field for LeftGroup {
    fn write(&self, words: &mut Vec<u64>) {
        self.last_calls.write(words);
        self.activity.write(words);
    }

    fn read(words: &mut &[u64]) -> Option<Self> {
        Some(Self { last_calls: Field::read(words)?, activity: Field::read(words)? })
    }
}

impl Field for GroupReport {
    fn write(&self, words: &mut Vec<u64>) {
        self.number.write(words);
        self.activity.write(words);
        self.last_calls.write(words);
        self.members.write(words);
    }

    fn read(words: &mut &[u64]) -> Option<Self> {
        Some(Self {
            number: Field::read(words)?,
            activity: Field::read(words)?,
            last_calls: Field::read(words)?,
            members: Field::read(words)?,
        })
    }
}

impl Field for Report {
    fn write(&self, words: &mut Vec<u64>) {
        self.is_quiet.write(words);
        self.shares.write(words);
        self.all.write(words);
        self.pes.write(words);
        self.groups.write(words);
        self.left.write(words);
        self.left_below.write(words);
    }

    fn read(words: &mut &[u64]) -> Option<Self> {
        Some(Self {
            is_quiet: Field::read(words)?,
            shares: Field::read(words)?,
            all: Field::read(words)?,
            pes: Field::read(words)?,
            groups: Field::read(words)?,
            left: Field::read(words)?,
            left_below: Field::read(words)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the report of a process with one PE, which waits in call 0 of group 1. Both PEs have
    /// joined the group.
    fn waits(pe: u32, last: [(Rank, u64); 1], activity: Activity) -> Report {
        let wait = CallWait { group: 1, call: 0, word: 5, awaited: Awaited::Word(3) };
        let pe_report = PeReport::Waits { wait: WaitReason::In(wait), number: 2, beats: 9 };
        let members = vec![Rank(0), Rank(1)];
        let group = GroupReport { number: 1, activity, last_calls: last.to_vec(), members };
        let pes = vec![(Rank(pe), pe_report)];
        let groups = vec![group];
        Report {
            is_quiet: true,
            pes,
            all: activity,
            groups,
            left: vec![(7, LeftGroup { last_calls: vec![(Rank(2), 6)], activity })],
            ..Report::default()
        }
    }

    #[test]
    fn report_is_read_as_it_was_written() {
        let mut report = waits(0, [(Rank(0), 5)], Activity { moves: 1, sent: 2, received: 3 });
        report.pes.push((Rank(3), PeReport::Finished));
        let word = PeReport::Waits { wait: WaitReason::ForWord, number: 1, beats: 4 };
        report.pes.extend([(Rank(4), PeReport::Computes), (Rank(5), word)]);
        let mut words = Vec::new();
        report.write(&mut words);
        assert_eq!(Report::read(&mut &words[..]), Some(report));
        for end in 0..words.len() {
            assert_eq!(Report::read(&mut &words[..end]), None);
        }
        for at in 0..words.len() {
            let mut changed = words.clone();
            changed[at] = u64::MAX;
            let _ = Report::read(&mut &changed[..]);
        }
    }

    #[test]
    fn merged_reports_have_the_sums_of_the_packets() {
        let [one, other] = [(0, 5, 7, 4), (1, 4, 4, 7)].map(|(pe, word, sent, received)| {
            waits(pe, [(Rank(pe), word)], Activity { moves: 1, sent, received })
        });
        let snapshot = Report::merged(&[one.clone(), other], 3).expect("a snapshot");
        assert_eq!(snapshot.groups[&1], Activity { moves: 2, sent: 11, received: 11 });
        let (_, members) = snapshot.call(Rank(1)).expect("it waits");
        let member = |pe, has_begun| CallMember { pe: Some(Rank(pe)), has_begun };
        assert_eq!(members[..], [member(0, true), member(1, false)]);
        assert_eq!(snapshot.statuses[2], PeStatus::Active, "no process has reported it");
        // PE 1 has left the group: after the call, without the call, or too long ago to be known.
        let activity = Activity { moves: 1, sent: 4, received: 7 };
        let after = |word| vec![(1, LeftGroup { last_calls: vec![(Rank(1), word)], activity })];
        for (left, waits, abandoned) in [
            (after(5), true, None),
            (after(4), true, Some((Rank(0), Rank(1)))),
            (vec![], false, None),
        ] {
            let left = Report {
                pes: vec![(Rank(1), PeReport::Finished)],
                groups: Vec::new(),
                left,
                left_below: 2,
                ..one.clone()
            };
            let snapshot = Report::merged(&[one.clone(), left], 2).expect("a snapshot");
            assert_eq!(snapshot.waiting(Rank(0)).is_some(), waits);
            assert_eq!(snapshot.abandoned(), abandoned);
            let stuck = snapshot.stuck();
            assert_eq!(stuck.len(), usize::from(waits && abandoned.is_none()));
            let all = Activity { moves: 2, sent: 11, received: 11 };
            assert!(stuck.is_empty() || snapshot.activity(&stuck) == all);
        }
        let busy = Report { is_quiet: false, ..one };
        assert!(!Report::are_quiet(std::slice::from_ref(&busy), &[Rank(0), Rank(1)]));
        assert!(Report::are_quiet(&[busy], &[Rank(1)]));
    }
}
