//! A way to exchange bytes between the processes of a job before it begins.

use super::{hold::Hold, meet_error::MeetError};

/// A way to exchange bytes between all processes of a job.
pub trait Exchange {
    /// Sends `own` to all processes, and returns the bytes of all, including `own`, in any order.
    /// All processes call this equally often.
    ///
    /// # Errors
    /// When a process cannot be reached.
    fn all_gather(&mut self, own: &[u8]) -> Result<Vec<Vec<u8>>, MeetError>;

    /// Ends the exchange. Returns the place where the processes have met, if this process has it.
    fn into_hold(self: Box<Self>) -> Option<Hold> {
        None
    }
}
