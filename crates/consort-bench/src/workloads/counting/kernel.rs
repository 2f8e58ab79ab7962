//! A workload as one PE has it, and how it tells one that waits that data are there.

use consort::{Counter, Rank, Result, Signal, Symmetric, Team, Until};

/// Rounds of a block of small messages, and round trips of a reading of the transfer.
pub(super) const ROUNDS: u32 = 200;

/// A workload as one PE of a launch has it.
pub(super) trait Kernel {
    /// A round by a way, in nanoseconds: so many rounds in a row, on data that are looked at.
    /// Collective.
    fn round_ns(&mut self, way: usize, bytes: usize, rounds: u32) -> Result<f64>;
}

/// How a PE tells the one PE that waits for it that data are there.
pub(super) enum Notification<'p> {
    /// Put, fence, then a signal, made of the number of notices so far.
    Flag(Symmetric<'p, u64>, fn(u64) -> Signal),
    /// Put and count in one.
    Count(Counter<'p>),
}

/// Notices of one kind, and how many there were; so that nothing is set back.
pub(super) struct Notices<'p> {
    notice: Notification<'p>,
    told: u64,
    heard: u64,
}

impl<'p> Notices<'p> {
    /// By each of the first two ways. Collective.
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
