//! The keys and values of the directory's entries.
//!
//! | entry | key | value |
//! | --- | --- | --- |
//! | block | group, number of the allocation | holds, region, fresh offset, bytes requested |
//! | group being formed | parent, number of the formation and colour | members that have not joined, number |
//! | the same, known only to its members | first and stride, PEs | members that have not joined, number |
//! | group | number | members, region, PEs |
//! | name | hash | number |

/// The first words of keys, one for each kind of entry.
pub(super) const BLOCK: u64 = 1;
pub(super) const FORMING: u64 = 2;
pub(super) const GROUP: u64 = 3;
pub(super) const NAME: u64 = 4;
pub(super) const STRIDED: u64 = 5;

/// Stored instead of a region or a number if the allocation failed, for this reason.
pub(super) const EXHAUSTED: u64 = u64::MAX;
pub(super) const TOO_MANY: u64 = u64::MAX - 1;

/// The reason why another entry always fits into the map.
pub(super) const ROOM: &str =
    "there is room for entries of as many regions and names as there may be";
