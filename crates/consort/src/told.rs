//! What is told to whoever runs a program, whether or not the program listens to events.

use tracing::subscriber::NoSubscriber;

/// Warns on standard error if the program subscribes to no events, and by an event otherwise.
pub(crate) fn warn(text: &str) {
    if tracing::dispatcher::get_default(|events| events.is::<NoSubscriber>()) {
        eprintln!("{text}");
    } else {
        tracing::warn!("{text}");
    }
}
