//! Data that a dedicated thread uses on behalf of all others, if that is faster than a lock.

use std::{
    fmt, io,
    mem::ManuallyDrop,
    sync::{Arc, atomic::Ordering::Relaxed, mpsc},
    thread::{self, Builder, JoinHandle},
};

use consort_machine::{
    Machine, ProcessToken, advice::of_thread, block_on, block_on_yielding, stay_loaded,
};

use crate::{
    batch::Batch,
    continuations::Continuations,
    data::DelegatedData,
    delegation::{FallbackServer, ServerScheme},
    detached::{NO_SERVER, Pending},
    machine::MACHINE,
};

/// Data that a dedicated thread, the server, uses for all others: it executes their closures.
///
/// The data stays in the server's cache. This is fast if many threads use the data often, and the
/// server has its own core. Otherwise a lock is faster, and the default scheme ([`FallbackServer`])
/// uses one: the server measures both ways from time to time, and a thread that has waited for a
/// late server executes its closure itself. With [`MpServer`] and [`ShmServer`] only the server's
/// thread executes closures.
///
/// [`MpServer`]: crate::delegation::MpServer
/// [`ShmServer`]: crate::delegation::ShmServer
///
/// ```
/// use consort_sync::Server;
///
/// let counter = Server::start(0)?;
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| counter.apply(|count| *count += 1));
///     }
/// });
/// assert_eq!(counter.into_inner(), 4);
/// # Ok::<_, std::io::Error>(())
/// ```
pub struct Server<T: Send + 'static, S: ServerScheme + Send + Sync + 'static = FallbackServer>
where
    S::Local: Send,
{
    /// `None` once the server has ended.
    data: Option<Arc<DelegatedData<T, S>>>,
    thread: Option<JoinHandle<()>>,
    process: ProcessToken,
}

impl<T: Send + 'static> Server<T> {
    /// Starts a server with the default scheme, which falls back to a lock.
    ///
    /// # Errors
    /// When the system cannot start a thread, or too many threads use messages or delegation.
    pub fn start(data: T) -> io::Result<Self> {
        Self::with(FallbackServer::new(), data)
    }
}

impl<T: Send + 'static, S: ServerScheme + Send + Sync + 'static> Server<T, S>
where
    S::Local: Send,
{
    /// Starts a server with a scheme.
    ///
    /// # Errors
    /// When the system cannot start a thread, or too many threads use messages or delegation.
    ///
    /// # Panics
    /// When the scheme [streams](crate::delegation::Scheme::streams): the answer could become
    /// visible before the closure's result.
    #[track_caller]
    pub fn with(scheme: S, data: T) -> io::Result<Self> {
        assert!(
            !scheme.streams(),
            "closures return results, so answers must not be streamed: use the scheme without \
             `with_streaming`"
        );
        stay_loaded(); // as long as the thread may run
        let data = Arc::new(DelegatedData::new(scheme, data));
        let served = Arc::clone(&data);
        let (starts, started) = mpsc::channel();
        let serve = move || {
            Machine::thread(&MACHINE); // panics if there are too many
            let _ = starts.send(());
            let Ok(()) =
                block_on_yielding(served.scheme_state.scheme.run(&MACHINE, &served.shared));
        };
        let thread = Builder::new().name("consort-server".into()).spawn(serve);
        let thread = thread.map_err(|error| io::Error::new(error.kind(), of_thread(&error)))?;
        if started.recv().is_err() {
            return Err(io::Error::other("too many threads use messages or delegation"));
        }
        Ok(Self { data: Some(data), thread: Some(thread), process: ProcessToken::current() })
    }

    /// Makes a closure that panics poison the data, until [`clear_poison`](Self::clear_poison) is
    /// called.
    #[must_use]
    pub fn poisoning(self) -> Self {
        self.data().shared.poisons.store(true, Relaxed);
        self
    }

    /// Returns whether closures are refused because one has panicked.
    pub fn is_poisoned(&self) -> bool {
        self.data().shared.is_poisoned()
    }

    /// Allows closures to use the data again.
    pub fn clear_poison(&self) {
        self.data().shared.clear_poison();
    }

    fn data(&self) -> &DelegatedData<T, S> {
        self.data.as_deref().expect("the server has not ended")
    }

    /// Returns the data. Panics in a forked child, where no server would execute a closure.
    #[inline]
    #[track_caller]
    fn served(&self) -> &DelegatedData<T, S> {
        assert!(self.process.is_current(), "{NO_SERVER}");
        self.data()
    }

    /// Executes `closure` with the data, and returns its result. The server's thread executes it,
    /// or with the default scheme possibly the caller or another thread that waits for the server.
    /// So before its own closure, the caller may execute closures of other threads, however long
    /// they take.
    ///
    /// # Panics
    /// As [`Delegate::apply`](crate::Delegate::apply). In a child that was forked after the server
    /// was started, because the child has no server.
    #[track_caller]
    pub fn apply<R: Send>(&self, closure: impl FnOnce(&mut T) -> R + Send) -> R {
        self.served().apply(closure)
    }

    /// Like [`Delegate::detach`](crate::Delegate::detach). The caller neither executes the closure
    /// nor waits, unless thousands of closures are pending.
    ///
    /// # Panics
    /// As [`Delegate::detach`](crate::Delegate::detach), and [`apply`](Self::apply) in a forked
    /// child.
    #[track_caller]
    pub fn detach(&self, closure: impl FnOnce(&mut T) + Send + 'static) {
        self.served().detach(closure);
    }

    /// Like [`Delegate::submit`](crate::Delegate::submit).
    ///
    /// # Panics
    /// As [`detach`](Self::detach).
    #[track_caller]
    pub fn submit<R: Send + 'static>(
        &self,
        closure: impl FnOnce(&mut T) -> R + Send + 'static,
    ) -> Pending<R> {
        self.served().submit(closure)
    }

    /// Like [`Delegate::apply_then`](crate::Delegate::apply_then): passes the result of `closure`
    /// to `then`, on this thread.
    ///
    /// # Panics
    /// As [`detach`](Self::detach), and as [`Continuations::run_ready`].
    #[track_caller]
    pub fn apply_then<'scope, R: Send + 'scope>(
        &'scope self,
        continuations: &Continuations<'scope, '_>,
        closure: impl FnOnce(&mut T) -> R + Send + 'scope,
        then: impl FnOnce(R) + 'scope,
    ) {
        continuations.apply_then(self.served(), Some(self.process), closure, then);
    }

    /// Starts a batch of closures that are [detached](Self::detach) together.
    pub fn batch(&self) -> Batch<'_, T, S> {
        Batch::new(self.data(), Some(self.process))
    }

    /// Ends the server and returns the data.
    ///
    /// # Panics
    /// When a closure of the server calls it. In a forked child, as [`apply`](Self::apply).
    #[must_use]
    pub fn into_inner(mut self) -> T {
        assert!(self.process.is_current(), "{NO_SERVER}");
        self.end();
        let data = self.data.take().and_then(Arc::into_inner);
        data.expect("a closure of the server does not end it").shared.into_inner()
    }

    fn end(&mut self) {
        if !self.process.is_current() {
            // The server may have begun a closure, and does not continue in a forked child. The
            // data stays as it is, and there is no thread to wait for.
            let _ = ManuallyDrop::new((self.data.take(), self.thread.take()));
            return;
        }
        if let (Some(data), Some(thread)) = (&self.data, self.thread.take()) {
            let Ok(()) = block_on(data.scheme_state.scheme.stop(&MACHINE));
            // If a closure of the server drops it, this thread is the server, which must not join
            // itself. A client that executes closures borrows the `Server`, so they cannot drop it.
            if thread.thread().id() != thread::current().id() {
                // The server catches the panics of closures.
                let _ = thread.join();
            }
        }
    }
}

impl<T: Send + 'static, S: ServerScheme + Send + Sync + 'static> Drop for Server<T, S>
where
    S::Local: Send,
{
    /// Waits until the server has executed its pending closures, and ends it. In a forked child it
    /// does neither, and does not drop the data.
    fn drop(&mut self) {
        self.end();
    }
}

impl<T: Send + 'static, S: ServerScheme + Send + Sync + 'static> fmt::Debug for Server<T, S>
where
    S::Local: Send,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("scheme", &S::NAME).finish_non_exhaustive()
    }
}
