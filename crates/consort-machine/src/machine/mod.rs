//! The interface on which locks and delegation are built: words on cache lines, and messages.
//!
//! A fabric is one-sided memory between PEs, which may share no memory. A machine is one coherent
//! memory with threads in it. Each thread also has queues of incoming messages, like the hardware
//! of a TILE-Gx (Petrović 2015, section 5.2).
//!
//! All operations except waits are ready at once. A wait may be pending, and never spins
//! internally.

#![expect(unsafe_code, reason = "relies on locks, and on their machine, for exclusive access")]

mod line;
mod mailbox;
mod unique;

use std::{fmt::Debug, future::Future, sync::atomic::Ordering};

pub use line::{Line, Pair, Word};
pub use mailbox::Mailbox;
pub use unique::UniqueNumbers;

/// The panic message of a machine that does not exchange pairs.
const NO_PAIRS: &str = "this machine exchanges no pairs of words";

/// The number of a thread. Other threads send messages to it. Another thread gets the number only
/// after the first thread has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Thread(pub u32);

/// Names a queue of incoming messages; the name is the same for all threads. Objects that are in
/// use at the same time need different queues, such as the addresses of their lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Queue(pub u64);

/// The condition of a wait on a word. Words are compared as unsigned integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Equal to this value.
    Equals(u64),
    /// Different from this value.
    Differs(u64),
    /// At least this value.
    AtLeast(u64),
    /// At most this value.
    AtMost(u64),
}

impl Until {
    /// Returns whether `value` ends the wait.
    #[inline]
    #[must_use]
    pub const fn holds(self, value: u64) -> bool {
        match self {
            Self::Equals(wanted) => value == wanted,
            Self::Differs(unwanted) => value != unwanted,
            Self::AtLeast(least) => value >= least,
            Self::AtMost(most) => value <= most,
        }
    }
}

/// The calling thread's view of a machine.
///
/// Orderings are those of [`std::sync::atomic`]. Everything before a `send` or `answer` happens
/// before everything that the receiver does after it has received the message or the answer.
///
/// # Safety
/// Locks and the data that they protect rely on this: words have the values that were stored, a
/// line has one user, a thread one number, a message one receiver, a unique number is returned
/// once, and a waiting word is always the same.
pub unsafe trait Machine {
    /// Why a wait ends early: [`Infallible`](std::convert::Infallible) if no wait does.
    type Stop: Debug;

    /// The largest number of words in a message.
    const MESSAGE_WORDS: usize;

    /// Returns the calling thread.
    fn thread(&self) -> Thread;
    /// Returns the NUMA node of the processor on which the calling thread runs; 0 if it is unknown.
    /// The thread may move to another one at any time.
    fn numa_node(&self) -> u32 {
        0
    }
    /// Returns the time in nanoseconds of a clock that all threads share.
    fn now_ns(&self) -> u64;

    /// Returns a line for the caller's use. Its words have arbitrary values. The line stays
    /// allocated as long as the program runs, so using a stale address is harmless.
    fn take_line(&self) -> &'static Line;
    /// Returns a line obtained from [`Machine::take_line`]. Any thread may return it.
    fn give_line(&self, line: &'static Line);

    /// Returns a number that is not 0, and that the machine returns only once.
    fn unique(&self) -> u64;
    /// Returns the word at which threads wait for each other by this [unique](Machine::unique)
    /// number, in the object that `object` is a word of. The word is 0 at first. The same arguments
    /// always give the same word. Other objects and numbers may share it. It stays allocated as long
    /// as the machine exists, so a thread may still use it when the object no longer exists.
    fn waiting_word(&self, object: &Word, number: u64) -> &Word;

    /// Reads a word.
    fn load(&self, word: &Word, order: Ordering) -> impl Future<Output = u64>;
    /// Writes a word.
    fn store(&self, word: &Word, value: u64, order: Ordering) -> impl Future<Output = ()>;
    /// Writes a word past the caches, if the machine can. The thread must issue a release fence
    /// before its next release. Until then, other threads may not see the write for a long time.
    fn stream(&self, word: &Word, value: u64) -> impl Future<Output = ()>;
    /// Writes a word and returns the old value.
    fn swap(&self, word: &Word, value: u64, order: Ordering) -> impl Future<Output = u64>;
    /// Adds to a word, wrapping around, and returns the old value.
    fn fetch_add(&self, word: &Word, by: u64, order: Ordering) -> impl Future<Output = u64>;
    /// Writes `new` if the word is `current`. Returns the old value: `Ok` if it was replaced. A
    /// failed exchange has the ordering of the load in `order`.
    fn compare_exchange(
        &self,
        word: &Word,
        current: u64,
        new: u64,
        order: Ordering,
    ) -> impl Future<Output = Result<u64, u64>>;
    /// Returns whether the machine has [`Machine::compare_exchange_pair`]; always the same.
    fn has_pairs(&self) -> bool {
        false
    }
    /// Writes `new` to two words if they are `current`, in one atomic step. Returns the old values:
    /// `Ok` if they were replaced. The words may also be read and written one by one. A failed
    /// exchange has the ordering of the load in `order`.
    ///
    /// # Panics
    /// When the machine does not support this: see [`Machine::has_pairs`].
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
    /// Issues a fence.
    fn fence(&self, order: Ordering) -> impl Future<Output = ()>;
    /// Pauses for about this number of processor cycles, for backoff.
    fn pause(&self, cycles: u64) -> impl Future<Output = ()>;

    /// Waits until a word satisfies `until`, with acquire ordering, and returns its value. The
    /// thread that stores that value must then call [`Machine::wake`].
    ///
    /// # Errors
    /// When the wait ends early.
    fn wait_until(
        &self,
        word: &Word,
        until: Until,
    ) -> impl Future<Output = Result<u64, Self::Stop>>;
    /// Like [`Machine::wait_until`], but returns `None` once the clock reaches `at_ns`.
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
    /// has no room. Meanwhile, messages for the caller are taken in.
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
    /// Waits for a message in a queue of the caller and takes it: `WORDS` words, which stay
    /// together. Messages are in the order in which their senders obtained room.
    ///
    /// # Errors
    /// When the wait ends early.
    fn receive<const WORDS: usize>(
        &self,
        queue: Queue,
    ) -> impl Future<Output = Result<[u64; WORDS], Self::Stop>>;
    /// Returns whether a queue of the caller is empty at present.
    fn is_empty(&self, queue: Queue) -> impl Future<Output = bool>;

    /// Sends a word to a thread that waits in [`Machine::receive_answer`], or is about to. Never
    /// waits: the requester keeps room for one answer, and has one request at a time.
    fn answer(&self, to: Thread, value: u64) -> impl Future<Output = ()>;
    /// Waits for the answer to the caller's request and takes it.
    ///
    /// # Errors
    /// When the wait ends early.
    fn receive_answer(&self) -> impl Future<Output = Result<u64, Self::Stop>>;
}
