//! Nonblocking collectives and messages. They progress while the PE does other work. The program
//! waits for them later, in any order.
//!
//! | data | start a call with | finish it with |
//! | --- | --- | --- |
//! | vectors that the call owns | [`Team::start`], [`Team::start_into`] | [`Request`] |
//! | the same, for a call that is repeated | [`Team::plan`], once; [`Planned::start`] | [`Request`] |
//! | borrowed slices | [`Overlap::start_into`], [`Overlap::start_in_place`], inside [`Team::overlap`] | [`Request`], or the end of the scope |
//! | symmetric memory | [`Team::start_symmetric`] | [`Request`] |
//!
//! All PEs of a team start their calls in the same order, also relative to blocking calls. Calls
//! may complete in any order. If a request is dropped or forgotten, the call still completes, at
//! the latest when the PE's program returns.

// A call gets its number when it is started. An *operation* drives the call: an `async` block that
// owns the plan, the PE's endpoint of the call and the data, and stores the result in a place that
// it shares with the request.
//
// | file | contents |
// | --- | --- |
// | `request` | the request for one call |
// | `alarm` | wakes tasks that await requests |
// | `buffers` | the buffers and the operator of an operation |
// | `shape` | how a call uses its buffers: which ones, their lengths and layouts |
// | `start` | a team's calls, on vectors and in symmetric memory |
// | `overlap` | a scope, in which calls borrow their data |
// | `source` | the data that a scope's calls read |
// | `messages` | messages from one PE to another, of a team and of a scope |
// | `planned` | a call that is planned once and started many times |

mod alarm;
pub(crate) mod buffers;
mod messages;
pub(crate) mod overlap;
pub(crate) mod planned;
mod request;
pub(crate) mod shape;
mod source;
pub(crate) mod start;

use std::{
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::Pin,
    sync::Arc,
};

use consort_fabric::{CallSpec, Op, Pod};
use consort_native::{Operands, Site, StartedCall, Tally};

pub use overlap::Overlap;
pub use planned::{Planned, PlannedBarrier};
pub use request::Request;
pub use source::Source;

use buffers::Buffers;
use request::Completion;
use shape::{OwnedLayout, Shape};

use crate::{
    Result, Team,
    collectives::{verb::Verb, widening::Widening},
    runtime::{dispatch::Combination, hold::CallState, plans::Ready},
};

impl Team {
    /// Returns the plan of a nonblocking call of this shape.
    fn nonblocking_plan<T: Pod>(
        &self,
        verb: &Verb<'_>,
        shape: &Shape,
        symmetric: bool,
        combination: Combination<'_>,
    ) -> Result<Arc<dyn Ready>> {
        let (call, combination) = match shape.widening {
            None => {
                let call = verb.spec::<T, T>(self, shape.len, combination);
                (CallSpec { symmetric, ..call }, combination)
            }
            Some(widening) => {
                let combination = widening.combination();
                let len = Widening::numbers::<T>(shape.len);
                (verb.spec::<T, f32>(self, len, combination), combination)
            }
        };
        let call = CallSpec { nonblocking: true, ..call };
        self.state.plan_to_share(&call, combination.map(|it| it.kernel).as_ref())
    }

    /// Starts a call of this shape by its plan at `site`. Its operation owns `buffers` and passes
    /// them to `finish` at its end. `also`, if given, counts the operation until that is dropped.
    ///
    /// # Safety
    /// All that `buffers` and `finish` borrow must live until the operation has been dropped.
    #[expect(unsafe_code, reason = "declares requirements on borrowed data")]
    unsafe fn launch<'f, C, B>(
        &self,
        ready: Arc<dyn Ready>,
        shape: Shape,
        buffers: C,
        finish: impl FnOnce(C, &Shape) -> B + Send + 'f,
        also: Option<&Tally>,
        site: Site,
    ) -> Result<Request<B>>
    where
        C: Buffers + 'f,
        B: Send + 'f,
    {
        let completion = Arc::new(Completion::default());
        let plan = Arc::clone(&ready);
        let number = self.state.start(&*plan, site, |begun| {
            let (number, result) = (begun.number(), Arc::clone(&completion));
            let operation = async move {
                let mut buffers = buffers;
                let mut wide = buffers.widen(&shape, begun.job());
                let done = {
                    let layouts = shape.layouts.as_ref();
                    let layouts = layouts.map(|both| both.each_ref().map(OwnedLayout::layout));
                    let operands = match &mut wide {
                        Some(wide) => wide.operands(),
                        None => buffers.operands(&shape, begun.job()),
                    };
                    let operands = Operands { layouts: layouts.as_ref(), ..operands };
                    // SAFETY: only this block creates the call's view, once, and only this
                    // operation drives it.
                    let call = unsafe { begun.call(&operands) };
                    drive(&begun, ready.drive(&call)).await
                };
                if done.is_ok() {
                    if let Some(wide) = wide {
                        buffers.narrow(&wide, begun.job());
                    }
                    begun.complete();
                }
                result.fill(done.map(|()| finish(buffers, &shape)));
                begun.wake();
            };
            let operation: Pin<Box<dyn Future<Output = ()> + 'f>> = Box::pin(operation);
            // SAFETY: the operation may be sent to another thread. Its parts are `Send` by the
            // bounds above; plans and begun calls are `Send`; so are the futures of the library's
            // algorithms, which a test asserts one by one (`tests/quick/send.rs`). An algorithm of the
            // program gets no plan here if there are helpers, so it stays on this thread.
            // Everything that the operation borrows lives until the operation is dropped, by the
            // contract of this function.
            unsafe { self.state.endpoint.launch(operation, also) };
            number
        })?;
        Ok(Request::new(CallState::of(&self.state), number, completion))
    }
}

/// Drives the algorithm of a call to its end. As in a blocking call, a panic fails the job before
/// the call ends.
async fn drive(begun: &StartedCall, mut algorithm: Pin<Box<dyn Future<Output = Op> + '_>>) -> Op {
    poll_fn(|context| {
        let poll = AssertUnwindSafe(|| algorithm.as_mut().poll(context));
        catch_unwind(poll).unwrap_or_else(|panic| {
            begun.fail(&panic);
            resume_unwind(panic)
        })
    })
    .await
}
