//! The pipelined stencil `Synch_p2p` of the Parallel Research Kernels, by flags and by counters.
//!
//! Each PE has a strip of the grid's columns and works down its rows: `A(i, j) = A(i-1, j) +
//! A(i, j-1) - A(i-1, j-1)`. For each row it waits for the last value of its left neighbour's. The
//! corner's value goes back to PE 0, negated, to begin the next iteration, and must come to
//! iterations * (columns + rows - 2).
//!
//! Source: van der Wijngaart and Mattson, "The Parallel Research Kernels" (2014); with counting
//! puts, Dinan et al., "Reducing Synchronization Overhead Through Bundled Communication" (2014),
//! section 3.3, Listing 1.6. There the flag costs a message of its own, and a fence that waits for
//! an answer; on shared memory both ways move the same two lines.
//!
//! ```sh
//! cargo run --release -p consort --example stencil             # two PEs, 256 columns, 4000 rows
//! ```

use std::{env, time::Instant};

use consort::{Counter, Pes, Rank, Result, Signal, Symmetric, Team, Until};

const ITERATIONS: u64 = 10;

/// Runs of each way, in turn; the median counts.
const RUNS: usize = 7;

/// What comes from the left, a value a row; on PE 0, the corner.
type Edge<'p> = Symmetric<'p, f64>;

/// How a PE tells that a value is there.
enum Notice<'p> {
    /// Put, fence, then a signal that sets a word to the number of values so far.
    Flag(Symmetric<'p, u64>),
    /// Put and count in one.
    Count(Counter<'p>),
}

impl Notice<'_> {
    fn put(&self, edge: &Edge<'_>, to: Rank, at: usize, value: f64, nth: u64) -> Result<()> {
        match self {
            Self::Flag(flag) => {
                edge.put(to, at, &[value])?;
                edge.fence()?;
                flag.signal(to, 0, Signal::Set(nth))
            }
            Self::Count(counter) => edge.put_counted(to, at, &[value], counter),
        }
    }

    fn wait(&self, nth: u64) -> Result<()> {
        match self {
            Self::Flag(flag) => flag.wait_until(0, Until::AtLeast(nth)).map(drop),
            Self::Count(counter) => counter.wait(nth).map(drop),
        }
    }
}

/// All iterations; the corner's value on PE 0, and the seconds it took.
fn run(
    world: Team<'_>,
    notice: &Notice<'_>,
    (columns, rows): (usize, usize),
    grid: &mut Vec<f64>,
) -> Result<(f64, f64)> {
    let (me, last) = (world.rank(), Rank(world.size() - 1));
    // Column 0 is given. The others are shared out; before each strip stands its left neighbour's
    // last column, or column 0.
    let first = |rank: usize| 1 + rank * (columns - 1) / world.size() as usize;
    let (start, end) = (first(me.index()), first(me.index() + 1));
    let width = end - start + 1;
    grid.clear();
    grid.resize(width * rows, 0.0); // touches it all, before the clock starts
    for (i, value) in grid[..width].iter_mut().enumerate() {
        *value = (start - 1 + i) as f64;
    }
    if me == Rank(0) {
        for j in 0..rows {
            grid[j * width] = j as f64;
        }
    }
    let edge: Edge<'_> = world.symmetric(rows)?;
    let values = rows as u64 - 1;
    world.barrier()?;
    let since = Instant::now();
    for iteration in 0..ITERATIONS {
        for j in 1..rows {
            let nth = iteration * values + j as u64;
            if me > Rank(0) {
                notice.wait(nth)?;
                grid[j * width] = edge.load(j)?;
            }
            let (above, row) = grid[(j - 1) * width..(j + 1) * width].split_at_mut(width);
            for i in 1..width {
                row[i] = row[i - 1] + above[i] - above[i - 1];
            }
            if me < last {
                notice.put(&edge, world.right(), j, row[width - 1], nth)?;
            }
        }
        if me == last {
            notice.put(&edge, Rank(0), 0, grid[width * rows - 1], iteration + 1)?;
        }
        if me == Rank(0) {
            notice.wait(iteration + 1)?;
            grid[0] = -edge.load(0)?;
        }
    }
    let seconds = since.elapsed().as_secs_f64();
    world.barrier()?;
    Ok((-grid[0], seconds))
}

fn main() -> Result<()> {
    let numbers = env::args().skip(1).map(|text| text.parse()).collect::<Result<Vec<usize>, _>>();
    let numbers = numbers.expect("usage: stencil [PES [COLUMNS [ROWS]]]");
    let number = |index: usize, default| numbers.get(index).copied().unwrap_or(default);
    let (pes, columns, rows) = (number(0, 2), number(1, 256), number(2, 4000));
    assert!(columns > pes && rows > 1, "a grid has more columns than PEs, and two rows at least");
    let mut all = Pes::threads(u32::try_from(pes).unwrap_or(u32::MAX)).run(|pe| {
        let world = pe.world();
        let (mut flags, mut counters, mut grid) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..RUNS {
            let flag = Notice::Flag(world.symmetric(1)?);
            flags.push(run(world, &flag, (columns, rows), &mut grid)?);
            let count = Notice::Count(world.counter()?);
            counters.push(run(world, &count, (columns, rows), &mut grid)?);
        }
        Ok([flags, counters])
    })?;
    let (_, ways) = all.swap_remove(0);
    for (name, mut runs) in ["put, fence, flag", "counting puts"].into_iter().zip(ways) {
        for &(corner, _) in &runs {
            assert_eq!(corner, ITERATIONS as f64 * (columns + rows - 2) as f64, "{name}");
        }
        runs.sort_by(|one, other| one.1.total_cmp(&other.1));
        let row_ns = runs[RUNS / 2].1 * 1e9 / (ITERATIONS as f64 * (rows - 1) as f64);
        println!("{name:<16} {row_ns:8.1} ns a row of {columns} columns on {pes} PEs");
    }
    Ok(())
}
