//! A launch in which several kinds of work are timed in turn, under the same state of the machine.
//!
//! PE 0 decides how many calls a block has and which work is next, and passes that to the others at
//! a barrier. Before and after each block, PEs 0 and 1 play ping-pong, which measures the one-way
//! transfer at that moment. A block is discarded if its two readings differ by more than a fifth.
//! It counts as disturbed if a PE with its own core lost the core during the block.
//!
//! | mode | the time of a call in a block | with skewed arrival |
//! | --- | --- | --- |
//! | throughput | calls in a row: the longest local time of any PE | without the PE's own delays |
//! | latency | each call alone, median: first start to last end | last start to last end |
//!
//! The kinds of work alternate, block by block. Before each block, PEs make some calls that are not
//! timed. These make new plans, because a change of the algorithm drops all plans.

use std::time::Duration;

use consort::{
    Waiting,
    launch::Fabric,
    tune::{Arrival, Candidate},
};
use consort_tuner::TransferClass;
use serde::{Deserialize, Serialize};

use super::work::Work;
use crate::{
    environment::Switches,
    query_json::{optional, read, shown},
};

/// Whether calls are timed in a row or one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Mode {
    /// In a row.
    Throughput,
    /// One at a time.
    Latency,
}

impl Mode {
    /// Returns the name on the command line and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Latency => "latency",
        }
    }

    /// Returns the name of the time of a call in tables.
    pub const fn time_name(self) -> &'static str {
        match self {
            Self::Throughput => "time a call",
            Self::Latency => "latency",
        }
    }
}

/// Returns the time of a block of calls, far below 10 ms, because the machine changes; a block has
/// at least one call. If PEs share cores, a block begins and ends with scheduler turns.
pub const fn block_time(fits: bool) -> Duration {
    Duration::from_micros(if fits { 300 } else { 1000 })
}

/// Kinds of work to be timed in one launch.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Session {
    /// The fabric of the PEs.
    #[serde(serialize_with = "shown", deserialize_with = "read")]
    pub fabric: Fabric,
    /// The number of PEs.
    pub pes: u32,
    /// How they wait; `None` for the way that suits the machine.
    #[serde(with = "optional")]
    pub waiting: Option<Waiting>,
    /// The kinds of work, timed in turn.
    pub work: Vec<Work>,
    /// Single calls, or calls in a row.
    pub mode: Mode,
    /// The time for the whole session.
    pub budget: Duration,
}

/// The conditions under which calls are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Conditions {
    /// The arrival of the PEs at a call.
    #[serde(serialize_with = "shown", deserialize_with = "read")]
    pub arrival: Arrival,
    /// The number of buffers that are used in turn.
    pub buffers: usize,
    /// Whether PEs rewrite their contributions before each call, when calls are single.
    pub rewrite: bool,
}

impl Default for Conditions {
    fn default() -> Self {
        Self { arrival: Arrival::Together, buffers: 1, rewrite: true }
    }
}

/// One block of calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct Block {
    /// Time of a call, in nanoseconds.
    pub ns: f64,
    /// The 99th percentile over the block's calls if each is timed; otherwise the time of a call.
    pub p99_ns: f64,
    /// The one-way transfer at that moment, in nanoseconds; `None` if PEs share cores.
    pub transfer_ns: Option<f64>,
    /// The number of the launch that it belongs to.
    pub launch: usize,
    /// The turn of its work in the launch, from 0.
    pub turn: u32,
    /// Whether others used its cores meanwhile: a PE with its own core lost it.
    pub is_disturbed: bool,
}

impl Block {
    /// Returns the class of the transfer between PEs 0 and 1.
    pub fn class(&self) -> Option<TransferClass> {
        self.transfer_ns.map(TransferClass::of)
    }

    /// Returns the block in the tuner's form.
    pub(super) fn for_tuner(&self) -> consort_tuner::Block {
        let Self { ns, turn, is_disturbed, .. } = *self;
        consort_tuner::Block { ns, class: self.class(), turn, is_disturbed }
    }
}

/// The blocks of one work.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Timing {
    /// The blocks that were kept.
    pub blocks: Vec<Block>,
    /// The number of blocks discarded because the machine changed during them.
    pub discarded: usize,
    /// The algorithm, for calls of Consort.
    #[serde(with = "optional")]
    pub algorithm: Option<Candidate>,
    /// The reason why it could not be measured.
    pub error: Option<String>,
}

impl Timing {
    /// Adds the blocks of launch `launch`.
    pub fn add(&mut self, launch: usize, new: Timing) {
        self.blocks.extend(new.blocks.into_iter().map(|block| Block { launch, ..block }));
        self.discarded += new.discarded;
        self.algorithm = new.algorithm;
        self.error = new.error;
    }
}

/// Returns the values of blocks, by launch.
pub(super) fn by_launch(blocks: &[Block], value: impl Fn(&Block) -> f64) -> Vec<Vec<f64>> {
    let mut launches: Vec<(usize, Vec<f64>)> = Vec::new();
    for block in blocks {
        match launches.last_mut().filter(|(launch, _)| *launch == block.launch) {
            Some((_, values)) => values.push(value(block)),
            None => launches.push((block.launch, vec![value(block)])),
        }
    }
    launches.into_iter().map(|(_, values)| values).collect()
}

/// The outcome of a session.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct SessionOutcome {
    /// The blocks of each work.
    pub timings: Vec<Timing>,
    /// How the PEs waited.
    #[serde(serialize_with = "shown", deserialize_with = "read")]
    pub waiting: Waiting,
    /// How often they lost their cores during the measurement, if each had one.
    pub switches: Switches,
}
