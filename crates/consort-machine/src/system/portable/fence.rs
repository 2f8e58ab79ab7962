//! No fence on other threads.

/// Executes none.
pub fn on_all_threads() -> bool {
    false
}

/// Executes none.
pub fn on_all_processes() -> bool {
    false
}

/// Takes part in none.
pub fn take_part() -> bool {
    false
}
