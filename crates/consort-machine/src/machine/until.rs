//! The condition of a wait.

/// The condition of a wait on a word. Words are compared as unsigned integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Equal to this value.
    Equals(u64),
    /// Different from this value.
    Differs(u64),
    /// At least this value.
    AtLeast(u64),
    /// At most this value.
    AtMost(u64),
}

impl Until {
    /// Returns whether `value` ends the wait.
    #[inline]
    #[must_use]
    pub const fn holds(self, value: u64) -> bool {
        match self {
            Self::Equals(wanted) => value == wanted,
            Self::Differs(unwanted) => value != unwanted,
            Self::AtLeast(least) => value >= least,
            Self::AtMost(most) => value <= most,
        }
    }
}
