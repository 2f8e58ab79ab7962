//! The encoding of a failure in words of shared memory, which any process can read.
//!
//! A number is one word. A text is its length in bytes, then its bytes, eight to a word; a long
//! text is truncated. A team is its size, the number of members that are listed, and their ranks.
//!
//! A faulty process may have written anything, so the decoder trusts nothing. From invalid words it
//! returns any failure, or none.

use std::time::Duration;

use consort_fabric::Rank;

use super::failure::{Failure, Members};
use crate::state::poison::REASON_WORDS;

/// The maximum length of a text in bytes. Two texts, a team and some numbers fit into a reason.
const TEXT: usize = 3 << 10;
/// Replaces the end of a truncated text.
const CUT: &str = "...";

/// The first word of a failure, which is its kind.
const PE: u64 = 1;
const MISMATCHED: u64 = 2;
const COUNTS: u64 = 3;
const FINISHED: u64 = 4;
const DEADLOCK: u64 = 5;
const MISSING: u64 = 6;
const TIMED_OUT: u64 = 7;
const NOBODY_LEFT: u64 = 8;
pub(super) const ENDED: u64 = 9;
const STARVED: u64 = 10;
/// The only word of this failure.
pub(super) const FORKED: u64 = 11;

pub(crate) fn encode(failure: &Failure) -> Vec<u64> {
    let mut words = Writer(Vec::new());
    match failure {
        Failure::Pe { rank, reason } => {
            words.number(PE);
            words.one(*rank, reason);
        }
        Failure::Ended { rank, status, reason } => {
            words.number(ENDED);
            words.number((*status).into());
            words.one(*rank, reason);
        }
        Failure::Mismatched { call, one, other, team } => {
            words.number(MISMATCHED);
            words.number(*call);
            words.one(one.0, &one.1);
            words.one(other.0, &other.1);
            words.members(team);
        }
        Failure::Counts { call, owner, peer } => {
            words.number(COUNTS);
            words.text(call);
            for (rank, bytes) in [owner, peer] {
                words.rank(*rank);
                words.number(*bytes as u64);
            }
        }
        Failure::Finished { rank, waiting, call, team } => {
            words.number(FINISHED);
            words.rank(*rank);
            words.one(*waiting, call);
            words.members(team);
        }
        Failure::NobodyLeft { waiting, other } => {
            words.number(NOBODY_LEFT);
            words.rank(*waiting);
            words.number(other.is_some().into());
            other.iter().for_each(|(rank, call)| words.one(*rank, call));
        }
        Failure::Missing { missing, waiting, call, limit } => {
            words.number(MISSING);
            words.members(missing);
            words.one(*waiting, call);
            words.duration(*limit);
        }
        Failure::TimedOut { rank, call, limit, late } => {
            words.number(TIMED_OUT);
            words.one(*rank, call);
            words.duration(*limit);
            words.members(late);
        }
        Failure::Deadlock { one, other } => {
            words.number(DEADLOCK);
            words.one(one.0, &one.1);
            words.one(other.0, &other.1);
        }
        Failure::Starved { waiting, call, awaited } => {
            words.number(STARVED);
            words.one(*waiting, call);
            words.text(awaited);
        }
        Failure::Forked => words.number(FORKED),
    }
    let Writer(words) = words;
    debug_assert!(words.len() <= REASON_WORDS, "a reason of {} words", words.len());
    words
}

/// Decodes a failure, if the words encode one.
pub(crate) fn decode(words: &[u64]) -> Option<Failure> {
    let mut words = Reader(words);
    match words.number()? {
        PE => {
            let (rank, reason) = words.one()?;
            Some(Failure::Pe { rank, reason })
        }
        ENDED => {
            let status = u8::try_from(words.number()?).ok()?;
            let (rank, reason) = words.one()?;
            Some(Failure::Ended { rank, status, reason })
        }
        MISMATCHED => Some(Failure::Mismatched {
            call: words.number()?,
            one: words.one()?,
            other: words.one()?,
            team: words.members()?,
        }),
        COUNTS => Some(Failure::Counts {
            call: words.text()?,
            owner: (words.rank()?, words.size()?),
            peer: (words.rank()?, words.size()?),
        }),
        FINISHED => {
            let rank = words.rank()?;
            let (waiting, call) = words.one()?;
            Some(Failure::Finished { rank, waiting, call, team: words.members()? })
        }
        NOBODY_LEFT => {
            let waiting = words.rank()?;
            let other = if words.number()? == 0 { None } else { Some(words.one()?) };
            Some(Failure::NobodyLeft { waiting, other })
        }
        MISSING => {
            let missing = words.members()?;
            let (waiting, call) = words.one()?;
            Some(Failure::Missing { missing, waiting, call, limit: words.duration()? })
        }
        TIMED_OUT => {
            let (rank, call) = words.one()?;
            let limit = words.duration()?;
            Some(Failure::TimedOut { rank, call, limit, late: words.members()? })
        }
        DEADLOCK => Some(Failure::Deadlock { one: words.one()?, other: words.one()? }),
        STARVED => {
            let (waiting, call) = words.one()?;
            Some(Failure::Starved { waiting, call, awaited: words.text()? })
        }
        FORKED => Some(Failure::Forked),
        _ => None,
    }
}

/// Returns the longest prefix of `text` that has at most `most` bytes.
fn beginning(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or(0)]
}

struct Writer(Vec<u64>);

impl Writer {
    fn number(&mut self, number: u64) {
        self.0.push(number);
    }

    fn rank(&mut self, rank: Rank) {
        self.number(rank.0.into());
    }

    fn text(&mut self, text: &str) {
        if text.len() > TEXT {
            return self.text(&format!("{}{CUT}", beginning(text, TEXT - CUT.len())));
        }
        self.number(text.len() as u64);
        for bytes in text.as_bytes().chunks(8) {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            self.number(u64::from_le_bytes(word));
        }
    }

    /// Writes a duration in nanoseconds. A word holds centuries of nanoseconds.
    fn duration(&mut self, duration: Duration) {
        self.number(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Writes a PE and a text about it.
    fn one(&mut self, rank: Rank, text: &str) {
        self.rank(rank);
        self.text(text);
    }

    fn members(&mut self, Members { first, size }: &Members) {
        self.number(*size as u64);
        let named = &first[..first.len().min(Members::NAMED)];
        self.number(named.len() as u64);
        for rank in named {
            self.rank(*rank);
        }
    }
}

/// The words that have not been read yet.
struct Reader<'w>(&'w [u64]);

impl Reader<'_> {
    fn number(&mut self) -> Option<u64> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    fn duration(&mut self) -> Option<Duration> {
        self.number().map(Duration::from_nanos)
    }

    fn size(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    fn rank(&mut self) -> Option<Rank> {
        u32::try_from(self.number()?).ok().map(Rank)
    }

    fn text(&mut self) -> Option<String> {
        let bytes = self.size()?.min(TEXT);
        let (text, rest) = self.0.split_at_checked(bytes.div_ceil(8))?;
        self.0 = rest;
        let text: Vec<u8> = text.iter().flat_map(|word| word.to_le_bytes()).take(bytes).collect();
        Some(String::from_utf8_lossy(&text).into_owned())
    }

    fn one(&mut self) -> Option<(Rank, String)> {
        Some((self.rank()?, self.text()?))
    }

    fn members(&mut self) -> Option<Members> {
        let size = self.size()?;
        let named = self.size()?.min(Members::NAMED);
        let first = (0..named).map(|_| self.rank()).collect::<Option<_>>()?;
        Some(Members { first, size })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*};

    /// Returns one failure of each kind, with texts of `letters` two-byte letters and a team of
    /// `members`.
    fn failures(letters: usize, members: u32) -> [Failure; 11] {
        let text = |end: &str| "ä".repeat(letters) + end;
        let one = |rank: u32| (Rank(rank), text(&rank.to_string()));
        let team = Members::of(members as usize, (0..members).map(|rank| Rank(7 * rank)));
        [
            Failure::Pe { rank: Rank(u32::MAX), reason: text("") },
            Failure::Ended { rank: Rank(9), status: u8::MAX, reason: text("") },
            Failure::Mismatched { call: u64::MAX, one: one(1), other: one(2), team: team.clone() },
            Failure::Counts { call: text("x"), owner: (Rank(3), usize::MAX), peer: (Rank(4), 0) },
            Failure::Finished {
                rank: Rank(5),
                waiting: Rank(6),
                call: text("y"),
                team: team.clone(),
            },
            Failure::Deadlock { one: one(8), other: one(9) },
            Failure::NobodyLeft { waiting: Rank(1), other: Some(one(2)) },
            Failure::Starved { waiting: Rank(10), call: text("s"), awaited: text("w") },
            Failure::Missing {
                missing: team.clone(),
                waiting: Rank(3),
                call: text("z"),
                limit: Duration::from_nanos(1),
            },
            Failure::TimedOut {
                rank: Rank(4),
                call: text("z"),
                limit: Duration::from_secs(10),
                late: team,
            },
            Failure::Forked,
        ]
    }

    #[test]
    fn encoded_failure_is_decoded() {
        for (letters, members) in [(0, 0), (1, 1), (100, 16), (1500, 1000)] {
            for failure in failures(letters, members) {
                assert_eq!(decode(&encode(&failure)), Some(failure));
            }
        }
        let alone = Failure::NobodyLeft { waiting: Rank(1), other: None };
        assert_eq!(decode(&encode(&alone)), Some(alone));
    }

    #[test]
    fn long_texts_are_cut_between_letters() {
        let has_text = |failure: &Failure| *failure != Failure::Forked;
        for failure in failures(5000, 1000).into_iter().filter(has_text) {
            let words = encode(&failure);
            assert!(words.len() <= REASON_WORDS);
            let text = decode(&words).expect("a failure").to_string();
            assert!(text.contains("ä...") && !text.contains(char::REPLACEMENT_CHARACTER));
        }
        assert_eq!(beginning("äöü", 3), "ä");
    }

    proptest! {
        /// Decoding arbitrary words does not panic.
        #[test]
        fn decoding_any_words_never_panics(
            kind in 0_u64..13,
            words in vec(prop_oneof![0_u64..20, any::<u64>()], 0..60),
            left in 0_usize..60,
        ) {
            let mut all = vec![kind];
            all.extend(words);
            if let Some(failure) = decode(&all) {
                prop_assert!(encode(&failure).len() <= REASON_WORDS);
            }
            let mut cut = encode(&failures(20, 20)[(kind % 11) as usize]);
            cut.truncate(left);
            let _ = decode(&cut);
        }
    }
}
