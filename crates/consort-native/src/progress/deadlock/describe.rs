//! Describes a wait of a PE as text: the call, and the event for which the PE waits.

use consort_fabric::Rank;

use super::{snapshot::Snapshot, verdict::Verdict};
use crate::{
    inbox::geometry::WordPurpose,
    launch::{
        failure::{Failure, Members},
        job::Job,
    },
    state::heartbeat::{Awaited, WaitReason},
    team::{
        memory::GroupMemory,
        message::{is_message, seen_by},
    },
};

/// The part of a wait's description that only the PE's process knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Description {
    /// The place in the program where the PE made the call; empty if it is not known.
    pub(crate) place: String,
    /// The event that the PE waits for.
    pub(crate) awaited: String,
}

impl Description {
    /// Describes the wait of a PE that shares memory with this process. `None` if it does not wait.
    pub(crate) fn of(job: &Job, pe: Rank) -> Option<Self> {
        let WaitReason::In(wait) = job.states[pe.index()].heartbeat.read()?.wait? else {
            return Some(Self::default());
        };
        let directory = job.directory()?;
        let (at, pes) = directory.group(wait.group)?;
        let group = job.group_memory(at, pes)?;
        let rank = group.members().find(|member| group.in_world(*member) == Some(pe))?;
        let place = job.place_of(wait.group, &group, rank, wait.word);
        Some(Self { place, awaited: awaited(&group, rank, wait.awaited) })
    }

    /// Completes the description of the wait of a PE in a snapshot.
    pub(crate) fn complete(self, job: &Job, now: &Snapshot, pe: Rank) -> WaitText {
        let Self { place, awaited } = self;
        let Some((wait, members)) = now.call(pe) else {
            let call = "a wait for a word".to_owned();
            return WaitText { call, team: Members::default(), awaited };
        };
        let name = job.name_of(wait.word);
        let in_world = |rank: Rank| members.get(rank.index())?.pe;
        let mut ranks = (0..).map(Rank).take(members.len());
        let call = match ranks.find(|&rank| in_world(rank) == Some(pe)) {
            Some(rank) => seen_by(rank, name, in_world),
            None => name,
        };
        let team = if wait.group == 0 || is_message(&call) {
            Members::default()
        } else {
            Members::of(members.len(), members.iter().filter_map(|member| member.pe))
        };
        WaitText { call: call + &place, team, awaited }
    }
}

/// A wait in words, for a failure.
pub(crate) struct WaitText {
    /// The call, and the place in the program where it was made.
    pub(crate) call: String,
    /// The call's team.
    pub(crate) team: Members,
    /// The event that the PE waits for.
    awaited: String,
}

/// Describes what a member of a group waits for.
pub(crate) fn awaited(group: &GroupMemory, rank: Rank, awaited: Awaited) -> String {
    let name = |member: Rank| group.in_world(member).map_or("?".to_owned(), |pe| pe.to_string());
    let purpose = match awaited {
        Awaited::Word(at) => group.geometry.purpose(rank, at),
        Awaited::Credits => return "credits of its peers".to_owned(),
        Awaited::Completion | Awaited::Unknown => None,
    };
    match purpose {
        Some(WordPurpose::Channel(channel)) => {
            format!("a message or a signal on channel {channel}")
        }
        Some(WordPurpose::Pair(peer)) => format!("the part of PE {} in an exchange", name(peer)),
        Some(WordPurpose::Exposure(owner)) => format!("a buffer that PE {} exposes", name(owner)),
        Some(WordPurpose::Detaches) => "a peer's detach of a buffer that it exposes".to_owned(),
        None => "a message of the call".to_owned(),
    }
}

impl Verdict {
    /// Returns the failure of the job. `describe` describes the wait of a PE.
    pub(crate) fn failure(self, describe: impl Fn(Rank) -> Option<WaitText>) -> Option<Failure> {
        let call = |pe| {
            let WaitText { call, team, .. } = describe(pe)?;
            Some((pe, format!("{call}{team}")))
        };
        Some(match self {
            Self::NobodyLeft { waiting, other } => {
                Failure::NobodyLeft { waiting, other: other.and_then(call) }
            }
            Self::Deadlock { one, other } => {
                Failure::Deadlock { one: call(one)?, other: call(other)? }
            }
            Self::Starved { waiting } => {
                let WaitText { call, team, awaited } = describe(waiting)?;
                Failure::Starved { waiting, call: format!("{call}{team}"), awaited }
            }
        })
    }
}
