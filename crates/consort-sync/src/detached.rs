//! Closures whose threads do not wait: detached closures, and closures whose result is taken later.

#![expect(unsafe_code, reason = "passes closures between threads as words")]

use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::Pin,
    task::{Context, Poll},
    thread,
};

use consort_machine::{ProcessToken, discard};
use oneshot::{RecvError, TryRecvError};

use crate::closure::{Frame, POISONED, SharedData, frame, words};

/// The panic message in a forked child that has no server.
pub(crate) const NO_SERVER: &str = "this process was forked after the server was started, and has \
                                    no server: use the data in the parent, or start a server here";
/// The panic message in a forked child that gets no result.
pub(crate) const NO_RESULT: &str = "this process was forked before the closure was executed, and only the parent executes it: \
     wait for the result in the parent";

/// Executes the closures of the backlog.
///
/// # Safety
/// No other thread uses the data of `shared`. `above` is a frame of a thread that waits, or null.
unsafe fn execute_backlog_request<T>(shared: &SharedData<T>, above: *mut (), _: *const Frame) {
    shared.end_request();
    // SAFETY: guaranteed by the caller.
    unsafe { shared.catch_up(above.cast()) };
}

/// Returns a request that only executes the closures of the backlog. If a closure waits for the
/// request, `above` is its frame.
pub(crate) fn backlog_request<T>(above: *const Frame) -> (u64, u64) {
    words(execute_backlog_request::<T>, above.cast_mut().cast())
}

/// Executes a closure within a frame, or drops it there if the data is poisoned, because dropping
/// it may use the data too. Returns the closure's result, or `None` if it was dropped.
///
/// # Errors
/// Returns the payload if the closure panicked.
///
/// # Safety
/// No other thread uses the data of `shared`.
#[inline]
unsafe fn execute_or_drop<T, R>(
    shared: &SharedData<T>,
    closure: impl FnOnce(&mut T) -> R,
    above: *const Frame,
) -> thread::Result<Option<R>> {
    let is_poisoned = shared.is_poisoned();
    let use_it = |data: &mut T| {
        if is_poisoned {
            drop(closure);
            None
        } else {
            Some(closure(data))
        }
    };
    // SAFETY: guaranteed by the caller.
    catch_unwind(AssertUnwindSafe(|| unsafe { shared.execute(above, use_it) }))
}

/// Executes a detached closure.
///
/// # Safety
/// `closure` comes from [`detached`] with these types, and no other thread uses the data.
unsafe fn execute_detached<T, F: FnOnce(&mut T)>(
    shared: &SharedData<T>,
    closure: *mut (),
    above: *const Frame,
) {
    // SAFETY: guaranteed by the caller.
    let closure = unsafe { Box::from_raw(closure.cast::<F>()) };
    // SAFETY: guaranteed by the caller.
    unsafe { execute_and_discard(shared, closure, above) };
}

/// Executes a closure within a frame, or drops it there if the data is poisoned. Drops the payload
/// if the closure panics.
///
/// # Safety
/// No other thread uses the data of `shared`.
#[inline]
unsafe fn execute_and_discard<T>(
    shared: &SharedData<T>,
    closure: impl FnOnce(&mut T),
    above: *const Frame,
) {
    // SAFETY: guaranteed by the caller.
    if let Err(payload) = unsafe { execute_or_drop(shared, closure, above) } {
        // SAFETY: guaranteed by the caller.
        unsafe { shared.discard(above, payload) };
    }
}

/// Executes a closure that the calling thread detaches, after the closures of the backlog.
///
/// # Safety
/// No other thread uses the data of `shared`.
#[inline]
pub(crate) unsafe fn execute_detached_here<T>(
    shared: &SharedData<T>,
    closure: impl FnOnce(&mut T),
) {
    let above = frame();
    // SAFETY: guaranteed by the caller.
    unsafe { shared.catch_up(above) };
    // SAFETY: guaranteed by the caller.
    unsafe { execute_and_discard(shared, closure, above) };
}

/// Returns a request for a backlog. It must be executed once, while everything that the closure
/// refers to still exists.
pub(crate) fn detached<T, F: FnOnce(&mut T) + Send>(closure: F) -> (u64, u64) {
    words(execute_detached::<T, F>, Box::into_raw(Box::new(closure)).cast())
}

/// A closure, and the channel for its result.
struct SubmittedClosure<F, R> {
    closure: F,
    sender: oneshot::Sender<thread::Result<R>>,
}

/// Executes a closure and sends its result. Sending wakes a waiting task, or drops the result if
/// nobody waits for it. A panic in either does not poison the data.
///
/// # Safety
/// `submitted` comes from [`submitted`] with these types, and no other thread uses the data.
unsafe fn execute_submitted<T, F: FnOnce(&mut T) -> R, R>(
    shared: &SharedData<T>,
    submitted: *mut (),
    above: *const Frame,
) {
    // SAFETY: guaranteed by the caller.
    let SubmittedClosure { closure, sender } =
        *unsafe { Box::from_raw(submitted.cast::<SubmittedClosure<F, R>>()) };
    // SAFETY: guaranteed by the caller.
    let result = unsafe { execute_or_drop(shared, closure, above) }.transpose();
    let send = |_: &mut T| {
        let send = || drop(result.map(|result| sender.send(result)));
        if let Err(payload) = catch_unwind(AssertUnwindSafe(send)) {
            discard(payload);
        }
    };
    // SAFETY: guaranteed by the caller.
    unsafe { shared.execute(above, send) };
}

/// Returns a request for a backlog, like [`detached`], and the receiver of its result.
pub(crate) fn submitted<T, F: FnOnce(&mut T) -> R, R>(closure: F) -> ((u64, u64), Pending<R>) {
    let (sender, receiver) = oneshot::channel();
    let submitted = Box::into_raw(Box::new(SubmittedClosure { closure, sender }));
    let pending = Pending { receiver, process: ProcessToken::current() };
    (words(execute_submitted::<T, F, R>, submitted.cast()), pending)
}

/// The result of a closure that was submitted. A thread can wait for it, and a task can await it.
///
/// The closure is executed even if this is dropped.
///
/// ```
/// use consort_sync::Delegate;
///
/// let words = Delegate::new(vec!["a"]);
/// let count = words.submit(|words| {
///     words.push("b");
///     words.len()
/// });
/// assert_eq!(count.wait(), 2);
/// # fn is_future<F: Future<Output = usize> + Send>(_: F) {}
/// let count = words.submit(|words| words.len());
/// is_future(async { count.await });
/// ```
#[derive(Debug)]
#[must_use = "if the result is not needed, use `detach`"]
pub struct Pending<R> {
    receiver: oneshot::Receiver<thread::Result<R>>,
    process: ProcessToken,
}

/// The result of a closure, as a future.
#[derive(Debug)]
#[must_use = "a future does nothing unless it is awaited"]
pub struct PendingFuture<R> {
    receiver: oneshot::AsyncReceiver<thread::Result<R>>,
    process: ProcessToken,
}

/// Returns the result of a closure.
///
/// # Panics
/// When the closure panicked, with its payload. When the closure was refused.
#[track_caller]
fn finish<R>(received: Result<thread::Result<R>, RecvError>) -> R {
    match received {
        Ok(Ok(result)) => result,
        Ok(Err(payload)) => resume_unwind(payload),
        Err(_) => panic!("{POISONED}"),
    }
}

impl<R> Pending<R> {
    /// Waits for the result.
    ///
    /// # Panics
    /// When the closure panicked, with its payload. When the data was poisoned. In a child that was
    /// forked after the closure was submitted but before it was executed.
    #[track_caller]
    pub fn wait(self) -> R {
        if self.process.is_current() {
            return finish(self.receiver.recv());
        }
        match self.receiver.try_recv() {
            Ok(result) => finish(Ok(result)),
            Err(TryRecvError::Empty) => panic!("{NO_RESULT}"),
            Err(TryRecvError::Disconnected) => finish(Err(RecvError)),
        }
    }
}

impl<R> IntoFuture for Pending<R> {
    type Output = R;
    type IntoFuture = PendingFuture<R>;

    fn into_future(self) -> PendingFuture<R> {
        PendingFuture { receiver: self.receiver.into_future(), process: self.process }
    }
}

impl<R> Future for PendingFuture<R> {
    type Output = R;

    /// # Panics
    /// As [`Pending::wait`]. When the result was returned before.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<R> {
        let received = Pin::new(&mut self.receiver).poll(context);
        assert!(received.is_ready() || self.process.is_current(), "{NO_RESULT}");
        received.map(finish)
    }
}
