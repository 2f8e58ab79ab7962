//! The interface of asynchronous broadcasts to a machine: message buffers and notifications.
//!
//! [`Notifications`] is a PE's view for as long as it takes part. In contrast, a
//! [`Fabric`](crate::Fabric) is the view of one call. Each PE has a buffer that all peers read,
//! separate from the message buffer of collectives. A PE that has filled its buffer notifies the
//! peers that must read it, and fills it again after they have acknowledged. So at most one
//! notification is in flight from a PE to a peer, and one slot for each sender suffices.
//!
//! On the Intel SCC a notification is an interrupt (Petrović 2015, section 3.2). On a machine
//! without interrupts it waits until the PE polls.

use std::future::Future;

use crate::{Op, Rank};

/// A notification: a peer's buffer holds a block of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notification {
    /// The PE whose buffer holds the block.
    pub from: Rank,
    /// The number among the notifications of that PE, counted from 1.
    pub number: u64,
    /// The PE that broadcasts the message.
    pub source: Rank,
    /// The number among the messages of the source, counted from 0.
    pub message: u64,
    /// The offset of the block in the message, in bytes.
    pub at: usize,
    /// The length of the block, in bytes.
    pub bytes: usize,
    /// How the message continues after the block.
    pub then: Then,
}

/// How a message continues after a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// More blocks of the message follow.
    More,
    /// The message is complete; another one may follow.
    Message,
    /// Nothing follows: the source leaves. There is then no block.
    Nothing,
}

/// An event that a wait returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A notification has arrived: a peer's buffer holds a block for this PE.
    Notification(Notification),
    /// A peer has acknowledged the notification that the caller named.
    Acknowledged,
}

/// A PE's part in asynchronous broadcasts, which only the source of a message calls.
///
/// # Ordering
/// Everything before a `notify` or `acknowledge` happens before everything after the `wait`,
/// `poll` or `is_acknowledged` of the peer that observes it.
///
/// # Errors
/// Every operation fails with [`Poisoned`](crate::Poisoned) once the job has failed, and only then.
pub trait Notifications {
    /// Returns the PE's rank.
    fn rank(&self) -> Rank;
    /// Returns how many PEs there are.
    fn size(&self) -> u32;
    /// Returns the size of a PE's buffer, in bytes.
    fn buffer_bytes(&self) -> usize;

    /// Copies `data` from private memory into the PE's own buffer. `notification` describes it.
    fn fill(&self, notification: &Notification, data: &[u8]) -> impl Future<Output = Op>;

    /// Copies the first `bytes` of a peer's buffer into the PE's own.
    fn relay(&self, from: Rank, bytes: usize) -> impl Future<Output = Op>;

    /// Copies the beginning of a buffer, a peer's or the PE's own, into private memory.
    fn fetch(&self, from: Rank, data: &mut [u8]) -> impl Future<Output = Op>;

    /// Sends `notification` to all of `to`, simultaneously as far as the machine can.
    fn notify(&self, to: &[Rank], notification: Notification) -> impl Future<Output = Op>;

    /// Acknowledges notification `number` of `to`: this PE no longer needs the buffer of `to` for
    /// it.
    fn acknowledge(&self, to: Rank, number: u64) -> impl Future<Output = Op>;

    /// Returns whether PE `by` has acknowledged this PE's notification `number`.
    fn is_acknowledged(&self, by: Rank, number: u64) -> impl Future<Output = Op<bool>>;

    /// Takes a notification, if there is one.
    fn poll(&self) -> impl Future<Output = Op<Option<Notification>>>;

    /// Waits for a notification and takes it. If `of` is given and there is no notification, the
    /// wait also ends once that peer has acknowledged this PE's notification of that number.
    fn wait(&self, of: Option<(Rank, u64)>) -> impl Future<Output = Op<Event>>;
}
