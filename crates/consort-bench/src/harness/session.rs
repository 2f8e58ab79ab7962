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

use std::time::Duration;

use consort::{Arrival, Candidate, Error, Waiting};
use consort_tuner::TransferClass;

use super::work::Work;

/// Whether calls are timed in a row or each alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In a row.
    Throughput,
    /// Each alone.
    Latency,
}

impl Mode {
    /// The name on the command line and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Latency => "latency",
        }
    }

    /// The name of the time of a call in tables.
    pub const fn time_name(self) -> &'static str {
        match self {
            Self::Throughput => "time a call",
            Self::Latency => "latency",
        }
    }
}

/// Kinds of work to be timed in one launch.
#[derive(Clone, Debug)]
pub struct Session {
    /// PEs.
    pub pes: u32,
    /// How they wait, or as suits the machine.
    pub waiting: Option<Waiting>,
    /// The kinds of work, timed in turn.
    pub work: Vec<Work>,
    /// In a row or alone.
    pub mode: Mode,
    /// The time for all of it.
    pub budget: Duration,
    /// How long a block is to take.
    pub block: Duration,
}

/// Under which conditions calls are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conditions {
    /// When the PEs come to a call.
    pub arrival: Arrival,
    /// How many buffers serve in turn.
    pub buffers: usize,
    /// Whether contributors rewrite their buffers before each call, where calls are alone.
    pub rewrite: bool,
}

impl Default for Conditions {
    fn default() -> Self {
        Self { arrival: Arrival::Together, buffers: 1, rewrite: true }
    }
}

/// One block of calls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Block {
    /// Time of a call, in nanoseconds.
    pub ns: f64,
    /// 99th percentile over the block's calls where each is timed; else the time of a call.
    pub p99_ns: f64,
    /// The one-way transfer of that moment, in nanoseconds; `None` where PEs share cores.
    pub transfer_ns: Option<f64>,
}

impl Block {
    /// How far apart PEs 0 and 1 were.
    pub fn class(&self) -> Option<TransferClass> {
        self.transfer_ns.map(TransferClass::of)
    }
}

/// The blocks of one work.
#[derive(Clone, Debug, Default)]
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

/// The outcome of a session.
#[derive(Clone, Debug)]
pub struct Measured {
    /// One for each work.
    pub timings: Vec<Timing>,
    /// How the PEs waited.
    pub waiting: Waiting,
}
