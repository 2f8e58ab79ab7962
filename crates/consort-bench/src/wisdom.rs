//! Wisdom that is welcome but not needed, and remedies for wisdom that cannot be used.

use std::path::Path;

use anyhow::anyhow;
use consort_tuner::{Identity, Wisdom, WisdomError};

/// The wisdom in a file; none if there is no file, and none, with a warning, if it cannot be used.
pub fn usable(path: &Path, identity: &Identity) -> Option<Wisdom> {
    match Wisdom::load(path, identity) {
        Ok(wisdom) => return Some(wisdom),
        Err(WisdomError::NotFound { .. }) => {}
        Err(error) => tracing::warn!("wisdom is not used: {:#}", advised(error)),
    }
    None
}

/// The error of a file that cannot be used, with the remedy.
pub fn advised(error: WisdomError) -> anyhow::Error {
    match error {
        WisdomError::NotWisdom { .. } => {
            anyhow!("{error}; move it away and run `consort tune`, or name another file")
        }
        other => other.into(),
    }
}
