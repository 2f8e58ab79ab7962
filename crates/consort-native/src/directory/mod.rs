//! What the PEs of a job have to agree on without a message: pieces of memory, teams, calls' names.
//!
//! All of it is flat memory in the job's segment, under one lock: no pointer of a process stands in
//! it. Whoever comes first to something that all members of a team come to decides it, and the
//! others find it decided.
//!
//! | file | what |
//! | --- | --- |
//! | `map` | entries by their keys: blocks of symmetric memory, groups, the numbers of names |
//! | `space` | which piece of a heap, or of the memory for groups, is taken |
//! | `names` | the names of calls and their numbers |
//!
//! | entry | key | value |
//! | --- | --- | --- |
//! | block | group, number of the allocation | holders, piece, what is fresh, bytes asked for |
//! | group being formed | parent, number of the making and colour | members to come, number |
//! | group | number | members, piece, PEs |
//! | name | hash | number |

mod cells;
mod map;
mod names;
mod space;

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::Ordering::{Acquire, Relaxed, Release},
    },
};

use crate::{
    segment::{PAGE, Segment, Words},
    sync::{AtomicBool, yield_now},
};
use cells::{Cells, size};
use map::{Full, Key, Map, Value};
use names::Names;
use space::{NoPiece, Piece, Space};

/// Every block of symmetric memory begins at a multiple of this, in bytes.
pub const BLOCK_ALIGN: usize = 128;

/// Blocks of symmetric memory, and groups, at once.
const PIECES: usize = 1 << 16;
/// Names of calls that have numbers at once.
const NAMES: usize = 1 << 16;
/// Entries that there is room for: of all of these, and of as many groups that are being formed or
/// blocks that there was no memory for. A group has at most one of the latter at a time.
const ENTRIES: usize = 3 * PIECES + NAMES;

/// The first words of keys.
const BLOCK: u64 = 1;
const FORMING: u64 = 2;
const GROUP: u64 = 3;
const NAME: u64 = 4;

/// The words of the lock, and of the number of groups made, on lines of their own.
const LOCK: usize = 0;
const GROUPS: usize = 16;
const HEAD: usize = 32;

/// In place of a piece or a number: there was none, for this reason.
const EXHAUSTED: u64 = u64::MAX;
const TOO_MANY: u64 = u64::MAX - 1;

/// Why another entry fits.
const ROOM: &str = "there is room for entries of as many pieces and names as there may be";

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
    words: Words,
    segment: Arc<Segment>,
    /// Bytes of a PE's heap.
    heap_bytes: usize,
    /// Where the memory for groups begins in the segment; it reaches to the end.
    ground: usize,
}

/// Memory for a group, and which it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) number: u64,
    /// The offset in the segment.
    pub(crate) at: usize,
}

impl Place {
    /// That of no group.
    pub(crate) const NOWHERE: Self = Self { number: u64::MAX, at: 0 };
}

/// A block of symmetric memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    /// The offset in each heap.
    pub(crate) at: usize,
    /// The offset from which on nobody has had the memory before: it is zero.
    pub(crate) fresh: usize,
}

/// Why memory could not be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeapError {
    /// No gap is large enough.
    #[error(
        "symmetric memory exhausted: {asked} bytes a PE asked, {free} of {heap} bytes free \
         (largest piece {largest}); give the launch a larger heap, as in \
         Pes::threads(n).heap_bytes({larger}), or drop what is no longer used"
    )]
    Exhausted {
        /// Bytes asked for on each PE.
        asked: usize,
        /// Bytes free in all.
        free: usize,
        /// The largest free piece.
        largest: usize,
        /// The size of a PE's heap.
        heap: usize,
        /// A size of heap that would have done.
        larger: usize,
    },
    /// There are as many allocations as there may be.
    #[error("a job has at most {most} allocations at once: drop some, or make one of several")]
    TooMany {
        /// How many that is.
        most: usize,
    },
    /// The operating system gave no memory for the job.
    #[error("the system gave no memory for a symmetric heap of {heap} bytes on each of {pes} PEs")]
    System {
        /// The size of a PE's heap.
        heap: usize,
        /// PEs in the job.
        pes: usize,
    },
}

/// There is no memory, or no number, for another group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoGroup;

/// All numbers are taken by calls that plans hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoNumber {
    /// How many there are.
    pub most: usize,
}

/// What tells an allocation from all others: its group, and its number there.
pub(crate) type Number = (u64, u64);

impl Directory {
    /// The directory at the beginning of a new segment, in which the memory for groups begins at
    /// `ground` and reaches to the end.
    pub(crate) fn new(segment: &Arc<Segment>, heap_bytes: usize, ground: usize) -> Self {
        let words = segment.words(0, WORDS);
        Self { words, segment: Arc::clone(segment), heap_bytes, ground }
    }

    /// Whether teams have been made besides the world.
    pub(crate) fn has_made_teams(&self) -> bool {
        self.words[GROUPS].load(Relaxed) > 1
    }

    /// The directory for this PE alone. `None` if the job has failed while another PE has it, which
    /// may never give it back.
    pub(crate) fn lock(&self, poisoned: &AtomicBool) -> Option<Locked<'_>> {
        let lock = &self.words[LOCK];
        let mut polls = 0;
        // Acquire: pairs with the release in `Locked::drop`.
        while lock.swap(1, Acquire) != 0 {
            while lock.load(Relaxed) != 0 {
                if poisoned.load(Relaxed) {
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
        let section = |from: usize, to: usize| Cells(&self.words[from..to]);
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
    directory: &'d Directory,
    groups: Cells<'d>,
    map: Map<'d>,
    heap: Space<'d>,
    ground: Space<'d>,
    names: Cells<'d>,
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        self.directory.words[LOCK].store(0, Release); // pairs with the acquire in `lock`
    }
}

impl Locked<'_> {
    /// The block of allocation `number`, held by so many PEs from now on. All members of the group
    /// come here, the first of them places it.
    ///
    /// # Panics
    /// When PEs ask for different sizes: the calls in which they do must have told them apart.
    pub(crate) fn allocate(
        &self,
        number: Number,
        holders: usize,
        asked: usize,
    ) -> Result<Taken, HeapError> {
        if asked == 0 {
            return Ok(Taken { at: 0, fresh: 0 }); // nothing fits into a full heap, too
        }
        let key = [BLOCK, number.0, number.1];
        let value = self.map.get(&key).unwrap_or_else(|| {
            let value = self.place(asked, holders);
            self.map.put(&key, &value).expect(ROOM);
            value
        });
        self.found(&key, &value, asked)
    }

    /// What an allocation's entry is to say.
    fn place(&self, asked: usize, holders: usize) -> Value {
        let taken = match asked.checked_next_multiple_of(BLOCK_ALIGN) {
            Some(bytes) => self.heap.take(bytes),
            None => self.heap.take(usize::MAX),
        };
        let holders = holders as u64;
        match taken {
            Ok(Piece { number, fresh, .. }) => [holders, number as u64, fresh as u64, asked as u64],
            Err(NoPiece::Exhausted { free, largest }) => {
                [holders, EXHAUSTED, free as u64, largest as u64]
            }
            Err(NoPiece::TooMany { most }) => [holders, TOO_MANY, most as u64, 0],
        }
    }

    /// What an allocation's entry says to one of its members. One that says that there is no memory
    /// is gone when all have heard.
    fn found(&self, key: &Key, value: &Value, asked: usize) -> Result<Taken, HeapError> {
        let &[_, piece, one, other] = value;
        let heap = self.directory.heap_bytes;
        let error = match piece {
            EXHAUSTED => HeapError::Exhausted {
                asked,
                free: size(one),
                largest: size(other),
                heap,
                larger: heap
                    .saturating_add(asked)
                    .checked_next_power_of_two()
                    .unwrap_or(usize::MAX),
            },
            TOO_MANY => HeapError::TooMany { most: size(one) },
            _ => {
                assert!(size(other) == asked, "PEs ask for {other} and {asked} bytes at once");
                let (at, _) = self.heap.piece(size(piece));
                return Ok(Taken { at, fresh: size(one) });
            }
        };
        self.let_go(key, value);
        Err(error)
    }

    /// One of an entry's holders lets go of it; says whether it was the last.
    fn let_go(&self, key: &Key, value: &Value) -> bool {
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

    /// Gives the memory of a block back, if it has some.
    fn give_back(&self, &[_, piece, ..]: &Value) {
        if piece != EXHAUSTED && piece != TOO_MANY {
            self.heap.give_back(size(piece));
        }
    }

    /// One PE is done with the block of allocation `number`.
    pub(crate) fn release(&self, number: Number) {
        let key = [BLOCK, number.0, number.1];
        let Some(value) = self.map.get(&key) else { return };
        if self.let_go(&key, &value) {
            self.give_back(&value);
        }
    }

    /// The group of this colour that is made of `parent` as its team number `made`, for one of its
    /// `pes` members; the first to come finds it a place of `bytes`.
    pub(crate) fn join(
        &self,
        (parent, made): (u64, u64),
        color: u32,
        pes: usize,
        bytes: usize,
    ) -> Result<Place, NoGroup> {
        let key = [FORMING, parent, made << 32 | u64::from(color)];
        let value = self.map.get(&key).unwrap_or_else(|| {
            let number = self.found_group(pes, bytes).map_or(EXHAUSTED, |place| place.number);
            let value = [pes as u64, number, 0, 0];
            self.map.put(&key, &value).expect(ROOM);
            value
        });
        self.let_go(&key, &value);
        let [_, number, ..] = value;
        let [_, piece, ..] = self.map.get(&[GROUP, number, 0]).ok_or(NoGroup)?;
        Ok(Place { number, at: self.place_of(piece).start })
    }

    /// Where a group lies in the segment.
    fn place_of(&self, piece: u64) -> Range<usize> {
        let (at, bytes) = self.ground.piece(size(piece));
        let at = self.directory.ground + at;
        at..at + bytes
    }

    /// A new group of so many PEs, which all must leave.
    pub(crate) fn found_group(&self, pes: usize, bytes: usize) -> Result<Place, NoGroup> {
        let bytes = bytes.checked_next_multiple_of(PAGE).ok_or(NoGroup)?;
        let Piece { number: piece, at, .. } = self.ground.take(bytes).map_err(|_| NoGroup)?;
        let number = self.groups.get(0);
        let at = self.directory.ground + at;
        let value = [pes as u64, piece as u64, pes as u64, 0];
        self.map.put(&[GROUP, number, 0], &value).expect(ROOM);
        self.groups.set(0, number + 1);
        Ok(Place { number, at })
    }

    /// One member leaves a group. When all have, its memory is zero and the system's again.
    pub(crate) fn leave(&self, number: u64) {
        let key = [GROUP, number, 0];
        let Some(value) = self.map.get(&key) else { return };
        if self.let_go(&key, &value) {
            let [_, piece, ..] = value;
            // SAFETY: each member has left, which a `Group` does when it is dropped, and nothing
            // else uses the memory; nobody gets it again before it is given back, under this lock.
            #[expect(unsafe_code, reason = "clears the memory of a group that all have left")]
            unsafe {
                self.directory.segment.clear(self.place_of(piece));
            }
            self.ground.give_back(size(piece));
        }
    }

    /// The offsets of all groups, and how many PEs they have.
    pub(crate) fn groups(&self) -> Vec<(usize, usize)> {
        let groups = self.map.of_kind(GROUP);
        groups.map(|(_, [_, piece, pes, _])| (self.place_of(piece).start, size(pes))).collect()
    }

    fn names(&self) -> Names<'_> {
        Names::new(self.names, &self.map)
    }

    /// The number of a call's name, held once more. `recent` says which are among recent calls.
    pub(crate) fn hold_name(
        &self,
        text: &str,
        recent: impl FnOnce(&mut dyn FnMut(u64)),
    ) -> Result<u64, NoNumber> {
        let names = self.names();
        names.hold(text, recent).map_err(|Full| NoNumber { most: names.most() })
    }

    /// A holder lets go of a number.
    pub(crate) fn release_name(&self, number: u64) {
        self.names().release(number);
    }

    /// The name of a number.
    pub(crate) fn name(&self, number: u64) -> Option<String> {
        self.names().text(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::LineWord;

    /// A directory of a segment with a heap of so many bytes, and four pages for groups.
    fn directory(heap_bytes: usize) -> Directory {
        let segment = Arc::new(Segment::reserve(BYTES + 4 * PAGE).expect("memory"));
        Directory::new(&segment, heap_bytes, BYTES)
    }

    fn locked(directory: &Directory) -> Locked<'_> {
        directory.lock(&AtomicBool::new(false)).expect("nobody has it")
    }

    #[test]
    fn memory_is_reused_only_when_all_have_dropped_it() {
        let directory = directory(1024);
        let heap = locked(&directory);
        let at = |number, asked| heap.allocate((0, number), 2, asked).map(|taken| taken.at);
        assert_eq!((at(0, 512), at(0, 512), at(1, 500)), (Ok(0), Ok(0), Ok(512)));
        assert!(matches!(at(2, 1), Err(HeapError::Exhausted { free: 0, .. })));
        heap.release((0, 0));
        assert!(at(3, 1).is_err(), "the other PE still holds it");
        heap.release((0, 0));
        assert_eq!(at(4, 128), Ok(0));
        for number in [1, 1, 4, 4] {
            heap.release((0, number));
        }
        assert_eq!(at(5, 1024), Ok(0), "pieces are joined again");
    }

    #[test]
    #[should_panic(expected = "PEs ask for 8 and 16 bytes at once")]
    fn sizes_must_match() {
        let directory = directory(1024);
        let heap = locked(&directory);
        let _ = [8, 16].map(|asked| heap.allocate((0, 0), 2, asked));
    }

    #[test]
    fn absurd_sizes_are_errors() {
        let directory = directory(1024);
        let heap = locked(&directory);
        let at = |number, asked| heap.allocate((0, number), 2, asked).map(|taken| taken.at);
        assert_eq!(at(0, 8), Ok(0));
        assert!(at(1, usize::MAX).is_err());
        assert_eq!((at(2, 0), at(3, 1016 - 128 + 8)), (Ok(0), Ok(128)));
        assert_eq!(at(4, 0), Ok(0), "nothing fits into a full heap");
    }

    #[test]
    fn nothing_is_left_of_allocations_that_failed() {
        let directory = directory(1024);
        let heap = locked(&directory);
        for number in 0..10 {
            let both = [(); 2].map(|()| heap.allocate((0, number), 2, 2000));
            assert!(both[0].is_err() && both[0] == both[1], "all hear the same");
        }
        assert_eq!(heap.map.of_kind(BLOCK).count(), 0);
    }

    #[test]
    fn what_was_used_before_is_told() {
        let directory = directory(1024);
        let heap = locked(&directory);
        let fresh = |number, asked| heap.allocate((0, number), 1, asked).map(|taken| taken.fresh);
        assert_eq!(fresh(0, 256), Ok(0));
        heap.release((0, 0));
        assert_eq!(fresh(1, 512), Ok(256));
        assert_eq!(fresh(2, 128), Ok(512));
    }

    #[test]
    fn members_find_their_group_and_its_pages_are_zero_again() {
        let directory = directory(0);
        let groups = locked(&directory);
        let world = groups.found_group(3, 100).expect("a page");
        assert_eq!((world.number, groups.groups()), (0, vec![(BYTES, 3)]));
        for made in 0..10 {
            let join = |color| groups.join((0, made), color, 2, PAGE).expect("a page");
            let [one, other, same] = [7, 8, 7].map(join);
            assert_eq!((one.at, one), (BYTES + PAGE, same));
            assert_ne!((one.at, one.number), (other.at, other.number));
            let words = directory.segment.words(one.at, PAGE / 8);
            let zero = |word: &LineWord| word.swap(7, Relaxed) == 0;
            assert!(words.iter().all(zero), "others' are never seen");
            assert_eq!(join(8), other);
            for number in [one.number, other.number] {
                groups.leave(number);
                groups.leave(number);
            }
        }
        assert_eq!(groups.groups().len(), 1);
        assert_eq!(groups.map.of_kind(FORMING).count(), 0);
    }

    #[test]
    fn a_group_that_finds_no_place_is_none_for_all() {
        let directory = directory(0);
        let groups = locked(&directory);
        for color in [1, 1, 2] {
            assert_eq!(groups.join((0, 0), color, 2, 5 * PAGE), Err(NoGroup));
        }
        assert_eq!(groups.groups(), []);
    }

    #[test]
    fn whoever_waits_for_a_lock_that_is_lost_hears_that_the_job_has_failed() {
        let (directory, poisoned) = (directory(0), AtomicBool::new(false));
        std::mem::drop(directory.lock(&poisoned).expect("nobody has it"));
        let lost = directory.lock(&poisoned).expect("it was given back");
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| directory.lock(&poisoned).is_none());
            poisoned.store(true, Relaxed);
            assert!(waiter.join().expect("no panic"));
        });
        drop(lost);
        assert!(directory.lock(&poisoned).is_some(), "free, it is given all the same");
    }

    #[test]
    fn one_at_a_time_has_the_lock() {
        let (directory, poisoned) = (directory(1 << 20), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (directory, poisoned) = (&directory, &poisoned);
                scope.spawn(move || {
                    for number in 0..500 {
                        let lock = || directory.lock(poisoned).expect("the job is sound");
                        lock().allocate((thread, number), 1, 8).expect("room");
                        lock().hold_name("a call", |_| ()).expect("a number");
                        lock().release((thread, number));
                    }
                });
            }
        });
        let all = locked(&directory);
        assert_eq!(all.map.of_kind(BLOCK).count(), 0);
        assert_eq!(all.hold_name("another", |_| ()), Ok(2));
        assert_eq!(all.allocate((0, 0), 1, 1 << 20).map(|taken| taken.at), Ok(0));
    }
}
