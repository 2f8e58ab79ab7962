//! Synchronization modes of a collective: when data may move, and when a PE may leave.
//!
//! The nine combinations are UPC's (`NOSYNC`, `MYSYNC`, `ALLSYNC` at entry and exit). Nishtala and
//! Yelick (2009, section 3) call the two extremes *Strict* and *Loose*.

use std::{fmt, str::FromStr};

/// The synchronization at entry or at exit of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SyncMode {
    /// Entry: data may move as soon as any PE has entered. Exit: data may move until the last PE
    /// has left.
    None,
    /// Entry: a PE's buffers are not accessed before it enters. Exit: when a PE leaves, its buffers
    /// belong to it again and hold its result.
    Mine,
    /// Entry: no data moves until all PEs have entered. Exit: no PE leaves before all data has
    /// moved. In a blocking call on values or slices no other PE sees data move, so either means
    /// that no PE leaves before all have entered.
    All,
}

impl SyncMode {
    /// Every mode, loosest first.
    pub const EVERY: [Self; 3] = [Self::None, Self::Mine, Self::All];

    const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Mine => "mine",
            Self::All => "all",
        }
    }
}

/// The entry and the exit mode of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SyncModes {
    /// When data may begin to move.
    pub entry: SyncMode,
    /// When a PE may leave.
    pub exit: SyncMode,
}

impl SyncModes {
    /// All/All: the call happens after everything that any PE did before it, and before everything
    /// that any PE does after it and others can see.
    pub const STRICT: Self = Self { entry: SyncMode::All, exit: SyncMode::All };
    /// None/None: successive calls overlap. Barriers before and after them order accesses to the
    /// data.
    pub const LOOSE: Self = Self { entry: SyncMode::None, exit: SyncMode::None };
    /// Mine/Mine, the default: the guarantee of MPI's collectives.
    pub const MINE: Self = Self { entry: SyncMode::Mine, exit: SyncMode::Mine };

    /// Returns all nine combinations, loosest first.
    pub fn every() -> impl Iterator<Item = Self> {
        SyncMode::EVERY
            .into_iter()
            .flat_map(|entry| SyncMode::EVERY.into_iter().map(move |exit| Self { entry, exit }))
    }
}

impl Default for SyncModes {
    fn default() -> Self {
        Self::MINE
    }
}

impl fmt::Display for SyncModes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::STRICT => f.pad("strict"),
            Self::LOOSE => f.pad("loose"),
            Self::MINE => f.pad("mine"),
            Self { entry, exit } => f.pad(&format!("{}/{}", entry.name(), exit.name())),
        }
    }
}

/// The error for a text that does not name synchronization modes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownSyncModes(String);

impl fmt::Display for UnknownSyncModes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(text) = self;
        write!(
            f,
            "unknown synchronization mode `{text}`: use strict, loose, mine, or \
             ENTRY/EXIT with each of none, mine, all (for example mine/all)"
        )
    }
}

impl std::error::Error for UnknownSyncModes {}

impl FromStr for SyncModes {
    type Err = UnknownSyncModes;

    fn from_str(text: &str) -> Result<Self, UnknownSyncModes> {
        let lower = text.to_ascii_lowercase();
        let mode = |name: &str| SyncMode::EVERY.into_iter().find(|mode| mode.name() == name);
        let sync = match lower.as_str() {
            "strict" => Some(Self::STRICT),
            "loose" => Some(Self::LOOSE),
            "mine" => Some(Self::MINE),
            other => other
                .split_once('/')
                .and_then(|(entry, exit)| Some(Self { entry: mode(entry)?, exit: mode(exit)? })),
        };
        sync.ok_or_else(|| UnknownSyncModes(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_is_read_back_from_its_name() {
        assert_eq!(SyncModes::every().count(), 9);
        for sync in SyncModes::every() {
            assert_eq!(sync.to_string().parse(), Ok(sync));
        }
        assert!("tight".parse::<SyncModes>().is_err());
    }
}
