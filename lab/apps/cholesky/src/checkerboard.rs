//! The checkerboard: the grid of PEs, and the distribution of the matrix over it.

use std::ops::Range;

use consort::{Grid, Result, Team};
use consort_apps_kernels::{cyclic::Cyclic, grid::Shape};

/// A PE's position on the checkerboard.
pub(crate) struct Checkerboard {
    pub(crate) world: Team,
    pub(crate) grid: Grid,
    pub(crate) rows: Cyclic,
    pub(crate) columns: Cyclic,
}

impl Checkerboard {
    /// Distributes the blocks of a matrix of this order over a grid.
    pub(crate) fn new(world: &Team, (len, block): (usize, usize), shape: Shape) -> Result<Self> {
        let grid = world.cartesian(shape.rows)?;
        let rows = Cyclic { len, block, parts: shape.rows, own: grid.column.rank() };
        let columns = Cyclic { len, block, parts: shape.columns, own: grid.row.rank() };
        Ok(Self { world: world.clone(), grid, rows, columns })
    }

    /// Returns this PE's rows below the diagonal block of a step.
    pub(crate) fn below(&self, step: usize) -> Range<usize> {
        self.rows.before(step + 1)..self.rows.own_len()
    }
}
