//! A nonblocking call that has a number: the state that its operation owns.

#![expect(unsafe_code, reason = "declares requirements on its callers")]

use std::sync::Arc;

use super::{operands::Operands, pending_calls::PendingCalls, view::CallView};
use crate::{
    launch::job::Job, progress::engine::Engine, segment::reservation::Segment, team::group::Group,
};
use consort_machine::panic::Panic;

/// State that all nonblocking calls of one PE in one team share. Each PE has its own copy. If all
/// PEs shared one, each call would move the cache line of its reference count between cores.
#[derive(Debug)]
pub(crate) struct CallContext {
    pub(crate) job: Arc<Job>,
    pub(crate) group: Arc<Group>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) pending_calls: Arc<PendingCalls>,
}

/// A nonblocking call that has a number and that an operation drives.
#[derive(Debug)]
pub struct StartedCall {
    pub(crate) context: Arc<CallContext>,
    pub(crate) number: u64,
    pub(crate) word: u64,
    /// Memory for partial results and incoming messages. It goes back to the engine on drop.
    pub(crate) scratch: Option<Segment>,
}

impl StartedCall {
    /// Returns the call's number in the team.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns the job.
    #[must_use]
    pub fn job(&self) -> &Job {
        &self.context.job
    }

    /// Returns the call's view, for the future that drives the call.
    ///
    /// # Safety
    /// Must be called only once. One future at a time drives the call: [`CallView`] is `Sync` only
    /// so that such a future may move to another thread.
    #[must_use]
    pub unsafe fn call<'c>(&'c self, operands: &'c Operands<'c>) -> CallView<'c> {
        let Self { context, number, word, scratch } = self;
        let CallContext { job, group, .. } = &**context;
        let position = group.memory.geometry.position(*number);
        let scratch = scratch.as_ref().expect("it is kept until the end");
        let mut call = CallView::new(job, group, position, *word, scratch, operands);
        call.set_nonblocking();
        call
    }

    /// Completes the call, and gives the credits that waited for it.
    pub fn complete(&self) {
        let CallContext { group, pending_calls, .. } = &*self.context;
        group.move_on(true);
        pending_calls.complete(self.number, |credit| group.give_credit(credit));
    }

    /// Fails the job because the call panicked. Must be called before the call's exposures end.
    #[cold]
    pub fn fail(&self, panic: &Panic) {
        let CallContext { job, group, .. } = &*self.context;
        job.fail(group.in_world(group.rank()), panic);
    }

    /// Wakes the PE, which may wait for the call's completion.
    pub fn wake(&self) {
        let CallContext { job, group, .. } = &*self.context;
        job.wake(group.in_world(group.rank()));
    }
}

impl Drop for StartedCall {
    fn drop(&mut self) {
        if let Some(scratch) = self.scratch.take() {
            self.context.engine.keep(scratch);
        }
    }
}
