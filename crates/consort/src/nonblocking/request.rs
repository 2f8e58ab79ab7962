//! The request for a nonblocking call.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use consort_fabric::{Op, Poisoned};

use super::alarm::Alarm;
use crate::{Error, Result, error::CallError, runtime::hold::CallState};

/// The state of a request: pending, completed with a result, or taken.
#[derive(Debug)]
enum Outcome<B> {
    UnderWay,
    Is(Op<B>),
    Taken,
}

/// The place where an operation stores its result, shared with the request.
#[derive(Debug)]
pub(super) struct Completion<B>(Mutex<Outcome<B>>);

impl<B> Default for Completion<B> {
    fn default() -> Self {
        Self(Mutex::new(Outcome::UnderWay))
    }
}

impl<B> Completion<B> {
    fn outcome(&self) -> MutexGuard<'_, Outcome<B>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn fill(&self, outcome: Op<B>) {
        *self.outcome() = Outcome::Is(outcome);
    }

    fn is_over(&self) -> bool {
        !matches!(*self.outcome(), Outcome::UnderWay)
    }

    /// Takes the result of the operation, once; `None` while it is pending.
    fn take(&self) -> Option<Result<Op<B>>> {
        let mut outcome = self.outcome();
        if let Outcome::UnderWay = *outcome {
            return None;
        }
        Some(match std::mem::replace(&mut *outcome, Outcome::Taken) {
            Outcome::Is(done) => Ok(done),
            Outcome::UnderWay | Outcome::Taken => Err(CallError::Taken.into()),
        })
    }
}

/// A nonblocking call, from [`Team::start`](crate::Team::start) and others.
///
/// It progresses while its PE is in any call of the library, and with
/// [`JobBuilder::helper_threads`](crate::JobBuilder::helper_threads) all the time. Without helpers,
/// a PE that computes for a long time should call [`Team::progress`](crate::Team::progress) from
/// time to time, because others may wait for it.
///
/// It is also a future: `team.start(v).all_reduce(Sum)?.await?` starts a call and awaits its
/// result. Await it in any executor that runs on the PE's own thread, such as `block_on` or tokio's
/// `LocalSet`: it is not `Send`, because a PE stays on its thread. A poll of a pending call drives
/// it. For some 200 microseconds, the task is woken immediately. After that, a thread of the
/// process wakes it again and again, each time after a 64th of the time that it has waited, but at
/// least 60 microseconds and at most 4 milliseconds. In between, the executor can sleep.
///
/// Dropping or forgetting a request changes nothing: the call is completed, at the latest when the
/// PE's program returns.
///
/// ```
/// use consort::{Job, Rank, ops::Sum};
///
/// Job::threads(3).run(|pe| {
///     let world = pe.world();
///     let table = world.start(vec![world.rank().0; 1000]).broadcast(Rank(2))?;
///     let mut sum = world.start(vec![1_u64; 4]).all_reduce(Sum)?;
///     let mut computed = 0;
///     while !sum.test()? {
///         computed += 1; // work that does not need the sum
///     }
///     assert_eq!(sum.wait()?, [3; 4]);
///     assert_eq!(table.wait()?[999], 2); // in any order
///     Ok(computed)
/// })?;
/// # Ok::<(), consort::Error>(())
/// ```
pub struct Request<B> {
    state: CallState,
    number: u64,
    completion: Arc<Completion<B>>,
    /// Set when it is first awaited.
    alarm: Option<Alarm>,
}

impl<B> Request<B> {
    pub(super) fn new(state: CallState, number: u64, completion: Arc<Completion<B>>) -> Self {
        Self { state, number, completion, alarm: None }
    }

    /// Returns the call's number in its team.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Returns whether the call is complete. Drives the PE's pending calls, and does not wait.
    ///
    /// # Errors
    /// [`Error::PeFailed`] and [`Error::Mismatched`], as in blocking calls;
    /// [`CallError::Reentrant`]; [`CallError::Ended`] when the PE does not run, and the call was not
    /// complete.
    pub fn test(&mut self) -> Result<bool> {
        if self.completion.is_over() {
            return Ok(true);
        }
        let _inside = self.state.go_inside_one_sided()?; // drives pending calls
        if self.completion.is_over() {
            return Ok(true);
        }
        self.state.ensure_sound().map(|()| false)
    }

    /// Waits until the call is complete, and returns its result.
    ///
    /// # Errors
    /// [`Error::PeFailed`] and [`Error::Mismatched`], as in blocking calls;
    /// [`CallError::Reentrant`]; [`CallError::Taken`] if it was polled as a future until it was
    /// ready.
    pub fn wait(self) -> Result<B> {
        let inside = match self.state.go_inside() {
            Ok(inside) => inside,
            Err(error) => return self.result_outside(error),
        };
        let endpoint = &self.state.endpoint;
        let done = endpoint.block_until(self.number, None, || self.completion.take());
        drop(inside);
        self.result(done.ok().flatten().unwrap_or(Ok(Err(Poisoned))))
    }

    /// Waits until the call is complete, but for at most `limit`: on a time-out returns the
    /// request, which can be waited for again.
    ///
    /// # Errors
    /// As [`Request::wait`].
    ///
    /// ```
    /// # use consort::{Job, Rank};
    /// # use std::time::Duration;
    /// Job::threads(2).run(|pe| {
    ///     let world = pe.world();
    ///     let mut request = world.start(vec![7]).broadcast(Rank(0))?;
    ///     let data = loop {
    ///         match request.wait_timeout(Duration::from_millis(1))? {
    ///             Ok(data) => break data,
    ///             Err(later) => request = later,
    ///         }
    ///     };
    ///     assert_eq!(data, [7]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), consort::Error>(())
    /// ```
    pub fn wait_timeout(self, limit: Duration) -> Result<Result<B, Self>> {
        let inside = match self.state.go_inside_one_sided() {
            Ok(inside) => inside,
            Err(error) => return self.result_outside(error).map(Ok),
        };
        let endpoint = &self.state.endpoint;
        let taken = endpoint.block_until(self.number, Some(limit), || self.completion.take());
        drop(inside);
        match taken {
            Ok(None) => Ok(Err(self)),
            Ok(Some(taken)) => self.result(taken).map(Ok),
            Err(Poisoned) => self.result(Ok(Err(Poisoned))).map(Ok),
        }
    }

    /// Returns the result, if the call was complete before its PE ended.
    #[cold]
    fn result_outside(&self, error: Error) -> Result<B> {
        match error {
            Error::Call(CallError::Ended) => {
                self.completion.take().map_or(Err(error), |taken| self.result(taken))
            }
            error => Err(error),
        }
    }

    fn result(&self, taken: Result<Op<B>>) -> Result<B> {
        taken?.map_err(|_| Error::of_job(self.state.endpoint.job()))
    }
}

impl<B> Future for Request<B> {
    type Output = Result<B>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<B>> {
        let this = self.get_mut();
        match this.test() {
            Ok(true) => match this.completion.take() {
                Some(taken) => Poll::Ready(this.result(taken)),
                None => Poll::Pending,
            },
            Ok(false) => {
                this.alarm.get_or_insert_with(Alarm::new).set(context.waker());
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

impl<B> fmt::Debug for Request<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("is_over", &self.completion.is_over())
            .finish_non_exhaustive()
    }
}
