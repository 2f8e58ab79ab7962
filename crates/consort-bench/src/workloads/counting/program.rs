//! One PE's part in a program, and its notifications to a PE that waits for data.

use consort::{
    Rank, Result, Symmetric, Team,
    symmetric::{CompletionCounter, Signal, Until},
};

/// The rounds of a block of small messages, and the round trips of a reading of the transfer.
pub(super) const ROUNDS: u32 = 200;

/// One PE's part in a program, in one launch.
pub(super) trait Program {
    /// Plays `rounds` rounds in a row by a method, and checks the data. Returns the time of a round
    /// in nanoseconds. Collective.
    fn round_ns(&mut self, method: usize, bytes: usize, rounds: u32) -> Result<f64>;
}

/// How a PE notifies the one PE that waits for its data.
pub(super) enum Notification {
    /// Put, fence, then a signal, which depends on the number of signals so far.
    Flag(Symmetric<u64>, fn(u64) -> Signal),
    /// A counted put.
    Count(CompletionCounter),
}

/// Notifications by one method, with the numbers sent and waited for, so that nothing needs a
/// reset.
pub(super) struct Notifications {
    by: Notification,
    signals: u64,
    waits: u64,
}

impl Notifications {
    /// Creates the notifications of each of the first two methods. Collective.
    pub(super) fn by_both(world: &Team, signal: fn(u64) -> Signal) -> Result<[Self; 2]> {
        let counted = Notification::Count(world.completion_counter()?);
        let flagged = Notification::Flag(world.symmetric(1)?, signal);
        Ok([counted, flagged].map(|by| Self { by, signals: 0, waits: 0 }))
    }

    #[inline]
    pub(super) fn put<T: consort::Pod>(
        &mut self,
        memory: &Symmetric<T>,
        to: Rank,
        at: usize,
        data: &[T],
    ) -> Result<()> {
        self.signals += 1;
        match &self.by {
            Notification::Count(counter) => memory.put_counted(to, at, data, counter),
            Notification::Flag(flag, signal) => {
                memory.put(to, at, data)?;
                memory.fence()?;
                flag.signal(to, 0, signal(self.signals))
            }
        }
    }

    #[inline]
    pub(super) fn wait(&mut self) -> Result<()> {
        self.waits += 1;
        match &self.by {
            Notification::Count(counter) => counter.wait(self.waits).map(drop),
            Notification::Flag(flag, _) => flag.wait_until(0, Until::AtLeast(self.waits)).map(drop),
        }
    }
}
