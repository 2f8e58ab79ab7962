//! What carries frames between the processes of a job.

use std::fmt;

/// A frame: packets, one after the other.
pub type Frame = Vec<u64>;

/// A process cannot be reached any more, or the transport itself has failed; the text says which.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Lost(pub String);

/// Carries frames between the processes of a job. A process's threads use it one at a time.
///
/// Frames from one process to another arrive in the order in which they were sent; frames of
/// different pairs in any order. Nothing happens in between: frames move when a process sends or
/// receives.
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

    /// Whether the memory of all frames that were sent is free again.
    ///
    /// # Errors
    /// When a process cannot be reached any more.
    fn is_flushed(&mut self) -> Result<bool, Lost>;

    /// Ends it, once all processes have said that they end, or not: then `all_end` is false.
    fn close(&mut self, all_end: bool);
}

impl fmt::Debug for dyn Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} of {}", self.rank(), self.processes())
    }
}
