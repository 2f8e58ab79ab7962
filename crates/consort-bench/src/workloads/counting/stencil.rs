//! The pipelined stencil `Synch_p2p` of the Parallel Research Kernels.
//! Each PE has a strip of the grid's columns and computes its rows in order: `A(i, j) = A(i-1, j) +
//! A(i, j-1) - A(i-1, j-1)`. For each row it waits for the last value of its left neighbour's row.
//! The value of the corner returns to PE 0, negated, to begin the next iteration. At the end it
//! must be iterations * (columns + rows - 2).
//!
//! Source: van der Wijngaart and Mattson, "The Parallel Research Kernels" (2014); with counting
//! puts, Dinan et al. (2014), section 3.3, Listing 1.6. On the paper's network, the flag is a
//! separate message, and before it a fence waits for a reply. On shared memory both methods
//! transfer the same two lines.

use std::time::Instant;

use consort::{Rank, Result, Symmetric, Team, symmetric::Signal};

use super::program::{Notifications, Program};

const ITERATIONS: u32 = 2;

pub(super) struct Stencil {
    world: Team,
    /// The values from the left neighbour, one for each row; on PE 0, the value of the corner.
    edge: Symmetric<f64>,
    methods: [Notifications; 2],
    grid: Vec<f64>,
}

impl Stencil {
    /// Allocates the state for at most `rows` rows. Collective.
    pub(super) fn new(world: &Team, rows: u32) -> Result<Self> {
        let edge = world.symmetric(rows as usize + 1)?;
        let methods = Notifications::by_both(world, Signal::Set)?;
        Ok(Self { world: world.clone(), edge, methods, grid: Vec::new() })
    }

    /// Sets row 0 and column 0, and touches the whole grid before the clock starts. Column 0 is
    /// given. Each strip is preceded by its left neighbour's last column, or column 0.
    fn fill(&mut self, width: usize, rows: usize) {
        let (me, grid) = (self.world.rank(), &mut self.grid);
        grid.clear();
        grid.resize(width * rows, 0.0);
        for (i, value) in grid[..width].iter_mut().enumerate() {
            *value = (me.index() * (width - 1) + i) as f64;
        }
        if me == Rank(0) {
            for j in 0..rows {
                grid[j * width] = j as f64;
            }
        }
    }
}

impl Program for Stencil {
    fn round_ns(&mut self, method: usize, bytes: usize, rounds: u32) -> Result<f64> {
        let (columns, rows) = (bytes / size_of::<f64>(), rounds as usize + 1);
        let width = columns + 1;
        self.fill(width, rows);
        let Self { world, edge, methods, grid } = self;
        let (me, last) = (world.rank(), Rank::new(world.size() - 1));
        let notifications = &mut methods[method];
        world.barrier()?;
        let begun = Instant::now();
        for _ in 0..ITERATIONS {
            for j in 1..rows {
                if me > Rank(0) {
                    notifications.wait()?;
                    grid[j * width] = edge.load(j)?;
                }
                let (above, row) = grid[(j - 1) * width..(j + 1) * width].split_at_mut(width);
                for i in 1..width {
                    row[i] = row[i - 1] + above[i] - above[i - 1];
                }
                if me < last {
                    notifications.put(edge, world.right(), j, &[row[columns]])?;
                }
            }
            if me == last {
                notifications.put(edge, Rank(0), 0, &[grid[width * rows - 1]])?;
            }
            if me == Rank(0) {
                notifications.wait()?;
                grid[0] = -edge.load(0)?;
            }
        }
        let ns = begun.elapsed().as_secs_f64() * 1e9 / f64::from(ITERATIONS * rounds);
        if me == Rank(0) {
            let corner = ITERATIONS as usize * (world.size() * columns + rows - 1);
            assert_eq!(-grid[0], corner as f64, "the corner's value");
        }
        Ok(ns)
    }
}
