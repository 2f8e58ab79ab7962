//! The transport: it carries frames between the processes of a job.

#![expect(unsafe_code, reason = "stores the address of memory that the caller keeps valid")]

use std::fmt;

use consort_fabric::VendorCall;

use crate::memory::region::Memory;

/// A frame: packets, one after the other.
pub type Frame = Vec<u64>;

/// The number of tags of transfers. Any MPI has this many.
pub const TAGS: u32 = 1 << 15;

/// A process cannot be reached any more, or the transport itself has failed. The text says which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransportError(pub String);

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(text) = self;
        fmt::Display::fmt(text, f)
    }
}

impl std::error::Error for TransportError {}

/// Memory that a transfer reads or writes. Other threads may access it at the same time.
#[derive(Clone, Copy)]
pub struct TransferBuffer(pub(crate) Memory);

// SAFETY: the code that begins a transfer vouches for its memory until the transfer is done, on any
// thread.
unsafe impl Send for TransferBuffer {}

impl TransferBuffer {
    /// Returns the address of the region.
    #[must_use]
    pub fn at(self) -> *mut u8 {
        self.0.at
    }

    /// Returns the size of the region in bytes.
    #[must_use]
    pub fn bytes(self) -> usize {
        self.0.bytes
    }

    /// Returns the pieces of the region: at least one, each of `most` bytes, except the last, which
    /// may be shorter.
    ///
    /// # Panics
    /// When `most` is 0.
    pub fn pieces(self, most: usize) -> impl ExactSizeIterator<Item = Self> {
        let Memory { bytes, .. } = self.0;
        (0..bytes.div_ceil(most).max(1)).map(move |piece| {
            let at = piece * most;
            Self(self.0.part(at, most.min(bytes - at)))
        })
    }
}

impl fmt::Debug for TransferBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes at {:p}", self.bytes(), self.at())
    }
}

/// The number of a transfer, given by the process that has begun it.
pub type Transfer = u64;

/// Carries frames between the processes of a job. Only one of a process's threads uses it at a
/// time.
///
/// Frames from one process to another arrive in the order in which they were sent. Frames of
/// different pairs arrive in any order. There is no background progress: frames move only when a
/// process sends or receives.
///
/// Long data goes from memory to memory. One process pushes it and another pulls it, with a `tag`
/// below [`TAGS`] that both know. Pushes and pulls of a pair with the same tag match in order.
pub trait Transport: Send {
    /// Returns the number of this process.
    fn rank(&self) -> u32;

    /// Returns the number of processes.
    fn processes(&self) -> u32;

    /// Sends a frame to another process. The frame may still be in flight when this returns.
    ///
    /// # Errors
    /// When the process cannot be reached.
    fn send(&mut self, to: u32, frame: Frame) -> Result<(), TransportError>;

    /// Returns the next frame that has arrived, if any, and the process that sent it.
    ///
    /// # Errors
    /// When a process cannot be reached any more.
    fn receive(&mut self) -> Result<Option<(u32, Frame)>, TransportError>;

    /// Begins to send the contents of a region to another process, which pulls the same number of
    /// bytes.
    ///
    /// # Errors
    /// When the process cannot be reached. Then nothing accesses the region any more. The same
    /// holds after an error of each method below.
    ///
    /// # Safety
    /// The region must stay valid until the transfer is done.
    unsafe fn push(
        &mut self,
        to: u32,
        tag: u32,
        source: TransferBuffer,
    ) -> Result<Transfer, TransportError>;

    /// Begins to receive data that another process pushes.
    ///
    /// # Errors
    /// When the process cannot be reached.
    ///
    /// # Safety
    /// The region must stay valid, and may be written, until the transfer is done.
    unsafe fn pull(
        &mut self,
        from: u32,
        tag: u32,
        target: TransferBuffer,
    ) -> Result<Transfer, TransportError>;

    /// Begins a collective of the transport. All processes take part, or the first of each node.
    ///
    /// # Errors
    /// When the transport does not have the collective, or a process cannot be reached.
    ///
    /// # Safety
    /// Both regions must stay valid, and the target may be written, until the transfer is done.
    unsafe fn collect(
        &mut self,
        call: &VendorCall,
        source: TransferBuffer,
        target: TransferBuffer,
    ) -> Result<Transfer, TransportError> {
        let _ = (source, target);
        Err(TransportError(format!("the transport does not provide {}", call.collective)))
    }

    /// Returns whether a transfer is done. The transfer is forgotten then.
    ///
    /// # Errors
    /// When the process cannot be reached any more. The transfer is then done too.
    fn is_done(&mut self, transfer: Transfer) -> Result<bool, TransportError>;

    /// Returns whether there is a transfer that has begun and is not known to be done.
    fn is_moving(&self) -> bool;

    /// Ends a pull that no process pushes for. Its region is not accessed any more.
    fn cancel(&mut self, transfer: Transfer);

    /// Returns whether the memory of all sent frames is free again.
    ///
    /// # Errors
    /// When a process cannot be reached any more.
    fn is_flushed(&mut self) -> Result<bool, TransportError>;

    /// Closes the transport after all processes have announced that they end. If this process has
    /// `failed`, it does not wait for the others: it reports why, and ends them all.
    fn close(&mut self, failed: Option<&str>);

    /// Ends all processes including this one, if the transport can. The exit status is `status` if
    /// their launcher passes it on.
    fn abort(&mut self, status: u8) {
        self.close(Some(&format!("a PE ends all with status {status}")));
    }
}

impl fmt::Debug for dyn Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} of {}", self.rank(), self.processes())
    }
}
