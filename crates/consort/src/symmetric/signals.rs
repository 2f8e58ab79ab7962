//! Signals and atomic operations on words of symmetric memory, and waits for them.

use std::time::Duration;

use consort_fabric::{Atomic, Rank, Signal, Until};

use super::{element::Element, memory::Symmetric, word::Word};
#[cfg(doc)]
use crate::error::CallError;
use crate::{Error, Result};

impl<T: Element, E> Symmetric<T, E> {
    /// Copies `data` to `to`'s part, starting at element `first`, and then signals word `word` of
    /// `flags` there. A PE that waits for the signal then sees the data.
    ///
    /// # Errors
    /// [`CallError::RankOutOfRange`], [`CallError::OutOfBounds`]; [`CallError::WordElsewhere`] when
    /// the PE is not in the team of `flags`; [`CallError::OtherJob`] when `flags` are of another
    /// job; [`Error::PeFailed`]. All but the last put nothing.
    ///
    /// ```
    /// use consort::{Job, Rank, symmetric::{Signal, Until}};
    ///
    /// Job::threads(2).run(|pe| {
    ///     let world = pe.world();
    ///     let (data, arrived) = (world.symmetric::<f64>(3)?, world.symmetric::<u64>(1)?);
    ///     if world.rank() == Rank(0) {
    ///         let values = [1.0, 2.0, 3.0];
    ///         data.put_signal(Rank(1), 0, &values, &arrived, 0, Signal::Set(1))?;
    ///     } else {
    ///         arrived.wait_until(0, Until::Equals(1))?;
    ///         assert_eq!(data.load(2)?, 3.0);
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), consort::Error>(())
    /// ```
    pub fn put_signal<W: Word, X>(
        &self,
        to: Rank,
        first: usize,
        data: &[T],
        flags: &Symmetric<W, X>,
        word: usize,
        how: Signal,
    ) -> Result<()> {
        self.run_with(flags, |area, flags| area.put_signal(to, first, data, (flags, word), how))
    }

    /// Gets, and then changes a word of the PE from which it gets.
    pub(crate) fn get_signal<W: Word, X>(
        &self,
        from: Rank,
        first: usize,
        data: &mut [T],
        (flags, word): (&Symmetric<W, X>, usize),
        how: Signal,
    ) -> Result<()> {
        self.run_with(flags, |area, flags| area.get_signal(from, first, data, (flags, word), how))
    }
}

impl<T: Element, E> Symmetric<T, E> {
    /// Performs an atomic operation on one word of `at`'s part; sequentially consistent. Returns
    /// the old value. Operands are bits, from [`Word::to_bits`].
    ///
    /// # Errors
    /// [`CallError::RankOutOfRange`], [`CallError::OutOfBounds`], [`Error::PeFailed`].
    pub fn atomic(&self, at: Rank, index: usize, operation: Atomic) -> Result<T>
    where
        T: Word,
    {
        self.run(|area| area.atomic(at, index, operation))
    }

    /// Adds `value` to one word of `at`'s part, wrapping around. Returns the old value.
    ///
    /// # Errors
    /// As [`Symmetric::atomic`].
    pub fn fetch_add(&self, at: Rank, index: usize, value: T) -> Result<T>
    where
        T: Word,
    {
        self.atomic(at, index, Atomic::FetchAdd(value.to_bits()))
    }

    /// Changes one word of `to`'s part, and wakes a PE that waits for it there. A PE that has seen
    /// the signal sees the data that this PE put before its last [`Symmetric::fence`].
    ///
    /// # Errors
    /// [`CallError::RankOutOfRange`], [`CallError::OutOfBounds`], [`Error::PeFailed`].
    pub fn signal(&self, to: Rank, index: usize, how: Signal) -> Result<()>
    where
        T: Word,
    {
        self.run(|area| area.signal(to, index, how))
    }

    /// Waits until one word of this PE's part meets the condition, and returns it. Data that was
    /// put before the word changed, and ordered by a fence or by [`Symmetric::put_signal`], has
    /// arrived.
    ///
    /// Words are compared as unsigned. The bits of a negative value are `Word::to_bits(-1_i32)`.
    ///
    /// # Errors
    /// [`CallError::OutOfBounds`], [`Error::PeFailed`]; [`Error::Mismatched`] when no PE is left to
    /// change the word: all others have finished, or are themselves waiting.
    pub fn wait_until(&self, index: usize, until: Until) -> Result<T>
    where
        T: Word,
    {
        let value = self.wait(index, until, None)?;
        Ok(value.expect("a wait without a limit ends with a word"))
    }

    /// As [`Symmetric::wait_until`], for at most `limit`; on a time-out returns `None`, and may be
    /// called again. During the wait, it is not an error that no PE is left to change the word.
    ///
    /// # Errors
    /// [`CallError::OutOfBounds`], [`Error::PeFailed`].
    pub fn wait_until_timeout(
        &self,
        index: usize,
        until: Until,
        limit: Duration,
    ) -> Result<Option<T>>
    where
        T: Word,
    {
        self.wait(index, until, Some(limit))
    }

    fn wait(&self, index: usize, until: Until, limit: Option<Duration>) -> Result<Option<T>>
    where
        T: Word,
    {
        self.run(|area| {
            let (word, width) = area.word(index)?;
            let endpoint = &self.state.endpoint;
            let value = endpoint.wait_until(word, width, until, limit);
            let value = value.map_err(|_| Error::of_job(endpoint.job()))?;
            Ok(value.map(T::from_bits))
        })
    }
}
