//! A record of the call in which a PE waits and of how often it has polled. Only the PE writes it.
//! Other PEs read it as a whole.
//!
//! The record is a sequence lock (Boehm 2012, "Can seqlocks get along with programming language
//! memory models?"): the writer makes the version odd, writes, and makes it even. A reader retries
//! if the version is odd or has changed after the read. A writer may die while the version is odd,
//! so a reader gives up after some attempts.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use consort_machine::sync::{AtomicU64, fence};

const WORDS: usize = 7;
/// The number of a reader's attempts.
const TRIES: u32 = 1000;

/// The record, on a separate line.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct Heartbeat {
    version: AtomicU64,
    words: [AtomicU64; WORDS],
}

/// The reason why a PE waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitReason {
    /// The PE waits in a call, for its messages.
    In(CallWait),
    /// The PE waits for a word in its memory, which any PE may change.
    ForWord,
}

/// A call in which a PE waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallWait {
    /// The number of the call's group.
    pub group: u64,
    /// The number of the call in the group.
    pub call: u64,
    /// The word of the call.
    pub word: u64,
    /// The event that the PE waits for in this call.
    pub awaited: Awaited,
}

/// The event that ends a wait in a call, as far as the PE knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// Unknown: the wait may end without a message of the call.
    Unknown,
    /// The end of a nonblocking call, which the PE polls.
    Completion,
    /// Credits for later calls.
    Credits,
    /// A change of the group's word at this index.
    Word(usize),
}

/// The contents of the record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeartbeatRecord {
    /// The PE's current wait, if it waits.
    pub wait: Option<WaitReason>,
    /// The number of waits that the PE has begun. It identifies the current wait.
    pub waits: u64,
    /// How often the PE has polled for its message, over all waits.
    pub beats: u64,
    /// Whether other threads hold handles to the PE's symmetric memory.
    pub shares: bool,
}

impl Heartbeat {
    /// Returns whether the PE has published a wait.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        self.words[0].load(Relaxed) != 0
    }

    /// Returns the record, or `None` if the writer never completes it.
    pub fn read(&self) -> Option<HeartbeatRecord> {
        (0..TRIES).find_map(|_| self.try_read())
    }

    /// Returns the record, or `None` while the PE is writing it.
    pub fn try_read(&self) -> Option<HeartbeatRecord> {
        let before = self.version.load(Acquire); // pairs with the release in `write`
        let words = self.words.each_ref().map(|word| word.load(Relaxed));
        fence(Acquire); // pairs with the fence in `write`
        let is_whole = before.is_multiple_of(2) && self.version.load(Relaxed) == before;
        is_whole.then(|| Self::decode(words))
    }

    /// Returns the record. Only the PE itself may call this.
    pub fn own(&self) -> HeartbeatRecord {
        Self::decode(self.words.each_ref().map(|word| word.load(Relaxed)))
    }

    /// Writes the record. Only the PE's own thread may call this.
    pub fn write(&self, beats: &HeartbeatRecord) {
        let version = self.version.load(Relaxed) | 1;
        self.version.store(version, Relaxed);
        fence(Release); // pairs with the fence in `try_read`: new words imply an odd version
        for (word, value) in self.words.iter().zip(Self::encode(beats)) {
            word.store(value, Relaxed);
        }
        self.version.store(version.wrapping_add(1), Release); // pairs with the load in `try_read`
    }

    fn encode(&HeartbeatRecord { wait, waits, beats, shares }: &HeartbeatRecord) -> [u64; WORDS] {
        let [kind, call, word, awaited] = match wait {
            None => [0; 4],
            Some(WaitReason::ForWord) => [1, 0, 0, 0],
            Some(WaitReason::In(CallWait { group, call, word, awaited })) => {
                [group.wrapping_add(2), call, word, awaited.encode()]
            }
        };
        [kind, call, word, awaited, waits, beats, shares.into()]
    }

    fn decode([kind, call, word, awaited, waits, beats, shares]: [u64; WORDS]) -> HeartbeatRecord {
        let awaited = Awaited::decode(awaited);
        let wait = match kind {
            0 => None,
            1 => Some(WaitReason::ForWord),
            _ => Some(WaitReason::In(CallWait { group: kind - 2, call, word, awaited })),
        };
        HeartbeatRecord { wait, waits, beats, shares: shares != 0 }
    }
}

impl Awaited {
    pub(crate) fn encode(self) -> u64 {
        match self {
            Self::Unknown => 0,
            Self::Completion => 1,
            Self::Credits => 2,
            Self::Word(at) => at as u64 + 3,
        }
    }

    pub(crate) fn decode(word: u64) -> Self {
        match word {
            0 => Self::Unknown,
            1 => Self::Completion,
            2 => Self::Credits,
            _ => usize::try_from(word - 3).map_or(Self::Unknown, Self::Word),
        }
    }
}
