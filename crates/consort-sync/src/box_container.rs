//! Stacks and queues from the literature, for values of any type. Any thread can use them.

#![expect(unsafe_code, reason = "passes values as the addresses of their boxes")]

use std::{cell::Cell, fmt, marker::PhantomData};

use crate::{
    delegation::Serverless,
    objects::{self, Container, Lcrq, Treiber, VALUES, WordContainer},
};

/// A stack or a queue from the literature that keeps each value in a box. It is a list of nodes
/// under a [scheme](crate::delegation), or lock-free: [`Treiber`] or [`Lcrq`]. Dropping it drops
/// the remaining values.
///
/// Use it if many cores contend. On few cores, [`Stack`](crate::Stack) and [`Queue`](crate::Queue)
/// are faster.
///
/// ```
/// use consort_sync::{BoxContainer, objects::Treiber};
///
/// let stack = BoxContainer::<String, Treiber>::default();
/// std::thread::scope(|scope| {
///     for word in ["first", "second"] {
///         let stack = &stack;
///         scope.spawn(move || stack.put(word.to_owned()));
///     }
/// });
/// assert!(stack.take().is_some_and(|word| word == "first" || word == "second"));
/// ```
///
/// The thread that takes a value may differ from the thread that put it.
///
/// ```
/// # use consort_sync::{BoxContainer, objects::Treiber};
/// # use std::cell::Cell;
/// static STACK: std::sync::OnceLock<BoxContainer<Cell<u8>, Treiber>> = std::sync::OnceLock::new();
/// ```
/// ```compile_fail,E0277
/// # use consort_sync::{BoxContainer, objects::Treiber};
/// # use std::rc::Rc;
/// static STACK: std::sync::OnceLock<BoxContainer<Rc<u8>, Treiber>> = std::sync::OnceLock::new();
/// ```
///
/// A borrowed value must live at least as long as the lifetime in the container's type.
///
/// ```compile_fail,E0597
/// # use consort_sync::{BoxContainer, objects::Treiber};
/// let stack = BoxContainer::<&'static str, Treiber>::default();
/// {
///     let word = "short-lived".to_owned();
///     stack.put(&word);
/// }
/// assert_eq!(stack.take(), Some("short-lived"));
/// ```
pub struct BoxContainer<T, C: Container> {
    words: WordContainer<C>,
    /// Values are put through shared references, as into a cell. This makes `T` invariant: no other
    /// type will do, not even one that differs only in a lifetime.
    _values: PhantomData<Cell<T>>,
}

// SAFETY: each value is in one box. One thread opens it, after it was put: no scheme here has a
// server, so none streams its answers. No thread has a reference to the value in between. So values
// only move between threads.
unsafe impl<T: Send, C: Container<Local: Send> + Sync> Sync for BoxContainer<T, C> {}

impl<T, S: Serverless> BoxContainer<T, objects::Stack<S>> {
    /// Creates an empty stack under a scheme that needs no server; for others see
    /// [`WordContainer`].
    #[must_use]
    pub const fn stack(scheme: S) -> Self {
        Self::of(WordContainer::stack(scheme))
    }
}

impl<T, S: Serverless> BoxContainer<T, objects::Queue<S>> {
    /// Creates an empty queue under a scheme that needs no server; for others see
    /// [`WordContainer`].
    #[must_use]
    pub fn queue(scheme: S) -> Self {
        Self::of(WordContainer::queue(scheme))
    }

    /// Creates an empty queue with one scheme for threads that put and one for threads that take,
    /// which do not wait for each other (Michael and Scott 1996).
    ///
    /// ```
    /// use consort_sync::{BoxContainer, delegation::Locked, locks::Mcs};
    ///
    /// let queue = BoxContainer::queue_of_two(Locked::with(Mcs::new()), Locked::with(Mcs::new()));
    /// queue.put(7);
    /// assert_eq!((queue.take(), queue.take()), (Some(7), None));
    /// ```
    #[must_use]
    pub fn queue_of_two(put: S, take: S) -> Self {
        Self::of(WordContainer::queue_of_two(put, take))
    }
}

impl<T> Default for BoxContainer<T, Treiber> {
    /// Creates an empty stack.
    fn default() -> Self {
        Self::of(WordContainer::default())
    }
}

impl<T> BoxContainer<T, Lcrq> {
    /// Creates an empty queue whose rings have `cells` cells, a power of two. Returns `None` if the
    /// processor cannot exchange pairs of words atomically, because an address is then too large
    /// for a [value](Container::values).
    ///
    /// # Panics
    /// When the size is not a power of two.
    #[must_use]
    pub fn with_rings_of(cells: usize) -> Option<Self> {
        let words = WordContainer::with_rings_of(cells);
        (words.values() >= VALUES).then(|| Self::of(words))
    }
}

impl<T, C: Container> BoxContainer<T, C> {
    /// Wraps an empty container that accepts every value below [`VALUES`].
    const fn of(words: WordContainer<C>) -> Self {
        Self { words, _values: PhantomData }
    }

    /// Appends a value to a queue, or puts it on a stack.
    #[inline]
    pub fn put(&self, value: T) {
        self.words.put(Box::into_raw(Box::new(value)).expose_provenance() as u64);
    }

    /// Takes the first value of a queue, or the top value of a stack; `None` if it is empty.
    #[inline]
    #[must_use]
    pub fn take(&self) -> Option<T> {
        #[expect(clippy::cast_possible_truncation, reason = "it was an address")]
        let address = self.words.take()? as usize;
        // SAFETY: all words come from boxes that `put` has given up, and each is taken once.
        Some(*unsafe { Box::from_raw(std::ptr::with_exposed_provenance_mut::<T>(address)) })
    }
}

/// Drops the remaining values.
struct DropRemaining<'b, T, C: Container>(&'b BoxContainer<T, C>);

impl<T, C: Container> Drop for DropRemaining<'_, T, C> {
    fn drop(&mut self) {
        while self.0.take().is_some() {}
    }
}

impl<T, C: Container> Drop for BoxContainer<T, C> {
    fn drop(&mut self) {
        let rest = DropRemaining(self); // drops the remaining values even if a destructor panics
        while rest.0.take().is_some() {}
    }
}

impl<T, C: Container> fmt::Debug for BoxContainer<T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoxContainer").finish_non_exhaustive()
    }
}
