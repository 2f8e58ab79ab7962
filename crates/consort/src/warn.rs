//! Warnings to the user: a `tracing` event, or a line on standard error if no subscriber is
//! installed. Without the feature `tracing` there are no events.

use std::io::{self, Write as _};

/// Warns the user.
pub(crate) fn warn(text: &str) {
    if !event(text) {
        // There is no way to warn if standard error cannot be written.
        let _ = writeln!(io::stderr(), "{text}");
    }
}

/// Passes an event to the program's subscriber, and returns whether it has one.
#[cfg(feature = "tracing")]
pub(crate) fn event(text: &str) -> bool {
    use tracing::subscriber::NoSubscriber;

    let is_heard = !tracing::dispatcher::get_default(|events| events.is::<NoSubscriber>());
    if is_heard {
        tracing::warn!("{text}");
    }
    is_heard
}

/// Returns that there is no subscriber.
#[cfg(not(feature = "tracing"))]
pub(crate) fn event(_: &str) -> bool {
    false
}
