//! The interface that locks and delegation are written on: words on cache lines, and messages.
//!
//! Where [`Fabric`](crate::Fabric) is one-sided memory between PEs that may share none, a machine
//! is one coherent memory with threads in it, each of which also has a queue of incoming messages
//! (as the hardware of a TILE-Gx has; Petrović 2015, chapter 2).
//!
//! All operations but waits are ready at once. A wait may be pending, and never spins inside
//! itself.

use std::{future::Future, ops::Deref, sync::atomic::Ordering};

use crate::{Op, Rank, Until};

/// Words of a message.
pub const MESSAGE_WORDS: usize = 6;

/// One thread's view of a machine.
///
/// Orderings are those of [`std::sync::atomic`]. What a thread did before `send` happens before
/// what the receiver does after the `receive` that takes the message.
pub trait Machine {
    /// A word of 64 bits, shared by all threads.
    type Word: Sync;
    /// A cache line of eight words.
    type Line: Deref<Target = [Self::Word; 8]> + Sync;

    /// A new line of zeros.
    fn line() -> Self::Line;
    /// The calling thread's rank.
    fn rank(&self) -> Rank;
    /// The number of threads.
    fn size(&self) -> u32;
    /// A clock common to all threads, in nanoseconds.
    fn now_ns(&self) -> u64;

    /// Reads a word.
    fn load(&self, word: &Self::Word, order: Ordering) -> impl Future<Output = u64>;
    /// Writes a word.
    fn store(&self, word: &Self::Word, value: u64, order: Ordering) -> impl Future<Output = ()>;
    /// Writes a word past the caches, where the machine can; ordered by the next release fence.
    fn stream(&self, word: &Self::Word, value: u64) -> impl Future<Output = ()>;
    /// Writes a word and returns what was there.
    fn swap(&self, word: &Self::Word, value: u64, order: Ordering) -> impl Future<Output = u64>;
    /// Adds to a word, wrapping around, and returns what was there.
    fn fetch_add(&self, word: &Self::Word, by: u64, order: Ordering) -> impl Future<Output = u64>;
    /// Writes `new` if the word is `current`. Acquires and releases if it was, else acquires.
    /// Returns what was there: as `Ok` if it was replaced.
    fn compare_exchange(
        &self,
        word: &Self::Word,
        current: u64,
        new: u64,
    ) -> impl Future<Output = Result<u64, u64>>;
    /// A fence.
    fn fence(&self, order: Ordering) -> impl Future<Output = ()>;
    /// A moment's rest in a loop.
    fn pause(&self) -> impl Future<Output = ()>;

    /// Waits until a word is as wanted, acquires, and returns it.
    ///
    /// # Errors
    /// [`Poisoned`](crate::Poisoned) once the job has failed.
    fn wait_until(&self, word: &Self::Word, until: Until) -> impl Future<Output = Op<u64>>;

    /// Puts a message of at most [`MESSAGE_WORDS`] into a thread's queue; waits while it is full.
    ///
    /// # Errors
    /// [`Poisoned`](crate::Poisoned) once the job has failed.
    ///
    /// # Panics
    /// When the message is longer.
    fn send(&self, to: Rank, message: &[u64]) -> impl Future<Output = Op>;
    /// Takes the next message from the own queue, in the order in which senders got their places;
    /// waits while it is empty. Words that were not sent are 0.
    ///
    /// # Errors
    /// [`Poisoned`](crate::Poisoned) once the job has failed.
    fn receive(&self) -> impl Future<Output = Op<[u64; MESSAGE_WORDS]>>;
    /// Whether the own queue is empty now.
    fn inbox_is_empty(&self) -> impl Future<Output = bool>;
}
