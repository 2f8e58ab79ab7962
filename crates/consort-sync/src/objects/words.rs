//! Containers of words for the threads of a program, without a launch.

#![expect(unsafe_code, reason = "each thread has what it keeps of a container")]

use std::fmt;

use consort_machine::{block_on, block_on_patiently};

use super::{Container, Lcrq, Object, Part, Queue, Sequential, Stack, Treiber};
use crate::{
    delegation::{Scheme, ServerScheme},
    machine::MACHINE,
    threads::ByThread,
};

/// A container of words for any threads.
///
/// ```
/// use consort_sync::objects::Words;
///
/// let queue = Words::with_rings_of(1024);
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
        // SAFETY: it is what this thread keeps of this container.
        unsafe { self.container.put_here(self.locals.mine(), value) };
    }

    /// The first number that is no value.
    pub fn values(&self) -> u64 {
        self.container.values()
    }

    /// Takes the first value of a queue, or that on top of a stack; `None` if it is empty.
    #[inline]
    pub fn take(&self) -> Option<u64> {
        // SAFETY: it is what this thread keeps of this container.
        unsafe { self.container.take_here(self.locals.mine()) }
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

impl Default for Words<Treiber> {
    /// A stack without locks.
    fn default() -> Self {
        Self::of(Treiber::new())
    }
}

impl<S: Scheme> Words<Stack<S>> {
    /// An empty stack under a scheme.
    #[must_use]
    pub const fn stack(scheme: S) -> Self {
        Self::of(Stack::new(scheme))
    }
}

impl<S: Scheme> Words<Queue<S>> {
    /// An empty queue under a scheme.
    #[must_use]
    pub fn queue(scheme: S) -> Self {
        Self::of(Queue::new(&MACHINE, scheme))
    }

    /// An empty queue with a scheme for those who put and one for those who take.
    #[must_use]
    pub fn queue_of_two(put: S, take: S) -> Self {
        Self::of(Queue::with_two(&MACHINE, put, take))
    }
}

/// Under a scheme with a server, threads serve the others: one for each part.
///
/// ```
/// use consort_sync::{
///     delegation::MpServer,
///     objects::{Part, Words},
/// };
///
/// let queue = Words::queue(MpServer::new());
/// std::thread::scope(|scope| {
///     scope.spawn(|| queue.run(Part::Put));
///     queue.put(7);
///     assert_eq!(queue.take(), Some(7));
///     queue.stop(Part::Put);
/// });
/// ```
impl<S: ServerScheme, D: Sequential> Words<Object<S, D>>
where
    Object<S, D>: Container,
{
    /// The parts that have a server each.
    pub fn parts(&self) -> &'static [Part] {
        self.container.parts()
    }

    /// Serves all threads with a part, until [`stop`](Self::stop) is called.
    ///
    /// # Panics
    /// When a server of the part runs already.
    pub fn run(&self, part: Part) {
        let Ok(()) = block_on_patiently(self.container.run(&MACHINE, part));
    }

    /// Lets the server of a part end. Its operations after that wait for ever.
    pub fn stop(&self, part: Part) {
        let Ok(()) = block_on(self.container.stop(&MACHINE, part));
    }
}

impl<C: Container> fmt::Debug for Words<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Words").finish_non_exhaustive()
    }
}
