//! Containers of words that any thread can use.

#![expect(unsafe_code, reason = "keeps state of a container per thread")]

use std::fmt;

use consort_machine::{block_on, block_on_yielding};

use super::{Container, Lcrq, Object, ObjectPart, Queue, Sequential, Stack, Treiber};
use crate::{
    delegation::{Scheme, ServerScheme},
    machine::MACHINE,
    threads::PerThread,
};

/// A container of words that any thread can use.
///
/// ```
/// use consort_sync::objects::WordContainer;
///
/// let queue = WordContainer::with_rings_of(1024);
/// std::thread::scope(|scope| {
///     scope.spawn(|| (1..=100).for_each(|number| queue.put(number)));
///     scope.spawn(|| (1..=100).for_each(|number| queue.put(number)));
/// });
/// let sum: u64 = std::iter::from_fn(|| queue.take()).sum();
/// assert_eq!(sum, 2 * 5050);
/// ```
pub struct WordContainer<C: Container> {
    container: C,
    locals: PerThread<C::Local>,
}

impl<C: Container> WordContainer<C> {
    const fn of(container: C) -> Self {
        Self { container, locals: PerThread::new() }
    }

    /// Appends a value to a queue, or puts it on a stack.
    ///
    /// # Panics
    /// When the number is not a [value](Container::values).
    #[inline]
    pub fn put(&self, value: u64) {
        // SAFETY: the state belongs to this thread and this container.
        unsafe { self.container.put_here(self.locals.mine(), value) };
    }

    /// Returns the first number that is not a value.
    pub fn values(&self) -> u64 {
        self.container.values()
    }

    /// Takes the first value of a queue, or the top value of a stack; `None` if it is empty.
    #[inline]
    pub fn take(&self) -> Option<u64> {
        // SAFETY: the state belongs to this thread and this container.
        unsafe { self.container.take_here(self.locals.mine()) }
    }
}

impl<C: Container> Drop for WordContainer<C> {
    fn drop(&mut self) {
        self.locals.each(|local| C::retire_local(&MACHINE, local));
        self.container.retire(&MACHINE);
    }
}

impl WordContainer<Lcrq> {
    /// Creates an empty queue whose rings have `cells` cells, a power of two.
    ///
    /// # Panics
    /// When the size is not a power of two.
    #[must_use]
    pub fn with_rings_of(cells: usize) -> Self {
        Self::of(Lcrq::new(&MACHINE, cells))
    }

    /// Creates a queue whose rings have `cells` cells, a power of two, for clusters of cores:
    /// LCRQ+H.
    ///
    /// # Panics
    /// When the size is not a power of two.
    #[must_use]
    pub fn with_clusters(cells: usize, clusters: super::Clusters) -> Self {
        Self::of(Lcrq::new(&MACHINE, cells).with_clusters(clusters))
    }
}

impl Default for WordContainer<Treiber> {
    /// Creates a lock-free stack.
    fn default() -> Self {
        Self::of(Treiber::new())
    }
}

impl<S: Scheme> WordContainer<Stack<S>> {
    /// Creates an empty stack under a scheme.
    #[must_use]
    pub const fn stack(scheme: S) -> Self {
        Self::of(Stack::new(scheme))
    }
}

impl<S: Scheme> WordContainer<Queue<S>> {
    /// Creates an empty queue under a scheme.
    #[must_use]
    pub fn queue(scheme: S) -> Self {
        Self::of(Queue::new(&MACHINE, scheme))
    }

    /// Creates an empty queue with one scheme for threads that put and one for threads that take.
    ///
    /// # Panics
    /// When a scheme [streams](Scheme::streams) its answers.
    #[must_use]
    pub fn queue_of_two(put: S, take: S) -> Self {
        Self::of(Queue::with_two(&MACHINE, put, take))
    }
}

/// Methods for schemes with a server: one thread serves each part.
///
/// ```
/// use consort_sync::{
///     delegation::MpServer,
///     objects::{ObjectPart, WordContainer},
/// };
///
/// let queue = WordContainer::queue(MpServer::new());
/// std::thread::scope(|scope| {
///     scope.spawn(|| queue.run(ObjectPart::Put));
///     queue.put(7);
///     assert_eq!(queue.take(), Some(7));
///     queue.stop(ObjectPart::Put);
/// });
/// ```
impl<S: ServerScheme, D: Sequential> WordContainer<Object<S, D>>
where
    Object<S, D>: Container,
{
    /// Returns the parts, each with its own server.
    pub fn parts(&self) -> &'static [ObjectPart] {
        self.container.parts()
    }

    /// Runs the server of a part, until [`stop`](Self::stop) is called.
    ///
    /// # Panics
    /// When a server of the part already runs, or ran before.
    pub fn run(&self, part: ObjectPart) {
        let Ok(()) = block_on_yielding(self.container.run(&MACHINE, part));
    }

    /// Ends the server of a part. Later operations of the part wait forever.
    pub fn stop(&self, part: ObjectPart) {
        let Ok(()) = block_on(self.container.stop(&MACHINE, part));
    }
}

impl<C: Container> fmt::Debug for WordContainer<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WordContainer").finish_non_exhaustive()
    }
}
