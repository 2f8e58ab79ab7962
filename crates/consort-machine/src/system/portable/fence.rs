//! There is no fence on other threads.

/// Returns `false`: there is no such fence.
pub fn on_all_threads() -> bool {
    false
}

/// Returns `false`: there is no such fence.
pub fn on_all_processes() -> bool {
    false
}

/// Returns `false`: there is no such fence.
pub fn take_part() -> bool {
    false
}
