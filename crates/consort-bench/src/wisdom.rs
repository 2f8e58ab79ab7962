//! Optional wisdom, and remedies for wisdom that cannot be used.

use std::path::Path;

use anyhow::anyhow;
use consort_fabric::files::resolve_trusted;
use consort_tuner::{Identity, Wisdom, WisdomError};

/// Returns the wisdom in a file. Returns none if the file does not exist or, after a warning, if it
/// cannot be used.
pub fn usable(path: &Path, identity: &Identity) -> Option<Wisdom> {
    match Wisdom::load(path, identity) {
        Ok(wisdom) => {
            warn_if_untrusted(path);
            return Some(wisdom);
        }
        Err(WisdomError::NotFound { .. }) => {}
        Err(error) => tracing::warn!("wisdom is not used: {:#}", advised(error)),
    }
    None
}

/// Warns if another user could have written a file that is used.
pub fn warn_if_untrusted(path: &Path) {
    if let Err(why) = resolve_trusted(path) {
        tracing::warn!("{}: another user could have written it: {why}", path.display());
    }
}

/// Returns the error of a file that cannot be used, with the remedy.
pub fn advised(error: WisdomError) -> anyhow::Error {
    match error {
        WisdomError::NotWisdom { .. } => {
            anyhow!("{error}; move it away and run `consort tune`, or name another file")
        }
        other => other.into(),
    }
}
