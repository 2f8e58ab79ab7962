//! A launch in which several kinds of work are timed in turn, so that they share the machine's mood.
//!
//! PE 0 decides which work is timed next and how many calls a block has, and tells the others
//! between two barriers. Before and after each block PEs 0 and 1 play ping-pong: the one-way
//! transfer of that moment. A block whose two readings differ by over a fifth is discarded.
//!
//! Throughput: calls in a row; the longest local time of any PE. Latency: each call alone, from the
//! earliest start to the latest end on the common clock; buffers are rewritten before each call.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::{Duration, Instant},
};

use consort::{Candidate, Error, Pe, Pes, Rank, Result, Waiting};
use consort_native::limits::PingPong;

use super::work::{Bench, Work};
use crate::peers::{Peer, peers};

/// Round trips of a reading.
const READING_ROUNDS: u32 = 100;
/// Two readings agree when they differ by no more than this share.
const READINGS_AGREE: f64 = 0.2;

/// Whether calls are timed in a row or each alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In a row.
    Throughput,
    /// Each alone.
    Latency,
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct Session {
    /// PEs.
    pub pes: u32,
    /// How they wait, or as suits the machine.
    pub waiting: Option<Waiting>,
    /// What is timed, in turn.
    pub work: Vec<Work>,
    /// In a row or alone.
    pub mode: Mode,
    /// How long in all.
    pub budget: Duration,
    /// How long a block is to take.
    pub block: Duration,
}

/// One block of calls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Block {
    /// Time of a call, in nanoseconds.
    pub ns: f64,
    /// The one-way transfer of that moment, in nanoseconds; `None` where PEs share cores.
    pub transfer_ns: Option<f64>,
}

/// What became of one work.
#[derive(Clone, Debug)]
pub struct Timing {
    /// Its blocks that count.
    pub blocks: Vec<Block>,
    /// Blocks discarded because the machine changed meanwhile.
    pub discarded: usize,
    /// The algorithm that served it, where Consort did.
    pub algorithm: Option<Candidate>,
    /// Why it could not be measured.
    pub error: Option<Error>,
}

/// What a session came to.
#[derive(Clone, Debug)]
pub struct Measured {
    /// One for each work.
    pub timings: Vec<Timing>,
    /// How the PEs waited.
    pub waiting: Waiting,
}

/// The word that ends a session.
const STOP: u64 = u64::MAX;

struct Shared {
    ping_pong: Option<PingPong>,
    peers: Vec<Box<dyn Peer>>,
    /// What each PE measured last: a length, or a start and an end, in nanoseconds.
    starts: Vec<AtomicU64>,
    ends: Vec<AtomicU64>,
    /// What PE 0 says to all.
    said: AtomicU64,
    epoch: Instant,
}

impl Session {
    /// Measures until the budget is spent; every work gets one block at least.
    ///
    /// # Errors
    /// When the job cannot be launched or fails.
    pub fn run(&self) -> Result<Measured> {
        let cells = || (0..self.pes).map(|_| AtomicU64::new(0)).collect();
        let fits = consort_native::topology::Topology::discover()
            .placement(self.pes as usize)
            .is_some();
        let shared = Shared {
            ping_pong: (fits && self.pes > 1).then(PingPong::new),
            // SAFETY: each PE passes its own rank, below `pes`, and all make the calls that PE 0
            // decides on, in the same order and on buffers of the same lengths.
            #[expect(unsafe_code, reason = "peers trust their callers to match")]
            peers: unsafe { peers(self.pes) },
            starts: cells(),
            ends: cells(),
            said: AtomicU64::new(0),
            epoch: Instant::now(),
        };
        let mut pes = Pes::threads(self.pes).heap_bytes(self.heap_bytes());
        if let Some(waiting) = self.waiting {
            pes = pes.waiting(waiting);
        }
        let results = pes.run(|pe| self.pe(pe, &shared).map(|timings| (timings, pe.waiting())))?;
        let (_, (timings, waiting)) =
            results.into_iter().next().ok_or(Error::NoPes)?;
        Ok(Measured { timings, waiting })
    }

    /// Enough symmetric memory for all works' buffers.
    fn heap_bytes(&self) -> usize {
        self.work.iter().map(|work| 2 * work.bytes() + 4096).sum::<usize>() + (1 << 20)
    }

    fn pe(&self, pe: &Pe, shared: &Shared) -> Result<Vec<Timing>> {
        let world = pe.world();
        let rank = world.rank();
        let benches: Vec<Bench<'_>> =
            self.work.iter().map(|work| work.prepare(world)).collect::<Result<_>>()?;
        let mut timings: Vec<Timing> = self
            .work
            .iter()
            .map(|_| Timing { blocks: Vec::new(), discarded: 0, algorithm: None, error: None })
            .collect();
        let mut calls = vec![0_u64; self.work.len()];
        for (index, work) in self.work.iter().enumerate() {
            match self.warm_up(pe, work, &benches[index], shared) {
                Ok((call_ns, algorithm)) => {
                    let fitting = self.block.as_nanos() as f64 / call_ns.max(1.0);
                    calls[index] = agree(pe, shared, fitting.clamp(1.0, 1e6) as u64)?;
                    timings[index].algorithm = algorithm;
                }
                Err(error @ Error::Plan(_)) => timings[index].error = Some(error),
                Err(error) => return Err(error),
            }
            force(pe, work, false);
        }
        let able: Vec<usize> = (0..self.work.len()).filter(|&index| calls[index] > 0).collect();
        let start = Instant::now();
        for turn in 0.. {
            let over = turn >= able.len() && start.elapsed() >= self.budget;
            let next = able.get(turn % able.len().max(1)).filter(|_| !over);
            let next = next.map_or(STOP, |&index| index as u64);
            let next = agree(pe, shared, next)?;
            if next == STOP {
                break;
            }
            let index = next as usize;
            let (work, bench) = (&self.work[index], &benches[index]);
            force(pe, work, true);
            work.call(bench, &shared.peers)?;
            let before = reading(shared, rank);
            let ns = match self.mode {
                Mode::Throughput => throughput(pe, work, bench, shared, calls[index])?,
                Mode::Latency => latency(pe, work, bench, shared, calls[index])?,
            };
            let after = reading(shared, rank);
            force(pe, work, false);
            match (before, after) {
                (Some(a), Some(b)) if (a - b).abs() > READINGS_AGREE * a.min(b) => {
                    timings[index].discarded += 1;
                }
                _ => {
                    let transfer_ns = before.zip(after).map(|(a, b)| (a + b) / 2.0);
                    timings[index].blocks.push(Block { ns, transfer_ns });
                }
            }
        }
        Ok(timings)
    }

    /// A few calls: the time of one, and who served it.
    fn warm_up(
        &self,
        pe: &Pe,
        work: &Work,
        bench: &Bench<'_>,
        shared: &Shared,
    ) -> Result<(f64, Option<Candidate>)> {
        force(pe, work, true);
        work.rewrite(bench, 1.0)?;
        work.call(bench, &shared.peers)?;
        let algorithm = match work {
            Work::Consort { collective, .. } => pe.world().served_by(*collective),
            Work::Peer { .. } => None,
        };
        let mut calls = 1;
        loop {
            let ns = match self.mode {
                Mode::Throughput => throughput(pe, work, bench, shared, calls)?,
                Mode::Latency => latency(pe, work, bench, shared, calls)?,
            };
            // All must agree when it is enough.
            let total_ns = agree(pe, shared, (ns * calls as f64) as u64)?;
            if total_ns > 50_000 || calls > 1 << 16 {
                return Ok((ns, algorithm));
            }
            calls *= 4;
        }
    }
}

/// What PE 0 says, on all PEs. By barriers alone: a broadcast may be what is measured.
fn agree(pe: &Pe, shared: &Shared, said: u64) -> Result<u64> {
    let world = pe.world();
    if world.rank() == Rank(0) {
        shared.said.store(said, Relaxed);
    }
    world.barrier()?;
    let said = shared.said.load(Relaxed);
    world.barrier()?;
    Ok(said)
}

/// Has the work's algorithm serve, or gives the choice back.
fn force(pe: &Pe, work: &Work, on: bool) {
    if let Work::Consort { collective, candidate: Some(candidate), .. } = work {
        pe.world().force(*collective, on.then(|| candidate.clone()));
    }
}

/// The one-way transfer between PEs 0 and 1 now; known to PE 0 only.
fn reading(shared: &Shared, rank: Rank) -> Option<f64> {
    let ping_pong = shared.ping_pong.as_ref().filter(|_| rank.0 < 2)?;
    ping_pong.one_way_ns(rank.0, READING_ROUNDS).ok()
}

/// The longest local time of `calls` in a row, by the call, in nanoseconds; known to PE 0.
fn throughput(
    pe: &Pe,
    work: &Work,
    bench: &Bench<'_>,
    shared: &Shared,
    calls: u64,
) -> Result<f64> {
    let world = pe.world();
    world.barrier()?;
    let start = Instant::now();
    for _ in 0..calls {
        work.call(bench, &shared.peers)?;
    }
    let ns = start.elapsed().as_nanos() as u64;
    shared.ends[world.rank().index()].store(ns, Relaxed);
    world.barrier()?;
    let longest = shared.ends.iter().map(|end| end.load(Relaxed)).max().unwrap_or(0);
    world.barrier()?;
    Ok(longest as f64 / calls as f64)
}

/// The median over `calls` calls, each alone, of the latest end less the earliest start, in
/// nanoseconds; known to all.
fn latency(
    pe: &Pe,
    work: &Work,
    bench: &Bench<'_>,
    shared: &Shared,
    calls: u64,
) -> Result<f64> {
    let world = pe.world();
    let now = || shared.epoch.elapsed().as_nanos() as u64;
    let mut times = Vec::with_capacity(calls as usize);
    for call in 0..calls {
        work.rewrite(bench, call as f64)?;
        world.barrier()?;
        let start = now();
        work.call(bench, &shared.peers)?;
        let end = now();
        let me = world.rank().index();
        shared.starts[me].store(start, Relaxed);
        shared.ends[me].store(end, Relaxed);
        world.barrier()?;
        let first = shared.starts.iter().map(|start| start.load(Relaxed)).min().unwrap_or(0);
        let last = shared.ends.iter().map(|end| end.load(Relaxed)).max().unwrap_or(0);
        times.push(last.saturating_sub(first) as f64);
        world.barrier()?;
    }
    Ok(consort_fabric::statistics::median(&mut times))
}
