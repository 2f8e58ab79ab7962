//! What counting puts are for, done by them and by what they replace, in turn.
//!
//! Source: Dinan et al., "Reducing Synchronization Overhead Through Bundled Communication" (2014),
//! section 3: a ping-pong, an all-to-all, and a pipelined stencil.
//!
//! | way | what a PE does |
//! | --- | --- |
//! | counted put | one operation; the receiver waits for a number of them |
//! | put, fence, flag | a put, a fence, and a signal of its own; the receiver waits for that |
//! | put, barrier | puts, and a barrier of all PEs |
//!
//! The ways take turns, a block of rounds each, between two readings of the transfer, in several
//! launches: which pages the memory lies on, and so which lines meet, is one launch's luck. PEs
//! that share cores have no transfer of their own, and no class.
//!
//! 1. `ping_pong`, `all_to_all`, `stencil`: the workloads;
//! 2. this file: the ways in turn, and what their blocks say.

mod all_to_all;
mod ping_pong;
mod stencil;

use std::{
    str::FromStr,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use consort::{Counter, MOST_PES, Pe, Pes, Rank, Signal, Symmetric, Team, Until, Waiting};
use consort_fabric::statistics::Summary;
use consort_native::{
    limits::{PingPong, TransferClass},
    topology::Topology,
};

use super::{Bench, figure::Figure};
use crate::{bench::session::readings_agree, output};

/// In this order wherever there is one.
pub(crate) const WAYS: [&str; 3] = ["counted put", "put, fence, flag", "put, barrier"];
/// Columns: the time of the first way as a share of the others'.
const SHARES: [&str; 2] = ["of flag", "of barrier"];
const LAUNCHES: u32 = 8;
/// Rounds of a block of small messages, and round trips of a reading of the transfer.
const ROUNDS: u32 = 200;
/// From here on a block has fewer rounds, so that it lasts as long...
const FULL_BLOCK_BYTES: usize = 4096;
/// ... but so many at least.
const FEWEST_ROUNDS: usize = 8;

/// What is done several ways. Heeds sizes, PEs, waiting, budget and class alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Workload {
    /// A ball between two PEs. A size is the ball's.
    PingPong,
    /// A message from everyone to everyone. A size is a message's.
    AllToAll,
    /// The pipelined stencil. A size is that of a PE's part of a row.
    Stencil,
}

impl Workload {
    const EVERY: [Self; 3] = [Self::PingPong, Self::AllToAll, Self::Stencil];

    /// What it is called on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::PingPong => "counted-put",
            Self::AllToAll => "counted-all-to-all",
            Self::Stencil => "stencil",
        }
    }

    /// What is timed.
    const fn round(self) -> &'static str {
        match self {
            Self::PingPong => "half a round trip",
            Self::AllToAll => "a message from everyone to everyone",
            Self::Stencil => "a row of the grid",
        }
    }

    /// The ways that it can go. In the stencil and the ping-pong only one PE waits for another.
    pub(crate) fn ways(self) -> &'static [&'static str] {
        if self == Self::AllToAll { &WAYS } else { &WAYS[..2] }
    }

    /// Sizes unless others are asked for.
    pub(crate) const fn sizes_bytes(self) -> &'static [usize] {
        match self {
            Self::PingPong => &[8, 56, 64, 256, 1024, 4096],
            Self::AllToAll => &[8, 64, 512, 4096, 32768],
            Self::Stencil => &[64, 256, 1024, 4096, 16384],
        }
    }
}

impl FromStr for Workload {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::EVERY.into_iter().find(|one| one.name() == text);
        found.ok_or_else(|| Self::EVERY.map(Self::name).join(", "))
    }
}

/// A workload as one PE of a launch has it.
trait Kernel {
    /// A round by a way, in nanoseconds: so many rounds in a row, on data that are looked at.
    /// Collective.
    fn round_ns(&mut self, way: usize, bytes: usize, rounds: u32) -> consort::Result<f64>;
}

/// How a PE tells the one PE that waits for it that data are there.
enum Notice<'p> {
    /// Put, fence, then a signal, made of the number of notices so far.
    Flag(Symmetric<'p, u64>, fn(u64) -> Signal),
    /// Put and count in one.
    Count(Counter<'p>),
}

/// Notices of one kind, and how many there were; so that nothing is set back.
struct Notices<'p> {
    notice: Notice<'p>,
    told: u64,
    heard: u64,
}

impl<'p> Notices<'p> {
    /// By each of the first two ways. Collective.
    fn both_ways(world: Team<'p>, signal: fn(u64) -> Signal) -> consort::Result<[Self; 2]> {
        let counted = Notice::Count(world.counter()?);
        let flagged = Notice::Flag(world.symmetric(1)?, signal);
        Ok([counted, flagged].map(|notice| Self { notice, told: 0, heard: 0 }))
    }

    #[inline]
    fn put<T: consort::Pod>(
        &mut self,
        memory: &Symmetric<'_, T>,
        to: Rank,
        at: usize,
        data: &[T],
    ) -> consort::Result<()> {
        self.told += 1;
        match &self.notice {
            Notice::Count(counter) => memory.put_counted(to, at, data, counter),
            Notice::Flag(flag, signal) => {
                memory.put(to, at, data)?;
                memory.fence()?;
                flag.signal(to, 0, signal(self.told))
            }
        }
    }

    #[inline]
    fn wait(&mut self) -> consort::Result<()> {
        self.heard += 1;
        match &self.notice {
            Notice::Count(counter) => counter.wait(self.heard).map(drop),
            Notice::Flag(flag, _) => flag.wait_until(0, Until::AtLeast(self.heard)).map(drop),
        }
    }
}

/// A workload to be timed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Race<'r> {
    pub(crate) workload: Workload,
    pub(crate) pes: u32,
    /// How the PEs wait, or as suits the machine.
    pub(crate) waiting: Option<Waiting>,
    pub(crate) sizes_bytes: &'r [usize],
    pub(crate) budget: Duration,
}

/// A block of each way.
#[derive(Clone, Debug)]
struct Sample {
    bytes: usize,
    way_ns: Vec<f64>,
    transfer_ns: Option<f64>,
}

/// What the blocks of one size and class say.
#[derive(Clone, Debug)]
pub(crate) struct Times {
    pub(crate) bytes: usize,
    /// None where PEs share cores.
    pub(crate) class: Option<TransferClass>,
    transfer_ns: Option<f64>,
    /// Of each way.
    ways: Vec<Summary>,
    /// In transfers of their moment, of each way.
    transfers: Vec<Option<f64>>,
    /// The other ways as multiples of the first, block by block.
    pub(crate) over_counted: Vec<f64>,
}

impl Race<'_> {
    fn waiting(&self) -> Waiting {
        let cores = Topology::discover().usable_cores();
        self.waiting.unwrap_or(Waiting::suited(self.pes as usize, cores))
    }

    /// Measures: the times of each size in the classes that occurred; none where the machine
    /// changed in every block.
    ///
    /// # Errors
    /// When a job fails.
    pub(crate) fn run(&self) -> Result<Vec<Times>> {
        let Self { workload, pes, sizes_bytes, .. } = *self;
        let most_bytes = sizes_bytes.iter().copied().max().unwrap_or(0);
        // Two buffers with a message from everyone are the most that a workload needs.
        let heap_bytes = 2 * pes as usize * most_bytes + (1 << 20);
        let fits = Topology::discover().placement(pes as usize).is_some();
        let mut samples = Vec::new();
        for _ in 0..LAUNCHES {
            let link = fits.then(PingPong::new);
            let job = Pes::threads(pes).without_wisdom().waiting(self.waiting());
            let end = Instant::now() + self.budget / LAUNCHES;
            let launched = job.heap_bytes(heap_bytes).run(|pe| {
                let world = pe.world();
                match workload {
                    Workload::PingPong => {
                        let kernel = ping_pong::Kernel::new(world, most_bytes)?;
                        self.session(pe, kernel, end, link.as_ref())
                    }
                    Workload::AllToAll => {
                        let kernel = all_to_all::Kernel::new(world, most_bytes)?;
                        self.session(pe, kernel, end, link.as_ref())
                    }
                    Workload::Stencil => {
                        let kernel = stencil::Kernel::new(world)?;
                        self.session(pe, kernel, end, link.as_ref())
                    }
                }
            });
            samples.extend(launched?.swap_remove(0).1);
        }
        Ok(times(&samples, sizes_bytes))
    }

    /// One launch: PE 0 has the samples.
    fn session(
        &self,
        pe: &Pe,
        mut kernel: impl Kernel,
        end: Instant,
        link: Option<&PingPong>,
    ) -> consort::Result<Vec<Sample>> {
        let world = pe.world();
        let me = world.rank();
        // A PE that has its core taken away shows in the reading after the block, or is no answer.
        let reading = || {
            let link = link.filter(|_| me < Rank(2))?;
            Some(link.one_way_ns(me.0, ROUNDS).unwrap_or(f64::INFINITY))
        };
        let mut samples = Vec::new();
        loop {
            for &bytes in self.sizes_bytes {
                world.barrier()?;
                let before = reading();
                let ways = 0..self.workload.ways().len();
                let way_ns = ways.map(|way| kernel.round_ns(way, bytes, rounds(bytes)));
                let way_ns = way_ns.collect::<consort::Result<Vec<f64>>>()?;
                let both = before.zip(reading());
                if both.is_none_or(|(before, after)| readings_agree(before, after)) {
                    let transfer_ns = both.map(|(before, after)| before.midpoint(after));
                    samples.push(Sample { bytes, way_ns, transfer_ns });
                }
            }
            let goes_on = u8::from(Instant::now() < end);
            if world.broadcast(goes_on, Rank(0))? == 0 {
                return Ok(samples);
            }
        }
    }
}

/// Rounds of a block.
fn rounds(bytes: usize) -> u32 {
    let rounds = ROUNDS as usize * FULL_BLOCK_BYTES / bytes.max(1);
    u32::try_from(rounds.max(FEWEST_ROUNDS)).map_or(ROUNDS, |rounds| rounds.min(ROUNDS))
}

fn times(samples: &[Sample], sizes_bytes: &[usize]) -> Vec<Times> {
    let classes = [Some(TransferClass::Near), Some(TransferClass::Far), None];
    let groups = sizes_bytes.iter().flat_map(|bytes| classes.map(|class| (*bytes, class)));
    let of_group = |(bytes, class)| {
        let of_class = |sample: &Sample| sample.transfer_ns.map(TransferClass::of) == class;
        let blocks = samples.iter().filter(|one| one.bytes == bytes && of_class(one));
        let ways = 0..blocks.clone().next()?.way_ns.len();
        let over = |of: &dyn Fn(&Sample) -> Option<f64>| {
            let values = blocks.clone().map(of).collect::<Option<Vec<f64>>>()?;
            Some(Summary::of(&values))
        };
        let median = |of: &dyn Fn(&Sample) -> Option<f64>| over(of).map(|summary| summary.median);
        let shares = ways
            .clone()
            .skip(1)
            .filter_map(|way| median(&|block| Some(block.way_ns[way] / block.way_ns[0])));
        let in_transfers = |way| median(&|block| Some(block.way_ns[way] / block.transfer_ns?));
        Some(Times {
            bytes,
            class,
            transfer_ns: median(&|block| block.transfer_ns),
            ways: ways.clone().filter_map(|way| over(&|block| Some(block.way_ns[way]))).collect(),
            transfers: ways.clone().map(in_transfers).collect(),
            over_counted: shares.collect(),
        })
    };
    groups.filter_map(of_group).collect()
}

/// For people.
pub(crate) fn table(workload: Workload, times: &[Times]) -> String {
    let ways = workload.ways();
    let mut header = vec!["bytes", "class", "transfer"];
    header.extend(ways);
    header.extend(&SHARES[..ways.len() - 1]);
    header.push("limit");
    let numbers: Vec<usize> = (0..header.len()).filter(|&column| column != 1).collect();
    let mut table = output::table(header);
    for times in times {
        let known = |text: Option<String>| text.unwrap_or("-".to_owned());
        let mut row = vec![times.bytes.to_string()];
        row.push(known(times.class.map(|class| class.to_string())));
        row.push(known(times.transfer_ns.map(output::time)));
        row.extend(times.ways.iter().map(|way| output::time(way.median)));
        row.extend(times.over_counted.iter().map(|&over| output::ratio(1.0 / over)));
        row.push(known(times.transfers[0].map(output::ratio)));
        table.add_row(row);
    }
    output::finish(table, &numbers)
        + &output::wrapped(&format!(
            "Times of {}; limit: the first of them in one-way transfers of a cache line.",
            workload.round()
        ))
}

/// For programs.
fn figures(race: &Race<'_>, times: &[Times]) -> Vec<Figure> {
    let fits = Topology::discover().placement(race.pes as usize).is_some();
    let ways = race.workload.ways();
    let of_size = |times: &Times| -> Vec<Figure> {
        let of_way = |(way, name): (usize, &&str)| Figure {
            bench: race.workload.name(),
            fabric: "threads".into(),
            pes: race.pes,
            team: "world",
            algorithm: Some((*name).to_owned()),
            bytes: Some(times.bytes),
            mode: if race.workload == Workload::PingPong { "latency" } else { "throughput" },
            arrival: "together",
            placement: if fits { "one PE a core" } else { "unpinned" }.to_owned(),
            waiting: Some(race.waiting().to_string()),
            ratio_to_limit: times.transfers[way],
            c2c_ns: times.transfer_ns,
            c2c_class: times.class,
            ..Figure::default().with(&times.ways[way])
        };
        ways.iter().enumerate().map(of_way).collect()
    };
    times.iter().flat_map(of_size).collect()
}

/// Measures and prints.
pub(super) fn run(bench: &Bench, workload: Workload) -> Result<()> {
    let name = workload.name();
    let others = bench.sync.is_empty() && bench.algorithm.is_empty() && bench.mpi.is_empty();
    let others = others && !bench.all_algorithms && !bench.rewrite;
    ensure!(others, "{name} takes sizes, PEs, waiting, budget and class alone");
    let cores = Topology::discover().usable_cores();
    let suited = if workload == Workload::PingPong { 2 } else { cores.max(2) };
    let pes = bench.pes.unwrap_or(u32::try_from(suited).unwrap_or(MOST_PES));
    ensure!(workload != Workload::PingPong || pes == 2, "--pes {pes}: {name} has two PEs");
    ensure!((2..=MOST_PES).contains(&pes), "--pes {pes}: {name} takes 2 to {MOST_PES} PEs");
    let sizes_bytes = if bench.bytes.is_empty() { workload.sizes_bytes() } else { &bench.bytes };
    let waiting = bench.waiting;
    let race = Race { workload, pes, waiting, sizes_bytes, budget: bench.budget };
    let mut times = race.run()?;
    ensure!(!times.is_empty(), "the machine changed in every block; try again when it is idle");
    times.retain(|times| bench.class.shows(times.class));
    ensure!(!times.is_empty(), "the cores were in another class throughout: try --class both");
    match &bench.json {
        Some(path) => output::write_json_lines(path, &figures(&race, &times)),
        None => output::print(&table(workload, &times)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_has_times_and_shares_of_its_own() {
        let sample = |transfer_ns, way_ns: [f64; 2]| Sample {
            bytes: 8,
            way_ns: way_ns.to_vec(),
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
        assert_eq!((near.ways[1].median, near.over_counted[0]), (40.0, 2.0));
        // The median of 3, 1.5 and 1.
        assert_eq!((far.ways[0].median, far.over_counted[0]), (200.0, 1.5));
        assert_eq!(far.transfers, [Some(1.0), Some(1.5)]);
    }

    #[test]
    fn long_blocks_have_fewer_rounds() {
        assert_eq!([8, 4096, 8192, 1 << 20, 1 << 30].map(rounds), [200, 200, 100, 8, 8]);
    }
}
