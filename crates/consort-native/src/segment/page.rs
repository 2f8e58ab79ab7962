//! The unit in which the system provides memory.

/// The size of a page in bytes, or of several if the system's pages may be smaller. The parts of a
/// segment begin and end at whole pages, so that each page belongs to one part.
pub(crate) const PAGE: usize = if cfg!(target_arch = "x86_64") { 4096 } else { 65536 };

/// The place of a mapping: the byte at `offset` has an address that is a multiple of `align`, a
/// power of two, if enough address space is free. A mapping always begins at a large page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Placement {
    pub(crate) align: usize,
    /// A multiple of [`LARGE_PAGE`] if `align` is larger than a large page.
    pub(crate) offset: usize,
}

impl Placement {
    /// At any large page.
    pub(crate) const ANY: Self = Self { align: LARGE_PAGE, offset: 0 };
}

/// The size of a large page in bytes. Segments are aligned to it if the system can do that.
pub(crate) const LARGE_PAGE: usize = 2 << 20;
