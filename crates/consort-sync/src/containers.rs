//! Stacks and queues for any threads: the standard library's, under a scheme.

use std::{collections::VecDeque, fmt};

use crate::{
    delegate::Delegate,
    delegation::{Locked, Serverless},
    locks::Handoff,
};

/// A stack that threads share. How they do so is the second parameter, a scheme.
///
/// ```
/// use consort_sync::{Stack, delegation::CcSynch};
///
/// static WORDS: Stack<String> = Stack::new();
/// WORDS.push("below".to_owned());
/// WORDS.push("above".to_owned());
/// assert_eq!(WORDS.pop().as_deref(), Some("above"));
///
/// let numbers = Stack::with(CcSynch::new());
/// std::thread::scope(|scope| {
///     for number in 0..4 {
///         let numbers = &numbers;
///         scope.spawn(move || numbers.push(number));
///     }
/// });
/// assert_eq!(std::iter::from_fn(|| numbers.pop()).sum::<u64>(), 6);
/// ```
pub struct Stack<T, S: Serverless = Locked<Handoff>> {
    values: Delegate<Vec<T>, S>,
}

impl<T> Stack<T> {
    /// An empty stack under the default scheme, a lock.
    #[must_use]
    pub const fn new() -> Self {
        Self::with(Locked::new())
    }
}

impl<T> Default for Stack<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, S: Serverless> Stack<T, S> {
    /// An empty stack under a scheme.
    #[must_use]
    pub const fn with(scheme: S) -> Self {
        Self { values: Delegate::with(scheme, Vec::new()) }
    }
}

impl<T: Send, S: Serverless> Stack<T, S> {
    /// Puts a value on top.
    #[inline]
    pub fn push(&self, value: T) {
        self.values.apply(|values| values.push(value));
    }

    /// Takes the value on top; `None` if the stack is empty.
    #[inline]
    #[must_use]
    pub fn pop(&self) -> Option<T> {
        self.values.apply(Vec::pop)
    }

    /// How many values there are at present.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.apply(|values| values.len())
    }

    /// Whether there is none at present.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T, S: Serverless> fmt::Debug for Stack<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stack").field("scheme", &S::NAME).finish_non_exhaustive()
    }
}

/// A queue that threads share: first in, first out. How they do so is the second parameter, a
/// scheme.
///
/// ```
/// use consort_sync::Queue;
///
/// let queue = Queue::new();
/// std::thread::scope(|scope| {
///     scope.spawn(|| (0..100).for_each(|number| queue.push(format!("{number}"))));
///     let mut next = 0;
///     while next < 100 {
///         if let Some(text) = queue.pop() {
///             assert_eq!(text, next.to_string());
///             next += 1;
///         }
///     }
/// });
/// assert!(queue.is_empty());
/// ```
pub struct Queue<T, S: Serverless = Locked<Handoff>> {
    values: Delegate<VecDeque<T>, S>,
}

impl<T> Queue<T> {
    /// An empty queue under the default scheme, a lock.
    #[must_use]
    pub const fn new() -> Self {
        Self::with(Locked::new())
    }
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, S: Serverless> Queue<T, S> {
    /// An empty queue under a scheme.
    #[must_use]
    pub const fn with(scheme: S) -> Self {
        Self { values: Delegate::with(scheme, VecDeque::new()) }
    }
}

impl<T: Send, S: Serverless> Queue<T, S> {
    /// Appends a value.
    #[inline]
    pub fn push(&self, value: T) {
        self.values.apply(|values| values.push_back(value));
    }

    /// Takes the first value; `None` if the queue is empty.
    #[inline]
    #[must_use]
    pub fn pop(&self) -> Option<T> {
        self.values.apply(VecDeque::pop_front)
    }

    /// How many values there are at present.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.apply(|values| values.len())
    }

    /// Whether there is none at present.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T, S: Serverless> fmt::Debug for Queue<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("scheme", &S::NAME).finish_non_exhaustive()
    }
}
