//! Closures whose results come back to the calling thread: `apply_then` of `Trust<T>` (Ahmad et al.
//! 2024).
//!
//! A call has a closure, which any thread may execute, and a continuation, which only the calling
//! thread runs, with the closure's result. The thread keeps its calls in a queue. The thread that
//! executes a closure stores the result in the call, and then sets a flag there.
//!
//! `Trust<T>` runs a continuation when the client's fibers poll for answers. Threads have no such
//! scheduler, so here a thread runs its continuations in methods of `Continuations`, and in
//! `apply_then`. As in `std::thread::scope`, a scope waits for all closures, so that they may
//! borrow.
//!
//! Cost: if the closure is executed at once, as under a free lock, and no earlier call is in the
//! queue, the continuation runs at once, and nothing is allocated. Otherwise a call is a box.

#![expect(unsafe_code, reason = "passes calls between threads as words")]

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    fmt,
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    ptr::NonNull,
    sync::atomic::{
        AtomicBool,
        Ordering::{Acquire, Release},
    },
};

use consort_machine::{ProcessToken, discard};

use crate::{
    closure::{ClosureCall, Frame, SharedData, refuse, words},
    data::DelegatedData,
    delegation::Scheme,
    detached::NO_RESULT,
};

/// The calls of a thread whose continuations have not run yet: see
/// [`Delegate::apply_then`](crate::Delegate::apply_then).
///
/// The continuations run on this thread, one after the other, in the order of the calls. They run
/// in [`run_ready`](Self::run_ready), in [`wait`](Self::wait), at the end of the
/// [`scope`](Self::scope), and in `apply_then`, but not in an `apply_then` that a continuation
/// calls. So a continuation may make the next call, and a chain of such calls needs no stack. No
/// continuation runs within its closure, so it may use the same data.
///
/// Calls of different delegates and servers may share this. A continuation then also waits for the
/// results of earlier calls elsewhere. If it should not, use a scope within a scope.
///
/// If a closure panics, or is refused because the data is poisoned, its continuation is dropped,
/// and this thread panics where the continuation would run. The later continuations stay. They run
/// later if that panic, or one of a continuation, is caught within the scope.
///
/// ```
/// use std::cell::Cell;
///
/// use consort_sync::{Continuations, Server};
///
/// let words = Server::start(vec!["a", "bb", "ccc"])?;
/// let bytes = Cell::new(0);
/// Continuations::scope(|continuations| {
///     for number in 0..3 {
///         words.apply_then(
///             continuations,
///             move |words| words[number],
///             |word| bytes.set(bytes.get() + word.len()), // on this thread
///         );
///     }
///     // ... other work
/// }); // waits
/// assert_eq!(bytes.get(), 6);
/// # Ok::<_, std::io::Error>(())
/// ```
///
/// Another thread cannot use this:
///
/// ```compile_fail,E0277
/// # use consort_sync::{Continuations, Delegate};
/// let data = Delegate::new(0);
/// Continuations::scope(|continuations| {
///     data.apply(|_| continuations.wait());
/// });
/// ```
///
/// The closures may not borrow what exists only within the scope:
///
/// ```compile_fail,E0597
/// # use consort_sync::{Continuations, Delegate};
/// let data = Delegate::new(0);
/// Continuations::scope(|continuations| {
///     let inner = 1;
///     let inner = &inner;
///     data.apply_then(continuations, move |data| *data += inner, |()| ());
/// });
/// ```
pub struct Continuations<'scope, 'env: 'scope> {
    /// Boxes of calls. A call stays here until its closure has been executed.
    calls: RefCell<VecDeque<NonNull<dyn QueuedCall + 'scope>>>,
    /// Whether a continuation runs.
    is_running: Cell<bool>,
    /// Whether the first call is waited for. It must stay where it is.
    is_waiting: Cell<bool>,
    /// Both lifetimes are invariant, as in `std::thread::Scope`.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// A call whose continuation has not run yet.
trait QueuedCall {
    /// Returns whether the closure has been executed or refused. If so, no other thread uses the
    /// call.
    fn is_executed(&self) -> bool;

    /// Returns whether nobody will execute the closure, because this process was forked after its
    /// server was started.
    fn is_lost(&self) -> bool;

    /// Waits until the closure has been executed or refused. It is not lost.
    fn wait(&self);

    /// Refuses a wait within a closure on the call's data.
    ///
    /// # Panics
    /// When the closure must be executed first.
    fn refuse_circular_wait(&self);

    /// Runs the continuation.
    ///
    /// # Panics
    /// When the closure panicked or was refused. When the continuation panics.
    fn finish(self: Box<Self>);
}

/// A closure on data under some scheme, and its continuation.
struct Call<'scope, T, S: Scheme, F, R, C> {
    data: &'scope DelegatedData<T, S>,
    /// The process of the server, if there is one.
    served_in: Option<ProcessToken>,
    request: Request<F, R>,
    then: C,
}

/// The part of a call that the executing thread uses.
struct Request<F, R> {
    call: ClosureCall<F, R>,
    is_executed: AtomicBool,
}

/// Executes the closure of a request.
///
/// # Safety
/// `request` is one with these types, which no other thread uses until `is_executed` is set. No
/// other thread uses the data of `shared`.
unsafe fn execute<T, F: FnOnce(&mut T) -> R, R>(
    shared: &SharedData<T>,
    request: *mut (),
    above: *const Frame,
) {
    // SAFETY: guaranteed by the caller.
    let Request { call, is_executed } = unsafe { &*request.cast::<Request<F, R>>() };
    // SAFETY: guaranteed by the caller.
    unsafe { call.execute(shared, above) };
    is_executed.store(true, Release); // pairs with the acquire in `is_executed`
}

impl<T, S, F, R, C> QueuedCall for Call<'_, T, S, F, R, C>
where
    S: Scheme,
    F: FnOnce(&mut T) -> R,
    C: FnOnce(R),
{
    fn is_executed(&self) -> bool {
        self.request.is_executed.load(Acquire) // pairs with the release in `execute`
    }

    fn is_lost(&self) -> bool {
        !self.is_executed() && self.served_in.is_some_and(|process| !process.is_current())
    }

    fn wait(&self) {
        while !self.is_executed() {
            self.data.execute_backlog();
        }
    }

    fn refuse_circular_wait(&self) {
        if !self.is_executed() {
            self.data.shared.refuse_circular_wait();
        }
    }

    fn finish(self: Box<Self>) {
        let Self { request, then, .. } = *self;
        then(request.call.finish());
    }
}

/// The panic of a closure that uses the scope of the thread that executes it.
const NESTED_WAIT: &str = "a closure cannot wait for the continuations of the thread that runs it";

/// Sets a mark until this is dropped.
struct Mark<'m> {
    mark: &'m Cell<bool>,
    before: bool,
}

impl<'m> Mark<'m> {
    fn begin(mark: &'m Cell<bool>) -> Self {
        Self { mark, before: mark.replace(true) }
    }
}

impl Drop for Mark<'_> {
    fn drop(&mut self) {
        self.mark.set(self.before);
    }
}

impl<'env> Continuations<'_, 'env> {
    /// Calls `body`, then [waits](Self::wait), and returns what `body` returned. The closures of
    /// calls and their continuations may borrow what exists outside of the scope.
    ///
    /// # Panics
    /// When `body` panics, or when [`wait`](Self::wait) does. Then the closures are still executed
    /// before this function ends, but the continuations that have not run are dropped. In a forked
    /// child, those of calls to a server of the parent are leaked.
    #[track_caller]
    pub fn scope<B, R>(body: B) -> R
    where
        B: for<'scope> FnOnce(&'scope Continuations<'scope, 'env>) -> R,
    {
        let continuations = Continuations {
            calls: RefCell::default(),
            is_running: Cell::new(false),
            is_waiting: Cell::new(false),
            scope: PhantomData,
            env: PhantomData,
        };
        let result = catch_unwind(AssertUnwindSafe(|| {
            let result = body(&continuations);
            continuations.wait();
            result
        }));
        continuations.end(); // no closure may be left, because it may borrow
        result.unwrap_or_else(|payload| resume_unwind(payload))
    }
}

impl<'scope> Continuations<'scope, '_> {
    /// Returns the number of calls whose continuations have not run yet.
    #[inline]
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.calls.borrow().len()
    }

    /// Runs the continuations of the calls whose results have arrived, up to the first call whose
    /// result has not.
    ///
    /// # Panics
    /// When a continuation panics, or the closure of its call did.
    pub fn run_ready(&self) {
        self.run_while(QueuedCall::is_executed);
    }

    /// Waits for the results of all calls, and runs their continuations. A continuation may call
    /// this, too; then the other continuations run within it.
    ///
    /// # Panics
    /// As [`run_ready`](Self::run_ready). In a closure on the data of such a call. In a child that
    /// was forked after the server of such a call was started, unless its result has arrived.
    pub fn wait(&self) {
        self.run_while(|call| {
            assert!(!call.is_lost(), "{NO_RESULT}");
            call.refuse_circular_wait();
            call.wait();
            true
        });
    }

    /// Runs the first continuation again and again, if `is_ready` returns true for it.
    fn run_while(&self, is_ready: impl Fn(&(dyn QueuedCall + 'scope)) -> bool) {
        loop {
            let Some(first) = self.calls.borrow().front().copied() else {
                return;
            };
            // A closure that this thread executes while it waits must not take the call away.
            assert!(!self.is_waiting.get(), "{NESTED_WAIT}");
            let waiting = Mark::begin(&self.is_waiting);
            // SAFETY: the calls in the queue exist, and other threads use them only by shared
            // references.
            if !is_ready(unsafe { first.as_ref() }) {
                return;
            }
            drop(waiting);
            self.calls.borrow_mut().pop_front();
            // SAFETY: `add` made it from a box. It has left the queue, and its closure has been
            // executed.
            let call = unsafe { Box::from_raw(first.as_ptr()) };
            let _running = Mark::begin(&self.is_running);
            call.finish();
        }
    }

    /// Waits for the closures of all calls, and drops their continuations.
    fn end(&self) {
        // Destructors may add calls. Their continuations must not run either.
        let _running = Mark::begin(&self.is_running);
        let _waiting = Mark::begin(&self.is_waiting);
        loop {
            let Some(first) = self.calls.borrow_mut().pop_front() else {
                return;
            };
            // SAFETY: the call exists, and other threads use it only by shared references.
            let call = unsafe { first.as_ref() };
            if !call.is_lost() {
                call.wait();
                // SAFETY: as in `run_while`.
                discard(unsafe { Box::from_raw(first.as_ptr()) });
            }
        }
    }

    /// Has a closure executed, by this thread or another, possibly after this call has returned.
    /// Then runs continuations, unless a continuation calls this.
    #[inline]
    #[track_caller]
    pub(crate) fn apply_then<T, S, F, R, C>(
        &self,
        data: &'scope DelegatedData<T, S>,
        served_in: Option<ProcessToken>,
        closure: F,
        then: C,
    ) where
        S: Scheme,
        F: FnOnce(&mut T) -> R + Send + 'scope,
        R: Send + 'scope,
        C: FnOnce(R) + 'scope,
    {
        data.shared.refuse_circular_wait();
        if self.is_running.get() || self.outstanding() > 0 {
            return self.add(data, DelegatedData::push, served_in, closure, then);
        }
        // SAFETY: the scheme executes nothing else meanwhile.
        let section = |closure| unsafe { data.shared.execute_here(closure) };
        match data.scheme_state.scheme.in_place_if_free(closure, section) {
            Ok(Ok(result)) => {
                let running = Mark::begin(&self.is_running);
                then(result);
                drop(running);
                if self.outstanding() > 0 {
                    self.run_ready(); // the continuation has made calls
                }
            }
            Ok(Err(closure)) => refuse(closure),
            Err(closure) => {
                self.add(data, DelegatedData::push_to_backlog, served_in, closure, then);
            }
        }
    }

    /// Adds a call, and passes its request to `push`. Then runs continuations, unless a
    /// continuation calls this.
    #[cold]
    fn add<T, S, F, R, C>(
        &self,
        data: &'scope DelegatedData<T, S>,
        push: fn(&DelegatedData<T, S>, (u64, u64)),
        served_in: Option<ProcessToken>,
        closure: F,
        then: C,
    ) where
        S: Scheme,
        F: FnOnce(&mut T) -> R + Send + 'scope,
        R: Send + 'scope,
        C: FnOnce(R) + 'scope,
    {
        let request =
            Request { call: ClosureCall::new(closure), is_executed: AtomicBool::new(false) };
        let call = Call { data, served_in, request, then };
        let call = NonNull::from(Box::leak(Box::new(call)));
        // SAFETY: the call exists.
        let request = unsafe { &raw mut (*call.as_ptr()).request };
        push(data, words(execute::<T, F, R>, request.cast()));
        self.calls.borrow_mut().push_back(call);
        if !self.is_running.get() {
            self.run_ready();
        }
    }
}

impl fmt::Debug for Continuations<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Continuations")
            .field("outstanding", &self.outstanding())
            .finish_non_exhaustive()
    }
}
