//! `consort bench online`: what refining choices while a program runs gains and costs.
//!
//! Each kind of call starts from the worst choice that the tuner's model can think of, as wisdom.
//! One launch keeps it, one refines it, and one is made to use what the second came to: what the
//! third saves against the second is the cost of refining, looking up and trying again included.
//! The refining launch says after how many calls, and how long, its last choice was made.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use consort::{Algorithms, Candidate, Collective, Pe, Pes, Query, Rank, Sum, Sync};
use consort_fabric::{OperatorClass, statistics::Summary};
use consort_tuner::{Catalog, Confidence, Entry, Rigour, Wisdom};

use super::{Bench, figure::Figure};
use crate::output;

/// The share of the time in calls that trying may cost.
const SHARE: f64 = 0.05;
/// Calls of a block.
const BLOCK: u32 = 64;
/// What is called unless sizes are given.
const KINDS: [(Collective, usize); 3] = [
    (Collective::AllReduce, 8),
    (Collective::Broadcast, 8 << 10),
    (Collective::AllGather, 64 << 10),
];

/// What a launch came to, on PE 0.
struct Run {
    /// Of the last half of the blocks, in nanoseconds a call.
    calls: Summary,
    /// The last choice, and after how many calls and how long it served.
    choice: Option<Candidate>,
    after_calls: u64,
    after: Duration,
}

/// Measures and prints.
pub(super) fn run(bench: &Bench) -> Result<()> {
    let others = bench.sync.is_empty() && bench.algorithm.is_empty() && bench.mpi.is_empty();
    ensure!(others && !bench.all_algorithms, "online takes PEs, sizes, waiting and budget alone");
    let cores = Algorithms::here().cores();
    let pes = bench.pes.unwrap_or(cores.max(2));
    let sized = |&(collective, _): &(Collective, usize)| {
        bench.bytes.iter().map(move |&bytes| (collective, bytes))
    };
    let kinds: Vec<_> = if bench.bytes.is_empty() {
        KINDS.to_vec()
    } else {
        KINDS.iter().flat_map(sized).collect()
    };
    let budget = bench.budget / u32::try_from(3 * kinds.len()).unwrap_or(u32::MAX);
    let folder = tempfile::tempdir().context("no temporary folder for wisdom")?;
    let path = folder.path().join("wisdom.toml");
    let mut figures = Vec::new();
    let mut table = output::table([
        "call",
        "bytes",
        "bad choice",
        "",
        "refined to",
        "",
        "after calls",
        "after",
        "cost",
    ]);
    for (collective, bytes) in kinds {
        let bad = worst(collective, pes, bytes)?;
        wisdom(collective, pes, bytes, &bad).save(&path)?;
        let launch = || {
            let pes = Pes::threads(pes).heap_bytes(1 << 20);
            bench.waiting.map_or(pes.clone(), |waiting| pes.waiting(waiting))
        };
        let member = |pe: &Pe| member(pe, collective, bytes, budget);
        let first = |pes: Pes| Ok::<Run, consort::Error>(pes.run(member)?.swap_remove(0).1);
        let kept = first(launch().wisdom(&path))?;
        let refined = first(launch().wisdom(&path).online(SHARE))?;
        let found = refined.choice.clone().unwrap_or_else(|| bad.clone());
        let forced = first(launch().without_wisdom().force(collective, found.clone()))?;
        let cost = refined.calls.median / forced.calls.median - 1.0;
        table.add_row([
            collective.name().to_owned(),
            bytes.to_string(),
            bad.to_string(),
            output::time(kept.calls.median),
            found.to_string(),
            output::time(refined.calls.median),
            refined.after_calls.to_string(),
            output::time(refined.after.as_secs_f64() * 1e9),
            format!("{:+.1} %", 100.0 * cost),
        ]);
        let ways =
            [("kept", bad, kept), ("refined", found.clone(), refined), ("forced", found, forced)];
        figures.extend(ways.map(|(way, candidate, run)| {
            let figure = Figure {
                bench: "online",
                fabric: "threads".into(),
                pes,
                team: "world",
                mode: "throughput",
                arrival: "together",
                algorithm: Some(format!("{collective} by {candidate}, {way}")),
                bytes: Some(bytes),
                ..Figure::default()
            };
            figure.with(&run.calls)
        }));
    }
    match &bench.json {
        Some(path) => output::write_json_lines(path, &figures),
        None => output::print(&format!(
            "{}Trying may cost {} % of the time in calls. The cost is against the last choice, \
             forced.\n",
            output::finish(table, &[1, 3, 5, 6, 7, 8]),
            100.0 * SHARE
        )),
    }
}

/// The candidate that the model thinks slowest.
fn worst(collective: Collective, pes: u32, bytes: usize) -> Result<Candidate> {
    let (algorithms, query) = (Algorithms::here(), query(collective, pes, bytes));
    let candidates = algorithms.candidates(&query).into_iter();
    let estimate_ns = |candidate: &Candidate| algorithms.estimate_ns(&query, candidate);
    candidates
        .max_by(|one, other| estimate_ns(one).total_cmp(&estimate_ns(other)))
        .with_context(|| format!("nothing serves {collective} of {bytes} bytes"))
}

fn query(collective: Collective, pes: u32, bytes: usize) -> Query {
    let operator = OperatorClass::Commutative;
    let (sync, bytes) = (Sync::MINE, bytes as u64);
    Query { collective, sync, pes, bytes, operator, symmetric: false }
}

/// Wisdom of one entry.
fn wisdom(collective: Collective, pes: u32, bytes: usize, choice: &Candidate) -> Wisdom {
    let mut wisdom = Wisdom::new(Algorithms::here().identity().clone());
    wisdom.insert(Entry {
        query: query(collective, pes, bytes),
        choice: choice.clone(),
        median_ns: 1.0,
        ci95_ns: Some((0.9, 1.1)),
        runner_up: None,
        class: None,
        confidence: Confidence::Alone,
        rigour: Rigour::Measure,
    });
    wisdom
}

/// Blocks of calls until the time is over.
fn member(pe: &Pe, collective: Collective, bytes: usize, budget: Duration) -> consort::Result<Run> {
    let world = pe.world();
    let is_root = world.rank() == Rank(0);
    let len = bytes / size_of::<f64>();
    let of = |blocks: u32| vec![1.0_f64; blocks as usize * len];
    let source = of(collective.source_blocks(world.size(), is_root));
    let mut target = of(collective.target_blocks(world.size(), is_root));
    let (mut blocks_ns, mut choice) = (Vec::new(), None);
    let (mut after_calls, mut after) = (0, Duration::ZERO);
    let begun = Instant::now();
    for block in 0_u64.. {
        let block_begun = Instant::now();
        for _ in 0..BLOCK {
            world.collective_slice(collective, &source, &mut target, Sum, Rank(0))?;
        }
        blocks_ns.push(block_begun.elapsed().as_secs_f64() * 1e9 / f64::from(BLOCK));
        let served_by = world.served_by(collective);
        if served_by != choice {
            choice = served_by;
            (after_calls, after) = (block * u64::from(BLOCK), begun.elapsed());
        }
        // By a collective that is not what is looked at.
        let goes_on = vec![u8::from(begun.elapsed() < budget); world.size() as usize];
        if world.scatter(&goes_on, Rank(0))? == 0 {
            break;
        }
    }
    let calls = Summary::of(&blocks_ns[blocks_ns.len() / 2..]);
    Ok(Run { calls, choice, after_calls, after })
}
