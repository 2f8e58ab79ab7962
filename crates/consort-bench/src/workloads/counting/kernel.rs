//! One PE's part in a workload, and its notifications to a PE that waits for data.

use consort::{Counter, Rank, Result, Signal, Symmetric, Team, Until};

/// The rounds of a block of small messages, and the round trips of a reading of the transfer.
pub(super) const ROUNDS: u32 = 200;

/// One PE's part in a workload, in one launch.
pub(super) trait Kernel {
    /// Plays `rounds` rounds in a row with a way, and checks the data. Returns the time of a round
    /// in nanoseconds. Collective.
    fn round_ns(&mut self, way: usize, bytes: usize, rounds: u32) -> Result<f64>;
}

/// The way in which a PE notifies the one PE that waits for its data.
pub(super) enum Notification<'p> {
    /// Put, fence, then a signal, which depends on the number of notices so far.
    Flag(Symmetric<'p, u64>, fn(u64) -> Signal),
    /// A counted put.
    Count(Counter<'p>),
}

/// Notices of one way, with the numbers sent and received, so that nothing has to be reset.
pub(super) struct Notices<'p> {
    notice: Notification<'p>,
    told: u64,
    heard: u64,
}

impl<'p> Notices<'p> {
    /// The notices of each of the first two ways. Collective.
    pub(super) fn both_ways(world: Team<'p>, signal: fn(u64) -> Signal) -> Result<[Self; 2]> {
        let counted = Notification::Count(world.counter()?);
        let flagged = Notification::Flag(world.symmetric(1)?, signal);
        Ok([counted, flagged].map(|notice| Self { notice, told: 0, heard: 0 }))
    }

    #[inline]
    pub(super) fn put<T: consort::Pod>(
        &mut self,
        memory: &Symmetric<'_, T>,
        to: Rank,
        at: usize,
        data: &[T],
    ) -> Result<()> {
        self.told += 1;
        match &self.notice {
            Notification::Count(counter) => memory.put_counted(to, at, data, counter),
            Notification::Flag(flag, signal) => {
                memory.put(to, at, data)?;
                memory.fence()?;
                flag.signal(to, 0, signal(self.told))
            }
        }
    }

    #[inline]
    pub(super) fn wait(&mut self) -> Result<()> {
        self.heard += 1;
        match &self.notice {
            Notification::Count(counter) => counter.wait(self.heard).map(drop),
            Notification::Flag(flag, _) => flag.wait_until(0, Until::AtLeast(self.heard)).map(drop),
        }
    }
}
