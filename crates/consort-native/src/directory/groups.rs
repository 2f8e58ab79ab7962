//! Memory for groups: the region of each group.

#![expect(unsafe_code, reason = "clears the memory of a group that all have left")]

use std::ops::Range;

use consort_fabric::Rank;

use super::{
    group_error::GroupError,
    keys::{EXHAUSTED, FORMING, GROUP, ROOM, STRIDED},
    lock::LockedDirectory,
    locked_words::size,
    map::Key,
    region_allocator::{Region, RegionError},
};
use crate::segment::page::PAGE;

/// A group's number and the place of its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupPlace {
    pub(crate) number: u64,
    /// The offset in the segment.
    pub(crate) at: usize,
}

/// The key by which the members of a group identify it while it is being formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupKey {
    /// A formation in which all members of a parent group take part: the parent's number, the
    /// number of the formation, and the colour.
    Color(u64, u64, u32),
    /// A strided team: its first PE in the world and its stride (the bits of a signed number). Only
    /// the members know that the team is being formed.
    Strided(Rank, u32),
}

impl GroupKey {
    fn key(self, pes: usize) -> Key {
        match self {
            Self::Color(parent, made, color) => [FORMING, parent, made << 32 | u64::from(color)],
            Self::Strided(Rank(first), stride) => {
                [STRIDED, u64::from(first) << 32 | u64::from(stride), pes as u64]
            }
        }
    }
}

/// The words of the section of groups: how many groups were made; how many are being formed; the
/// number below which no group was being formed at the last scan of all entries; and how many had
/// been made at that scan.
const MADE: usize = 0;
const FORMED: usize = 1;
const NUMBERED: usize = 2;
const LOOKED: usize = 3;

/// The number of groups made between two scans of all entries for groups that are being formed.
const MANY: u64 = 256;

impl LockedDirectory<'_> {
    /// Returns the group that is being formed. Each of its `pes` members calls this once. The first
    /// call allocates `bytes` for it. Fails for a member that assumes another group size.
    pub(crate) fn join(
        &self,
        forming: GroupKey,
        pes: usize,
        bytes: usize,
    ) -> Result<GroupPlace, GroupError> {
        let mut refused = None;
        let found = || match self.found_group(pes, bytes) {
            Ok(place) => place.number,
            Err(error) => {
                refused = Some(error);
                EXHAUSTED
            }
        };
        let number = self.number_formed(forming, pes, found).ok_or(GroupError::PeerExhausted)?;
        self.group_place(number).ok_or(refused.unwrap_or(GroupError::PeerExhausted))
    }

    /// Returns the number of a group that is being formed. Each of its `pes` members calls this
    /// once. The group's memory is placed elsewhere. `None` for a member that assumes another group
    /// size.
    pub(crate) fn number_group(&self, forming: GroupKey, pes: usize) -> Option<u64> {
        self.number_formed(forming, pes, || self.next_number())
    }

    /// Returns the number of a group that is being formed. For the first member, `first` provides
    /// it.
    fn number_formed(
        &self,
        forming: GroupKey,
        pes: usize,
        first: impl FnOnce() -> u64,
    ) -> Option<u64> {
        let key = forming.key(pes);
        let value = self.map.get(&key).unwrap_or_else(|| {
            let value = [pes as u64, first(), pes as u64, 0];
            self.map.put(&key, &value).expect(ROOM);
            self.groups.set(FORMED, self.groups.get(FORMED) + 1);
            value
        });
        let [_, number, size, _] = value;
        if size != pes as u64 {
            return None; // its memory would have another layout
        }
        if self.remove_hold(&key, &value) {
            self.groups.set(FORMED, self.groups.get(FORMED) - 1);
        }
        Some(number)
    }

    fn next_number(&self) -> u64 {
        let number = self.groups.get(MADE);
        self.groups.set(MADE, number + 1);
        number
    }

    /// Returns a number such that all members of groups with lower numbers have got their numbers.
    /// It is the next group's number or a lower one.
    pub(crate) fn numbered_below(&self) -> u64 {
        let [made, looked] = [MADE, LOOKED].map(|word| self.groups.get(word));
        let numbered = if self.groups.get(FORMED) == 0 {
            made
        } else if made - looked >= MANY {
            self.groups.set(LOOKED, made);
            let formed = [FORMING, STRIDED].into_iter().flat_map(|kind| self.map.of_kind(kind));
            formed.map(|(_, [_, number, ..])| number).fold(made, u64::min)
        } else {
            self.groups.get(NUMBERED)
        };
        self.groups.set(NUMBERED, numbered);
        numbered
    }

    /// Returns the place of the group with this number, if there is one.
    pub(crate) fn group_place(&self, number: u64) -> Option<GroupPlace> {
        let [_, region, ..] = self.map.get(&[GROUP, number, 0])?;
        Some(GroupPlace { number, at: self.place_of(region).start })
    }

    /// Returns the range of a group's region in the segment.
    fn place_of(&self, region: u64) -> Range<usize> {
        let (at, bytes) = self.arena.region(size(region));
        let at = self.directory.arena.begin() + at;
        at..at + bytes
    }

    /// Makes a group of `pes` members. Its memory is freed when all members have left.
    pub(crate) fn found_group(&self, pes: usize, bytes: usize) -> Result<GroupPlace, GroupError> {
        let place = self.place_group(self.groups.get(MADE), pes, pes, bytes)?;
        self.next_number();
        Ok(place)
    }

    /// Returns the place of the group with this number. Each of the `holders`, the members of its
    /// `pes` members that use this memory, calls this once.
    pub(crate) fn place_group(
        &self,
        number: u64,
        pes: usize,
        holders: usize,
        bytes: usize,
    ) -> Result<GroupPlace, GroupError> {
        if let Some(place) = self.group_place(number) {
            return Ok(place);
        }
        let bytes = bytes.next_multiple_of(PAGE);
        let taken = self.arena.take(bytes).or_else(|error| match error {
            RegionError::Exhausted { .. } => {
                self.grow_arena(bytes)?;
                self.arena.take(bytes).map_err(GroupError::from)
            }
            error @ RegionError::TooMany { .. } => Err(error.into()),
        });
        let Region { number: region, at, .. } = taken?;
        let at = self.directory.arena.begin() + at;
        let value = [holders as u64, region as u64, pes as u64, 0];
        self.map.put(&[GROUP, number, 0], &value).expect(ROOM);
        Ok(GroupPlace { number, at })
    }

    /// Adds at least `bytes` bytes to the memory for groups.
    fn grow_arena(&self, bytes: usize) -> Result<(), GroupError> {
        let arena = &self.directory.arena;
        self.arena.grow(PAGE, || {
            arena.grow(bytes)?;
            Ok(arena.bytes())
        })
    }

    /// Removes one member from a group. The last one clears the group's memory, returns its pages
    /// to the system, and frees the region. Returns whether this member was the last.
    pub(crate) fn leave(&self, number: u64) -> bool {
        let key = [GROUP, number, 0];
        let Some(value) = self.map.get(&key) else { return false };
        let is_last = self.remove_hold(&key, &value);
        if is_last {
            let [_, region, ..] = value;
            let Range { start, end } = self.place_of(region);
            // The leaving member has the memory mapped, so this succeeds.
            if let Ok((segment, at)) = self.directory.find_group(start) {
                // SAFETY: every member has left, which a `Group` does when it is dropped, so
                // nothing else uses the memory. It cannot be allocated again before it is given
                // back below, under this lock.
                unsafe { segment.clear(at..at + (end - start)) };
            }
            self.arena.free(size(region));
        }
        is_last
    }

    /// Returns the offset and the number of PEs of each group.
    pub(crate) fn groups(&self) -> Vec<(usize, usize)> {
        let groups = self.map.of_kind(GROUP);
        groups.map(|(_, [_, region, pes, _])| (self.place_of(region).start, size(pes))).collect()
    }

    /// Returns the offset and the number of PEs of a group, or `None` if no group has this number.
    pub(crate) fn group(&self, number: u64) -> Option<(usize, usize)> {
        let [_, region, pes, _] = self.map.get(&[GROUP, number, 0])?;
        Some((self.place_of(region).start, size(pes)))
    }
}
