//! Measures the methods of a workload in turn, and shows them as a table.
//!
//! There are several launches. In each launch the methods take turns: a turn is a block of rounds,
//! with a reading of the transfer before and after it. A launch gets random pages of memory, which
//! determine the lines that share a cache set. If PEs share cores, the transfer is not measured,
//! and the times have no class.

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};

use consort::{Job, Pe, Rank, Result, Waiting};
use consort_fabric::statistics::Summary;
use consort_machine::topology::Topology;
use consort_tuner::TransferClass;

use super::{
    all_to_all::AllToAll,
    ping_pong,
    program::{Program, ROUNDS},
    stencil::Stencil,
};
use crate::{
    harness::{Figure, Mode},
    limits::{PingPong, readings_agree},
    page::Page,
    units::{ratio, time},
};

/// The names of the methods, in the order of all tables.
pub const METHODS: [&str; 3] = ["counted put", "put, fence, flag", "put, barrier"];
const LAUNCHES: u32 = 8;
/// From this size on, a block has fewer rounds, so that it takes about the same time...
const FULL_BLOCK_BYTES: usize = 4096;
/// ... but at least this many, as long as they move at most `MOST_BLOCK_BYTES` bytes.
const FEWEST_ROUNDS: usize = 8;
const MOST_BLOCK_BYTES: usize = 8 << 20;

consort_fabric::named_enum! {
    /// A program with several methods of notification.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Workload {
        /// A ball between two PEs. The size is that of the ball.
        PingPong = "counted-put",
        /// A message from every PE to every PE. The size is that of a message.
        AllToAll = "counted-all-to-all",
        /// The pipelined stencil. The size is that of a PE's part of a row.
        Stencil = "stencil",
    }
}

impl Workload {
    /// Returns the part of it that is timed.
    pub const fn round(self) -> &'static str {
        match self {
            Self::PingPong => "half a round trip",
            Self::AllToAll => "a message from everyone to everyone",
            Self::Stencil => "a row of the grid",
        }
    }

    /// Returns the methods of the workload. The stencil and the ping-pong have no barrier, because
    /// there one PE waits for one other PE.
    pub fn methods(self) -> &'static [&'static str] {
        match self {
            Self::AllToAll => &METHODS,
            Self::PingPong | Self::Stencil => &METHODS[..2],
        }
    }

    /// Returns the columns with the time of the first method as a share of the next ones'.
    pub(super) fn shares(self) -> &'static [&'static str] {
        match self {
            Self::AllToAll => &["of flag", "of barrier"],
            Self::PingPong | Self::Stencil => &["of flag"],
        }
    }

    /// Returns whether two PEs play it.
    pub const fn is_ball(self) -> bool {
        matches!(self, Self::PingPong)
    }

    /// Returns the default sizes.
    pub const fn sizes_bytes(self) -> &'static [usize] {
        match self {
            Self::PingPong => &[8, 56, 64, 256, 1024, 4096],
            Self::AllToAll => &[8, 64, 512, 4096, 32768],
            Self::Stencil => &[64, 256, 1024, 4096, 16384],
        }
    }
}

/// The settings of a measurement of a workload.
#[derive(Clone, Copy, Debug)]
pub struct Race<'r> {
    /// The program.
    pub workload: Workload,
    /// The number of PEs.
    pub pes: u32,
    /// How the PEs wait; `None` for the way that suits the machine.
    pub waiting: Option<Waiting>,
    /// The sizes.
    pub sizes_bytes: &'r [usize],
    /// The number of rounds in a block; `None` for the number that suits the size.
    pub rounds: Option<u32>,
    /// The approximate measuring time.
    pub budget: Duration,
    /// Ends it with the current round of blocks once it is set.
    pub stop: &'r AtomicBool,
}

/// One block of each method.
#[derive(Clone, Debug)]
struct Sample {
    bytes: usize,
    method_ns: Vec<f64>,
    transfer_ns: Option<f64>,
}

/// The times of one size and class.
#[derive(Clone, Debug)]
pub struct Times {
    /// The size.
    pub bytes: usize,
    /// The class; `None` if PEs share cores.
    pub class: Option<TransferClass>,
    /// The one-way transfer of a cache line during the measurement.
    pub transfer_ns: Option<f64>,
    /// The times of each method.
    pub methods: Vec<Summary>,
    /// The ratio to the transfer at that moment, for each method.
    pub transfers: Vec<Option<f64>>,
    /// The times of the other methods as multiples of the first, block by block.
    pub over_counted: Vec<f64>,
}

impl Race<'_> {
    /// Measures. Returns the times of each size in the classes that occurred; none if the machine
    /// changed during every block.
    ///
    /// # Errors
    /// If a job fails.
    pub fn run(&self) -> Result<Vec<Times>> {
        let Self { workload, pes, sizes_bytes, .. } = *self;
        let most_bytes = sizes_bytes.iter().copied().max().unwrap_or(0);
        // No workload needs more than two buffers, each with a message of every PE.
        let heap_bytes = 2 * pes as usize * most_bytes + (1 << 20);
        let fits = Topology::discover().placement(pes as usize).is_some();
        let (mut samples, begun) = (Vec::new(), Instant::now());
        let mut longest = Duration::ZERO;
        for launch in 0..LAUNCHES {
            // A launch that would end much later than the budget does not begin.
            let spent = begun.elapsed();
            let is_over = spent + longest > self.budget * 5 / 4 && !samples.is_empty();
            if launch > 0 && (is_over || self.is_stopped()) {
                break;
            }
            let link = (fits && pes > 1).then(PingPong::new);
            let job = Job::threads(pes as usize)
                .pinned()
                .without_wisdom()
                .waiting(self.waiting.unwrap_or_default());
            let end = Instant::now() + self.budget / LAUNCHES;
            let launched = job.heap_bytes(heap_bytes).run(|pe| {
                let world = pe.world();
                match workload {
                    Workload::PingPong => {
                        let program = ping_pong::PingPongProgram::new(world, most_bytes)?;
                        self.session(pe, program, end, link.as_ref())
                    }
                    Workload::AllToAll => {
                        let program = AllToAll::new(world, most_bytes)?;
                        self.session(pe, program, end, link.as_ref())
                    }
                    Workload::Stencil => {
                        let rows = sizes_bytes.iter().map(|&bytes| self.rounds_of(bytes)).max();
                        let program = Stencil::new(world, rows.unwrap_or(0))?;
                        self.session(pe, program, end, link.as_ref())
                    }
                }
            });
            samples.extend(launched?.into_vec().swap_remove(0));
            longest = longest.max(begun.elapsed() - spent);
        }
        Ok(times(&samples, sizes_bytes))
    }

    /// Runs one launch. PE 0 returns the samples.
    fn session(
        &self,
        pe: &Pe,
        mut program: impl Program,
        end: Instant,
        link: Option<&PingPong>,
    ) -> Result<Vec<Sample>> {
        let world = pe.world();
        let me = world.rank();
        // If a PE loses its core, the reading after the block differs, or gets no reply.
        let reading = || {
            let link = link.filter(|_| me < Rank(2))?;
            Some(link.one_way_ns(me.0, ROUNDS).unwrap_or(f64::INFINITY))
        };
        let mut samples = Vec::new();
        loop {
            for &bytes in self.sizes_bytes {
                world.barrier()?;
                let before = reading();
                let methods = 0..self.workload.methods().len();
                let method_ns =
                    methods.map(|method| program.round_ns(method, bytes, self.rounds_of(bytes)));
                let method_ns = method_ns.collect::<Result<Vec<f64>>>()?;
                let both = before.zip(reading());
                if both.is_none_or(|(before, after)| readings_agree(before, after)) {
                    let transfer_ns = both.map(|(before, after)| before.midpoint(after));
                    samples.push(Sample { bytes, method_ns, transfer_ns });
                }
            }
            let goes_on = u8::from(Instant::now() < end && !self.is_stopped());
            if world.broadcast(goes_on, Rank(0))? == 0 {
                return Ok(samples);
            }
        }
    }

    /// Returns the number of rounds in a block of this size.
    fn rounds_of(&self, bytes: usize) -> u32 {
        self.rounds.unwrap_or_else(|| rounds(bytes))
    }

    fn is_stopped(&self) -> bool {
        // Relaxed: the flag publishes no other data.
        self.stop.load(Relaxed)
    }

    /// Returns a figure for each method, size and class.
    pub fn figures(&self, times: &[Times]) -> Vec<Figure> {
        let fits = Topology::discover().placement(self.pes as usize).is_some();
        let mode = if self.workload.is_ball() { Mode::Latency } else { Mode::Throughput };
        let of_size = |times: &Times| -> Vec<Figure> {
            let of_method = |(method, name): (usize, &&str)| Figure {
                algorithm: Some((*name).to_owned()),
                bytes: Some(times.bytes),
                placement: if fits { "one PE a core" } else { "unpinned" }.to_owned(),
                waiting: Some(self.waiting.unwrap_or_default().to_string()),
                ratio_to_limit: times.transfers[method],
                c2c_ns: times.transfer_ns,
                c2c_class: times.class,
                ..Figure::of(self.workload.name(), self.pes, mode).with(&times.methods[method])
            };
            self.workload.methods().iter().enumerate().map(of_method).collect()
        };
        times.iter().flat_map(of_size).collect()
    }
}

/// Returns the default number of rounds in a block.
fn rounds(bytes: usize) -> u32 {
    let bytes = bytes.max(1);
    let fewest = FEWEST_ROUNDS.min(MOST_BLOCK_BYTES / bytes).max(1);
    let rounds = ROUNDS as usize * FULL_BLOCK_BYTES / bytes;
    u32::try_from(rounds.max(fewest)).map_or(ROUNDS, |rounds| rounds.min(ROUNDS))
}

fn times(samples: &[Sample], sizes_bytes: &[usize]) -> Vec<Times> {
    let classes = [Some(TransferClass::Near), Some(TransferClass::Far), None];
    let groups = sizes_bytes.iter().flat_map(|bytes| classes.map(|class| (*bytes, class)));
    let of_group = |(bytes, class)| {
        let of_class = |sample: &Sample| sample.transfer_ns.map(TransferClass::of) == class;
        let blocks = samples.iter().filter(|one| one.bytes == bytes && of_class(one));
        let methods = 0..blocks.clone().next()?.method_ns.len();
        let over = |of: &dyn Fn(&Sample) -> Option<f64>| {
            let values = blocks.clone().map(of).collect::<Option<Vec<f64>>>()?;
            Some(Summary::of(&values))
        };
        let median = |of: &dyn Fn(&Sample) -> Option<f64>| over(of).map(|summary| summary.median);
        let shares = methods
            .clone()
            .skip(1)
            .filter_map(|method| median(&|one| Some(one.method_ns[method] / one.method_ns[0])));
        let in_transfers =
            |method| median(&|block| Some(block.method_ns[method] / block.transfer_ns?));
        Some(Times {
            bytes,
            class,
            transfer_ns: median(&|block| block.transfer_ns),
            methods: methods
                .clone()
                .filter_map(|method| over(&|block| Some(block.method_ns[method])))
                .collect(),
            transfers: methods.map(in_transfers).collect(),
            over_counted: shares.collect(),
        })
    };
    groups.filter_map(of_group).collect()
}

/// Adds the times of each size and class to a page.
pub fn show(page: &mut Page, workload: Workload, times: &[Times]) {
    let methods = workload.methods();
    let mut header = vec!["bytes", "class", "transfer"];
    header.extend(methods);
    header.extend(workload.shares());
    header.push("limit");
    let numbers: Vec<usize> = (0..header.len()).filter(|&column| column != 1).collect();
    let row = |times: &Times| {
        let known = |text: Option<String>| text.unwrap_or("-".to_owned());
        let mut row = vec![times.bytes.to_string()];
        row.push(known(times.class.map(|class| class.to_string())));
        row.push(known(times.transfer_ns.map(time)));
        row.extend(times.methods.iter().map(|times| time(times.median)));
        row.extend(times.over_counted.iter().map(|&over| ratio(1.0 / over)));
        row.push(known(times.transfers[0].map(ratio)));
        row
    };
    page.table(header, times.iter().map(row).collect(), numbers);
    page.paragraph(format!(
        "Times of {}; limit: the first of them in one-way transfers of a cache line.",
        workload.round()
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_has_its_times_and_ratios() {
        let sample = |transfer_ns, method_ns: [f64; 2]| Sample {
            bytes: 8,
            method_ns: method_ns.to_vec(),
            transfer_ns: Some(transfer_ns),
        };
        let samples = [
            sample(20.0, [20.0, 40.0]),
            sample(200.0, [100.0, 300.0]),
            sample(200.0, [200.0, 300.0]),
            sample(200.0, [300.0, 300.0]),
        ];
        let times = times(&samples, &[8, 64]);
        let [near, far] = &times[..] else { panic!("{times:?}") };
        assert_eq!((near.bytes, near.class), (8, Some(TransferClass::Near)));
        assert_eq!((near.methods[1].median, near.over_counted[0]), (40.0, 2.0));
        // The median of 3, 1.5 and 1.
        assert_eq!((far.methods[0].median, far.over_counted[0]), (200.0, 1.5));
        assert_eq!(far.transfers, [Some(1.0), Some(1.5)]);
    }

    #[test]
    fn long_blocks_have_fewer_rounds() {
        assert_eq!([8, 4096, 8192, 1 << 20, 4 << 20].map(rounds), [200, 200, 100, 8, 2]);
        assert_eq!(rounds(1 << 30), 1);
    }
}
