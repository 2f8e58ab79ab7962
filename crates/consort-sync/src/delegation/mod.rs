//! Delegation and combining, without closures, for any [`Machine`]: a thread that wants an
//! operation executed in a critical section has another one execute it.
//!
//! | scheme | who executes | how requests and answers travel |
//! | --- | --- | --- |
//! | [`Locked`] | each thread its own | not at all: the data travels |
//! | [`ShmServer`] | a server | over a line for each client |
//! | [`MpServer`] | a server | by messages |
//! | [`CcSynch`] | one of those that wait | over the nodes of a queue |
//! | [`HSynch`] | one of those that wait, group by group | over the nodes of a queue a group |
//! | [`HybComb`] | one of those that wait | by messages |
//!
//! An operation is a word, such as a number or the address of a function, and has an argument and a
//! result of a word each. A [`Backlog`] has operations whose threads do not wait.

#![expect(unsafe_code, reason = "a scheme is trusted to exclude")]

mod backlog;
mod backoff;
mod cc_synch;
mod h_synch;
mod hybcomb;
mod locked;
mod mp_server;
mod shm_server;

use std::future::{Future, ready};

use consort_machine::Machine;

pub use backlog::Backlog;
pub use backoff::Backoff;
pub use cc_synch::CcSynch;
pub use h_synch::{HSynch, MyGroup};
pub use hybcomb::{HybComb, MyNode};
pub use locked::Locked;
pub use mp_server::MpServer;
pub use shm_server::ShmServer;

/// The most requests of other threads that a combiner executes before another one takes its place,
/// unless a scheme is told otherwise (Petrović 2015, section 6.2.2).
pub const MAX_OPS: u64 = 200;

/// The text of the panic of a second server.
const SECOND_SERVER: &str = "the scheme has a server already";

/// What is delegated: the data and its operations.
pub trait Service<M: Machine> {
    /// Executes an operation. No other one is executed meanwhile.
    fn serve(&self, m: &M, operation: u64, argument: u64) -> impl Future<Output = u64>;
}

/// A way to execute operations one at a time.
///
/// # Safety
/// Of all calls of [`Service::serve`] in calls of [`apply`](Self::apply) of one scheme with one
/// service, and in [`ServerScheme::run`], one ends before the next begins, and happens before it;
/// so does a section in [`in_place`](Self::in_place).
/// What came before an `apply` happens before its operation, and that before what comes after,
/// unless the scheme [streams](Self::streams).
/// The operation and argument of each `apply` are served once, before it ends; those of each `post`
/// that returns true once, before the server ends.
pub unsafe trait Scheme {
    /// The scheme's name in the literature.
    const NAME: &'static str;
    /// What each thread keeps between its operations. It is the thread's own, and of this scheme;
    /// the next thread with the same number may have it after this one.
    type Local: Default;

    /// Has an operation executed, and returns its result. [`ShmServer`] loses the highest bit of
    /// a result.
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

    /// Has an operation executed later, if the scheme can do so without the caller, and drops its
    /// result. Returns whether the scheme can.
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

    /// Returns what a thread keeps to the machine, when nobody uses the scheme any more.
    fn retire_local<M: Machine>(m: &M, local: &mut Self::Local) {
        let _ = (m, local);
    }

    /// Returns what the scheme keeps of the machine, when nobody uses it any more.
    fn retire<M: Machine>(&mut self, m: &M) {
        let _ = m;
    }

    /// Whether answers are written past the caches: what an operation wrote may be seen after its
    /// answer.
    fn streams(&self) -> bool {
        false
    }

    /// Executes a section in place, on the native machine, if the scheme has each thread execute
    /// its own. Otherwise returns its input.
    ///
    /// # Errors
    /// The input: nothing was executed.
    #[inline(always)]
    fn in_place<I, R>(&self, input: I, section: impl FnOnce(I) -> R) -> Result<R, I> {
        let _ = section;
        Err(input)
    }
}

/// A scheme whose operations are executed by the threads that apply them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no scheme without a server",
    note = "`MpServer` and `ShmServer` are schemes of a `Server`: use `Server::with`"
)]
pub trait Serverless: Scheme {}

/// A scheme whose operations one thread executes, the server.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no scheme of a server",
    note = "schemes that need no server are those of a `Delegate`: use `Delegate::with`"
)]
pub trait ServerScheme: Scheme {
    /// Executes operations until [`stop`](Self::stop) is called, and then those that are there.
    ///
    /// # Errors
    /// When a wait ends early.
    ///
    /// # Panics
    /// When it was called before: there is one server.
    fn run<M: Machine, S: Service<M>>(
        &self,
        m: &M,
        service: &S,
    ) -> impl Future<Output = Result<(), M::Stop>>;

    /// Lets the server end. No operation may be applied any more: it would wait for ever.
    ///
    /// # Errors
    /// When a wait ends early.
    fn stop<M: Machine>(&self, m: &M) -> impl Future<Output = Result<(), M::Stop>>;
}
