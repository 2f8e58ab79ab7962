//! Warnings to the user: a `tracing` event, or a line on standard error if no subscriber is
//! installed.

use std::io::{self, Write as _};

use tracing::subscriber::NoSubscriber;

/// Warns the user.
pub(crate) fn warn(text: &str) {
    if tracing::dispatcher::get_default(|events| events.is::<NoSubscriber>()) {
        // Nobody can be warned if standard error cannot be written.
        let _ = writeln!(io::stderr(), "{text}");
    } else {
        tracing::warn!("{text}");
    }
}
