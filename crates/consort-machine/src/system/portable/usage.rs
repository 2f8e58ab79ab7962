//! Nothing is known about threads or memory.

/// Returns `None`: unknown.
pub fn involuntary_switches() -> Option<u64> {
    None
}

/// Returns `None`: unknown.
pub fn memory_bytes() -> Option<usize> {
    None
}
