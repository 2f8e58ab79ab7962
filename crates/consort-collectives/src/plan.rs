//! A plan: an algorithm's schedule between the entry and exit barriers that the modes require.
//!
//! In symmetric memory, and in nonblocking calls, mode All is a barrier before or after the
//! algorithm. Strict is "the aforementioned tuned barrier between each collective" (Nishtala and
//! Yelick 2009, section 3): entry mode All is a barrier before the algorithm, exit mode All one
//! after it. The paper has one barrier between two collectives. Here there are two between Strict
//! calls: the exit barrier of one call and the entry barrier of the next.
//!
//! Between two PEs a barrier is one signal, because a message of the algorithm serves as the second
//! signal. The exception is a root that acts without a message, for example by copying its own
//! block.
//!
//! During a blocking call, no other PE can see when the data of values and slices moves. So mode
//! All means only that no PE leaves before all have entered. That takes one barrier, after the
//! algorithm, or none if every result depends on all contributions. Between two PEs it takes one
//! signal, which is sent before the algorithm and awaited after it.

use std::{future::Future, pin::Pin};

use consort_fabric::{Candidate, Fabric, Op, SyncMode};

use crate::{Algorithm, Direction, PlanError, Setting, algorithm::schedule, barrier::Synchronizer};

/// The future of a call, for any algorithm.
type BoxedCall<'c> = Pin<Box<dyn Future<Output = Op> + 'c>>;

/// One PE's part in the calls of one kind.
pub struct Plan<A: Algorithm> {
    schedule: A::Schedule,
    steps: u64,
    /// Boxed, because most calls have none: the test is then one comparison.
    entry_and_exit: Option<Box<EntryAndExit>>,
}

/// The entry and exit barriers of a call.
pub struct EntryAndExit {
    /// The barrier before the algorithm, if all must enter together.
    entry: Option<Synchronizer>,
    /// The barrier after the algorithm, if all must leave together.
    exit: Option<Synchronizer>,
}

impl<A: Algorithm> Plan<A> {
    /// Creates the plan for `setting`, whose entry and exit barriers are `barrier`. Succeeds on all
    /// PEs of a team or on none.
    ///
    /// # Errors
    /// If a candidate is unknown, its parameters are wrong, or it cannot serve the setting.
    pub fn new(
        setting: &Setting,
        candidate: &Candidate,
        barrier: &Candidate,
    ) -> Result<Self, PlanError> {
        let schedule = schedule::<A>(setting, candidate)?;
        let (steps, synchronizes) = (A::steps(&schedule), A::synchronizes(&schedule));
        let (direction, unordered) = (A::DIRECTION, A::ROOT_ACCESS_IS_UNORDERED);
        let entry_and_exit =
            EntryAndExit::new(setting, barrier, synchronizes, direction, unordered)?;
        Ok(Self { schedule, steps, entry_and_exit })
    }

    /// Returns the number of steps of a call.
    #[inline(always)]
    #[must_use]
    pub const fn steps(&self) -> u64 {
        self.steps
    }

    /// Returns the algorithm's schedule.
    #[inline(always)]
    #[must_use]
    pub const fn schedule(&self) -> &A::Schedule {
        &self.schedule
    }

    /// Returns the entry and exit barriers, if the modes require any.
    #[inline(always)]
    #[must_use]
    pub fn entry_and_exit(&self) -> Option<&EntryAndExit> {
        self.entry_and_exit.as_deref()
    }

    /// Returns the boxed future of one call. Because it is boxed, the barriers around it are
    /// compiled once per fabric, whatever the algorithm.
    ///
    /// # Errors
    /// If the job has failed.
    #[inline]
    pub fn run<'c, F: Fabric>(&'c self, f: &'c F) -> BoxedCall<'c> {
        EntryAndExit::around(self.entry_and_exit(), f, Box::pin(A::run(f, &self.schedule)))
    }
}

impl EntryAndExit {
    fn new(
        setting: &Setting,
        barrier: &Candidate,
        algorithm_synchronizes: bool,
        direction: Direction,
        root_access_is_unordered: bool,
    ) -> Result<Option<Box<Self>>, PlanError> {
        let call = &setting.call;
        if algorithm_synchronizes || !call.has_barrier() {
            return Ok(None);
        }
        // An entry barrier signals in the second words, so that its signals travel with those of
        // the preceding call's exit barrier.
        let barrier_for = |direction, second_word, counter| {
            let setting = Setting { first_channel: 1, second_word, counter, ..*setting };
            Synchronizer::new(&setting, barrier, direction)
        };
        let (entry, exit) = if call.is_private() {
            let barrier = barrier_for(direction, false, 2)?;
            let signals = matches!(barrier, Synchronizer::Signals(..));
            if signals { (Some(barrier), None) } else { (None, Some(barrier)) }
        } else {
            // Messages may not order the root's own accesses. If data moves up, such a root waits
            // for a signal that it may begin. If data moves down, it signals when it is done.
            let direction_of = |unordered| {
                let is_unordered = root_access_is_unordered && direction == unordered;
                if is_unordered { Direction::Neither } else { direction }
            };
            let entry = (call.sync.entry == SyncMode::All)
                .then(|| barrier_for(direction_of(Direction::Up), true, 0));
            let exit = (call.sync.exit == SyncMode::All)
                .then(|| barrier_for(direction_of(Direction::Down), false, 2));
            (entry.transpose()?, exit.transpose()?)
        };
        Ok(Some(Box::new(Self { entry, exit })))
    }

    /// Returns the future of a call, with the barriers around the algorithm if there are any.
    fn around<'c, F: Fabric>(
        barriers: Option<&'c Self>,
        f: &'c F,
        algorithm: BoxedCall<'c>,
    ) -> BoxedCall<'c> {
        match barriers {
            None => algorithm,
            Some(barriers) => Box::pin(barriers.run(f, algorithm)),
        }
    }

    /// Runs the entry barrier, the algorithm and the exit barrier.
    ///
    /// # Errors
    /// If the job has failed.
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
