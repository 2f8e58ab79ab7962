//! What carries frames between the processes of a job.

#![expect(unsafe_code, reason = "a transfer keeps the memory that its beginner vouches for")]

use std::fmt;

use consort_fabric::VendorCall;

use crate::memory::region::Memory;

/// A frame: packets, one after the other.
pub type Frame = Vec<u64>;

/// The tags of transfers: as many as any MPI has.
pub const TAGS: u32 = 1 << 15;

/// A process cannot be reached any more, or the transport itself has failed; the text says which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost(pub String);

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(text) = self;
        fmt::Display::fmt(text, f)
    }
}

impl std::error::Error for Lost {}

/// Memory that a transfer reads or writes. Other threads may access it meanwhile.
#[derive(Clone, Copy)]
pub struct Region(pub(crate) Memory);

// SAFETY: who begins a transfer vouches for its memory until the transfer is done, on any thread.
unsafe impl Send for Region {}

impl Region {
    /// Where it begins.
    #[must_use]
    pub fn at(self) -> *mut u8 {
        self.0.at
    }

    /// How many bytes it has.
    #[must_use]
    pub fn bytes(self) -> usize {
        self.0.bytes
    }

    /// Its pieces of so many bytes, the last of which may be shorter: at least one.
    ///
    /// # Panics
    /// When they are to have no bytes.
    pub fn pieces(self, most: usize) -> impl ExactSizeIterator<Item = Self> {
        let Memory { bytes, .. } = self.0;
        (0..bytes.div_ceil(most).max(1)).map(move |piece| {
            let at = piece * most;
            Self(self.0.part(at, most.min(bytes - at)))
        })
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes at {:p}", self.bytes(), self.at())
    }
}

/// The number of a transfer, which the process that has begun it has given.
pub type Transfer = u64;

/// Carries frames between the processes of a job. A process's threads use it one at a time.
///
/// Frames from one process to another arrive in the order in which they were sent; frames of
/// different pairs in any order. Nothing happens in between: frames move when a process sends or
/// receives.
///
/// Long data goes from memory to memory. One process pushes it and another one pulls it, with a
/// `tag` below [`TAGS`] that both know; pushes and pulls of a pair with one tag meet in order.
pub trait Transport: Send {
    /// The number of this process.
    fn rank(&self) -> u32;

    /// How many processes there are.
    fn processes(&self) -> u32;

    /// Sends a frame to another process. It may be on its way when this returns.
    ///
    /// # Errors
    /// When the process cannot be reached.
    fn send(&mut self, to: u32, frame: Frame) -> Result<(), Lost>;

    /// The next frame that has arrived, if any, and the process that has sent it.
    ///
    /// # Errors
    /// When a process cannot be reached any more.
    fn receive(&mut self) -> Result<Option<(u32, Frame)>, Lost>;

    /// Begins to send what is in a region to another process, which pulls as many bytes.
    ///
    /// # Errors
    /// When the process cannot be reached. Then nothing accesses the region any more, as after an
    /// error of each method below.
    ///
    /// # Safety
    /// The region must stay valid until the transfer is done.
    unsafe fn push(&mut self, to: u32, tag: u32, source: Region) -> Result<Transfer, Lost>;

    /// Begins to receive what another process pushes.
    ///
    /// # Errors
    /// When the process cannot be reached.
    ///
    /// # Safety
    /// The region must stay valid, and may be written, until the transfer is done.
    unsafe fn pull(&mut self, from: u32, tag: u32, target: Region) -> Result<Transfer, Lost>;

    /// Begins a collective of its own, in which all processes take part, or the first of each node.
    ///
    /// # Errors
    /// When it has none, or a process cannot be reached.
    ///
    /// # Safety
    /// Both regions must stay valid, and the target may be written, until the transfer is done.
    unsafe fn collect(
        &mut self,
        call: &VendorCall,
        source: Region,
        target: Region,
    ) -> Result<Transfer, Lost> {
        let _ = (source, target);
        Err(Lost(format!("the transport has no {} of its own", call.collective)))
    }

    /// Whether a transfer is done. It is known no more then.
    ///
    /// # Errors
    /// When the process cannot be reached any more: then it is done, too.
    fn is_done(&mut self, transfer: Transfer) -> Result<bool, Lost>;

    /// Whether a transfer has begun that is not known to be done.
    fn is_moving(&self) -> bool;

    /// Ends a pull of what nobody pushes. Its region is not accessed any more.
    fn cancel(&mut self, transfer: Transfer);

    /// Whether the memory of all frames that were sent is free again.
    ///
    /// # Errors
    /// When a process cannot be reached any more.
    fn is_flushed(&mut self) -> Result<bool, Lost>;

    /// Ends it, once all processes have said that they end. Or else this one has `failed` and waits
    /// for the others no longer: it says why, and ends them all.
    fn close(&mut self, failed: Option<&str>);

    /// Ends all processes, this one among them, if it can: with this status, as far as their
    /// launcher passes it on.
    fn abort(&mut self, status: u8) {
        self.close(Some(&format!("a PE ends all with status {status}")));
    }
}

impl fmt::Debug for dyn Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} of {}", self.rank(), self.processes())
    }
}
