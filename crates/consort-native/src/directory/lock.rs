//! The directory's memory and its lock, which gives up in a job that has failed.

use std::sync::{
    Arc,
    atomic::Ordering::{Acquire, Relaxed, Release},
};

use super::{
    keys::ROOM,
    locked_words::LockedWords,
    map::{Key, Map, Value},
    names::Names,
    space::Space,
};
use crate::{
    segment::{page::PAGE, part::Words, reservation::Segment},
    state::poison::PoisonFlag,
    sync::yield_now,
};

/// Blocks of symmetric memory, and groups, at once.
const PIECES: usize = 1 << 16;
/// Names of calls that have numbers at once.
const NAMES: usize = 1 << 16;
/// Entries that there is room for: of all of these, and of as many groups that are being formed or
/// blocks that there was no memory for. A group has at most one of the latter at a time.
const ENTRIES: usize = 3 * PIECES + NAMES;

/// The words of the lock, and of the number of groups made, on lines of their own.
const LOCK: usize = 0;
const GROUPS: usize = 16;
const HEAD: usize = 32;

/// Polls of the lock before the first yield.
const SPINS: u32 = 100;

/// Where the sections of the directory begin, in words.
const MAP: usize = HEAD;
const HEAP: usize = MAP + Map::words(ENTRIES);
const GROUND: usize = HEAP + Space::words(PIECES);
const NAMED: usize = GROUND + Space::words(PIECES);
const WORDS: usize = NAMED + Names::words(NAMES);

/// Bytes of the directory; hardly any are touched unless they are used.
pub(crate) const BYTES: usize = (WORDS * 8).next_multiple_of(PAGE);

/// The job's directory.
pub(crate) struct Directory {
    pub(super) words: Words,
    pub(super) segment: Arc<Segment>,
    /// Bytes of a PE's heap.
    pub(super) heap_bytes: usize,
    /// Where the memory for groups begins in the segment; it reaches to the end.
    pub(super) ground: usize,
}

impl Directory {
    /// The directory at an offset of a new segment, in which the memory for groups begins at
    /// `ground` and reaches to the end.
    pub(crate) fn new(segment: &Arc<Segment>, at: usize, heap_bytes: usize, ground: usize) -> Self {
        let words = Words::new(segment, at, WORDS);
        Self { words, segment: Arc::clone(segment), heap_bytes, ground }
    }

    /// Whether teams have been made besides the world.
    pub(crate) fn has_made_teams(&self) -> bool {
        self.words[GROUPS].load(Relaxed) > 1
    }

    /// The directory for this PE alone. `None` if the job has failed while another PE has it, which
    /// may never give it back.
    pub(crate) fn lock(&self, poison: &PoisonFlag) -> Option<Locked<'_>> {
        let lock = &self.words[LOCK];
        let mut polls = 0;
        // Acquire: pairs with the release in `Locked::drop`.
        while lock.swap(1, Acquire) != 0 {
            while lock.load(Relaxed) != 0 {
                if poison.is_raised() {
                    return None;
                }
                polls += 1;
                if polls < SPINS {
                    std::hint::spin_loop();
                } else {
                    yield_now();
                }
            }
        }
        let section = |from: usize, to: usize| LockedWords(&self.words[from..to]);
        Some(Locked {
            directory: self,
            groups: section(GROUPS, HEAD),
            map: Map::new(section(MAP, HEAP)),
            heap: Space::new(section(HEAP, GROUND), self.heap_bytes),
            ground: Space::new(section(GROUND, NAMED), self.segment.bytes() - self.ground),
            names: section(NAMED, WORDS),
        })
    }
}

/// The directory, for whoever has its lock.
pub(crate) struct Locked<'d> {
    pub(super) directory: &'d Directory,
    pub(super) groups: LockedWords<'d>,
    pub(super) map: Map<'d>,
    pub(super) heap: Space<'d>,
    pub(super) ground: Space<'d>,
    pub(super) names: LockedWords<'d>,
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        self.directory.words[LOCK].store(0, Release); // pairs with the acquire in `lock`
    }
}

impl Locked<'_> {
    /// One of an entry's holders lets go of it; says whether it was the last.
    pub(super) fn let_go(&self, key: &Key, value: &Value) -> bool {
        let mut value = *value;
        value[0] -= 1;
        let is_last = value[0] == 0;
        if is_last {
            self.map.remove(key);
        } else {
            self.map.put(key, &value).expect(ROOM);
        }
        is_last
    }
}
