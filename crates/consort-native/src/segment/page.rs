//! The unit in which the system gives memory.

/// Bytes of a page. The parts of a segment begin and end at whole pages, so that a page belongs to
/// one of them.
pub(crate) const PAGE: usize = 4096;
