//! Tokens by which an object recognizes the process that created it.

use crate::system::fork;

/// A token of the process that created it. Children that the process forks do not have it.
///
/// A child has a copy of all memory, but only the thread that called `fork`. An object that has
/// other threads, or that other processes know, must not be used there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessToken(u32);

impl ProcessToken {
    /// Returns the token of the calling process.
    #[must_use]
    pub fn current() -> Self {
        Self(fork::forks())
    }

    /// Returns whether the calling process created the token.
    #[inline(always)]
    #[must_use]
    pub fn is_current(self) -> bool {
        self.0 == fork::forks_so_far()
    }
}

impl Default for ProcessToken {
    fn default() -> Self {
        Self::current()
    }
}
