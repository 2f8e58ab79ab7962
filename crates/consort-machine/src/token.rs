//! Tokens by which an object knows the process that has made it.

use crate::system::fork;

/// A token of the process that has made it, which children that it forks do not have.
///
/// A child has a copy of all memory, but only the thread that called `fork`: an object with other
/// threads, or one that other processes know, must not be used there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessToken(u32);

impl ProcessToken {
    /// The calling process's.
    #[must_use]
    pub fn of_caller() -> Self {
        Self(fork::forks())
    }

    /// Whether the calling process has made it.
    #[inline(always)]
    #[must_use]
    pub fn is_of_caller(self) -> bool {
        self.0 == fork::forks_so_far()
    }
}

impl Default for ProcessToken {
    fn default() -> Self {
        Self::of_caller()
    }
}
