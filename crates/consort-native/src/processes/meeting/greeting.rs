//! The identity that a process sends when the processes of a job meet, and the check that all of
//! them can be one job.
//!
//! The first fields are at the same places in all versions of this crate, so that an error can name
//! a process of another version.

use consort_fabric::Rank;

use super::{super::control::LAYOUT, meet_error::MeetError};

/// The beginning of every greeting.
const MAGIC: [u8; 8] = *b"consort1";
/// The bytes of the version's name, padded with zeros.
const VERSION: usize = 24;

/// The names of the facts that must be equal in processes that share memory.
///
/// The system shows a process's start in the time of the reader's namespace, so processes of two
/// time namespaces would take each other for ended.
const FACTS: [&str; 5] = ["user", "machine", "PID namespace", "user namespace", "time namespace"];

/// Hashes of the facts about where a process runs, in the order of their names.
pub(super) type Facts = [u64; FACTS.len()];

/// The identity of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Greeting {
    pub(super) layout: u64,
    pub(super) version: String,
    pub(super) rank: Rank,
    pub(super) pes: u32,
    /// The process's number, and when it started.
    pub(super) process: u32,
    pub(super) started: u64,
    /// The facts about where the process runs.
    pub(super) place: Facts,
    /// The descriptor of the control file, in the process of PE 0.
    pub(super) descriptor: u32,
    /// The descriptor of the file with the process's static variables; 0 if there is none.
    pub(super) statics: u32,
    /// Why the process cannot take part; empty if it can. If it cannot, its place and its start may
    /// be unknown.
    pub(super) refusal: String,
    /// Data that the caller adds.
    pub(super) payload: Vec<u8>,
}

impl Greeting {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(self.layout.to_le_bytes());
        let mut version = self.version.clone().into_bytes();
        version.resize(VERSION, 0);
        bytes.extend(version);
        for number in [self.rank.0, self.pes, self.process] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(self.descriptor.to_le_bytes());
        bytes.extend(self.statics.to_le_bytes());
        for number in self.place.iter().chain([&self.started]) {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend((self.refusal.len() as u64).to_le_bytes());
        bytes.extend(self.refusal.as_bytes());
        bytes.extend(&self.payload);
        bytes
    }

    /// Decodes a greeting; `None` if the bytes are not a greeting. From another version of this
    /// crate, it decodes only the first fields.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes.strip_prefix(&MAGIC)?;
        let layout = u64::from_le_bytes(take(&mut rest)?);
        let version: [u8; VERSION] = take(&mut rest)?;
        let version = String::from_utf8_lossy(&version).trim_end_matches('\0').to_owned();
        let mut numbers = [0; 3];
        for number in &mut numbers {
            *number = u32::from_le_bytes(take(&mut rest)?);
        }
        let [rank, pes, process] = numbers;
        let mut greeting = Self {
            layout,
            version,
            rank: Rank(rank),
            pes,
            process,
            started: 0,
            place: Facts::default(),
            descriptor: 0,
            statics: 0,
            refusal: String::new(),
            payload: Vec::new(),
        };
        if layout == LAYOUT {
            greeting.descriptor = u32::from_le_bytes(take(&mut rest)?);
            greeting.statics = u32::from_le_bytes(take(&mut rest)?);
            for number in greeting.place.iter_mut().chain([&mut greeting.started]) {
                *number = u64::from_le_bytes(take(&mut rest)?);
            }
            let length = usize::try_from(u64::from_le_bytes(take(&mut rest)?)).ok()?;
            greeting.refusal = String::from_utf8_lossy(rest.split_off(..length)?).into_owned();
            greeting.payload = rest.to_vec();
        }
        Some(greeting)
    }

    /// Returns the process's rank and number.
    pub(super) fn named(&self) -> (Rank, u32) {
        (self.rank, self.process)
    }
}

/// Takes bytes from the beginning of a slice.
fn take<const COUNT: usize>(bytes: &mut &[u8]) -> Option<[u8; COUNT]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*first)
}

/// The processes that have come so far, which can be one job.
///
/// Facts are equal in all if each process has those of the first one, so a process is compared with
/// that one alone.
#[derive(Default)]
pub(super) struct Roll {
    first: Option<Greeting>,
    /// The process of lowest rank that cannot take part, and why.
    refused: Option<(Rank, String)>,
    /// The rank and the number of each process.
    processes: Vec<(Rank, u32)>,
}

impl Roll {
    /// Adds a process. Fails if it cannot be in one job with the others.
    pub(super) fn add(&mut self, one: &Greeting) -> Result<(), MeetError> {
        if one.refusal.is_empty() {
            ensure_fit(self.first.get_or_insert_with(|| one.clone()), one)?;
        } else if self.refused.as_ref().is_none_or(|(first, _)| one.rank < *first) {
            self.refused = Some((one.rank, one.refusal.clone()));
        }
        let (rank, process) = (one.rank, one.process);
        if let Some(&(other, _)) = self.processes.iter().find(|(_, known)| *known == process) {
            let ranks = [other.min(rank), other.max(rank)];
            return Err(MeetError::OneProcess { ranks, process });
        }
        if let Some(&(_, other)) = self.processes.iter().find(|(known, _)| *known == rank) {
            return Err(MeetError::Taken { rank, processes: [other, process] });
        }
        self.processes.push((rank, process));
        Ok(())
    }

    /// Fails if a process cannot take part. All have come, or no more will.
    pub(super) fn ensure_able(&self) -> Result<(), MeetError> {
        let refused = self.refused.clone();
        refused.map_or(Ok(()), |(rank, reason)| Err(MeetError::Refused { rank, reason }))
    }

    /// Returns the number of processes.
    pub(super) fn count(&self) -> usize {
        self.processes.len()
    }

    /// Returns the ranks below `pes` that no process has.
    pub(super) fn missing(&self, pes: u32) -> Vec<Rank> {
        let has = |rank: &Rank| self.processes.iter().any(|(known, _)| known == rank);
        (0..pes).map(Rank).filter(|rank| !has(rank)).collect()
    }
}

/// Fails if the facts of two processes do not fit.
fn ensure_fit(one: &Greeting, other: &Greeting) -> Result<(), MeetError> {
    let (one, other) = if other.rank < one.rank { (other, one) } else { (one, other) };
    let both = [one.named(), other.named()];
    if one.layout != other.layout {
        return Err(MeetError::Versions {
            processes: both,
            versions: [one.version.clone(), other.version.clone()],
        });
    }
    if one.pes != other.pes {
        let sizes = [one.pes, other.pes].map(|pes| pes as usize);
        return Err(MeetError::Sizes { processes: both, sizes });
    }
    let differs = FACTS.iter().zip(one.place.iter().zip(&other.place)).find(|(_, (a, b))| a != b);
    differs.map_or(Ok(()), |(fact, _)| Err(MeetError::Apart { processes: both, fact }))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn greeting(rank: u32, pes: u32) -> Greeting {
        Greeting {
            layout: LAYOUT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            rank: Rank(rank),
            pes,
            process: 100 + rank,
            started: 7,
            place: [1, 2, 3, 4, 5],
            descriptor: 9,
            statics: 10,
            refusal: String::new(),
            payload: b"payload".to_vec(),
        }
    }

    #[test]
    fn encoded_greeting_is_decoded() {
        let able = greeting(2, 3);
        let own = Greeting { refusal: "no memory".to_owned(), ..able.clone() };
        for one in [&able, &own] {
            assert_eq!(Greeting::decode(&one.encode()).as_ref(), Some(one));
        }
        let other = Greeting { layout: LAYOUT ^ 2, version: "9.8.7".to_owned(), ..own };
        let known = Greeting::decode(&other.encode()).expect("its first fields");
        assert_eq!((known.named(), &*known.version), (other.named(), "9.8.7"));
        for bytes in [&b""[..], b"consort2", &other.encode()[..40]] {
            assert_eq!(Greeting::decode(bytes), None);
        }
    }

    #[test]
    fn refusal_of_lowest_rank_is_the_reason() {
        let mut roll = Roll::default();
        for (rank, refusal) in [(2, "no files"), (0, ""), (1, "no memory")] {
            let place = if refusal.is_empty() { [1, 2, 3, 4, 5] } else { [0; 5] };
            let one = Greeting { refusal: refusal.to_owned(), place, ..greeting(rank, 3) };
            roll.add(&one).expect("facts that fit, or are unknown");
        }
        let reason = "no memory".to_owned();
        assert_eq!(roll.ensure_able(), Err(MeetError::Refused { rank: Rank(1), reason }));
    }

    #[test]
    fn processes_that_cannot_be_one_job_are_named() {
        let all = |other: Greeting| {
            let mut roll = Roll::default();
            roll.add(&greeting(0, 3))?;
            roll.add(&greeting(1, 3))?;
            assert_eq!((roll.count(), roll.missing(3)), (2, vec![Rank(2)]));
            roll.add(&other)
        };
        assert_eq!(all(greeting(2, 3)), Ok(()));
        let two = [(Rank(0), 100), (Rank(2), 102)];
        assert_eq!(all(greeting(2, 4)), Err(MeetError::Sizes { processes: two, sizes: [3, 4] }));
        assert_eq!(
            all(Greeting { process: 55, ..greeting(1, 3) }),
            Err(MeetError::Taken { rank: Rank(1), processes: [101, 55] })
        );
        assert_eq!(
            all(Greeting { process: 101, ..greeting(2, 3) }),
            Err(MeetError::OneProcess { ranks: [Rank(1), Rank(2)], process: 101 })
        );
        for (at, fact) in FACTS.into_iter().enumerate() {
            let mut other = greeting(2, 3);
            other.place[at] += 1;
            assert_eq!(all(other), Err(MeetError::Apart { processes: two, fact }));
        }
        let other = Greeting { layout: 1, version: "9".to_owned(), ..greeting(2, 4) };
        let versions = [env!("CARGO_PKG_VERSION").to_owned(), "9".to_owned()];
        assert_eq!(all(other), Err(MeetError::Versions { processes: two, versions }));
    }
}
