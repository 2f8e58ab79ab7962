//! The unit in which the system provides memory.

/// Bytes of a page, or of several where the system's pages may be smaller. The parts of a segment
/// begin and end at whole pages, so that each page belongs to one part.
pub(crate) const PAGE: usize = if cfg!(target_arch = "x86_64") { 4096 } else { 65536 };

/// Bytes of a large page, to which segments are aligned where the system can do that.
pub(crate) const LARGE_PAGE: usize = 2 << 20;
