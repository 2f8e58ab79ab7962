//! A plan: an algorithm's schedule, between the entry and exit barriers that the caller asked for.
//!
//! Strict is "the aforementioned tuned barrier between each collective" (Nishtala and Yelick 2009,
//! section 3): entry mode All is a barrier before the algorithm, exit mode All one after it. Of two
//! PEs one learns from the data itself all that the barrier would say, and one signal is left; but
//! not where the root does something that no message shows, such as copying its own block.

use std::{future::Future, pin::Pin};

use consort_fabric::{Candidate, Collective, Fabric, Op, SyncMode};

use crate::{Algorithm, Direction, PlanError, Setting, barrier::Synchronizer};

/// What one PE does in a call of one kind.
#[derive(Debug)]
pub struct Plan<A: Algorithm> {
    schedule: A::Schedule,
    /// In a box: most calls have none, and see that at once.
    entry_and_exit: Option<Box<EntryAndExit>>,
}

/// What a PE waits for before the algorithm, and after it.
#[derive(Debug)]
pub struct EntryAndExit {
    /// The barrier before, where all enter together.
    entry: Option<Synchronizer>,
    /// The barrier after, where all leave together.
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
        let schedule = A::schedule(setting, candidate)?;
        let entry_and_exit = EntryAndExit::new(setting, barrier, A::DIRECTION, A::ROOT_ACTS_APART)?;
        Ok(Self { schedule, entry_and_exit })
    }

    /// Steps of a call.
    #[must_use]
    pub fn steps(&self) -> u64 {
        A::steps(&self.schedule)
    }

    /// What the algorithm runs by.
    #[inline(always)]
    #[must_use]
    pub const fn schedule(&self) -> &A::Schedule {
        &self.schedule
    }

    /// What is around it, if the algorithm is not all that there is to a call.
    #[inline(always)]
    #[must_use]
    pub fn entry_and_exit(&self) -> Option<&EntryAndExit> {
        self.entry_and_exit.as_deref()
    }

    /// One call, in a box: what is around the algorithm is then compiled once for a fabric.
    ///
    /// # Errors
    /// When the job has failed.
    #[inline]
    pub fn run<'c, F: Fabric>(&'c self, f: &'c F) -> Pin<Box<dyn Future<Output = Op> + 'c>> {
        let algorithm: Pin<Box<dyn Future<Output = Op> + 'c>> = Box::pin(A::run(f, &self.schedule));
        match self.entry_and_exit() {
            None => algorithm,
            Some(entry_and_exit) => Box::pin(entry_and_exit.run(f, algorithm)),
        }
    }
}

impl EntryAndExit {
    fn new(
        setting: &Setting,
        barrier: &Candidate,
        direction: Direction,
        root_acts_apart: bool,
    ) -> Result<Option<Box<Self>>, PlanError> {
        // Upwards a root that acts apart waits for the signal that it may begin, downwards it
        // signals its end.
        let told_by = |apart| {
            let is_apart = root_acts_apart && direction == apart;
            if is_apart { Direction::Neither } else { direction }
        };
        let barrier_for = |mode, direction, second_word, counter| {
            (mode == SyncMode::All && setting.call.collective != Collective::Barrier)
                .then(|| {
                    let setting = Setting { first_channel: 1, second_word, counter, ..*setting };
                    Synchronizer::new(&setting, barrier, direction)
                })
                .transpose()
        };
        let entry = barrier_for(setting.call.sync.entry, told_by(Direction::Up), true, 0)?;
        let exit = barrier_for(setting.call.sync.exit, told_by(Direction::Down), false, 2)?;
        let is_bare = entry.is_none() && exit.is_none();
        Ok((!is_bare).then(|| Box::new(Self { entry, exit })))
    }

    /// An algorithm, between the barriers.
    ///
    /// # Errors
    /// When the job has failed.
    pub async fn run<F: Fabric>(&self, f: &F, algorithm: impl Future<Output = Op>) -> Op {
        if let Some(entry) = &self.entry {
            entry.run(f).await?;
        }
        algorithm.await?;
        if let Some(exit) = &self.exit {
            exit.run(f).await?;
        }
        Ok(())
    }
}
