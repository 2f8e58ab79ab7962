//! Times one block of calls.
//!
//! If each PE has a core, single calls begin at one moment of the common clock: after a barrier, PE
//! 0 announces a moment shortly ahead, and all PEs wait for it. So the result does not include the
//! skew with which PEs leave the barrier. If PEs share cores, a PE that waits for a moment would
//! keep others from running. So in that case only the barrier separates the calls.

use std::{hint::spin_loop, time::Duration};

use consort::{Rank, Result, Team, tune::Arrival};
use consort_fabric::statistics::Summary;
use consort_machine::{system::clock::now_ns, usage};

use super::{
    arrival::Delays,
    session::{Block, Conditions, Mode},
    shared::{Interval, SessionState},
    work::{Work, WorkMemory},
};
use crate::peers::threads::Peer;

/// Round trips of a reading of the transfer, and warm-up round trips in which the two PEs meet.
const READING_ROUNDS: u32 = 100;
const FIRST_ROUNDS: u32 = 10;
/// How far ahead the start of a call is announced.
const AHEAD_NS: u64 = 600;
/// A PE that waits for a processor during a smaller share of a block does not disturb it: PEs that
/// sleep in calls wait a little whenever they wake up.
const LEAST_WAITED: f64 = 0.05;

/// One PE's part in timing blocks.
pub(super) struct Clock<'m> {
    mode: Mode,
    conditions: &'m Conditions,
    shared: &'m SessionState,
    peers: &'m [Box<dyn Peer>],
    world: &'m Team,
    delays: Delays,
    /// The start of the last call that all PEs began together.
    went_ns: u64,
}

impl<'m> Clock<'m> {
    pub(super) fn new(
        mode: Mode,
        conditions: &'m Conditions,
        shared: &'m SessionState,
        peers: &'m [Box<dyn Peer>],
        world: &'m Team,
    ) -> Self {
        let delays = Delays::new(conditions.arrival, world.rank());
        Self { mode, conditions, shared, peers, world, delays, went_ns: 0 }
    }

    /// Measures the one-way transfer between PEs 0 and 1; only PE 0 gets the result.
    pub(super) fn reading(&self) -> Option<f64> {
        let rank = self.world.rank().0;
        let ping_pong = self.shared.ping_pong().ok()?.filter(|_| rank < 2)?;
        ping_pong.run(rank, FIRST_ROUNDS).ok()?;
        ping_pong.one_way_ns(rank, READING_ROUNDS).ok()
    }

    /// Makes `calls` calls and times them. The result, over all PEs and without the transfer, is
    /// meaningful on PE 0 only.
    pub(super) fn block(&mut self, work: &Work, bench: &WorkMemory, calls: u64) -> Result<Block> {
        match self.mode {
            Mode::Throughput => self.in_a_row(work, bench, calls)?,
            Mode::Latency => self.alone(work, bench, calls)?,
        }
        self.world.barrier()?;
        let block = match (self.world.rank(), self.mode) {
            (Rank(0), Mode::Throughput) => longest(&self.shared.all_spans()?, calls),
            (Rank(0), Mode::Latency) => {
                of_calls(&self.shared.all_spans()?, self.conditions.arrival)
            }
            _ => block(0.0, 0.0),
        };
        let is_disturbed = self.world.rank() == Rank(0) && self.shared.is_disturbed()?;
        self.world.barrier()?;
        Ok(Block { is_disturbed, ..block })
    }

    fn in_a_row(&mut self, work: &Work, bench: &WorkMemory, calls: u64) -> Result<()> {
        let lost = LostTime::so_far(); // before the barrier, because reading it takes time
        self.world.barrier()?;
        let start_ns = now_ns();
        let mut delayed_ns = 0;
        for _ in 0..calls {
            delayed_ns += self.delays.work();
            work.call(bench, self.peers)?;
        }
        let end_ns = now_ns();
        // A delay that took longer than intended is not part of the call, but cannot be separated
        // from it.
        let span = (start_ns, end_ns.saturating_sub(delayed_ns).max(start_ns));
        self.shared.show(&[span], lost.disturbs())
    }

    fn alone(&mut self, work: &Work, bench: &WorkMemory, calls: u64) -> Result<()> {
        let mut mine = Vec::with_capacity(usize::try_from(calls).unwrap_or(0));
        let lost = LostTime::so_far();
        for _ in 0..calls {
            if self.conditions.rewrite {
                work.rewrite(bench)?;
            }
            self.world.barrier()?;
            self.start_together()?;
            self.delays.work();
            let start_ns = now_ns();
            work.call(bench, self.peers)?;
            mine.push((start_ns, now_ns()));
        }
        self.shared.show(&mine, lost.disturbs())
    }

    /// Waits for the moment that PE 0 announces. All PEs have passed a barrier since the last one.
    fn start_together(&mut self) -> Result<()> {
        if !self.shared.fits || self.world.size() < 2 {
            return Ok(());
        }
        if self.world.rank() == Rank(0) {
            self.shared.announce(now_ns() + AHEAD_NS)?;
        }
        let mut go_ns = self.shared.announced()?;
        while go_ns == self.went_ns {
            spin_loop();
            go_ns = self.shared.announced()?;
        }
        self.went_ns = go_ns;
        while now_ns() < go_ns {
            spin_loop();
        }
        Ok(())
    }
}

/// How often others have preempted this thread, and how long it has waited for a processor, up to
/// some moment. A thread that sleeps in calls is not preempted, but it waits when it wakes up.
struct LostTime {
    now_ns: u64,
    switches: Option<u64>,
    waited: Option<Duration>,
}

impl LostTime {
    fn so_far() -> Self {
        Self {
            now_ns: now_ns(),
            switches: usage::involuntary_switches(),
            waited: usage::run_delay(),
        }
    }

    /// Returns whether the thread has lost so much time since then that a block is disturbed.
    fn disturbs(&self) -> bool {
        let now = Self::so_far();
        let waited = self.waited.zip(now.waited).map(|(before, now)| now.saturating_sub(before));
        let least = LEAST_WAITED * (now.now_ns - self.now_ns) as f64;
        self.switches != now.switches
            || waited.is_some_and(|waited| waited.as_nanos() as f64 > least)
    }
}

fn block(ns: f64, p99_ns: f64) -> Block {
    Block { ns, p99_ns, ..Block::default() }
}

/// Returns the longest local time of any PE, divided by the number of calls.
fn longest(all: &[Vec<Interval>], calls: u64) -> Block {
    let local = |pe: &Vec<Interval>| pe.iter().map(|(start, end)| end - start).sum();
    let ns = all.iter().map(local).max().unwrap_or(0_u64) as f64 / calls as f64;
    block(ns, ns)
}

/// Returns the median and 99th percentile over the calls. A call lasts from its first start to its
/// last end or, with skewed arrival, from its last start to its last end.
fn of_calls(all: &[Vec<Interval>], arrival: Arrival) -> Block {
    let calls = all.iter().map(Vec::len).min().unwrap_or(0);
    let times = (0..calls).map(|call| {
        let starts = all.iter().map(|pe| pe[call].0);
        let start = match arrival {
            Arrival::Together => starts.min(),
            Arrival::Skewed => starts.max(),
        };
        let end = all.iter().map(|pe| pe[call].1).max();
        end.unwrap_or(0).saturating_sub(start.unwrap_or(0)) as f64
    });
    let times: Vec<f64> = times.collect();
    if times.is_empty() {
        return block(0.0, 0.0);
    }
    let summary = Summary::of(&times);
    block(summary.median, summary.p99)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls of two PEs: starts at 10 and 14, ends at 30 and 25; then 100 and 90, 110 and 120.
    #[test]
    fn a_call_lasts_from_the_first_start_to_the_last_end() {
        let all = [vec![(10, 30), (100, 110)], vec![(14, 25), (90, 120)]];
        assert_eq!(of_calls(&all, Arrival::Together), block(25.0, 30.0));
        assert_eq!(of_calls(&all, Arrival::Skewed), block(18.0, 20.0));
        assert_eq!(of_calls(&[vec![], vec![]], Arrival::Together).ns, 0.0);
    }
}
