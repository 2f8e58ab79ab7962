//! What entries are found by.
//!
//! | entry | key | value |
//! | --- | --- | --- |
//! | block | group, number of the allocation | holds, region, what is fresh, bytes asked for |
//! | group being formed | parent, number of the making and colour | members to come, number |
//! | group | number | members, region, PEs |
//! | name | hash | number |

/// The first words of keys.
pub(super) const BLOCK: u64 = 1;
pub(super) const FORMING: u64 = 2;
pub(super) const GROUP: u64 = 3;
pub(super) const NAME: u64 = 4;

/// In place of a region or a number: there was none, for this reason.
pub(super) const EXHAUSTED: u64 = u64::MAX;
pub(super) const TOO_MANY: u64 = u64::MAX - 1;

/// Why another entry fits.
pub(super) const ROOM: &str =
    "there is room for entries of as many regions and names as there may be";
