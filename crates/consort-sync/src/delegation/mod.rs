//! Delegation and combining, without closures, for any [`Machine`]: a thread lets another thread
//! execute its operation in a critical section.
//!
//! | scheme | thread that executes | how requests and answers travel |
//! | --- | --- | --- |
//! | [`Locked`] | each thread its own | not at all: the data travels |
//! | [`ShmServer`] | a server | over a line for each client |
//! | [`MpServer`] | a server | by messages |
//! | [`FallbackServer`] | a server, or each thread if that is faster | over the nodes of a queue |
//! | [`CcSynch`] | one of the waiting threads | over the nodes of a queue |
//! | [`HSynch`] | one of the waiting threads, group by group | over the nodes of one queue per group |
//! | [`HybComb`] | one of the waiting threads | by messages |
//!
//! An operation is a word, such as a number or the address of a function. Its argument and its
//! result are a word each. A [`Backlog`] holds operations whose threads do not wait.

#![expect(unsafe_code, reason = "relies on a scheme for exclusive access")]

mod backlog;
mod backoff;
mod cc_synch;
mod fallback_server;
mod h_synch;
mod hybcomb;
mod locked;
mod mp_server;
mod node;
mod shm_server;

use std::future::{Future, ready};

use consort_machine::Machine;

pub use backlog::Backlog;
pub use backoff::Backoff;
pub use cc_synch::CcSynch;
pub use fallback_server::FallbackServer;
pub use h_synch::{HSynch, MyGroup};
pub use hybcomb::{HybComb, MyNode};
pub use locked::Locked;
pub use mp_server::MpServer;
pub use shm_server::ShmServer;

/// The default limit on the requests of other threads that a combiner executes before another one
/// takes its place (Petrović 2015, section 6.2.2).
pub const MAX_OPS: u64 = 200;

/// The panic message of a second server.
const SECOND_SERVER: &str = "the scheme has a server already";

/// The data and its operations, which a scheme executes.
pub trait Service<M: Machine> {
    /// Executes an operation. No other operation is executed meanwhile.
    fn serve(&self, m: &M, operation: u64, argument: u64) -> impl Future<Output = u64>;
}

/// A way to execute operations one at a time.
///
/// # Safety
/// Consider all calls of [`Service::serve`] made by [`apply`](Self::apply) of one scheme with one
/// service and by [`ServerScheme::run`], and all sections of [`in_place`](Self::in_place) and
/// [`in_place_if_free`](Self::in_place_if_free). Each ends before the next begins, and happens
/// before it. What precedes an `apply` happens before its operation, and the operation before what
/// follows the `apply`, unless the scheme [streams](Self::streams). The operation and argument of
/// each `apply` are served once, before it ends; those of each `post` that returns true are served
/// once, before the server ends.
pub unsafe trait Scheme {
    /// The scheme's name in the literature.
    const NAME: &'static str;
    /// State that each thread keeps between its operations. It belongs to one thread and this
    /// scheme; the next thread with the same number may take it over.
    type Local: Default;

    /// Executes an operation, on this thread or another, and returns its result. [`ShmServer`]
    /// loses the highest bit of a result.
    ///
    /// # Errors
    /// When a wait ends early.
    fn apply<M: Machine, S: Service<M>>(
        &self,
        m: &M,
        local: &Self::Local,
        service: &S,
        operation: u64,
        argument: u64,
    ) -> impl Future<Output = Result<u64, M::Stop>>;

    /// Hands over an operation that is executed later and whose result is dropped, if the scheme
    /// can do this without the caller. Returns whether it can.
    ///
    /// # Errors
    /// When a wait ends early.
    fn post<M: Machine>(
        &self,
        m: &M,
        operation: u64,
        argument: u64,
    ) -> impl Future<Output = Result<bool, M::Stop>> {
        let _ = (m, operation, argument);
        ready(Ok(false))
    }

    /// Gives a thread's state back to the machine. No thread may use the scheme any more.
    fn retire_local<M: Machine>(m: &M, local: &mut Self::Local) {
        let _ = (m, local);
    }

    /// Gives the scheme's memory back to the machine. No thread may use the scheme any more.
    fn retire<M: Machine>(&mut self, m: &M) {
        let _ = m;
    }

    /// Returns whether answers are streamed: written with nontemporal stores, so that the effects
    /// of an operation may become visible after its answer.
    fn streams(&self) -> bool {
        false
    }

    /// Executes a section in place on the native machine, if threads execute their own sections at
    /// present.
    ///
    /// # Errors
    /// Returns the input if nothing was executed.
    #[inline(always)]
    fn in_place<I, R>(&self, input: I, section: impl FnOnce(I) -> R) -> Result<R, I> {
        let _ = section;
        Err(input)
    }

    /// Like [`in_place`](Self::in_place), but only if this needs no wait.
    ///
    /// # Errors
    /// Returns the input if nothing was executed.
    #[inline(always)]
    fn in_place_if_free<I, R>(&self, input: I, section: impl FnOnce(I) -> R) -> Result<R, I> {
        let _ = section;
        Err(input)
    }
}

/// A scheme in which the threads that apply operations also execute them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a scheme that works without a server",
    note = "`FallbackServer`, `MpServer` and `ShmServer` need a server: use `Server::with`"
)]
pub trait Serverless: Scheme {}

/// A scheme in which one thread, the server, executes the operations. In [`FallbackServer`], other
/// threads also do.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a scheme with a server",
    note = "a scheme that needs no server belongs in a `Delegate`: use `Delegate::with`"
)]
pub trait ServerScheme: Scheme {
    /// Executes operations until [`stop`](Self::stop) is called, and then those that are pending.
    ///
    /// # Errors
    /// When a wait ends early.
    ///
    /// # Panics
    /// When a server already runs, or ran before.
    fn run<M: Machine, S: Service<M>>(
        &self,
        m: &M,
        service: &S,
    ) -> impl Future<Output = Result<(), M::Stop>>;

    /// Ends the server. Later operations may wait forever.
    ///
    /// # Errors
    /// When a wait ends early.
    fn stop<M: Machine>(&self, m: &M) -> impl Future<Output = Result<(), M::Stop>>;
}
