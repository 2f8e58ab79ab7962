//! The time of a look-up in compiled wisdom, and the size of the table.
//!
//! The wisdom is that of this machine. Missing entries are filled with the model's choices, for all
//! collectives in the tuner's modes and at every power of two of bytes. So the table has the
//! largest size that occurs. It is compiled for one team, as at a launch.
//!
//! Queries are sizes in the table, sizes between them, and calls that are not in the table, in
//! random order. There are too many for a branch predictor to learn them, and each query depends on
//! the last result. The time includes reading the queries.
//!
//! Source of the question: Nishtala, Zheng, Hargrove and Yelick 2011, section 3.6, whose index has
//! about 48 bytes per entry, and look-ups of negligible time.

use std::{
    hint::black_box,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};

use consort::{
    sync_modes::SyncModes,
    tune::{Algorithms, Arrival, Collective, Query},
};
use consort_bench::{rng::Rng, wisdom::usable};
use consort_fabric::{CallSpec, OperatorClass, statistics::median};
use consort_tuner::{Grid, Measurements, Selector, Table, Wisdom, WisdomError, default_path};

/// The number of queries; a power of two.
const QUERIES: usize = 1 << 16;
/// The number of look-ups in a block.
const BLOCK: usize = 1024;
/// The least number of blocks, even if they take longer than the budget.
const FEWEST_BLOCKS: usize = 8;
/// The smallest and the largest size of the grid, as powers of two.
const POWERS: (u32, u32) = (3, 22);

/// The result of look-ups in a table.
pub(super) struct LookUps {
    /// The number of entries of the table.
    pub(super) entries: usize,
    /// The table's size in bytes, with the candidates that it names.
    pub(super) bytes: usize,
    /// The median time of a look-up in nanoseconds.
    pub(super) ns: f64,
}

/// Measures look-ups in the table of a team of `pes` for `budget`, but at least [`FEWEST_BLOCKS`]
/// blocks. If `stop` is set, it ends after the current block.
///
/// # Errors
/// When the configuration directory is unknown.
pub(super) fn measure(
    pes: u32,
    budget: Duration,
    stop: &AtomicBool,
) -> Result<LookUps, WisdomError> {
    let (algorithms, cores) = (Algorithms::here(), Algorithms::here().cores());
    let (path, identity) = (default_path(Arrival::Together)?, algorithms.identity());
    let mut wisdom = usable(&path, identity).unwrap_or(Wisdom::new(identity.clone()));
    fill(&mut wisdom, pes);
    let table = Table::new(&wisdom, algorithms, pes, cores);
    let queries = queries(&wisdom, &table, pes);
    let (mut times_ns, mut next, begun) = (Vec::new(), 0, Instant::now());
    loop {
        times_ns.push(block_ns(&table, &queries, &mut next));
        let is_over = begun.elapsed() >= budget && times_ns.len() >= FEWEST_BLOCKS;
        // Relaxed: the flag publishes no other data.
        if is_over || stop.load(Relaxed) {
            break;
        }
    }
    let (entries, bytes) = (table.entry_count(), table.bytes());
    Ok(LookUps { entries, bytes, ns: median(&mut times_ns) })
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

fn queries(wisdom: &Wisdom, table: &Table, pes: u32) -> Vec<Query> {
    let known: Vec<Query> =
        wisdom.entries().map(|entry| entry.query).filter(|query| query.pes == pes).collect();
    let syncs: Vec<SyncModes> = SyncModes::every().collect();
    let mut rng = Rng(0);
    let one = |_| match rng.below(3) {
        0 => *rng.pick(&known),
        1 => Query { bytes: size(&mut rng, POWERS), ..*rng.pick(&known) },
        _ => loop {
            let query = Query {
                collective: *rng.pick(&Collective::EVERY),
                sync: *rng.pick(&syncs),
                pes,
                bytes: size(&mut rng, (0, 40)),
                operator: *rng.pick(&[OperatorClass::Commutative, OperatorClass::Ordered]),
                symmetric: *rng.pick(&[true, false]),
            };
            if table.look_up(&query).is_none() {
                break query;
            }
        },
    };
    (0..QUERIES).map(one).collect()
}

/// Times a block of look-ups, beginning with the query `next`.
#[inline(never)]
fn block_ns(table: &Table, queries: &[Query], next: &mut usize) -> f64 {
    let begun = Instant::now();
    for _ in 0..BLOCK {
        let found = black_box(table.look_up(&queries[*next % QUERIES]));
        // The next query depends on the result.
        *next += 1 + usize::from(found.is_none());
    }
    begun.elapsed().as_secs_f64() * 1e9 / BLOCK as f64
}

/// Returns a random size: all intervals between two powers of two are equally likely, and so are
/// the sizes within one.
fn size(rng: &mut Rng, powers: (u32, u32)) -> u64 {
    let power = rng.below(u64::from(powers.1 - powers.0)) + u64::from(powers.0);
    (1 << power) + rng.below(1 << power.min(31))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks no time, only that an entry takes at most 64 bytes of memory.
    #[test]
    fn entries_are_small() {
        let LookUps { entries, bytes, ns } =
            measure(3, Duration::ZERO, &AtomicBool::new(false)).expect("a configuration folder");
        assert!(entries > 1000 && ns > 0.0, "{entries} entries, {ns} ns");
        assert!(bytes > 16 * entries && bytes <= 64 * entries, "{bytes} bytes of {entries}");
    }
}
