//! No fence on other threads.

/// Executes none.
pub(crate) fn on_all_threads() -> bool {
    false
}

/// Executes none.
pub(crate) fn on_all_processes() -> bool {
    false
}

/// Takes part in none.
pub(crate) fn take_part() -> bool {
    false
}
