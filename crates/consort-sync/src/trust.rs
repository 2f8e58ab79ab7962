//! The additional values of a server, which may have any number of values: Ahmad et al. 2024.

#![expect(unsafe_code, reason = "relies on a server for exclusive access")]

use std::{cell::UnsafeCell, fmt, sync::Arc};

use crate::{
    Continuations, Server,
    delegation::{FallbackServer, ServerScheme},
    detached::Pending,
};

/// A value that a server uses for all threads, as it uses its own data: see [`Server::entrust`].
///
/// Clones are handles on the same value. The value is dropped after the last handle and after the
/// last detached closure that uses it.
///
/// ```
/// use consort_sync::Server;
///
/// let server = Server::start(())?;
/// let (count, words) = (server.entrust(0), server.entrust(Vec::new()));
/// std::thread::scope(|scope| {
///     for word in ["a", "b"] {
///         let (count, words) = (&count, words.clone());
///         scope.spawn(move || {
///             count.apply(|count| *count += 1);
///             words.detach(move |words| words.push(word));
///         });
///     }
/// });
/// assert_eq!(count.into_inner(), Some(2));
/// assert_eq!(words.apply(|words| words.len()), 2);
/// # Ok::<_, std::io::Error>(())
/// ```
pub struct Trust<'s, U: Send, T = (), S = FallbackServer>
where
    T: Send + 'static,
    S: ServerScheme<Local: Send> + Send + Sync + 'static,
{
    server: &'s Server<T, S>,
    value: Arc<Entrusted<U>>,
}

/// A value that closures of one server use.
struct Entrusted<U>(UnsafeCell<U>);

// SAFETY: only closures of one server use the value. It executes one closure at a time, and each
// happens before the next.
unsafe impl<U: Send> Sync for Entrusted<U> {}

impl<U> Entrusted<U> {
    /// Executes a closure with the value.
    ///
    /// # Safety
    /// The caller is a closure of the server, and no closure above it on the stack uses the value.
    unsafe fn execute<R>(&self, closure: impl FnOnce(&mut U) -> R) -> R {
        // SAFETY: guaranteed by the caller.
        closure(unsafe { &mut *self.0.get() })
    }
}

impl<T, S> Server<T, S>
where
    T: Send + 'static,
    S: ServerScheme<Local: Send> + Send + Sync + 'static,
{
    /// Gives the server another value, in addition to its data, so that one server can have many.
    /// If a server needs no data, start it with `()`.
    pub fn entrust<U: Send>(&self, value: U) -> Trust<'_, U, T, S> {
        Trust { server: self, value: Arc::new(Entrusted(UnsafeCell::new(value))) }
    }
}

impl<U, T, S> Trust<'_, U, T, S>
where
    U: Send,
    T: Send + 'static,
    S: ServerScheme<Local: Send> + Send + Sync + 'static,
{
    /// Executes `closure` with the value, as [`Server::apply`], and returns its result.
    ///
    /// # Panics
    /// As [`Server::apply`]. Also in a closure of the same server, whatever data that uses.
    #[track_caller]
    pub fn apply<R: Send>(&self, closure: impl FnOnce(&mut U) -> R + Send) -> R {
        let value = &*self.value;
        // SAFETY: the server refuses closures of its closures.
        self.server.apply(move |_| unsafe { value.execute(closure) })
    }

    /// Like [`Server::detach`].
    ///
    /// # Panics
    /// As [`Server::detach`].
    #[track_caller]
    pub fn detach(&self, closure: impl FnOnce(&mut U) + Send + 'static)
    where
        U: 'static,
    {
        let value = Arc::clone(&self.value);
        // SAFETY: as in `apply`.
        self.server.detach(move |_| unsafe { value.execute(closure) });
    }

    /// Like [`Server::submit`].
    ///
    /// # Panics
    /// As [`Server::submit`].
    #[track_caller]
    pub fn submit<R: Send + 'static>(
        &self,
        closure: impl FnOnce(&mut U) -> R + Send + 'static,
    ) -> Pending<R>
    where
        U: 'static,
    {
        let value = Arc::clone(&self.value);
        // SAFETY: as in `apply`.
        self.server.submit(move |_| unsafe { value.execute(closure) })
    }

    /// Like [`Server::apply_then`]. The calls on many values may share `continuations`.
    ///
    /// # Panics
    /// As [`Server::apply_then`].
    #[track_caller]
    pub fn apply_then<'scope, R: Send + 'scope>(
        &'scope self,
        continuations: &Continuations<'scope, '_>,
        closure: impl FnOnce(&mut U) -> R + Send + 'scope,
        then: impl FnOnce(R) + 'scope,
    ) {
        let value = &*self.value;
        // SAFETY: as in `apply`.
        let closure = move |_: &mut T| unsafe { value.execute(closure) };
        self.server.apply_then(continuations, closure, then);
    }

    /// Returns the value; `None` if there is another handle, or a pending closure that uses the
    /// value.
    #[must_use]
    pub fn into_inner(self) -> Option<U> {
        Arc::into_inner(self.value).map(|value| value.0.into_inner())
    }
}

impl<U, T, S> Clone for Trust<'_, U, T, S>
where
    U: Send,
    T: Send + 'static,
    S: ServerScheme<Local: Send> + Send + Sync + 'static,
{
    fn clone(&self) -> Self {
        Self { server: self.server, value: Arc::clone(&self.value) }
    }
}

impl<U, T, S> fmt::Debug for Trust<'_, U, T, S>
where
    U: Send,
    T: Send + 'static,
    S: ServerScheme<Local: Send> + Send + Sync + 'static,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trust").field("server", &self.server).finish_non_exhaustive()
    }
}
