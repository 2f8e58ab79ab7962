//! The directory's memory and its lock. A PE stops waiting for the lock once the job has failed.

use std::sync::{
    Arc,
    atomic::Ordering::{Acquire, Relaxed, Release},
};

use super::{
    group_arena::{self, GroupArena, GroupArenaPlace},
    keys::ROOM,
    locked_words::LockedWords,
    map::{Key, Map, Value},
    names::Names,
    region_allocator::RegionAllocator,
};
use crate::{
    segment::{memory_error::MemoryError, page::PAGE, reservation::Segment, slice::SegmentWords},
    state::poison::PoisonFlag,
};
use consort_machine::sync::yield_now;

/// The maximum number of blocks of symmetric memory, and of groups, at any time.
const PIECES: usize = 1 << 16;
/// The maximum number of named calls at any time. A test makes more calls than that, and each waits
/// for another thread.
pub(crate) const NAMES: usize = if cfg!(test) { 1 << 11 } else { 1 << 16 };
/// The number of entries in the map: for all of these, and for as many groups being formed or
/// failed allocations. A group has at most one failed allocation at a time.
const ENTRIES: usize = 3 * PIECES + NAMES;

/// The words of the lock and of the numbers of groups, in separate cache lines.
const LOCK: usize = 0;
const GROUPS: usize = 16;
const HEAD: usize = 32;

/// The number of polls of the lock before the first yield.
const SPINS: u32 = 100;

/// The offsets of the directory's sections, in words.
const MAP: usize = HEAD;
const HEAP: usize = MAP + Map::words(ENTRIES);
const ARENA: usize = HEAP + RegionAllocator::words(PIECES);
const NAMED: usize = ARENA + RegionAllocator::words(PIECES);
const EXTENTS: usize = NAMED + Names::words(NAMES);
const WORDS: usize = EXTENTS + group_arena::WORDS;

/// The size of the directory in bytes. The system provides only the pages that are touched.
pub(crate) const BYTES: usize = (WORDS * 8).next_multiple_of(PAGE);

pub(crate) struct Directory {
    pub(super) words: SegmentWords,
    pub(super) heap_bytes: usize,
    pub(super) arena: GroupArena,
}

impl Directory {
    /// Returns the directory at offset `at` of a new segment, with the arena of groups at `arena`.
    pub(crate) fn new(
        segment: &Arc<Segment>,
        at: usize,
        heap_bytes: usize,
        arena: GroupArenaPlace,
    ) -> Self {
        let words = SegmentWords::new(segment, at, WORDS);
        let extents =
            SegmentWords::new(segment, at + EXTENTS * size_of::<u64>(), group_arena::WORDS);
        let arena = GroupArena::new(segment, arena, extents);
        Self { words, heap_bytes, arena }
    }

    /// Returns the segment that contains the memory of the group at `at`, and its offset in that
    /// segment.
    ///
    /// # Errors
    /// When this process cannot map the memory.
    pub(crate) fn find_group(&self, at: usize) -> Result<(Arc<Segment>, usize), Box<MemoryError>> {
        self.arena.find(at)
    }

    /// Locks the directory. Returns `None` if the job has failed while another PE holds the lock,
    /// because that PE may never release it.
    pub(crate) fn lock(&self, poison: &PoisonFlag) -> Option<LockedDirectory<'_>> {
        let lock = &self.words[LOCK];
        let mut polls = 0;
        // Acquire: pairs with the release in `LockedDirectory::drop`.
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
        Some(LockedDirectory {
            directory: self,
            groups: section(GROUPS, HEAD),
            map: Map::new(section(MAP, HEAP)),
            heap: RegionAllocator::new(section(HEAP, ARENA), self.heap_bytes),
            arena: RegionAllocator::new(section(ARENA, NAMED), self.arena.bytes()),
            names: section(NAMED, EXTENTS),
        })
    }
}

/// The locked directory. Dropping it releases the lock.
pub(crate) struct LockedDirectory<'d> {
    pub(super) directory: &'d Directory,
    pub(super) groups: LockedWords<'d>,
    pub(super) map: Map<'d>,
    pub(super) heap: RegionAllocator<'d>,
    pub(super) arena: RegionAllocator<'d>,
    pub(super) names: LockedWords<'d>,
}

impl Drop for LockedDirectory<'_> {
    fn drop(&mut self) {
        self.directory.words[LOCK].store(0, Release); // pairs with the acquire in `lock`
    }
}

impl LockedDirectory<'_> {
    /// Removes one hold from an entry. Removing the last hold removes the entry. Returns whether
    /// this was the last hold.
    pub(super) fn remove_hold(&self, key: &Key, value: &Value) -> bool {
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
