//! Waiting policies.
//!
//! | policy | while no message arrives |
//! | --- | --- |
//! | spin | poll again |
//! | spin-yield | poll for a while, then yield the core between polls |
//! | spin-yield-park | after many yields, sleep until a message wakes the PE (`wait::parker`) |

use std::{fmt, str::FromStr};

/// A waiting policy. All PEs of a launch use the same one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Waiting {
    /// Poll, and never yield the core.
    Spin,
    /// Poll, then yield between polls.
    SpinYield,
    /// Poll, then yield, then sleep until woken.
    #[default]
    SpinYieldPark,
}

impl Waiting {
    /// Every policy.
    pub const EVERY: [Self; 3] = [Self::Spin, Self::SpinYield, Self::SpinYieldPark];

    const fn name(self) -> &'static str {
        match self {
            Self::Spin => "spin",
            Self::SpinYield => "spin-yield",
            Self::SpinYieldPark => "spin-yield-park",
        }
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The error for a text that does not name a waiting policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownWaiting(String);

impl fmt::Display for UnknownWaiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(name) = self;
        write!(f, "unknown waiting policy `{name}`: use spin, spin-yield or spin-yield-park")
    }
}

impl std::error::Error for UnknownWaiting {}

impl FromStr for Waiting {
    type Err = UnknownWaiting;

    fn from_str(text: &str) -> Result<Self, UnknownWaiting> {
        Self::EVERY
            .into_iter()
            .find(|waiting| waiting.name() == text)
            .ok_or_else(|| UnknownWaiting(text.to_owned()))
    }
}
