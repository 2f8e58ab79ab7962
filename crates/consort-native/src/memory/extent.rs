//! The extent of memory that other threads may access.

use crate::inbox::line::Line;

/// The extent of memory that others may access. It determines which aligned words `portable`
/// accesses: a copy of a part of that memory must use the same words. The inline assembly does not
/// need it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SharedExtent {
    #[cfg(any(test, not(target_arch = "x86_64"), miri))]
    pub(super) begin: usize,
    #[cfg(any(test, not(target_arch = "x86_64"), miri))]
    pub(super) end: usize,
}

#[cfg(any(test, not(target_arch = "x86_64"), miri))]
impl SharedExtent {
    /// The extent of symmetric memory and message buffers, which are aligned and consist of whole
    /// words.
    pub(crate) const WORDS: Self = Self { begin: 0, end: usize::MAX };

    /// Returns the extent of an exposed slice: the whole slice, even if only a part is exposed.
    pub(crate) fn exposed(at: *mut u8, bytes: usize) -> Self {
        Self { begin: at.addr(), end: at.addr() + bytes }
    }

    /// Writes the extent into the free words of an exposure's line.
    pub(crate) fn show(self, line: &Line, first: usize) {
        line.write(first, self.begin as u64);
        line.write(first + 1, self.end as u64);
    }

    /// Reads the extent from an exposure's line.
    pub(crate) fn shown(line: &Line, first: usize) -> Self {
        // Both words come from a `usize`.
        let address = |index| usize::try_from(line.read(index)).unwrap_or(0);
        Self { begin: address(first), end: address(first + 1) }
    }
}

#[cfg(not(any(test, not(target_arch = "x86_64"), miri)))]
impl SharedExtent {
    /// The extent of symmetric memory and message buffers.
    pub(crate) const WORDS: Self = Self {};

    /// Returns the extent of an exposed slice.
    #[inline(always)]
    pub(crate) fn exposed(_: *mut u8, _: usize) -> Self {
        Self {}
    }

    /// Writes nothing: there is nothing to send.
    #[inline(always)]
    pub(crate) fn show(self, _: &Line, _: usize) {}

    /// Reads nothing.
    #[inline(always)]
    pub(crate) fn shown(_: &Line, _: usize) -> Self {
        Self {}
    }
}
