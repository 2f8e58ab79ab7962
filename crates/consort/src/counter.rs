//! Counting puts: a put, or a get, that adds 1 to a counter at the PE whose memory it is.
//!
//! Source: Dinan, Cole, Jost, Smith, Underwood and Wisniewski, "Reducing Synchronization Overhead
//! Through Bundled Communication" (2014), section 2 and Listing 1.3: create, free, get, set, wait
//! and a put that counts. A get that counts is proposed there and left open.
//!
//! Idea: one counter serves any number of senders, and the receiver waits for as many operations as
//! it expects, where flags would need one for each sender, and a fence before each.
//!
//! Protocol: the sender stores the data and then adds to the counter with release; who has seen the
//! count, with acquire, sees the data. It is put-with-signal, with a word that is a block of
//! symmetric memory of its own.
//!
//! Cost, on coherent shared memory: two cache lines travel to the receiver for up to 64 bytes that
//! lie in one line, that of the data and that of the counter. The data goes where the caller says,
//! so the count cannot share its line.
//!
//! Left out on purpose: messages that bring data and count in one line and that the receiver puts
//! in place when it looks at the counter. Fences, barriers and the gets of third PEs would have to
//! wait for a PE that computes.

use std::fmt;

use consort_fabric::{Atomic, Rank, Signal, Until};

#[cfg(doc)]
use crate::Error;
use crate::{Result, Symmetric, Team, symmetric::element::Element};

/// Counts the operations on each PE's symmetric memory that name it; from [`Team::counter`].
///
/// Each PE has one such counter, of 64 bits and 0 at first, alone on its cache line. Operations at
/// a PE, [`Symmetric::put_counted`] and [`Symmetric::get_notify`], add 1 to that PE's; the PE
/// itself reads it, waits for it and sets it. After 2^64 operations it would begin again.
///
/// A count says that the counted operations are complete, so many of them, and nothing of any
/// other: not of plain puts, not of operations with another counter, nor which of several the
/// count is of. Those that the same PE made earlier are only ordered by [`Symmetric::fence`].
///
/// Rather let it grow, and wait for the total, than set it back: an operation that arrives between
/// a wait and [`Counter::set`] would be lost. Two counters in turn serve as well.
///
/// Dropping it is local; the memory is reused once all PEs have dropped theirs.
///
/// ```
/// use consort::{Pes, Rank};
///
/// // Everyone puts a value to everyone, and waits for as many as there are PEs.
/// let sums = Pes::threads(3).run(|pe| {
///     let world = pe.world();
///     let inbox = world.symmetric::<u64>(world.size() as usize)?;
///     let arrived = world.counter()?;
///     let me = world.rank();
///     for to in (0..world.size()).map(Rank) {
///         inbox.put_counted(to, me.index(), &[u64::from(me.0) + 1], &arrived)?;
///     }
///     arrived.wait(world.size().into())?;
///     let mut values = [0; 3];
///     inbox.get(me, 0, &mut values)?;
///     Ok(values.iter().sum::<u64>())
/// })?;
/// assert!(sums.iter().all(|&(_, sum)| sum == 6));
/// # Ok::<(), consort::Error>(())
/// ```
pub struct Counter<'p> {
    word: Symmetric<'p, u64>,
    me: Rank,
}

/// # Counters
impl<'p> Team<'p> {
    /// A counter on each PE, 0 at first. Collective; uses 128 bytes of each PE's symmetric memory.
    ///
    /// # Errors
    /// [`Error::Memory`] when there is not so much left, and see [`Team`].
    pub fn counter(&self) -> Result<Counter<'p>> {
        Ok(Counter { word: Symmetric::allocate(*self, 1, "counter()")?, me: self.rank() })
    }
}

impl<'p> Counter<'p> {
    /// The word that the fabric adds to, its only element.
    pub(crate) fn word(&self) -> &Symmetric<'p, u64> {
        &self.word
    }

    /// Fails once the job has failed, where nothing would be waited for that fails.
    fn ensure_sound(&self) -> Result<()> {
        self.word.ensure_sound()
    }

    /// The value of this PE's own counter, in operations. Local. What they put is there.
    ///
    /// # Errors
    /// [`Error::PeFailed`], so that a PE that polls the counter learns of it.
    pub fn get(&self) -> Result<u64> {
        self.ensure_sound()?;
        self.word.atomic(self.me, 0, Atomic::Load)
    }

    /// Changes this PE's own counter. Local. Operations that arrive at the same time are counted
    /// before, and so forgotten, or after; nobody can tell which.
    ///
    /// # Errors
    /// [`Error::PeFailed`].
    pub fn set(&self, value: u64) -> Result<()> {
        self.ensure_sound()?;
        self.word.signal(self.me, 0, Signal::Set(value))
    }

    /// Waits until this PE's own counter is `at_least` this, in operations, and returns its value.
    /// Changes nothing. What they put is there.
    ///
    /// # Errors
    /// [`Error::PeFailed`]; [`Error::Mismatched`] when all other PEs have finished, so that nobody
    /// is left to count.
    pub fn wait(&self, at_least: u64) -> Result<u64> {
        self.word.wait_until(0, Until::AtLeast(at_least))
    }
}

impl<T: Element> Symmetric<'_, T> {
    /// Copies `data` to the part of `to`, from element `first` on, and then adds 1 to `counter`
    /// there: a PE that sees the count sees the data of this put, but not necessarily of any other.
    /// One-sided: returns when `data` may be changed. No data is counted as well.
    ///
    /// As `shmem_putmem_ct` of Dinan et al. (2014), section 2, Listing 1.3.
    ///
    /// # Errors
    /// [`Error::RankOutOfRange`], [`Error::OutOfBounds`], [`Error::PeFailed`]. On the first two
    /// nothing is put and nothing counted.
    ///
    /// # Panics
    /// When the counter is of another job.
    pub fn put_counted(
        &self,
        to: Rank,
        first: usize,
        data: &[T],
        counter: &Counter<'_>,
    ) -> Result<()> {
        counter.ensure_sound()?;
        self.put_signal(to, first, data, counter.word(), 0, Signal::Add(1))
    }

    /// Copies from the part of `from`, from element `first` on, into `data`, and then adds 1 to
    /// `counter` there: the owner who sees the count may write there again, as far as this get is
    /// concerned. One-sided.
    ///
    /// The get-and-notify that Dinan et al. (2014), section 2, propose for producers and consumers.
    ///
    /// # Errors
    /// As [`Symmetric::put_counted`].
    ///
    /// # Panics
    /// As [`Symmetric::put_counted`].
    ///
    /// ```
    /// # use consort::{Pes, Rank};
    /// Pes::threads(2).run(|pe| {
    ///     let world = pe.world();
    ///     let item = world.symmetric::<u64>(1)?;
    ///     let (full, empty) = (world.counter()?, world.counter()?);
    ///     for round in 1..=5 {
    ///         if world.rank() == Rank(0) {
    ///             empty.wait(round - 1)?; // the last item has been fetched
    ///             item.store(0, round)?;
    ///             item.put_counted(Rank(1), 0, &[], &full)?;
    ///         } else {
    ///             full.wait(round)?;
    ///             let mut got = [0];
    ///             item.get_notify(Rank(0), 0, &mut got, &empty)?;
    ///             assert_eq!(got, [round]);
    ///         }
    ///     }
    ///     world.barrier()
    /// })?;
    /// # Ok::<(), consort::Error>(())
    /// ```
    pub fn get_notify(
        &self,
        from: Rank,
        first: usize,
        data: &mut [T],
        counter: &Counter<'_>,
    ) -> Result<()> {
        self.ensure_same_job(counter.word());
        counter.ensure_sound()?;
        self.get(from, first, data)?;
        counter.word().signal(from, 0, Signal::Add(1))
    }
}

impl fmt::Debug for Counter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counter").field("rank", &self.me).finish_non_exhaustive()
    }
}
