//! The unit in which the system provides memory.

/// Bytes of a page. The parts of a segment begin and end at whole pages, so that each page belongs
/// to one part.
pub(crate) const PAGE: usize = 4096;

/// Bytes of a large page, to which segments are aligned where the system can do that.
pub(crate) const LARGE_PAGE: usize = 2 << 20;
