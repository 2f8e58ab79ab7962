//! The memory for groups: the end of the job's segment, and extents that are added when it is full.
//!
//! A place is an offset. The offsets of extents continue after the segment's end. Between two
//! extents there is a page that belongs to neither, so no group crosses an end. The words of this
//! section list the extents, and are written under the directory's lock. Each process maps an
//! extent when it first looks for a place in it.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::Ordering::{Acquire, Relaxed, Release},
};

use super::{group_error::GroupError, locked_words::size};
use crate::segment::{
    backing::Backing,
    memory_error::{MemoryError, sparing},
    page::PAGE,
    reservation::Segment,
    slice::SegmentWords,
};

/// The maximum number of extents. Each is as large as all memory before it, if that much is
/// available.
const EXTENTS: usize = 64;

/// The words of this section: the number of extents; then for each extent its offset from the
/// beginning of the arena, its size in bytes, and its offset in the file.
const COUNT: usize = 0;
const FIRST: usize = 1;
const EXTENT_WORDS: usize = 3;
/// The number of words in this section.
pub(super) const WORDS: usize = (FIRST + EXTENTS * EXTENT_WORDS).next_multiple_of(8);

/// The name of extents in errors.
const TEAMS: &str = "the memory of teams";

/// The place of the memory for groups.
#[derive(Clone)]
pub(crate) struct GroupArenaPlace {
    /// The offset in the segment at which the memory begins. It extends to the segment's end.
    pub(crate) begin: usize,
    /// The maximum number of bytes for all groups.
    pub(crate) most: usize,
    pub(crate) backing: Backing,
}

pub(super) struct GroupArena {
    segment: Arc<Segment>,
    words: SegmentWords,
    place: GroupArenaPlace,
    /// The extents that this process has mapped.
    mapped: Mutex<Vec<Option<Arc<Segment>>>>,
}

/// An extent. Its offset counts from the beginning of the arena.
#[derive(Clone, Copy)]
struct Extent {
    at: usize,
    bytes: usize,
    file_at: u64,
}

impl GroupArena {
    /// Returns the arena at `place`, with the extents that `words` list.
    pub(super) fn new(segment: &Arc<Segment>, place: GroupArenaPlace, words: SegmentWords) -> Self {
        Self { segment: Arc::clone(segment), place, words, mapped: Mutex::default() }
    }

    /// Returns the offset in the segment at which the arena begins.
    pub(super) fn begin(&self) -> usize {
        self.place.begin
    }

    /// Returns the number of bytes from the beginning to the end of the last extent.
    pub(super) fn bytes(&self) -> usize {
        let last = self.count().checked_sub(1).map(|last| self.extent(last));
        last.map_or(self.segment.bytes() - self.place.begin, |Extent { at, bytes, .. }| at + bytes)
    }

    fn count(&self) -> usize {
        // Acquire: pairs with the release in `grow`.
        size(self.words[COUNT].load(Acquire)).min(EXTENTS)
    }

    fn extent(&self, number: usize) -> Extent {
        let words = &self.words[FIRST + number * EXTENT_WORDS..][..EXTENT_WORDS];
        let word = |at: usize| words[at].load(Relaxed);
        Extent { at: size(word(0)), bytes: size(word(1)), file_at: word(2) }
    }

    /// Adds an extent of at least `least` bytes, in whole pages. The directory must be locked.
    ///
    /// # Errors
    /// When the system refuses the memory, or groups would take too much.
    pub(super) fn grow(&self, least: usize) -> Result<(), GroupError> {
        let GroupArenaPlace { most, backing, .. } = &self.place;
        let (before, number) = (self.bytes(), self.count());
        let left = most.saturating_sub(before);
        if number == EXTENTS || least > left {
            return Err(GroupError::Full { most: *most });
        }
        let doubled = sparing(least, before.min(left)).next_multiple_of(PAGE);
        let made = backing.extend(doubled, TEAMS).or_else(|_| backing.extend(least, TEAMS))?;
        let words = &self.words[FIRST + number * EXTENT_WORDS..];
        let bytes = made.segment.bytes();
        let place = [(before + PAGE) as u64, bytes as u64, made.file_at];
        words.iter().zip(place).for_each(|(word, value)| word.store(value, Relaxed));
        self.keep(number, made.segment);
        // Release: pairs with the acquire in `count`.
        self.words[COUNT].store(number as u64 + 1, Release);
        Ok(())
    }

    /// Keeps an extent that this process has mapped.
    fn keep(&self, number: usize, segment: Segment) -> Arc<Segment> {
        segment.keep_pages_small(0..segment.bytes());
        let mut mapped = self.mapped.lock().unwrap_or_else(PoisonError::into_inner);
        if mapped.len() <= number {
            mapped.resize(number + 1, None);
        }
        // Another thread may have mapped the extent in the meantime.
        Arc::clone(mapped[number].get_or_insert_with(|| Arc::new(segment)))
    }

    /// Returns the segment that contains a place, and the offset of the place in that segment. `at`
    /// is the offset of the place as if there were only one segment.
    ///
    /// # Errors
    /// When this process cannot map the extent.
    pub(super) fn find(&self, at: usize) -> Result<(Arc<Segment>, usize), Box<MemoryError>> {
        if at < self.segment.bytes() {
            return Ok((Arc::clone(&self.segment), at));
        }
        let of_arena = at - self.place.begin;
        let mut all = (0..self.count()).map(|number| (number, self.extent(number)));
        let of_place = |(_, extent): &(usize, Extent)| of_arena < extent.at + extent.bytes;
        let (number, Extent { at, bytes, file_at }) =
            all.find(of_place).expect("a place of a group");
        let mapped = self.mapped.lock().unwrap_or_else(PoisonError::into_inner);
        let found = mapped.get(number).cloned().flatten();
        drop(mapped);
        let segment = match found {
            Some(segment) => segment,
            None => self.keep(number, self.place.backing.map(file_at, bytes, TEAMS)?),
        };
        Ok((segment, of_arena - at))
    }
}
