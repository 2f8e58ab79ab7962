//! A nonblocking call that has its number: what its operation owns of the PE's end of a team.

#![expect(unsafe_code, reason = "declares what its callers must see to")]

use std::sync::Arc;

use super::{operands::Operands, pending_calls::PendingCalls, view::Call};
use crate::{
    launch::{job::Job, panic::Panic},
    progress::engine::Engine,
    segment::reservation::Segment,
    team::group::Group,
};

/// What the nonblocking calls of a PE in a team share: of its own, for what all PEs count their
/// references to moves from core to core with each call.
#[derive(Debug)]
pub(crate) struct CallContext {
    pub(crate) job: Arc<Job>,
    pub(crate) group: Arc<Group>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) pending_calls: Arc<PendingCalls>,
}

/// A call that has begun for its peers, to be driven by an operation.
#[derive(Debug)]
pub struct StartedCall {
    pub(crate) context: Arc<CallContext>,
    pub(crate) number: u64,
    pub(crate) word: u64,
    /// Memory for partial results and incoming messages, until the engine has it again.
    pub(crate) scratch: Option<Segment>,
}

impl StartedCall {
    /// The call's number in the team.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The job.
    #[must_use]
    pub fn job(&self) -> &Job {
        &self.context.job
    }

    /// The call, for whoever drives it.
    ///
    /// # Safety
    /// Made once, and one future at a time drives it: [`Call`] is `Sync` only so that such a future
    /// may move.
    #[must_use]
    pub unsafe fn call<'c>(&'c self, operands: &'c Operands<'c>) -> Call<'c> {
        let Self { context, number, word, scratch } = self;
        let CallContext { job, group, .. } = &**context;
        let position = group.memory.geometry.position(*number);
        let scratch = scratch.as_ref().expect("it is kept until the end");
        let mut call = Call::new(job, group, position, *word, scratch, operands);
        call.set_nonblocking();
        call
    }

    /// The call is complete: gives the credits that have waited for it.
    pub fn complete(&self) {
        let CallContext { group, pending_calls, .. } = &*self.context;
        group.move_on(true);
        pending_calls.complete(self.number, |credit| group.give_credit(credit));
    }

    /// The call ends by this panic: fails the job, before what it has exposed is revoked.
    #[cold]
    pub fn fail(&self, panic: &Panic) {
        let CallContext { job, group, .. } = &*self.context;
        job.fail(group.in_world(group.rank()), panic);
    }

    /// Wakes the PE, which may wait for what came of it.
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
