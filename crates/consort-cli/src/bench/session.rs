//! A launch in which several kinds of work are timed in turn: they share the machine's mood.
//!
//! PE 0 decides how many calls a block has and which work is next, and the others agree at a
//! barrier. Before and after each block PEs 0 and 1 play ping-pong: the one-way transfer of that
//! moment. A block whose two readings differ by over a fifth is discarded.
//!
//! | | a block's time of one call | skewed arrival |
//! | --- | --- | --- |
//! | throughput | the longest local time of any PE over calls in a row | less its own delays |
//! | latency | median over calls, each alone: first start to last end | last start to last end |
//!
//! Each work gets blocks in turn, and some calls before each block: a change of algorithm has the
//! calls planned anew.

mod arrival;
mod clock;
mod member;

pub(crate) use arrival::SKEW_NS;

use std::{
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64},
    },
    time::{Duration, Instant},
};

use consort::{Arrival, Candidate, Error, Pes, Result, Waiting};
use consort_native::{
    limits::{PingPong, TransferClass},
    topology::Topology,
};

use super::work::Work;
use crate::peers::{Peer, peers};

/// Whether calls are timed in a row or each alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Mode {
    /// In a row.
    Throughput,
    /// Each alone.
    Latency,
}

impl Mode {
    /// What it is called on the command line and in JSON.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Latency => "latency",
        }
    }

    /// What the time of a call is called in tables.
    pub(crate) const fn time_name(self) -> &'static str {
        match self {
            Self::Throughput => "time a call",
            Self::Latency => "latency",
        }
    }
}

/// What to measure.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    /// PEs.
    pub(crate) pes: u32,
    /// How they wait, or as suits the machine.
    pub(crate) waiting: Option<Waiting>,
    /// What is timed, in turn.
    pub(crate) work: Vec<Work>,
    /// In a row or alone.
    pub(crate) mode: Mode,
    /// How long in all.
    pub(crate) budget: Duration,
    /// How long a block is to take.
    pub(crate) block: Duration,
}

/// Under which conditions calls are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Conditions {
    /// When the PEs come to a call.
    pub(crate) arrival: Arrival,
    /// How many buffers serve in turn.
    pub(crate) buffers: usize,
    /// Whether contributors rewrite their buffers before each call, where calls are alone.
    pub(crate) rewrite: bool,
}

impl Default for Conditions {
    fn default() -> Self {
        Self { arrival: Arrival::Together, buffers: 1, rewrite: true }
    }
}

/// One block of calls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Block {
    /// Time of a call, in nanoseconds.
    pub(crate) ns: f64,
    /// 99th percentile over the block's calls where each is timed; else the time of a call.
    pub(crate) p99_ns: f64,
    /// The one-way transfer of that moment, in nanoseconds; `None` where PEs share cores.
    pub(crate) transfer_ns: Option<f64>,
}

impl Block {
    /// How far apart PEs 0 and 1 were.
    pub(crate) fn class(&self) -> Option<TransferClass> {
        self.transfer_ns.map(TransferClass::of)
    }
}

/// What became of one work.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timing {
    /// Its blocks that count.
    pub(crate) blocks: Vec<Block>,
    /// Blocks discarded because the machine changed meanwhile.
    pub(crate) discarded: usize,
    /// The algorithm that served it, where Consort did.
    pub(crate) algorithm: Option<Candidate>,
    /// Why it could not be measured.
    pub(crate) error: Option<Error>,
}

/// What a session came to.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    /// One for each work.
    pub(crate) timings: Vec<Timing>,
    /// How the PEs waited.
    pub(crate) waiting: Waiting,
}

/// What the PEs of a session share.
struct Shared {
    /// Between PEs 0 and 1, where each PE has a core.
    ping_pong: Option<PingPong>,
    peers: Vec<Box<dyn Peer>>,
    /// What PE 0 decided last, and the time before.
    decisions: [AtomicU64; 2],
    /// When the next call starts on the common clock, where each PE has a core.
    go_ns: AtomicU64,
    /// A PE has left: nobody waits for it any more.
    left: AtomicBool,
    /// Each PE's latest block: start and end of each call, or the local time of all as one.
    spans: Vec<Mutex<Vec<Span>>>,
    epoch: Instant,
}

/// Whether two readings of the transfer are of the same state of the machine: they differ by no
/// more than a fifth.
pub(crate) fn readings_agree(one_ns: f64, other_ns: f64) -> bool {
    (one_ns - other_ns).abs() <= 0.2 * one_ns.min(other_ns)
}

/// Start and end, in nanoseconds.
type Span = (u64, u64);

impl Session {
    /// Measures until the budget is spent; every work gets one block at least.
    ///
    /// # Errors
    /// When the job cannot be launched or fails.
    pub(crate) fn run_under(&self, conditions: &Conditions) -> Result<Measured> {
        self.run_in(Pes::threads(self.pes), conditions)
    }

    /// The same in a job that is launched as `pes` says, with as many PEs as the session has.
    ///
    /// # Errors
    /// When the job cannot be launched or fails.
    pub(crate) fn run_in(&self, pes: Pes, conditions: &Conditions) -> Result<Measured> {
        let fits = Topology::discover().placement(self.pes as usize).is_some();
        let shared = Shared {
            ping_pong: (fits && self.pes > 1).then(PingPong::new),
            // SAFETY: each PE passes its own rank, below `pes`, and all make the calls that PE 0
            // decides on, in the same order and on buffers of the same lengths.
            #[expect(unsafe_code, reason = "peers trust their callers to match")]
            peers: unsafe { peers(self.pes) },
            decisions: Default::default(),
            go_ns: AtomicU64::new(0),
            left: AtomicBool::new(false),
            spans: (0..self.pes).map(|_| Mutex::default()).collect(),
            epoch: Instant::now(),
        };
        let mut pes = pes.heap_bytes(self.heap_bytes(conditions));
        if let Some(waiting) = self.waiting {
            pes = pes.waiting(waiting);
        }
        let results = pes.run(|pe| {
            let timings = member::Member::new(self, conditions, &shared, pe).run();
            Ok((timings?, pe.waiting()))
        })?;
        let (_, (timings, waiting)) = results.into_iter().next().ok_or(Error::NoPes)?;
        Ok(Measured { timings, waiting })
    }

    /// Enough symmetric memory for the buffers of all works.
    fn heap_bytes(&self, conditions: &Conditions) -> usize {
        let buffers = |work: &Work| {
            let collective = work.collective();
            let blocks =
                collective.source_blocks(self.pes, true) + collective.target_blocks(self.pes, true);
            conditions.buffers * (blocks as usize * work.bytes() + 8192)
        };
        self.work.iter().map(buffers).sum::<usize>() + (1 << 20)
    }
}
