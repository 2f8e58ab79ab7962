//! A nonblocking call that has its number: what its flight owns of the PE's end of a team.

#![expect(unsafe_code, reason = "declares what its callers must see to")]

use std::sync::Arc;

use consort_fabric::Rank;

use crate::{
    call::Call,
    engine::{Engine, Panic},
    group::Group,
    job::Job,
    ledger::Ledger,
    operands::Operands,
    segment::Segment,
};

/// What the nonblocking calls of a PE in a team share: of its own, for what all PEs count their
/// references to moves from core to core with each call.
#[derive(Debug)]
pub(crate) struct Shore {
    pub(crate) job: Arc<Job>,
    pub(crate) group: Arc<Group>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) rank: Rank,
}

/// A call that has begun for its peers, to be driven by a flight.
#[derive(Debug)]
pub struct Begun {
    pub(crate) shore: Arc<Shore>,
    pub(crate) number: u64,
    pub(crate) word: u64,
    /// Memory for partial results and incoming messages, until it is given back.
    pub(crate) scratch: Option<Segment>,
}

impl Begun {
    /// The call's number in the team.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The job.
    #[must_use]
    pub fn job(&self) -> &Job {
        &self.shore.job
    }

    /// The call, for whoever drives it.
    ///
    /// # Safety
    /// Made once, and one future at a time drives it: [`Call`] is `Sync` only so that such a future
    /// may move.
    #[must_use]
    pub unsafe fn call<'c>(&'c self, operands: &'c Operands<'c>) -> Call<'c> {
        let Self { shore, number, word, scratch } = self;
        let Shore { job, group, rank, .. } = &**shore;
        let turn = group.geometry.turn(*number);
        let scratch = scratch.as_ref().expect("it is kept until the end");
        let mut call = Call::new(job, group, *rank, turn, *word, scratch, operands);
        call.set_flying();
        call
    }

    /// The call is complete: gives the credits that have waited for it.
    pub fn complete(&self) {
        let Shore { group, ledger, rank, .. } = &*self.shore;
        group.move_on(*rank, true);
        ledger.complete(self.number, |credit| group.give_credit(*rank, credit));
    }

    /// The call ends by this panic: fails the job, before what it has lent is taken back.
    #[cold]
    pub fn fail(&self, panic: &Panic) {
        let Shore { job, group, rank, .. } = &*self.shore;
        job.fail(group.in_world(*rank), panic);
    }

    /// Wakes the PE, which may wait for what came of it.
    pub fn wake(&self) {
        let Shore { job, group, rank, .. } = &*self.shore;
        job.wake(group.in_world(*rank));
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        if let Some(scratch) = self.scratch.take() {
            self.shore.engine.keep(scratch);
        }
    }
}
