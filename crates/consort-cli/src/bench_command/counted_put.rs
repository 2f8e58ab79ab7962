//! `consort bench counted-put`: a ping-pong of two PEs by counting puts and by flags.
//!
//! Source: Dinan et al., "Reducing Synchronization Overhead Through Bundled Communication" (2014),
//! section 3.1. A ball of some bytes goes to and fro; whoever gets it copies it out. Counted: one
//! operation. With a flag: put, fence, and a signal that adds to a word. Both wait for totals, so
//! that nothing is set back.
//!
//! The two ways take turns, a block of round trips each, between two readings of the transfer, in
//! several launches: which pages the memory lies on, and so which lines meet, is one launch's luck.

use std::time::Instant;

use anyhow::{Result, ensure};
use consort::{Pe, Pes, Rank, Signal, Until, Waiting};
use consort_fabric::statistics::Summary;
use consort_native::{
    limits::{PingPong, TransferClass},
    topology::Topology,
};

use super::{Bench, figure::Figure};
use crate::{bench::session::readings_agree, output};

const SIZES_BYTES: [usize; 6] = [8, 56, 64, 256, 1024, 4096];
/// What the two ways are called.
const WAYS: [&str; 2] = ["counted put", "put, fence, flag"];
const LAUNCHES: u32 = 8;
/// Round trips of a block, and of a reading of the transfer.
const ROUNDS: u32 = 200;

/// A block of each way.
#[derive(Clone)]
struct Sample {
    bytes: usize,
    way_ns: [f64; WAYS.len()],
    transfer_ns: f64,
}

type Taken = consort::Result<Vec<Sample>>;

/// Measures and prints; fails where there are no two cores, or nothing could be measured.
pub(super) fn run(bench: &Bench) -> Result<()> {
    let cores = Topology::discover().usable_cores();
    ensure!(cores >= 2, "counted-put needs two cores, and there is one");
    let sizes = if bench.bytes.is_empty() { &SIZES_BYTES[..] } else { &bench.bytes };
    let others = bench.sync.is_empty() && bench.algorithm.is_empty() && bench.mpi.is_empty();
    let others = others && !bench.all_algorithms && !bench.rewrite && bench.pes.unwrap_or(2) == 2;
    ensure!(others, "counted-put has two PEs, and takes sizes, waiting, budget and class alone");
    let waiting = bench.waiting.unwrap_or(Waiting::suited(2, cores));
    let mut samples = Vec::new();
    for _ in 0..LAUNCHES {
        let link = PingPong::new();
        let job = Pes::threads(2).without_wisdom().waiting(waiting);
        let end = Instant::now() + bench.budget / LAUNCHES;
        samples.extend(job.run(|pe| session(pe, sizes, end, &link))?.swap_remove(0).1);
    }
    let blank = Figure {
        bench: "counted-put",
        fabric: "threads".into(),
        pes: 2,
        team: "world",
        mode: "latency",
        arrival: "together",
        placement: "one PE a core".to_owned(),
        waiting: Some(waiting.to_string()),
        ..Figure::default()
    };
    let mut figures = Vec::new();
    let [one, other] = WAYS;
    let mut table = output::table(["bytes", "class", "transfer", one, other, "ratio", "limit"]);
    let classes = [TransferClass::Near, TransferClass::Far];
    for (&bytes, class) in sizes.iter().flat_map(|bytes| classes.map(|class| (bytes, class))) {
        let mut blocks = samples.clone();
        blocks.retain(|one| one.bytes == bytes && TransferClass::of(one.transfer_ns) == class);
        if blocks.is_empty() || !bench.class.shows(Some(class)) {
            continue;
        }
        let over =
            |of: &dyn Fn(&Sample) -> f64| Summary::of(&blocks.iter().map(of).collect::<Vec<f64>>());
        let transfer_ns = over(&|block| block.transfer_ns).median;
        let ratio = over(&|block| block.way_ns[0] / block.way_ns[1]).median;
        let mut row = vec![bytes.to_string(), class.to_string(), output::time(transfer_ns)];
        let limits = [0, 1].map(|way| over(&|block| block.way_ns[way] / block.transfer_ns).median);
        for (way, name) in WAYS.into_iter().enumerate() {
            let times = over(&|block| block.way_ns[way]);
            row.push(output::time(times.median));
            let figure = Figure {
                algorithm: Some(name.to_owned()),
                bytes: Some(bytes),
                ratio_to_limit: Some(limits[way]),
                c2c_ns: Some(transfer_ns),
                c2c_class: Some(class),
                ..blank.clone()
            };
            figures.push(figure.with(&times));
        }
        row.extend([ratio, limits[0]].map(output::ratio));
        table.add_row(row);
    }
    ensure!(!figures.is_empty(), "the machine changed in every block; try again when it is idle");
    match &bench.json {
        Some(path) => output::write_json_lines(path, &figures),
        None => output::print(&output::finish(table, &[0, 2, 3, 4, 5, 6])),
    }
}

/// One launch: PE 0 has the samples.
fn session(pe: &Pe, sizes: &[usize], end: Instant, link: &PingPong) -> Taken {
    let world = pe.world();
    let (me, peer) = (world.rank(), world.right());
    let ball = world.symmetric::<u8>(sizes.iter().copied().max().unwrap_or(0))?;
    let (counter, flag) = (world.counter()?, world.symmetric::<u64>(1)?);
    let mut totals = [0_u64; WAYS.len()];
    let mut samples = Vec::new();
    // A PE that has its core taken away shows in the reading after the block, or is no answer.
    let reading = || link.one_way_ns(me.0, ROUNDS).unwrap_or(f64::INFINITY);
    loop {
        for &bytes in sizes {
            let mut data = vec![0; bytes];
            let mut way_ns = [0.0; WAYS.len()];
            world.barrier()?;
            let before_ns = reading();
            for way in 0..WAYS.len() {
                let begun = Instant::now();
                for turn in 0..2 * ROUNDS {
                    let sends = Rank(turn % 2) == me;
                    totals[way] += u64::from(!sends);
                    match (way, sends) {
                        (0, true) => ball.put_counted(peer, 0, &data, &counter)?,
                        (0, false) => drop(counter.wait(totals[way])?),
                        (_, true) => {
                            ball.put(peer, 0, &data)?;
                            ball.fence()?;
                            flag.signal(peer, 0, Signal::Add(1))?;
                        }
                        (_, false) => drop(flag.wait_until(0, Until::AtLeast(totals[way]))?),
                    }
                    if !sends {
                        ball.get(me, 0, &mut data)?;
                    }
                }
                way_ns[way] = begun.elapsed().as_secs_f64() * 1e9 / f64::from(2 * ROUNDS);
            }
            let after_ns = reading();
            if readings_agree(before_ns, after_ns) {
                samples.push(Sample { bytes, way_ns, transfer_ns: before_ns.midpoint(after_ns) });
            }
        }
        let goes_on = u8::from(Instant::now() < end);
        if world.broadcast(goes_on, Rank(0))? == 0 {
            return Ok(samples);
        }
    }
}
