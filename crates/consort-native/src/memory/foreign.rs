//! Copies between memory of this process and a private buffer of another.
//!
//! The system copies. The other process ensures that the buffer lives meanwhile, as it does for
//! peers in its own process (`call::rendezvous`).

#![expect(unsafe_code, reason = "copies to and from raw addresses")]

use std::io;

use consort_fabric::Kernel;

use super::region::Memory;
use crate::system::process as system;

/// Bytes that are copied at a time before they are combined.
const BOUNCE_BYTES: usize = 64 << 10;

/// A private buffer of another process.
#[derive(Clone, Copy)]
pub(crate) struct Foreign {
    pub(crate) process: u32,
    /// An address of that process.
    pub(crate) at: *mut u8,
    pub(crate) bytes: usize,
}

impl Foreign {
    fn part(self, at: usize, bytes: usize) -> Self {
        Self { process: self.process, at: self.at.wrapping_add(at), bytes }
    }

    /// Copies it to memory of this process.
    pub(crate) fn copy_to(self, target: Memory) -> io::Result<()> {
        assert!(self.bytes == target.bytes, "a copy is as long as what is copied");
        // SAFETY: resolved, and others access it only atomically or as the system does.
        unsafe { system::read_from(self.process, self.at, target.at, self.bytes) }
    }

    /// Copies memory of this process to it.
    pub(crate) fn copy_from(self, source: Memory) -> io::Result<()> {
        assert!(self.bytes == source.bytes, "a copy is as long as what is copied");
        // SAFETY: resolved, and the system reads it as it does for any process.
        unsafe { system::write_to(self.process, self.at, source.at, self.bytes) }
    }

    /// Computes `target = left (op) this`.
    pub(crate) fn combine_to(
        self,
        target: Memory,
        left: Memory,
        kernel: &Kernel<'_>,
    ) -> io::Result<()> {
        let element = kernel.element_bytes().max(1);
        let whole = (BOUNCE_BYTES / element).max(1) * element;
        let mut bounce = vec![0_u8; whole.min(self.bytes)];
        let mut done = 0;
        while done < self.bytes {
            let bytes = whole.min(self.bytes - done);
            let right = Memory::private(bounce.as_mut_ptr(), bytes);
            self.part(done, bytes).copy_to(right)?;
            let part =
                |memory: Memory| Memory { at: memory.at.wrapping_add(done), bytes, ..memory };
            part(target).combine(kernel, part(left), right);
            done += bytes;
        }
        Ok(())
    }
}
