//! Counting puts: a put or a get that adds 1 to a counter of the PE whose memory it accesses.
//!
//! Source: Dinan, Cole, Jost, Smith, Underwood and Wisniewski, "Reducing Synchronization Overhead
//! Through Bundled Communication" (2014), section 2 and Listing 1.3: create, free, get, set, wait
//! and a counting put. The paper proposes a counting get, but does not specify it.
//!
//! Idea: one counter serves any number of senders. The receiver waits until the counter has reached
//! the number of operations that it expects. With flags it would need one flag for each sender, and
//! a fence before each.
//!
//! Protocol: the sender stores the data and then adds to the counter with release. A PE that reads
//! the count with acquire sees the data. This is put-with-signal, with the word in a separate block
//! of symmetric memory.
//!
//! Cost, on coherent shared memory: for up to 64 bytes in one line, two cache lines travel to the
//! receiver, the line of the data and the line of the counter. The caller chooses the target of the
//! data, so the count cannot share the data's line.
//!
//! Left out on purpose: messages that carry data and count in one line. The receiver, or the sender
//! in a fence, would have to move the data to its target. `docs/measured-choices.md` states what
//! they would gain.

use std::{fmt, time::Duration};

use consort_fabric::{Atomic, Rank, Signal, Until};

#[cfg(doc)]
use crate::{Error, error::CallError};
use crate::{Result, Symmetric, Team, symmetric::element::Element};

/// Counts one-sided operations on each PE's symmetric memory; from [`Team::completion_counter`].
///
/// Each PE has one 64-bit counter, initially 0, alone on its cache line. The operations
/// [`Symmetric::put_counted`] and [`Symmetric::get_counted`] name a counter and add 1 to the
/// counter of the PE whose memory they access. The PE itself reads its counter, waits for it and
/// sets it. The counter wraps around after 2^64 operations.
///
/// A count of n means that n of the counted operations are complete. It does not identify them, and
/// implies nothing about plain puts or operations with another counter. Only [`Symmetric::fence`]
/// orders a PE's earlier operations before a counted one.
///
/// Let the counter grow and wait for the total instead of resetting it: an operation that arrives
/// between a wait and [`CompletionCounter::set`] would be lost. Alternating between two counters
/// also works.
///
/// Dropping it is local; the memory is reused once all PEs have dropped their counters.
///
/// ```
/// use consort::Job;
///
/// // Each PE puts a value to all PEs, and waits for one from each PE.
/// let sums = Job::threads(3).run(|pe| {
///     let world = pe.world();
///     let inbox = world.symmetric::<u64>(world.size())?;
///     let arrived = world.completion_counter()?;
///     let me = world.rank();
///     for to in world.ranks() {
///         inbox.put_counted(to, me.index(), &[u64::from(me.0) + 1], &arrived)?;
///     }
///     arrived.wait(world.size() as u64)?;
///     Ok(inbox.to_vec()?.iter().sum::<u64>())
/// })?;
/// assert_eq!(sums, [6; 3]);
/// # Ok::<(), consort::Error>(())
/// ```
pub struct CompletionCounter {
    word: Symmetric<u64>,
    me: Rank,
}

/// # Counters
impl Team {
    /// Creates a counter on each PE, initially 0. Collective; uses 128 bytes of each PE's symmetric
    /// memory.
    ///
    /// # Errors
    /// [`Error::Memory`] when less than that is left, and see [`Team`].
    #[track_caller]
    pub fn completion_counter(&self) -> Result<CompletionCounter> {
        Ok(CompletionCounter {
            word: Symmetric::allocate(self, 1, "completion_counter()")?,
            me: self.rank(),
        })
    }
}

impl CompletionCounter {
    /// Returns the word to which counted operations add: the only element.
    pub(crate) fn word(&self) -> &Symmetric<u64> {
        &self.word
    }

    /// Returns the value of this PE's counter, in operations. Local. The data of the counted puts
    /// has arrived.
    ///
    /// # Errors
    /// [`Error::PeFailed`], so that a PE that polls the counter notices the failure.
    pub fn get(&self) -> Result<u64> {
        self.word.atomic(self.me, 0, Atomic::Load)
    }

    /// Sets this PE's counter. Local. If an operation arrives at the same time, its count may be
    /// overwritten, or added after this.
    ///
    /// # Errors
    /// [`Error::PeFailed`].
    pub fn set(&self, value: u64) -> Result<()> {
        self.word.signal(self.me, 0, Signal::Set(value))
    }

    /// Adds `count` to `to`'s counter, without data. One-sided. As a signal, it follows the puts
    /// that this PE made before its last [`Symmetric::fence`].
    ///
    /// # Errors
    /// [`CallError::RankOutOfRange`], [`Error::PeFailed`].
    ///
    /// ```
    /// # use consort::{Job, Rank};
    /// Job::threads(3).run(|pe| {
    ///     let ready = pe.world().completion_counter()?;
    ///     ready.add(Rank(0), 1)?;
    ///     if pe.world().rank() == Rank(0) {
    ///         assert_eq!(ready.wait(3)?, 3); // all PEs are here
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), consort::Error>(())
    /// ```
    pub fn add(&self, to: Rank, count: u64) -> Result<()> {
        self.word.signal(to, 0, Signal::Add(count))
    }

    /// Waits until this PE's counter is at least `at_least`, in operations, and returns its value.
    /// Does not change the counter. The data of the counted puts has arrived.
    ///
    /// # Errors
    /// [`Error::PeFailed`]; [`Error::Mismatched`] when no PE is left to add to the counter, because
    /// all others have finished or are waiting themselves for calls or words.
    pub fn wait(&self, at_least: u64) -> Result<u64> {
        self.word.wait_until(0, Until::AtLeast(at_least))
    }

    /// As [`CompletionCounter::wait`], for at most `limit`; then returns `None`, and may be called
    /// again.
    ///
    /// # Errors
    /// [`Error::PeFailed`].
    pub fn wait_timeout(&self, at_least: u64, limit: Duration) -> Result<Option<u64>> {
        self.word.wait_until_timeout(0, Until::AtLeast(at_least), limit)
    }
}

impl<T: Element, E> Symmetric<T, E> {
    /// Copies `data` to `to`'s part, starting at element `first`, and then adds 1 to `counter`
    /// there. A PE that sees the count sees the data of this put, but not necessarily of any other.
    /// One-sided: returns when `data` may be changed. A put of no elements is counted too.
    ///
    /// As `shmem_putmem_ct` of Dinan et al. (2014), section 2, Listing 1.3.
    ///
    /// # Errors
    /// [`CallError::RankOutOfRange`], [`CallError::OutOfBounds`]; [`CallError::WordElsewhere`] when
    /// the PE is not in the counter's team; [`CallError::OtherJob`] when the counter is of another
    /// job; [`Error::PeFailed`]. All but the last put nothing and count nothing.
    pub fn put_counted(
        &self,
        to: Rank,
        first: usize,
        data: &[T],
        counter: &CompletionCounter,
    ) -> Result<()> {
        self.put_signal(to, first, data, counter.word(), 0, Signal::Add(1))
    }

    /// Copies elements of `from`'s part, starting at element `first`, into `data`, and then adds 1
    /// to `counter` there. Once the owner sees the count, this get has read the elements, and the
    /// owner may overwrite them. One-sided.
    ///
    /// The get-and-notify that Dinan et al. (2014), section 2, propose for producers and consumers.
    ///
    /// # Errors
    /// As [`Symmetric::put_counted`].
    ///
    /// ```
    /// # use consort::{Job, Rank};
    /// Job::threads(2).run(|pe| {
    ///     let world = pe.world();
    ///     let item = world.symmetric::<u64>(1)?;
    ///     let (full, empty) = (world.completion_counter()?, world.completion_counter()?);
    ///     for round in 1..=5 {
    ///         if world.rank() == Rank(0) {
    ///             empty.wait(round - 1)?; // the last item has been fetched
    ///             item.store(0, round)?;
    ///             item.fence()?; // the item is visible before the count
    ///             full.add(Rank(1), 1)?;
    ///         } else {
    ///             full.wait(round)?;
    ///             let mut got = [0];
    ///             item.get_counted(Rank(0), 0, &mut got, &empty)?;
    ///             assert_eq!(got, [round]);
    ///         }
    ///     }
    ///     world.barrier()
    /// })?;
    /// # Ok::<(), consort::Error>(())
    /// ```
    pub fn get_counted(
        &self,
        from: Rank,
        first: usize,
        data: &mut [T],
        counter: &CompletionCounter,
    ) -> Result<()> {
        self.get_signal(from, first, data, (counter.word(), 0), Signal::Add(1))
    }
}

impl fmt::Debug for CompletionCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompletionCounter").field("rank", &self.me).finish_non_exhaustive()
    }
}
