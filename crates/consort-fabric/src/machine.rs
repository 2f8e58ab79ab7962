//! The interface that locks and delegation are written on: words on cache lines, and messages.
//!
//! A [`Fabric`](crate::Fabric) is one-sided memory between PEs that may share none. A machine is
//! one coherent memory with threads in it. Each thread also has a queue of incoming messages, as
//! the hardware of a TILE-Gx has (Petrović 2015, chapter 2).
//!
//! All operations but waits are ready at once. A wait may be pending, and never spins inside
//! itself.

use std::{future::Future, ops::Deref, sync::atomic::Ordering};

use crate::{Op, Rank, Until};

/// Words of a message.
pub const MESSAGE_WORDS: usize = 6;

/// One thread's view of a machine.
///
/// Orderings are those of [`std::sync::atomic`]. All that a thread did before `send` happens before
/// all that the receiver does after the `receive` that takes the message.
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
    /// Writes a word past the caches, if the machine can. The next release fence orders it.
    fn stream(&self, word: &Self::Word, value: u64) -> impl Future<Output = ()>;
    /// Writes a word and returns the old value.
    fn swap(&self, word: &Self::Word, value: u64, order: Ordering) -> impl Future<Output = u64>;
    /// Adds to a word, wrapping around, and returns the old value.
    fn fetch_add(&self, word: &Self::Word, by: u64, order: Ordering) -> impl Future<Output = u64>;
    /// Writes `new` if the word is `current`. Returns the old value: `Ok` if it was replaced. The
    /// ordering is acquire and release on success, acquire otherwise.
    fn compare_exchange(
        &self,
        word: &Self::Word,
        current: u64,
        new: u64,
    ) -> impl Future<Output = Result<u64, u64>>;
    /// A fence.
    fn fence(&self, order: Ordering) -> impl Future<Output = ()>;
    /// A short rest in a polling loop.
    fn pause(&self) -> impl Future<Output = ()>;

    /// Waits until a word satisfies `until`, with acquire ordering, and returns its value.
    ///
    /// # Errors
    /// [`Poisoned`](crate::Poisoned) once the job has failed.
    fn wait_until(&self, word: &Self::Word, until: Until) -> impl Future<Output = Op<u64>>;

    /// Appends a message of at most [`MESSAGE_WORDS`] words to a thread's queue. Waits while the
    /// queue is full.
    ///
    /// # Errors
    /// [`Poisoned`](crate::Poisoned) once the job has failed.
    ///
    /// # Panics
    /// When the message is too long.
    fn send(&self, to: Rank, message: &[u64]) -> impl Future<Output = Op>;
    /// Takes the next message from the own queue, and waits while it is empty. Messages are in the
    /// order in which their senders got places in the queue. Words that were not sent are 0.
    ///
    /// # Errors
    /// [`Poisoned`](crate::Poisoned) once the job has failed.
    fn receive(&self) -> impl Future<Output = Op<[u64; MESSAGE_WORDS]>>;
    /// Whether the own queue is empty at present.
    fn inbox_is_empty(&self) -> impl Future<Output = bool>;
}
