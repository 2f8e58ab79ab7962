//! The unit in which the system provides memory.

/// Bytes of a page, or of several where the system's pages may be smaller. The parts of a segment
/// begin and end at whole pages, so that each page belongs to one part.
pub(crate) const PAGE: usize = if cfg!(target_arch = "x86_64") { 4096 } else { 65536 };

/// Where a mapping begins: the byte at `offset` in it has an address that is a multiple of `align`,
/// a power of two, if so much address space is free. It begins at a large page in any case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Placement {
    pub(crate) align: usize,
    /// A multiple of [`LARGE_PAGE`] if `align` is larger than that.
    pub(crate) offset: usize,
}

impl Placement {
    /// At any large page.
    pub(crate) const ANY: Self = Self { align: LARGE_PAGE, offset: 0 };
}

/// Bytes of a large page, to which segments are aligned where the system can do that.
pub(crate) const LARGE_PAGE: usize = 2 << 20;
