//! Nonblocking collectives and messages. They progress while the PE does other work. The program
//! waits for them later, in any order.
//!
//! | data | start a call with | finish it with |
//! | --- | --- | --- |
//! | vectors that the call owns | [`Team::start_all_reduce`] and the other `start_*` | [`Request`] |
//! | the same, for a call that is repeated | [`Team::plan_all_reduce`] and the other `plan_*`, once; [`Planned::start`] | [`Request`] |
//! | borrowed slices | the methods of [`Overlap`], inside [`Team::overlap`] | [`Request`], or the end of the scope |
//! | symmetric memory | [`Team::start_symmetric`] | [`Request`] |
//!
//! All PEs of a team start their calls in the same order, also relative to blocking calls. After
//! that, calls complete in any order. Dropping or forgetting a request changes nothing: the call
//! still completes, at the latest when the PE's program returns.

// A call gets its number when it is started. An *operation* drives the call: an `async` block that
// owns the plan, the PE's endpoint of the call and the data, and stores the result in a place that
// it shares with the request.
//
// | file | contents |
// | --- | --- |
// | `request` | the request for one call |
// | `alarm` | wakes tasks that await requests |
// | `buffers` | the buffers and the operator of an operation |
// | `starts` | a team's calls, which own their data |
// | `vector` | a team's vector variants, which own their data |
// | `places` | a team's calls in the memory that peers can access |
// | `overlap` | a scope, in which calls borrow their data |
// | `source` | the data that a scope's calls read |
// | `borrowed` | a scope's calls |
// | `messages` | messages from one PE to another, of a team and of a scope |
// | `planned` | a call that is planned once and started many times |
// | `plans` | a team's planned calls |

mod alarm;
mod borrowed;
mod buffers;
mod messages;
mod overlap;
mod places;
mod planned;
mod plans;
mod request;
mod source;
mod starts;
mod vector;

use std::{
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::Pin,
    sync::Arc,
};

use consort_fabric::{CallSpec, Collective, Layout, Op, Pod, Rank};
use consort_native::{Operands, Site, StartedCall, Tally};

pub use overlap::Overlap;
pub use planned::{Planned, PlannedBarrier};
pub use request::Request;
pub use source::Source;

use buffers::{Buffers, Combine, OwnedLayout};
use request::Completion;

use crate::{Result, Team, collectives::planned_len, error::CallError, runtime::plans::Ready};

/// A collective with its root and length, without its operator.
#[derive(Clone, Copy, Debug)]
struct Kind {
    collective: Collective,
    root: Option<Rank>,
    /// The number of elements of a block.
    len: usize,
    symmetric: bool,
}

impl Kind {
    fn of(collective: Collective, root: Option<Rank>, len: usize) -> Self {
        Self { collective, root, len, symmetric: false }
    }
}

impl<'p> Team<'p> {
    /// Returns the plan of a nonblocking call.
    fn nonblocking_plan<T: Pod>(
        &self,
        kind: Kind,
        combine: &impl Combine<T>,
    ) -> Result<Arc<dyn Ready>> {
        let Kind { collective, root, len, symmetric } = kind;
        let combination = combine.combination();
        let len = planned_len(collective, len);
        let call = self.state.spec::<T, T>((collective, self.sync()), root, len, combination);
        let call = CallSpec { symmetric, nonblocking: true, ..call };
        self.state.plan_to_share(&call, combination.as_ref().map(|(kernel, _)| kernel))
    }

    /// Returns the layouts of a call with blocks of equal length, if it is a vector variant.
    fn even<T: Pod>(&self, Kind { collective, root, len, .. }: Kind) -> Option<[OwnedLayout; 2]> {
        let is_root = root == Some(self.rank());
        let bytes = len.saturating_mul(size_of::<T>());
        let layouts = Layout::of_blocks(collective, self.pes(), is_root, bytes);
        layouts.map(|layouts| layouts.map(OwnedLayout::Even))
    }

    /// Fails unless the lengths of source and target match the blocks that this PE contributes and
    /// receives. Returns the numbers of these blocks.
    fn check_blocks(
        &self,
        kind: Kind,
        source_len: usize,
        target_len: usize,
    ) -> Result<(usize, usize)> {
        let (pes, collective) = (self.pes(), kind.collective);
        // Symmetric memory has the same length on all PEs, so all check it like the root.
        let is_root = kind.symmetric || kind.root == Some(self.rank());
        let contributed = collective.source_blocks(pes, is_root) as usize;
        let received = collective.target_blocks(pes, is_root) as usize;
        let fits =
            |blocks: usize, given| blocks == 0 || blocks.checked_mul(kind.len) == Some(given);
        if fits(contributed, source_len) && fits(received, target_len) {
            return Ok((contributed, received));
        }
        let pes = self.size();
        Err(CallError::Blocks { collective, pes, contributed, received, source_len, target_len }
            .into())
    }

    /// Starts a call by this plan at `site`, with `layouts` if it is a vector variant. Its
    /// operation owns `buffers` and passes them to `finish` at its end. `also` counts the operation
    /// until it is dropped.
    ///
    /// # Safety
    /// All that `buffers` and `finish` borrow must live until the operation has been dropped.
    #[expect(unsafe_code, reason = "declares requirements on borrowed data")]
    unsafe fn launch<'f, C, B>(
        &self,
        ready: Arc<dyn Ready>,
        buffers: C,
        layouts: Option<[OwnedLayout; 2]>,
        finish: impl FnOnce(C) -> B + Send + 'f,
        also: Option<&Tally>,
        site: Site,
    ) -> Result<Request<'p, B>>
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
                let done = {
                    let layouts =
                        layouts.as_ref().map(|both| both.each_ref().map(OwnedLayout::layout));
                    let operands =
                        Operands { layouts: layouts.as_ref(), ..buffers.operands(begun.job()) };
                    // SAFETY: only this block creates the call's view, once, and only this
                    // operation drives it.
                    let call = unsafe { begun.call(&operands) };
                    drive(&begun, ready.drive(&call)).await
                };
                if done.is_ok() {
                    begun.complete();
                }
                result.fill(done.map(|()| finish(buffers)));
                begun.wake();
            };
            let operation: Pin<Box<dyn Future<Output = ()> + 'f>> = Box::pin(operation);
            // SAFETY: the operation may be sent to another thread. Its parts are `Send` by the
            // bounds above; plans and begun calls are `Send`; so are the futures of the library's
            // algorithms, which a test asserts one by one (`tests/it/send.rs`). An algorithm of the
            // program gets no plan here if there are helpers, so it stays on this thread.
            // Everything that the operation borrows lives until the operation is dropped, by the
            // contract of this function.
            unsafe { self.state.endpoint.launch(operation, also) };
            number
        })?;
        Ok(Request::new(self.state.whoever(), number, completion))
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
