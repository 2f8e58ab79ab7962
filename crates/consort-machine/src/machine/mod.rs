//! The interface that locks and delegation are written on: words on cache lines, and messages.
//!
//! A fabric is one-sided memory between PEs that may share none. A machine is one coherent memory with
//! threads in it. Each thread also has queues of incoming messages, as the hardware of a TILE-Gx has
//! (Petrović 2015, section 5.2).
//!
//! All operations but waits are ready at once. A wait may be pending, and never spins inside
//! itself.

#![expect(unsafe_code, reason = "locks are trusted to exclude, and rely on a machine for that")]

mod line;
mod mailbox;
mod until;

use std::{fmt::Debug, future::Future, sync::atomic::Ordering};

pub use line::{Line, Pair, Word};
pub use mailbox::Mailbox;
pub use until::Until;

/// The text of the panic of a machine that exchanges no pairs.
const NO_PAIRS: &str = "this machine exchanges no pairs of words";

/// The number of a thread, by which others send messages to it. It is given to another thread only
/// after the first one has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Thread(pub u32);

/// Names a queue of incoming messages, the same for all threads. Objects that are in use at the
/// same time have different queues, such as the addresses of their lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Queue(pub u64);

/// The calling thread's view of a machine.
///
/// Orderings are those of [`std::sync::atomic`]. All that a thread did before `send` or `answer`
/// happens before all that the receiver does after it has received the message or the answer.
///
/// # Safety
/// Locks, and so the data that they protect, rely on what is said here: words have the values that
/// were stored, a line has one user, a thread one number, and a message one receiver.
pub unsafe trait Machine {
    /// Why a wait ends early: [`Infallible`](std::convert::Infallible) where nothing ends one.
    type Stop: Debug;

    /// The most words of a message.
    const MESSAGE_WORDS: usize;

    /// The calling thread.
    fn thread(&self) -> Thread;
    /// A clock common to all threads, in nanoseconds.
    fn now_ns(&self) -> u64;

    /// A line for the caller's use. Its words have any value. It is memory for as long as the
    /// program runs, so a stale address never does harm.
    fn take_line(&self) -> &'static Line;
    /// Ends the use of a line of [`Machine::take_line`], by the thread that took it or another.
    fn give_line(&self, line: &'static Line);

    /// Reads a word.
    fn load(&self, word: &Word, order: Ordering) -> impl Future<Output = u64>;
    /// Writes a word.
    fn store(&self, word: &Word, value: u64, order: Ordering) -> impl Future<Output = ()>;
    /// Writes a word past the caches, if the machine can. A release fence must come between it and
    /// the thread's next release. Until then, others may not see it for long.
    fn stream(&self, word: &Word, value: u64) -> impl Future<Output = ()>;
    /// Writes a word and returns the old value.
    fn swap(&self, word: &Word, value: u64, order: Ordering) -> impl Future<Output = u64>;
    /// Adds to a word, wrapping around, and returns the old value.
    fn fetch_add(&self, word: &Word, by: u64, order: Ordering) -> impl Future<Output = u64>;
    /// Writes `new` if the word is `current`. Returns the old value: `Ok` if it was replaced. A
    /// failure has the ordering of the load in `order`.
    fn compare_exchange(
        &self,
        word: &Word,
        current: u64,
        new: u64,
        order: Ordering,
    ) -> impl Future<Output = Result<u64, u64>>;
    /// Whether the machine has [`Machine::compare_exchange_pair`]. It is always the same.
    fn has_pairs(&self) -> bool {
        false
    }
    /// Writes `new` to two words if they are `current`, at once: no other operation comes between.
    /// Returns the old values: `Ok` if they were replaced. The words may also be read and written
    /// one by one. A failure has the ordering of the load in `order`.
    ///
    /// # Panics
    /// When the machine cannot: see [`Machine::has_pairs`].
    fn compare_exchange_pair(
        &self,
        pair: &Pair,
        current: [u64; 2],
        new: [u64; 2],
        order: Ordering,
    ) -> impl Future<Output = Result<[u64; 2], [u64; 2]>> {
        let _ = (pair, current, new, order);
        async { panic!("{NO_PAIRS}") }
    }
    /// A fence.
    fn fence(&self, order: Ordering) -> impl Future<Output = ()>;
    /// Rests for about this number of processor cycles: a backoff.
    fn pause(&self, cycles: u64) -> impl Future<Output = ()>;

    /// Waits until a word satisfies `until`, with acquire ordering, and returns its value. Who
    /// stores that value then calls [`Machine::wake`].
    ///
    /// # Errors
    /// When the wait ends early.
    fn wait_until(
        &self,
        word: &Word,
        until: Until,
    ) -> impl Future<Output = Result<u64, Self::Stop>>;
    /// As [`Machine::wait_until`], but at most until the clock shows `at_ns`: then `None`.
    ///
    /// # Errors
    /// When the wait ends early.
    fn wait_until_time(
        &self,
        word: &Word,
        until: Until,
        at_ns: u64,
    ) -> impl Future<Output = Result<Option<u64>, Self::Stop>>;
    /// Wakes the threads that sleep in a wait for this word.
    fn wake(&self, word: &Word);

    /// Appends a message to a queue of another thread, or of the caller. Waits while that thread
    /// has no room; what arrives for the caller meanwhile is taken in.
    ///
    /// # Errors
    /// When the wait ends early.
    ///
    /// # Panics
    /// When the message has more words than [`Machine::MESSAGE_WORDS`].
    fn send(
        &self,
        to: Thread,
        queue: Queue,
        message: &[u64],
    ) -> impl Future<Output = Result<(), Self::Stop>>;
    /// Takes the next message, of `WORDS` words, from a queue of the caller, and waits while it is
    /// empty. Messages are in the order in which their senders got room; their words are together.
    ///
    /// # Errors
    /// When the wait ends early.
    fn receive<const WORDS: usize>(
        &self,
        queue: Queue,
    ) -> impl Future<Output = Result<[u64; WORDS], Self::Stop>>;
    /// Whether a queue of the caller is empty at present.
    fn is_empty(&self, queue: Queue) -> impl Future<Output = bool>;

    /// Sends a word to a thread that waits, or is about to wait, in [`Machine::receive_answer`]. It
    /// never waits: who asks keeps room for one answer, and asks once at a time.
    fn answer(&self, to: Thread, value: u64) -> impl Future<Output = ()>;
    /// Takes the answer to what the caller has asked, and waits until it is there.
    ///
    /// # Errors
    /// When the wait ends early.
    fn receive_answer(&self) -> impl Future<Output = Result<u64, Self::Stop>>;
}
