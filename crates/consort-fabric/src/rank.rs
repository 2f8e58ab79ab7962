//! The number of a processing element (PE) in its team.

use std::{fmt, num::TryFromIntError};

/// The number of a PE within its team, from 0 to the team's size minus one.
///
/// ```
/// # use consort_fabric::Rank;
/// let (first, third) = (Rank(0), Rank::new(2)); // from a `u32`, and from a `usize`
/// assert!(first < third);
/// assert_eq!(third.0, 2); // the number, such as for a call on values
/// assert_eq!(["a", "b", "c"][third.index()], "c");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank(pub u32);

impl Rank {
    /// Returns the rank of the PE with this index, in an array with one element per PE.
    ///
    /// # Panics
    /// When the index does not fit in 32 bits.
    #[must_use]
    #[track_caller]
    pub const fn new(index: usize) -> Self {
        assert!(index <= u32::MAX as usize, "no PE has a rank of more than 32 bits");
        #[expect(clippy::cast_possible_truncation, reason = "asserted")]
        Self(index as u32)
    }

    /// Returns the rank as an index into an array with one element per PE.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns the rank `distance` after this one in a team of `pes`, wrapping around.
    ///
    /// ```
    /// # use consort_fabric::Rank;
    /// assert_eq!(Rank(3).plus(2, 4), Rank(1));
    /// ```
    ///
    /// # Panics
    /// When the team has no PEs, or when the rank does not fit in 32 bits.
    #[must_use]
    #[track_caller]
    pub const fn plus(self, distance: usize, pes: usize) -> Self {
        Self::new((self.index() % pes + distance % pes) % pes)
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

impl From<Rank> for usize {
    fn from(rank: Rank) -> Self {
        rank.index()
    }
}

impl From<u32> for Rank {
    fn from(rank: u32) -> Self {
        Self(rank)
    }
}

impl From<Rank> for u32 {
    fn from(rank: Rank) -> Self {
        rank.0
    }
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
