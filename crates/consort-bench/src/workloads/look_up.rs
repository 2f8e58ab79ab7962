//! The time of a look-up in compiled wisdom, and the size of the table.
//!
//! The wisdom is that of this machine. Missing entries are filled with the model's choices, for all
//! collectives in the tuner's modes and at every power of two of bytes. So the table has the
//! largest size that occurs. It is compiled for one team, as at a launch.
//!
//! There are too many random queries for a branch predictor to learn them. They are looked up in
//! blocks: *alone*, if each query depends on the last result, and *in a row*, if a processor can
//! overlap several. Both times include reading the queries, which is also timed separately.
//!
//! Source of the question: Nishtala, Zheng, Hargrove and Yelick 2011, section 3.6, whose index has
//! about 48 bytes per entry, and look-ups of negligible time.

use std::{
    array,
    collections::BTreeMap,
    hint::black_box,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};

use consort::{
    sync_modes::SyncModes,
    tune::{Algorithms, Arrival, Collective, Query},
};
use consort_fabric::{CallSpec, OperatorClass, statistics::Summary};
use consort_tuner::{Grid, Measurements, Selector, Table, Wisdom, WisdomError, default_path};

use crate::{
    harness::{Figure, Mode},
    rng::Rng,
    wisdom::usable,
};

/// The number of queries of a kind; a power of two.
const QUERIES: usize = 1 << 16;
/// The number of look-ups in a block.
pub const BLOCK: usize = 1024;
/// The smallest number of blocks of each kind, however small the budget.
const FEWEST_BLOCKS: usize = 8;
/// The smallest and the largest size of the grid, as powers of two.
const POWERS: (u32, u32) = (3, 22);

/// The kind that mixes all look-ups.
pub const ALL: &str = "all of these";
const KINDS: [&str; 5] =
    ["sizes in the table", "sizes between", "not in the table", ALL, "the loop itself"];
/// The kind without look-ups: queries are only read.
const LOOP: usize = 4;
const MODES: [&str; 2] = ["alone", "in a row"];

/// The results of look-ups in a table.
pub struct LookUps {
    /// PEs of the team that the table is for.
    pub pes: u32,
    /// The number of entries of the table.
    pub entries: usize,
    /// The table's size in bytes, with the candidates that it names.
    pub bytes: usize,
    /// The number of choices from which it was compiled.
    pub choices: usize,
    /// How many of them are from this machine's wisdom.
    pub own: usize,
    /// For each kind of query and mode of look-up: the names, and the nanoseconds of a look-up.
    pub times: Vec<(&'static str, &'static str, Summary)>,
}

/// Measures look-ups in the table of a team of `pes`, until `stop` is set, with at least one block
/// of each kind.
///
/// # Errors
/// If there is no configuration directory.
pub fn measure(pes: u32, budget: Duration, stop: &AtomicBool) -> Result<LookUps, WisdomError> {
    let (algorithms, cores) = (Algorithms::here(), Algorithms::here().cores());
    let (path, identity) = (default_path(Arrival::Together)?, algorithms.identity());
    let mut wisdom = usable(&path, identity).unwrap_or(Wisdom::new(identity.clone()));
    let choice_count =
        |wisdom: &Wisdom| wisdom.entries().filter(|entry| entry.query.pes == pes).count();
    let own = choice_count(&wisdom);
    fill(&mut wisdom, pes);
    let table = Table::new(&wisdom, algorithms, pes, cores);
    let kinds = queries(&wisdom, &table, pes);
    let samples = sample(&table, &kinds, budget, stop);
    let mut times = Vec::new();
    for (kind, modes) in KINDS.into_iter().zip(&samples) {
        let of_mode = |(how, times_ns): (_, &Vec<f64>)| (kind, how, Summary::of(times_ns));
        times.extend(MODES.into_iter().zip(modes).map(of_mode));
    }
    let (entries, bytes) = (table.entry_count(), table.bytes());
    Ok(LookUps { pes, entries, bytes, choices: choice_count(&wisdom), own, times })
}

impl LookUps {
    /// Returns a figure for each kind and mode.
    pub fn figures(&self) -> Vec<Figure> {
        let params: BTreeMap<String, u64> =
            [("entries".to_owned(), self.entries as u64), ("bytes".to_owned(), self.bytes as u64)]
                .into();
        let figure = |(kind, how, times): &(&str, &str, Summary)| {
            let mode = if *how == MODES[0] { Mode::Latency } else { Mode::Throughput };
            let figure = Figure {
                algorithm: Some(format!("{kind}, {how}")),
                params: Some(params.clone()),
                ..Figure::of("look-up", self.pes, mode)
            };
            figure.with(times)
        };
        self.times.iter().map(figure).collect()
    }
}

/// Adds the model's choices for teams of `pes` that wisdom lacks.
fn fill(wisdom: &mut Wisdom, pes: u32) {
    let (algorithms, cores) = (Algorithms::here(), Algorithms::here().cores());
    let model = Selector::new(algorithms, Measurements::Nothing);
    let bytes = (POWERS.0..=POWERS.1).map(|power| 1 << power).collect();
    let grid = Grid { pes: vec![pes], bytes, ..Grid::new(cores, &[]) };
    for query in grid.points() {
        if wisdom.entry(&query).is_none()
            && let Some(entry) =
                model.select(&CallSpec::from(&query)).and_then(|selected| selected.entry)
        {
            wisdom.insert(entry.into_owned());
        }
    }
}

fn queries(wisdom: &Wisdom, table: &Table, pes: u32) -> [Vec<Query>; KINDS.len()] {
    let known: Vec<Query> =
        wisdom.entries().map(|entry| entry.query).filter(|query| query.pes == pes).collect();
    let syncs: Vec<SyncModes> = SyncModes::every().collect();
    let mut rng = Rng(0);
    let mut one = |kind: usize| match kind {
        0 => *rng.of(&known),
        1 => Query { bytes: size(&mut rng, POWERS), ..*rng.of(&known) },
        _ => loop {
            let query = Query {
                collective: *rng.of(&Collective::EVERY),
                sync: *rng.of(&syncs),
                pes,
                bytes: size(&mut rng, (0, 40)),
                operator: *rng.of(&[OperatorClass::Commutative, OperatorClass::Ordered]),
                symmetric: *rng.of(&[true, false]),
            };
            if table.look_up(&query).is_none() {
                break query;
            }
        },
    };
    let mut turns = Rng(1 << 32);
    array::from_fn(|kind| {
        let mut which = || if kind < 3 { kind } else { *turns.of(&[0, 1, 2]) };
        (0..QUERIES).map(|_| one(which())).collect()
    })
}

/// Nanoseconds per look-up, for each block of each kind and mode.
type Samples = [[Vec<f64>; MODES.len()]; KINDS.len()];

/// Measures blocks of each kind and mode in turn, until the time is over.
fn sample(
    table: &Table,
    kinds: &[Vec<Query>; KINDS.len()],
    budget: Duration,
    stop: &AtomicBool,
) -> Samples {
    let mut samples = Samples::default();
    let (begun, mut next) = (Instant::now(), [0; KINDS.len()]);
    loop {
        for (kind, (queries, modes)) in kinds.iter().zip(&mut samples).enumerate() {
            let (table, queries) = black_box((table, queries.as_slice()));
            let (look_up, next) = (|query| table.look_up(query), &mut next[kind]);
            let [alone_ns, in_a_row_ns] = modes;
            if kind == LOOP {
                alone_ns.push(block_ns::<_, true>(queries, next, Some));
                in_a_row_ns.push(block_ns::<_, false>(queries, next, Some));
            } else {
                alone_ns.push(block_ns::<_, true>(queries, next, look_up));
                in_a_row_ns.push(block_ns::<_, false>(queries, next, look_up));
            }
        }
        let is_over = begun.elapsed() >= budget && samples[0][0].len() >= FEWEST_BLOCKS;
        // Relaxed: the flag publishes no other data.
        if is_over || stop.load(Relaxed) {
            return samples;
        }
    }
}

/// Times a block of look-ups, beginning with the query `next`.
#[inline(never)]
fn block_ns<'q, T: 'q, const IS_ALONE: bool>(
    queries: &'q [Query],
    next: &mut usize,
    ask: impl Fn(&'q Query) -> Option<&'q T>,
) -> f64 {
    let begun = Instant::now();
    for _ in 0..BLOCK {
        let found = black_box(ask(&queries[*next % QUERIES]));
        // The next query is fixed, or depends on the result.
        *next += if IS_ALONE { 1 + usize::from(found.is_none()) } else { 1 };
    }
    begun.elapsed().as_secs_f64() * 1e9 / BLOCK as f64
}

/// Returns a random size: all intervals between two powers of two are equally likely, and so are
/// the sizes within one.
fn size(rng: &mut Rng, powers: (u32, u32)) -> u64 {
    let power = rng.below(u64::from(powers.1 - powers.0)) + u64::from(powers.0);
    (1 << power) + rng.below(1 << power.min(31))
}
