//! A counter that any thread can use.

use std::fmt;

use consort_machine::{block_on, block_on_yielding};

use crate::{
    delegation::{Locked, Scheme, ServerScheme},
    locks::Handoff,
    machine::MACHINE,
    objects::{CounterObject, ObjectPart},
    threads::PerThread,
};

/// A counter that threads share under a scheme, its type parameter. It is meant for comparing
/// schemes: an atomic addition, such as that of an `AtomicU64`, is faster than most.
///
/// ```
/// use consort_sync::{Counter, delegation::HybComb};
///
/// static VISITS: Counter = Counter::new();
/// let tickets = Counter::with(HybComb::new());
///
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| (VISITS.fetch_add(1), tickets.fetch_add(10)));
///     }
/// });
/// assert_eq!((VISITS.fetch_add(0), tickets.fetch_add(0)), (4, 40));
/// ```
pub struct Counter<S: Scheme = Locked<Handoff>> {
    counter: CounterObject<S>,
    locals: PerThread<[S::Local; 2]>,
}

impl Counter {
    /// Creates a counter with the value 0 under the default scheme, a lock.
    #[must_use]
    pub const fn new() -> Self {
        Self::with(Locked::new())
    }
}

impl Default for Counter {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: Scheme> Counter<S> {
    /// Creates a counter with the value 0 under a scheme.
    #[must_use]
    pub const fn with(scheme: S) -> Self {
        Self { counter: CounterObject::new(scheme), locals: PerThread::new() }
    }

    /// Adds to the counter, modulo [`VALUES`](crate::objects::VALUES), and returns the previous
    /// count.
    #[inline]
    pub fn fetch_add(&self, by: u64) -> u64 {
        self.counter.apply_here(self.locals.mine(), ObjectPart::Put, by)
    }
}

/// Methods for schemes with a server, which one thread runs for the others.
impl<S: ServerScheme> Counter<S> {
    /// Runs the server for all threads, until [`stop`](Self::stop) is called.
    ///
    /// # Panics
    /// When a server already runs, or ran before.
    pub fn run(&self) {
        let Ok(()) = block_on_yielding(self.counter.run(&MACHINE, ObjectPart::Put));
    }

    /// Ends the server. Later operations wait forever.
    pub fn stop(&self) {
        let Ok(()) = block_on(self.counter.stop(&MACHINE, ObjectPart::Put));
    }
}

impl<S: Scheme> Drop for Counter<S> {
    fn drop(&mut self) {
        self.locals.each(|local| CounterObject::<S>::retire_local(&MACHINE, local));
        self.counter.retire(&MACHINE);
    }
}

impl<S: Scheme> fmt::Debug for Counter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counter").field("scheme", &S::NAME).finish_non_exhaustive()
    }
}
