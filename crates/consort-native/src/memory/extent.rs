//! Where memory that others may access begins and ends.

use crate::inbox::line::Line;

/// Where memory that others may access begins and ends: in it, not in the part that is copied, lie
/// the words by which `portable` accesses it. The assembly block needs no such thing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    #[cfg(any(test, not(target_arch = "x86_64"), miri))]
    pub(super) begin: usize,
    #[cfg(any(test, not(target_arch = "x86_64"), miri))]
    pub(super) end: usize,
}

#[cfg(any(test, not(target_arch = "x86_64"), miri))]
impl Extent {
    /// Of symmetric memory and message buffers, which begin aligned and are whole words.
    pub(crate) const WORDS: Self = Self { begin: 0, end: usize::MAX };

    /// Of a slice that is exposed: all of it, also if a part is.
    pub(crate) fn exposed(at: *mut u8, bytes: usize) -> Self {
        Self { begin: at.addr(), end: at.addr() + bytes }
    }

    /// Packs it into the words that are left in an exposure's line.
    pub(crate) fn show(self, line: &Line, first: usize) {
        line.write(first, self.begin as u64);
        line.write(first + 1, self.end as u64);
    }

    /// The words that are sent with an exposure.
    pub(crate) fn shown(line: &Line, first: usize) -> Self {
        // Both come from a `usize`.
        let address = |index| usize::try_from(line.read(index)).unwrap_or(0);
        Self { begin: address(first), end: address(first + 1) }
    }
}

#[cfg(not(any(test, not(target_arch = "x86_64"), miri)))]
impl Extent {
    /// Of symmetric memory and message buffers.
    pub(crate) const WORDS: Self = Self {};

    /// Of a slice that is exposed.
    #[inline(always)]
    pub(crate) fn exposed(_: *mut u8, _: usize) -> Self {
        Self {}
    }

    /// Packs it into an exposure.
    #[inline(always)]
    pub(crate) fn show(self, _: &Line, _: usize) {}

    /// The words that are sent with an exposure.
    #[inline(always)]
    pub(crate) fn shown(_: &Line, _: usize) -> Self {
        Self {}
    }
}
