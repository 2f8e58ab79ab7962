//! A region of memory on this PE.

use consort_fabric::LINE_PAYLOAD_BYTES;

use super::extent::SharedExtent;

/// A region of memory on this PE: a resolved span.
#[derive(Clone, Copy)]
pub(crate) struct Memory {
    pub(crate) at: *mut u8,
    pub(crate) bytes: usize,
    /// The extent of the surrounding memory, if others may currently access it. Then only
    /// `copy_shared` and atomics may access this region.
    pub(crate) shared: Option<SharedExtent>,
}

impl Memory {
    /// Returns the part that line `index` of a message carries.
    ///
    /// # Panics
    /// When the message has fewer lines.
    #[inline(always)]
    pub(crate) fn line(self, index: usize) -> Self {
        let at = index * LINE_PAYLOAD_BYTES;
        let bytes = self.bytes.checked_sub(at).expect("a line begins in its memory");
        let bytes = bytes.min(LINE_PAYLOAD_BYTES);
        Self { at: self.at.wrapping_add(at), bytes, shared: self.shared }
    }

    /// Returns the part from byte `at` on.
    pub(super) fn after(self, at: usize) -> Self {
        Self { at: self.at.wrapping_add(at), bytes: self.bytes - at, shared: self.shared }
    }

    /// Returns bytes `at..at + bytes`.
    ///
    /// # Panics
    /// When the region is shorter.
    pub(crate) fn part(self, at: usize, bytes: usize) -> Self {
        assert!(at.checked_add(bytes).is_some_and(|end| end <= self.bytes), "a part lies inside");
        Self { at: self.at.wrapping_add(at), bytes, shared: self.shared }
    }

    /// Returns whether others may currently access the region.
    #[inline(always)]
    pub(crate) fn is_shared(self) -> bool {
        self.shared.is_some()
    }

    /// Returns the region of a whole private buffer.
    #[inline(always)]
    pub(crate) fn private(buffer: *mut u8, bytes: usize) -> Self {
        Self { at: buffer, bytes, shared: None }
    }
}
