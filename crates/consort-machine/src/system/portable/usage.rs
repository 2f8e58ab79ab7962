//! Nothing is known of threads, nor of memory.

/// Unknown.
pub fn involuntary_switches() -> Option<u64> {
    None
}

/// Unknown.
pub fn memory_bytes() -> Option<usize> {
    None
}
