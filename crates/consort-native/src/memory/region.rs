//! A region of memory on this PE.

use consort_fabric::LINE_PAYLOAD_BYTES;

use super::extent::Extent;

/// A region of memory on this PE, resolved.
#[derive(Clone, Copy)]
pub(crate) struct Memory {
    pub(crate) at: *mut u8,
    pub(crate) bytes: usize,
    /// Of what it is a part, if others may access it now: only `copy_shared` and atomics may then.
    pub(crate) shared: Option<Extent>,
}

impl Memory {
    /// What line `index` of a message carries of it.
    #[inline(always)]
    pub(crate) fn line(self, index: usize) -> Self {
        let at = index * LINE_PAYLOAD_BYTES;
        let bytes = (self.bytes - at).min(LINE_PAYLOAD_BYTES);
        Self { at: self.at.wrapping_add(at), bytes, shared: self.shared }
    }

    /// Whether others may access it now.
    #[inline(always)]
    pub(crate) fn is_shared(self) -> bool {
        self.shared.is_some()
    }

    /// All of a private buffer.
    #[inline(always)]
    pub(super) fn private(buffer: *mut u8, bytes: usize) -> Self {
        Self { at: buffer, bytes, shared: None }
    }
}
