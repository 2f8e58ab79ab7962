//! Containers for the threads of a program, without a launch.

#![expect(unsafe_code, reason = "values travel as the addresses of their boxes")]

use std::{fmt, marker::PhantomData};

use consort_native::block_on;

use super::{Container, Lcrq, Queue, Treiber};
use crate::{delegation::Scheme, machine::MACHINE, threads::ByThread};

/// A container of words for any threads.
///
/// ```
/// use consort_sync::objects::{Lcrq, Words};
///
/// let queue = Words::<Lcrq>::with_rings_of(1024);
/// std::thread::scope(|scope| {
///     scope.spawn(|| (1..=100).for_each(|number| queue.put(number)));
///     scope.spawn(|| (1..=100).for_each(|number| queue.put(number)));
/// });
/// let sum: u64 = std::iter::from_fn(|| queue.take()).sum();
/// assert_eq!(sum, 2 * 5050);
/// ```
pub struct Words<C: Container> {
    container: C,
    locals: ByThread<C::Local>,
}

impl<C: Container> Words<C> {
    const fn of(container: C) -> Self {
        Self { container, locals: ByThread::new() }
    }

    /// Appends a value to a queue, or puts it on a stack.
    ///
    /// # Panics
    /// When the number is no [value](Container::values).
    #[inline]
    pub fn put(&self, value: u64) {
        let Ok(()) = block_on(self.container.put(&MACHINE, self.locals.mine(), value));
    }

    /// Takes the first value of a queue, or that on top of a stack; `None` if it is empty.
    #[inline]
    pub fn take(&self) -> Option<u64> {
        let Ok(value) = block_on(self.container.take(&MACHINE, self.locals.mine()));
        value
    }
}

impl<C: Container> Drop for Words<C> {
    fn drop(&mut self) {
        self.locals.each(|local| C::retire_local(&MACHINE, local));
        self.container.retire(&MACHINE);
    }
}

impl Words<Lcrq> {
    /// An empty queue with rings of so many cells, a power of two.
    ///
    /// # Panics
    /// When the size is no power of two.
    #[must_use]
    pub fn with_rings_of(cells: usize) -> Self {
        Self::of(Lcrq::new(&MACHINE, cells))
    }

    /// An empty queue with rings of so many cells, a power of two, for clusters of cores: LCRQ+H.
    ///
    /// # Panics
    /// When the size is no power of two.
    #[must_use]
    pub fn with_clusters(cells: usize, clusters: super::Clusters) -> Self {
        Self::of(Lcrq::new(&MACHINE, cells).with_clusters(clusters))
    }
}

impl Default for Words<Lcrq> {
    /// With rings of [`Lcrq::RING_SIZE`] cells.
    fn default() -> Self {
        Self::with_rings_of(Lcrq::RING_SIZE)
    }
}

impl Default for Words<Treiber> {
    fn default() -> Self {
        Self::of(Treiber::new())
    }
}

impl<S: Scheme> Words<Queue<S>> {
    /// The queue of Michael and Scott with a scheme for those who put and one for those who take.
    #[must_use]
    pub fn with_two(put: S, take: S) -> Self {
        Self::of(Queue::with_two(&MACHINE, put, take))
    }
}

impl<C: Container> fmt::Debug for Words<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Words").finish_non_exhaustive()
    }
}

/// A container of values of any type, each in a box, for any threads. Those that are left are
/// dropped with it.
///
/// ```
/// use consort_sync::objects::{Boxes, Lcrq, Words};
///
/// let queue = Boxes::<String, Lcrq>::new(Words::default());
/// std::thread::scope(|scope| {
///     for word in ["first", "second"] {
///         let queue = &queue;
///         scope.spawn(move || queue.put(word.to_owned()));
///     }
/// });
/// assert!(queue.take().is_some_and(|word| word == "first" || word == "second"));
/// ```
///
/// A box may be opened by another thread than that which closed it.
///
/// ```compile_fail,E0277
/// # use consort_sync::objects::{Boxes, Lcrq, Words};
/// static QUEUE: std::sync::OnceLock<Boxes<std::rc::Rc<u8>, Lcrq>> = std::sync::OnceLock::new();
/// ```
pub struct Boxes<T, C: Container> {
    words: Words<C>,
    _values: PhantomData<T>,
}

// SAFETY: a value is in one box, which one thread opens, after it was put; nobody has a reference
// to it meanwhile. So values are moved between threads.
unsafe impl<T: Send, C: Container<Local: Send> + Sync> Sync for Boxes<T, C> {}

impl<T, C: Container> Boxes<T, C> {
    /// Uses an empty container.
    ///
    /// # Panics
    /// When addresses are no [values](Container::values) of it: of [`Lcrq`], where the processor
    /// exchanges no pairs of words. When it is not empty.
    #[must_use]
    pub fn new(words: Words<C>) -> Self {
        assert!(words.container.values() >= super::VALUES, "addresses are no values of it");
        assert!(words.take().is_none(), "it is not empty");
        Self { words, _values: PhantomData }
    }

    /// Appends a value to a queue, or puts it on a stack.
    #[inline]
    pub fn put(&self, value: T) {
        self.words.put(Box::into_raw(Box::new(value)).expose_provenance() as u64);
    }

    /// Takes the first value of a queue, or that on top of a stack; `None` if it is empty.
    #[inline]
    #[must_use]
    pub fn take(&self) -> Option<T> {
        #[expect(clippy::cast_possible_truncation, reason = "it was an address")]
        let address = self.words.take()? as usize;
        // SAFETY: all words are of boxes that `put` has given up, and each is taken once.
        Some(*unsafe { Box::from_raw(std::ptr::with_exposed_provenance_mut::<T>(address)) })
    }
}

impl<T, C: Container> Drop for Boxes<T, C> {
    fn drop(&mut self) {
        while self.take().is_some() {}
    }
}

impl<T, C: Container> fmt::Debug for Boxes<T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Boxes").finish_non_exhaustive()
    }
}
