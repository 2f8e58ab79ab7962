//! Messages from one PE to another. Both make a call.
//!
//! | length of a message | a blocking send |
//! | --- | --- |
//! | up to 12 KiB | leaves it in the receiver's inbox |
//! | up to [`EAGER_BYTES`] | leaves a copy, which a nonblocking call sends |
//! | more | waits until the receiver has copied it |
//!
//! `runtime/messages.rs` describes how messages travel, and `pairs.rs` describes their teams.

use std::panic::Location;

use consort_fabric::{Pod, Rank};
use consort_native::{Buffer, Operands, Site};

#[cfg(doc)]
use crate::Error;
use crate::{Result, Team, error::CallError, runtime::messages::INBOX_BYTES};

/// The longest message that [`Team::send`] sends without waiting for its receiver, in bytes: 64
/// KiB.
pub const EAGER_BYTES: usize = 64 << 10;

/// # Messages
impl Team {
    /// Sends `data` to PE `to`, which [receives](Team::receive) it. Only the two PEs make a call,
    /// each for the same number of elements of the same type. The team's modes do not matter.
    ///
    /// Messages from one PE to another are received in the order in which they were sent, in all
    /// teams, regardless of collectives in between. A message of up to [`EAGER_BYTES`] (64 KiB) is
    /// sent without waiting for its receiver, unless 48 or more earlier ones have not been received
    /// yet. So two PEs may both send first, and then receive. The send of a longer message
    /// completes when it has been received: two PEs that both send one first wait for each other,
    /// and get [`Error::Mismatched`]. [`Team::send_receive`] and [`Team::start_send`] avoid such
    /// waits.
    ///
    /// The first message in each direction between two PEs takes the memory of a team until the job
    /// ends. A PE's program ends when its messages to PEs that share its memory have been received.
    ///
    /// ```
    /// use consort::{Job, Rank};
    ///
    /// let results = Job::threads(3).run(|pe| {
    ///     let world = pe.world();
    ///     let mut data = [0; 4];
    ///     match world.rank() {
    ///         Rank(0) => world.send(Rank(2), &[1, 2, 3, 4])?,
    ///         Rank(2) => world.receive(Rank(0), &mut data)?,
    ///         _ => {} // PE 1 does not take part
    ///     }
    ///     Ok(data)
    /// })?;
    /// assert_eq!(results[2], [1, 2, 3, 4]);
    /// # Ok::<(), consort::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`CallError::RankOutOfRange`]; [`CallError::OwnMessage`] when `to` is the caller;
    /// [`TeamError::Memory`](crate::error::TeamError::Memory); [`Error::PeFailed`];
    /// [`Error::Mismatched`] when the two calls differ in length or type, when one PE finishes
    /// without its call, and when the PEs wait for each other, on one machine or many.
    #[track_caller]
    pub fn send<T: Pod>(&self, to: Rank, data: &[T]) -> Result<()> {
        self.messages_to(to)?.send_message(data, Location::caller())
    }

    /// Receives a message from PE `from`, which [sends](Team::send) it to this PE, into `data`.
    ///
    /// # Errors
    /// As [`Team::send`].
    #[track_caller]
    pub fn receive<T: Pod>(&self, from: Rank, data: &mut [T]) -> Result<()> {
        self.messages_from(from)?.receive_message(data, Location::caller())
    }

    /// Sends `sent` to PE `to` and receives `received` from PE `from` at the same time, for any
    /// lengths: `MPI_Sendrecv`. The two PEs may differ; each may make any matching call for its
    /// message. A PE that passes its own rank for both copies `sent` to `received`. As with `send`,
    /// at most 48 messages may be outstanding in a direction.
    ///
    /// ```
    /// use consort::Job;
    ///
    /// let from_left = Job::threads(3).run(|pe| {
    ///     let world = pe.world();
    ///     let (own, mut ghost) = ([world.rank().0; 10], [0; 10]);
    ///     world.send_receive(world.right(), &own, world.left(), &mut ghost)?;
    ///     Ok(ghost[0])
    /// })?;
    /// assert_eq!(from_left, [2, 0, 1]);
    /// # Ok::<(), consort::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Team::send`]; [`CallError::OwnMessage`] when one of the two PEs is the caller;
    /// [`CallError::Lengths`] when both are, and the lengths differ.
    #[track_caller]
    pub fn send_receive<T: Pod>(
        &self,
        to: Rank,
        sent: &[T],
        from: Rank,
        received: &mut [T],
    ) -> Result<()> {
        let site = Location::caller();
        if to == self.rank() && from == to {
            self.state.ensure_alive()?;
            let (source_len, target_len) = (sent.len(), received.len());
            if source_len != target_len {
                return Err(CallError::Lengths { source_len, target_len }.into());
            }
            received.copy_from_slice(sent);
            return Ok(());
        }
        let (outgoing, incoming) = (self.messages_to(to)?, self.messages_from(from)?);
        if size_of_val(sent) <= EAGER_BYTES {
            outgoing.send_message(sent, site)?;
            return incoming.receive_message(received, site);
        }
        self.overlap(|scope| {
            scope.start_send_bytes(to, sent, site)?;
            incoming.receive_message(received, site)
        })
    }

    /// Sends a message in the team that carries it.
    fn send_message<T: Pod>(&self, data: &[T], site: Site) -> Result<()> {
        if (INBOX_BYTES + 1..=EAGER_BYTES).contains(&size_of_val(data)) {
            return self.send_copy(data, site);
        }
        let (source, target) = (Buffer::source(data), Buffer::ABSENT);
        let operands = Operands { kernel: None, source, target, layouts: None };
        self.state.message::<T>(data.len(), &operands, site)
    }

    /// Receives a message in the team that carries it.
    fn receive_message<T: Pod>(&self, data: &mut [T], site: Site) -> Result<()> {
        let len = data.len();
        let (source, target) = (Buffer::ABSENT, Buffer::target(data));
        let operands = Operands { kernel: None, source, target, layouts: None };
        self.state.message::<T>(len, &operands, site)
    }
}
