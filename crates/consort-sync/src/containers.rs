//! Stacks and queues that any thread can use: a `Vec` or a `VecDeque` under a scheme.

use std::{collections::VecDeque, fmt};

use crate::{
    delegate::Delegate,
    delegation::{Locked, Serverless},
    locks::Handoff,
};

/// Defines a container of the standard library under a scheme.
macro_rules! container {
    ($(#[$doc:meta])* $name:ident, $values:ident, $push:ident, $pop:ident) => {
        $(#[$doc])*
        pub struct $name<T, S: Serverless = Locked<Handoff>> {
            values: Delegate<$values<T>, S>,
        }

        impl<T> $name<T> {
            /// Creates an empty container under the default scheme, a lock.
            #[must_use]
            pub const fn new() -> Self {
                Self::with(Locked::new())
            }
        }

        impl<T> Default for $name<T> {
            fn default() -> Self {
                Self::new()
            }
        }

        impl<T, S: Serverless> $name<T, S> {
            /// Creates an empty container under a scheme.
            #[must_use]
            pub const fn with(scheme: S) -> Self {
                Self { values: Delegate::with(scheme, $values::new()) }
            }
        }

        impl<T: Send, S: Serverless> $name<T, S> {
            /// Puts a value on top of a stack, or at the end of a queue.
            #[inline]
            pub fn push(&self, value: T) {
                self.values.apply(|values| values.$push(value));
            }

            /// Takes the top value of a stack, or the first of a queue; `None` if there is none.
            #[inline]
            #[must_use]
            pub fn pop(&self) -> Option<T> {
                self.values.apply($values::$pop)
            }

            /// Returns how many values there are at present.
            #[must_use]
            pub fn len(&self) -> usize {
                self.values.apply(|values| values.len())
            }

            /// Returns whether there are no values at present.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }
        }

        impl<T, S: Serverless> fmt::Debug for $name<T, S> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut it = f.debug_struct(stringify!($name));
                it.field("scheme", &S::NAME).finish_non_exhaustive()
            }
        }
    };
}

container! {
    /// A stack that threads share. The second type parameter is the scheme by which they share it.
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
    Stack, Vec, push, pop
}

container! {
    /// A first-in, first-out queue that threads share. The second type parameter is the scheme by
    /// which they share it.
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
    Queue, VecDeque, push_back, pop_front
}
