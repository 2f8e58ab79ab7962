//! The number of a processing element (PE) in its team.

use std::{fmt, num::TryFromIntError};

/// The number of a PE within its team, from 0 to the team's size minus one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank(pub u32);

impl Rank {
    /// Returns the rank as an index into an array with one element per PE.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns the rank `distance` after this one in a team of `pes`, wrapping around.
    #[must_use]
    pub const fn plus(self, distance: u64, pes: u32) -> Self {
        let sum = (self.0 as u64 + distance % pes as u64) % pes as u64;
        #[expect(clippy::cast_possible_truncation, reason = "less than `pes`")]
        Self(sum as u32)
    }
}

/// Converts an index of an array with one element per PE.
///
/// ```
/// # use consort_fabric::Rank;
/// assert_eq!(Rank::try_from(3_usize), Ok(Rank(3)));
/// assert!(Rank::try_from(usize::MAX).is_err());
/// ```
impl TryFrom<usize> for Rank {
    type Error = TryFromIntError;

    fn try_from(index: usize) -> Result<Self, TryFromIntError> {
        u32::try_from(index).map(Self)
    }
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
