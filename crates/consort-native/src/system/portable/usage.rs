//! Nothing is known of threads, nor of memory.

/// Unknown.
pub(crate) fn involuntary_switches() -> Option<u64> {
    None
}

/// Unknown.
pub(crate) fn memory_bytes() -> Option<usize> {
    None
}
