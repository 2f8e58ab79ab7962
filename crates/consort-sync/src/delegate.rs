//! Data that threads use through closures, which one thread at a time executes.

#![expect(unsafe_code, reason = "a scheme is trusted to exclude")]

use std::{
    fmt, io,
    sync::Arc,
    thread::{self, Builder, JoinHandle},
};

use consort_native::{block_on, block_on_patiently};

use crate::{
    closure::{Call, Shared, refuse},
    delegation::{Locked, MpServer, Scheme, ServerScheme, Serverless},
    locks::Handoff,
    machine::MACHINE,
    threads::ByThread,
};

/// A scheme, with what each thread keeps of it.
struct Kept<S: Scheme> {
    scheme: S,
    locals: ByThread<S::Local>,
}

impl<S: Scheme> Drop for Kept<S> {
    fn drop(&mut self) {
        self.locals.each(|local| S::retire_local(&MACHINE, local));
        self.scheme.retire(&MACHINE);
    }
}

impl<S: Scheme> Kept<S> {
    #[inline]
    #[track_caller]
    fn apply<T, R>(&self, shared: &Shared<T>, closure: impl FnOnce(&mut T) -> R) -> R {
        let call = Call::new(closure);
        let (operation, argument) = call.request::<T>();
        let local = self.locals.mine();
        let Ok(_) = block_on(self.scheme.apply(&MACHINE, local, shared, operation, argument));
        call.finish()
    }
}

/// Data of which one closure at a time has a reference. Which thread executes a closure depends on
/// the scheme, the second parameter.
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
    kept: Kept<S>,
    shared: Shared<T>,
}

impl<T> Delegate<T> {
    /// Data under the default scheme: each thread executes its closures itself, under a lock.
    #[must_use]
    pub const fn new(data: T) -> Self {
        Self::with(Locked::new(), data)
    }
}

impl<T, S: Serverless> Delegate<T, S> {
    /// Data under a scheme that needs no server; for others see [`Server`].
    #[must_use]
    pub const fn with(scheme: S, data: T) -> Self {
        Self { kept: Kept { scheme, locals: ByThread::new() }, shared: Shared::new(data) }
    }

    /// Refuses closures after one has panicked, until [`clear_poison`](Self::clear_poison).
    #[must_use]
    pub const fn poisoning(mut self) -> Self {
        self.shared.poisons = true;
        self
    }

    /// Whether closures are refused since one has panicked.
    pub fn is_poisoned(&self) -> bool {
        self.shared.is_poisoned()
    }

    /// Lets closures use the data again.
    pub fn clear_poison(&self) {
        self.shared.clear_poison();
    }

    /// Has `closure` executed with the data, and returns its result. It may be executed by another
    /// thread.
    ///
    /// Closures that wait for each other in a circle wait for ever, as with any lock: one of `a`
    /// that uses `b`, and at the same time one of `b` that uses `a`.
    ///
    /// # Panics
    /// When the closure panics, with its payload. When the data is poisoned. When the caller is
    /// itself a closure with this data, or such a closure waits for it.
    #[inline]
    #[track_caller]
    pub fn apply<R: Send>(&self, closure: impl FnOnce(&mut T) -> R + Send) -> R {
        self.shared.refuse_circle();
        // SAFETY: the scheme executes nothing else meanwhile.
        let section = |closure| unsafe { self.shared.execute_here(closure) };
        match self.kept.scheme.in_place(closure, section) {
            Ok(Ok(result)) => result,
            Ok(Err(closure)) => refuse(closure),
            Err(closure) => self.kept.apply(&self.shared, closure),
        }
    }

    /// The data, which no other thread uses.
    pub fn get_mut(&mut self) -> &mut T {
        self.shared.get_mut()
    }

    /// The data.
    pub fn into_inner(self) -> T {
        self.shared.into_inner()
    }
}

impl<T, S: Serverless> fmt::Debug for Delegate<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delegate").field("scheme", &S::NAME).finish_non_exhaustive()
    }
}

/// Data that a thread of its own, the server, uses for all others: it executes their closures.
///
/// The data stays in the server's cache. That pays where many threads use it all the time; the
/// server takes a core.
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
pub struct Server<T: Send + 'static, S: ServerScheme + Send + Sync + 'static = MpServer>
where
    S::Local: Send,
{
    /// `None` once the server has ended.
    both: Option<Arc<(Kept<S>, Shared<T>)>>,
    thread: Option<JoinHandle<()>>,
}

impl<T: Send + 'static> Server<T> {
    /// Starts a server with the default scheme, messages.
    ///
    /// # Errors
    /// When the system starts no thread.
    pub fn start(data: T) -> io::Result<Self> {
        Self::with(MpServer::new(), data)
    }
}

impl<T: Send + 'static, S: ServerScheme + Send + Sync + 'static> Server<T, S>
where
    S::Local: Send,
{
    /// Starts a server with a scheme.
    ///
    /// # Errors
    /// When the system starts no thread.
    ///
    /// # Panics
    /// When the scheme [streams](ServerScheme::streams): the result of a closure could come after
    /// the answer that it is there.
    pub fn with(scheme: S, data: T) -> io::Result<Self> {
        assert!(!scheme.streams(), "closures return results, so answers may not pass the caches");
        let kept = Kept { scheme, locals: ByThread::new() };
        let both = Arc::new((kept, Shared::new(data)));
        let served = Arc::clone(&both);
        let serve = move || {
            let (Kept { scheme, .. }, shared) = &*served;
            let Ok(()) = block_on_patiently(scheme.run(&MACHINE, shared));
        };
        let thread = Builder::new().name("consort-server".into()).spawn(serve)?;
        Ok(Self { both: Some(both), thread: Some(thread) })
    }

    /// Has the server execute `closure` with the data, and returns its result.
    ///
    /// # Panics
    /// As [`Delegate::apply`].
    #[track_caller]
    pub fn apply<R: Send>(&self, closure: impl FnOnce(&mut T) -> R + Send) -> R {
        let (kept, shared) = self.both.as_deref().expect("the server has not ended");
        shared.refuse_circle();
        kept.apply(shared, closure)
    }

    /// Ends the server and returns the data.
    ///
    /// # Panics
    /// When it is called by a closure of the server.
    #[must_use]
    pub fn into_inner(mut self) -> T {
        self.end();
        let both = self.both.take().and_then(Arc::into_inner);
        both.expect("the server has ended").1.into_inner()
    }

    fn end(&mut self) {
        if let (Some(both), Some(thread)) = (&self.both, self.thread.take()) {
            let Ok(()) = block_on(both.0.scheme.stop(&MACHINE));
            // A closure may hold the last reference; then the server goes on after this.
            if thread.thread().id() != thread::current().id() {
                // It catches what closures panic with.
                let _ = thread.join();
            }
        }
    }
}

impl<T: Send + 'static, S: ServerScheme + Send + Sync + 'static> Drop for Server<T, S>
where
    S::Local: Send,
{
    /// Waits until the server has executed what it was given, and ends it.
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
