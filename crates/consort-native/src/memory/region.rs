//! A region of memory on this PE.

use consort_fabric::LINE_PAYLOAD_BYTES;

use super::extent::Extent;

/// A region of memory on this PE: a resolved span.
#[derive(Clone, Copy)]
pub(crate) struct Memory {
    pub(crate) at: *mut u8,
    pub(crate) bytes: usize,
    /// The extent of the memory around it, if others may access it at present: then only
    /// `copy_shared` and atomics may access it.
    pub(crate) shared: Option<Extent>,
}

impl Memory {
    /// The part of it that line `index` of a message carries.
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

    /// The part of it from byte `at` on.
    pub(super) fn after(self, at: usize) -> Self {
        Self { at: self.at.wrapping_add(at), bytes: self.bytes - at, shared: self.shared }
    }

    /// Bytes `at..at + bytes` of it.
    ///
    /// # Panics
    /// When it has fewer.
    pub(crate) fn part(self, at: usize, bytes: usize) -> Self {
        assert!(at.checked_add(bytes).is_some_and(|end| end <= self.bytes), "a part lies inside");
        Self { at: self.at.wrapping_add(at), bytes, shared: self.shared }
    }

    /// Whether others may access it at present.
    #[inline(always)]
    pub(crate) fn is_shared(self) -> bool {
        self.shared.is_some()
    }

    /// A private buffer as a whole.
    #[inline(always)]
    pub(crate) fn private(buffer: *mut u8, bytes: usize) -> Self {
        Self { at: buffer, bytes, shared: None }
    }
}
