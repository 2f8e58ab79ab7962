//! What asynchronous broadcasts need of a machine: message buffers and notifications.
//!
//! [`Notifications`] is a PE's view for as long as it takes part, unlike [`Fabric`](crate::Fabric),
//! which is the view of one call. Each PE has a buffer that all peers read, apart from that of
//! collectives. A PE that has filled its own buffer notifies the peers that are to read it, and
//! fills it again once they have acknowledged. So at most one notification is on its way from a PE
//! to a peer, and one place for each sender is enough.
//!
//! On the Intel SCC a notification is an interrupt (Petrović 2015, section 3.2). On a machine
//! without interrupts it waits until the PE polls.

use std::future::Future;

use crate::{Op, Rank};

/// What stands in a PE's buffer: a block of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notification {
    /// In whose buffer.
    pub from: Rank,
    /// Of the notifications that this PE has given, from 1 on.
    pub number: u64,
    /// Who broadcasts the message.
    pub source: Rank,
    /// Of the messages that the source has broadcast, from 0 on.
    pub message: u64,
    /// Where in the message the block begins, in bytes.
    pub at: usize,
    /// Its length, in bytes.
    pub bytes: usize,
    /// What comes after it.
    pub then: Then,
}

/// What comes after a block of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// More of the message.
    More,
    /// Another message, if any.
    Message,
    /// Nothing: the source leaves, and this is no block of a message.
    Nothing,
}

/// What arrives at a PE from its peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A peer's buffer has something for it.
    Notification(Notification),
    /// A peer has acknowledged what it was asked about.
    Acknowledged,
}

/// A PE's part in broadcasts that only their source calls.
///
/// # Ordering
/// Everything before a `notify` or `acknowledge` happens before everything after the `wait`,
/// `poll` or `is_acknowledged` of the peer that observes it.
///
/// # Errors
/// Every operation fails with [`Poisoned`](crate::Poisoned) once the job has failed, and only then.
pub trait Notifications {
    /// The PE's rank.
    fn rank(&self) -> Rank;
    /// How many PEs there are.
    fn size(&self) -> u32;
    /// Bytes of a PE's buffer.
    fn buffer_bytes(&self) -> usize;
    /// Whether the own buffer is sooner written than the own memory: then a PE takes a chunk there
    /// first, even if it passes it on to nobody, so that the sender's buffer is sooner free.
    fn buffer_is_near(&self) -> bool;

    /// Copies `data`, which `notification` is of, from the own memory into the own buffer.
    fn fill(&self, notification: &Notification, data: &[u8]) -> impl Future<Output = Op>;

    /// Copies the first `bytes` of a peer's buffer into the own one.
    fn relay(&self, from: Rank, bytes: usize) -> impl Future<Output = Op>;

    /// Copies the beginning of a buffer, a peer's or the own one, into the own memory.
    fn fetch(&self, from: Rank, data: &mut [u8]) -> impl Future<Output = Op>;

    /// Gives `notification` to all of `to`, at once as far as the machine can.
    fn notify(&self, to: &[Rank], notification: Notification) -> impl Future<Output = Op>;

    /// Tells `to` that its notification `number` has been followed: its buffer is not needed for
    /// it.
    fn acknowledge(&self, to: Rank, number: u64) -> impl Future<Output = Op>;

    /// Whether a peer has acknowledged the own notification of this number.
    fn is_acknowledged(&self, by: Rank, number: u64) -> impl Future<Output = Op<bool>>;

    /// A notification, which is taken, if one is there.
    fn poll(&self) -> impl Future<Output = Op<Option<Notification>>>;

    /// Waits for a notification, which is taken; or, when none is there, until a peer has
    /// acknowledged the own notification of this number, if that is asked about.
    fn wait(&self, of: Option<(Rank, u64)>) -> impl Future<Output = Op<Event>>;
}
