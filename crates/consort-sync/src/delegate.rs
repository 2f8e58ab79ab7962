//! Data that threads use through closures. One thread at a time executes them.

use std::{fmt, sync::atomic::Ordering::Relaxed};

use crate::{
    batch::Batch,
    continuations::Continuations,
    data::DelegatedData,
    delegation::{Locked, Serverless},
    detached::Pending,
    locks::Handoff,
};

/// Data that one closure at a time uses. Which thread executes a closure depends on the scheme, the
/// second type parameter.
///
/// ```
/// use consort_sync::{Delegate, delegation::CcSynch};
///
/// static COUNTER: Delegate<u64> = Delegate::new(0);
/// let words = Delegate::with(CcSynch::new(), Vec::new());
///
/// std::thread::scope(|scope| {
///     for word in ["a", "b"] {
///         let words = &words;
///         scope.spawn(move || {
///             COUNTER.apply(|count| *count += 1);
///             words.apply(|words| words.push(word));
///         });
///     }
/// });
/// assert_eq!(COUNTER.apply(|count| *count), 2);
/// assert_eq!(words.into_inner().len(), 2);
/// ```
pub struct Delegate<T, S: Serverless = Locked<Handoff>> {
    data: DelegatedData<T, S>,
}

impl<T> Delegate<T> {
    /// Creates a delegate with the default scheme: a lock under which each thread executes its own
    /// closures.
    #[must_use]
    pub const fn new(data: T) -> Self {
        Self::with(Locked::new(), data)
    }
}

impl<T: Default> Default for Delegate<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T, S: Serverless> Delegate<T, S> {
    /// Creates a delegate with a scheme that needs no server; for others see
    /// [`Server`](crate::Server).
    #[must_use]
    pub const fn with(scheme: S, data: T) -> Self {
        Self { data: DelegatedData::new(scheme, data) }
    }

    /// Makes a closure that panics poison the data, until [`clear_poison`](Self::clear_poison) is
    /// called.
    #[must_use]
    pub fn poisoning(self) -> Self {
        self.data.shared.poisons.store(true, Relaxed);
        self
    }

    /// Returns whether closures are refused because one has panicked.
    pub fn is_poisoned(&self) -> bool {
        self.data.shared.is_poisoned()
    }

    /// Allows closures to use the data again.
    pub fn clear_poison(&self) {
        self.data.shared.clear_poison();
    }

    /// Executes `closure` with the data, and returns its result. Another thread may execute it.
    ///
    /// As with any lock, closures that wait for each other wait forever: for example a closure of
    /// `a` that uses `b`, and at the same time a closure of `b` that uses `a`.
    ///
    /// # Panics
    /// When the closure panics, with its payload. When the data is poisoned. When the caller is
    /// itself a closure on this data, or when such a closure waits for the caller.
    #[inline]
    #[track_caller]
    pub fn apply<R: Send>(&self, closure: impl FnOnce(&mut T) -> R + Send) -> R {
        self.data.apply(closure)
    }

    /// Executes `closure` with the data, possibly after this call has returned. The closures of a
    /// thread, detached or not, are executed in the order of its calls. So [`apply`](Self::apply)
    /// waits for all closures that its thread has detached.
    ///
    /// Under a lock that is free, the call executes the closure itself. Otherwise, if no other
    /// detached closure is pending, or if thousands are pending, the call waits, and executes
    /// closures of other threads (Klaftenegger, Sagonas and Winblad 2014). If the closure panics,
    /// no thread is notified, but the data is poisoned if it is [`poisoning`](Self::poisoning). If
    /// the data is poisoned, the closure is dropped.
    ///
    /// # Panics
    /// When the caller is itself a closure on this data, or when such a closure waits for the
    /// caller.
    #[inline]
    #[track_caller]
    pub fn detach(&self, closure: impl FnOnce(&mut T) + Send + 'static) {
        self.data.detach(closure);
    }

    /// Like [`detach`](Self::detach), for a closure whose result is needed later.
    ///
    /// # Panics
    /// As [`detach`](Self::detach).
    #[track_caller]
    pub fn submit<R: Send + 'static>(
        &self,
        closure: impl FnOnce(&mut T) -> R + Send + 'static,
    ) -> Pending<R> {
        self.data.submit(closure)
    }

    /// Like [`submit`](Self::submit), but passes the closure's result to `then`, on this thread and
    /// at one of the moments that [`Continuations`] lists. If this call executed the closure, `then`
    /// usually also runs in this call. Both closures may borrow what exists outside of the scope of
    /// `continuations`.
    ///
    /// If the result is not needed on this thread, use [`detach`](Self::detach), and do the work in
    /// the closure. Tasks should await the result of [`submit`](Self::submit).
    ///
    /// # Panics
    /// As [`detach`](Self::detach). Also as [`Continuations::run_ready`]: if an earlier call is the
    /// reason, this call was made, and its continuation runs later.
    #[inline]
    #[track_caller]
    pub fn apply_then<'scope, R: Send + 'scope>(
        &'scope self,
        continuations: &Continuations<'scope, '_>,
        closure: impl FnOnce(&mut T) -> R + Send + 'scope,
        then: impl FnOnce(R) + 'scope,
    ) {
        continuations.apply_then(&self.data, None, closure, then);
    }

    /// Starts a batch of closures that are [detached](Self::detach) together.
    pub const fn batch(&self) -> Batch<'_, T, S> {
        Batch::new(&self.data, None)
    }

    /// Returns the data, which no other thread uses.
    pub fn get_mut(&mut self) -> &mut T {
        self.data.shared.get_mut()
    }

    /// Returns the data.
    pub fn into_inner(self) -> T {
        self.data.shared.into_inner()
    }
}

impl<T, S: Serverless> fmt::Debug for Delegate<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delegate").field("scheme", &S::NAME).finish_non_exhaustive()
    }
}
