//! A plan: an algorithm's schedule, between the entry and exit barriers that the caller asked for.
//!
//! Strict is "the aforementioned tuned barrier between each collective" (Nishtala and Yelick 2009,
//! section 3): entry mode All is a barrier before the algorithm, exit mode All one after it. Of two
//! PEs one learns from the data itself all that the barrier would say, and one signal is left; but
//! not where the root does something that no message shows, such as copying its own block.

use consort_fabric::{Candidate, Collective, Fabric, Op, SyncMode};

use crate::{Algorithm, Direction, PlanError, Setting, barrier::Synchronizer};

/// What one PE does in a call of one kind.
#[derive(Debug)]
pub struct Plan<A: Algorithm> {
    entry: Option<Synchronizer>,
    schedule: A::Schedule,
    exit: Option<Synchronizer>,
}

impl<A: Algorithm> Plan<A> {
    /// The plan for `setting`, with `barrier` to enter and leave together. Succeeds
    /// on all PEs of a team or on none.
    ///
    /// # Errors
    /// When a candidate is unknown, its parameters are wrong, or it cannot serve the setting.
    pub fn new(
        setting: &Setting,
        candidate: &Candidate,
        barrier: &Candidate,
    ) -> Result<Self, PlanError> {
        // Upwards a root that acts apart waits for the signal that it may begin, downwards it
        // signals its end.
        let told_by = |apart| {
            let is_apart = A::ROOT_ACTS_APART && A::DIRECTION == apart;
            if is_apart { Direction::Neither } else { A::DIRECTION }
        };
        let barrier_for = |mode, direction, second_word, counter| {
            (mode == SyncMode::All && setting.call.collective != Collective::Barrier)
                .then(|| {
                    let setting = Setting { first_channel: 1, second_word, counter, ..*setting };
                    Synchronizer::new(&setting, barrier, direction)
                })
                .transpose()
        };
        Ok(Self {
            entry: barrier_for(setting.call.sync.entry, told_by(Direction::Up), true, 0)?,
            schedule: A::schedule(setting, candidate)?,
            exit: barrier_for(setting.call.sync.exit, told_by(Direction::Down), false, 2)?,
        })
    }

    /// Steps of a call.
    #[must_use]
    pub fn steps(&self) -> u64 {
        A::steps(&self.schedule)
    }

    /// The schedule of the algorithm, where it is all that there is to a call.
    #[inline(always)]
    #[must_use]
    pub const fn bare(&self) -> Option<&A::Schedule> {
        if self.entry.is_none() && self.exit.is_none() { Some(&self.schedule) } else { None }
    }

    /// One call.
    ///
    /// # Errors
    /// When the job has failed.
    #[inline(always)]
    pub async fn run<F: Fabric>(&self, f: &F) -> Op {
        if let Some(entry) = &self.entry {
            entry.run(f).await?;
        }
        A::run(f, &self.schedule).await?;
        if let Some(exit) = &self.exit {
            exit.run(f).await?;
        }
        Ok(())
    }
}
