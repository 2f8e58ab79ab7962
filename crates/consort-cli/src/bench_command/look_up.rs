//! `consort bench look-up`: what it takes to ask compiled wisdom for a choice, and its size.
//!
//! The wisdom is that of this machine; what it says nothing of is filled up with the model's
//! choices, for all collectives in the tuner's modes and at every power of two of bytes, so that
//! the table is as large as tables get. It is compiled for one team, as at a launch.
//!
//! Queries are drawn at random, so many that no branch predictor learns them, and asked in blocks:
//! *alone*, where what is asked next depends on the last answer, and *in a row*, where a processor
//! works on several at once. Both times contain reading the queries, which is timed by itself too.
//!
//! Source of the question: Nishtala, Zheng, Hargrove and Yelick 2011, section 3.6, whose index has
//! about 48 bytes an entry and look-ups that do not matter.

use std::{
    array,
    collections::BTreeMap,
    hint::black_box,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use consort::{Algorithms, Arrival, Collective, MOST_PES, Query, Sync};
use consort_fabric::{OperatorClass, statistics::Summary};
use consort_tuner::{Grid, Table, Wisdom, WisdomError, choose_or_estimate};

use super::{Bench, figure::Figure};
use crate::{output, tune::wisdom_path};

/// Queries of a kind; a power of two.
const QUERIES: usize = 1 << 16;
/// Look-ups of a block.
const BLOCK: usize = 1024;
/// Of each kind, however small the budget.
const FEWEST_BLOCKS: usize = 8;
/// The smallest and the largest size of the grid.
const POWERS: (u32, u32) = (3, 22);

const KINDS: [&str; 5] =
    ["sizes in the table", "sizes between", "not in the table", "all of these", "the loop itself"];
/// The kind that asks nothing: queries are read, and that is all.
const LOOP: usize = 4;
const WAYS: [&str; 2] = ["alone", "in a row"];

/// Measures and prints.
pub(super) fn run(bench: &Bench) -> Result<()> {
    let others = bench.sync.is_empty() && bench.algorithm.is_empty() && bench.mpi.is_empty();
    let none = others && bench.bytes.is_empty() && bench.waiting.is_none();
    ensure!(none && !bench.all_algorithms, "look-up takes PEs and budget alone");
    let (algorithms, cores) = (Algorithms::here(), Algorithms::here().cores());
    let pes = bench.pes.unwrap_or(cores.max(2));
    ensure!((1..=MOST_PES).contains(&pes), "--pes {pes}: use 1 to {MOST_PES}");
    let mut wisdom = here()?;
    let choice_count =
        |wisdom: &Wisdom| wisdom.entries().filter(|entry| entry.query.pes == pes).count();
    let own_count = choice_count(&wisdom);
    fill(&mut wisdom, pes);
    let table = Table::new(&wisdom, algorithms, pes, cores);
    let kinds = queries(&wisdom, &table, pes);
    let samples = sample(&table, &kinds, bench.budget);

    let (entries, bytes) = (table.entry_count(), table.bytes());
    let params: BTreeMap<String, u64> =
        [("entries".to_owned(), entries as u64), ("bytes".to_owned(), bytes as u64)].into();
    let mut rows = output::table(["queries", "asked", "blocks", "median", "± %", "p99"]);
    let mut figures = Vec::new();
    for (kind, ways) in KINDS.into_iter().zip(&samples) {
        for (way, times_ns) in WAYS.into_iter().zip(ways) {
            let times = Summary::of(times_ns);
            rows.add_row([
                kind.to_owned(),
                way.to_owned(),
                times.count.to_string(),
                output::time(times.median),
                format!("{:.1}", 100.0 * times.precision()),
                output::time(times.p99),
            ]);
            let figure = Figure {
                bench: "look-up",
                fabric: "threads".into(),
                pes,
                team: "world",
                mode: if way == WAYS[0] { "latency" } else { "throughput" },
                arrival: "together",
                algorithm: Some(format!("{kind}, {way}")),
                params: Some(params.clone()),
                ..Figure::default()
            };
            figures.push(figure.with(&times));
        }
    }
    match &bench.json {
        Some(path) => output::write_json_lines(path, &figures),
        None => {
            let what = format!(
                "a table for {pes} PEs, of {} choices, {own_count} of this machine's wisdom \
                 and the others by the model: {entries} entries in {bytes} bytes, {:.1} an entry \
                 with the candidates that they name",
                choice_count(&wisdom),
                bytes as f64 / entries as f64
            );
            output::print(&format!(
                "{}{}p99: of blocks of {BLOCK} look-ups.\n",
                output::wrapped(&what),
                output::finish(rows, &[2, 3, 4, 5])
            ))
        }
    }
}

/// This machine's wisdom, as a launch would find it; else one that says nothing.
fn here() -> Result<Wisdom> {
    let identity = Algorithms::here().identity();
    let path = wisdom_path(None, Arrival::Together)?;
    Ok(Wisdom::load(&path, identity).unwrap_or_else(|error| {
        if !matches!(error, WisdomError::NotFound { .. }) {
            tracing::warn!("wisdom is not used: {error}");
        }
        Wisdom::new(identity.clone())
    }))
}

/// The model's choices for teams of `pes`, where the wisdom has none.
fn fill(wisdom: &mut Wisdom, pes: u32) {
    let (algorithms, cores) = (Algorithms::here(), Algorithms::here().cores());
    let bytes = (POWERS.0..=POWERS.1).map(|power| 1 << power).collect();
    let grid = Grid { pes: vec![pes], bytes, ..Grid::new(cores, &[]) };
    for query in grid.points() {
        if wisdom.entry(&query).is_none()
            && let Some(choice) = choose_or_estimate(None, algorithms, &query, cores)
        {
            wisdom.insert(choice.entry.into_owned());
        }
    }
}

/// Queries of each kind.
fn queries(wisdom: &Wisdom, table: &Table, pes: u32) -> [Vec<Query>; KINDS.len()] {
    let known: Vec<Query> =
        wisdom.entries().map(|entry| entry.query).filter(|query| query.pes == pes).collect();
    let syncs: Vec<Sync> = Sync::every().collect();
    let mut draws = Draws(0x9E37_79B9_7F4A_7C15);
    let mut one = |kind: usize| match kind {
        0 => *draws.of(&known),
        1 => Query { bytes: draws.size(POWERS), ..*draws.of(&known) },
        _ => loop {
            let query = Query {
                collective: *draws.of(&Collective::EVERY),
                sync: *draws.of(&syncs),
                pes,
                bytes: draws.size((0, 40)),
                operator: *draws.of(&[OperatorClass::Commutative, OperatorClass::Ordered]),
                symmetric: *draws.of(&[true, false]),
            };
            if table.look_up(&query).is_none() {
                break query;
            }
        },
    };
    let mut turns = Draws(1);
    array::from_fn(|kind| {
        let mut which = || if kind < 3 { kind } else { *turns.of(&[0, 1, 2]) };
        (0..QUERIES).map(|_| one(which())).collect()
    })
}

/// Nanoseconds a look-up, of blocks.
type Samples = [[Vec<f64>; WAYS.len()]; KINDS.len()];

/// Blocks of each kind and way, in turn until the time is over.
fn sample(table: &Table, kinds: &[Vec<Query>; KINDS.len()], budget: Duration) -> Samples {
    let mut samples = Samples::default();
    let (begun, mut next) = (Instant::now(), [0; KINDS.len()]);
    while begun.elapsed() < budget || samples[0][0].len() < FEWEST_BLOCKS {
        for (kind, (queries, ways)) in kinds.iter().zip(&mut samples).enumerate() {
            let (table, queries) = black_box((table, queries.as_slice()));
            let (look_up, next) = (|query| table.look_up(query), &mut next[kind]);
            let [alone_ns, in_a_row_ns] = ways;
            if kind == LOOP {
                alone_ns.push(block_ns::<_, true>(queries, next, Some));
                in_a_row_ns.push(block_ns::<_, false>(queries, next, Some));
            } else {
                alone_ns.push(block_ns::<_, true>(queries, next, look_up));
                in_a_row_ns.push(block_ns::<_, false>(queries, next, look_up));
            }
        }
    }
    samples
}

/// A block of look-ups, from the query `next` on.
#[inline(never)]
fn block_ns<'q, T: 'q, const IS_ALONE: bool>(
    queries: &'q [Query],
    next: &mut usize,
    ask: impl Fn(&'q Query) -> Option<&'q T>,
) -> f64 {
    let begun = Instant::now();
    for _ in 0..BLOCK {
        let found = black_box(ask(&queries[*next % QUERIES]));
        // Which is next is known, or depends on the answer.
        *next += if IS_ALONE { 1 + usize::from(found.is_none()) } else { 1 };
    }
    begun.elapsed().as_secs_f64() * 1e9 / BLOCK as f64
}

/// Draws at random, the same ones each time: xorshift64 (Marsaglia 2003).
struct Draws(u64);

impl Draws {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        // The upper bits are the better ones.
        (self.0 >> 32) % end
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        let index = self.below(all.len() as u64);
        &all[usize::try_from(index).unwrap_or(0)]
    }

    /// All powers of two are as likely, and whatever is between two of them.
    fn size(&mut self, powers: (u32, u32)) -> u64 {
        let power = self.below(u64::from(powers.1 - powers.0)) + u64::from(powers.0);
        (1 << power) + self.below(1 << power.min(31))
    }
}
