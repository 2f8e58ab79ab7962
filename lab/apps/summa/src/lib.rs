//! SUMMA: the product C = A B of matrices that are distributed over a grid of PEs.
//!
//! Source: van de Geijn and Watts (1997), "SUMMA: scalable universal matrix multiplication
//! algorithm". The matrices are cut into square blocks, which are distributed over the grid in both
//! dimensions. Step k broadcasts block column k of A along the rows of the grid, and block row k of
//! B along the columns. Then each PE adds the product of its two panels to its part of C.
//!
//! With [`Mode::Overlap`] the panels of step k + 1 are broadcast while those of step k are
//! multiplied. A PE computes in strips of columns and progresses its nonblocking calls between
//! them.
//!
//! Cost: 2 M N K operations over all PEs. In a grid of R by C, a PE sends or receives K (M/R + N/C)
//! elements.

mod check;

use consort::{Grid, Result, Team, nonblocking::Request};
use consort_apps_kernels::{
    cyclic::Cyclic,
    dense::{View, dense},
    entries::entry,
    grid::Shape,
    matrix::Matrix,
    mode::Mode,
    recorder::Recorder,
};

pub use check::{Wrong, check};

/// The number of block columns to multiply between two polls of the nonblocking calls.
const STRIP_BLOCKS: usize = 1;

/// The extents of the matrices, and how they are distributed.
#[derive(Clone, Copy, Debug)]
pub struct Problem {
    /// Rows of A and C.
    pub rows: usize,
    /// Columns of A, rows of B.
    pub inner: usize,
    /// Columns of B and C.
    pub columns: usize,
    /// Rows and columns of a block.
    pub block: usize,
    /// The grid of PEs.
    pub shape: Shape,
}

impl Problem {
    /// Returns the number of floating-point operations of the product.
    #[must_use]
    pub fn flops(&self) -> f64 {
        2.0 * self.rows as f64 * self.inner as f64 * self.columns as f64
    }
}

/// A PE's part of the problem.
pub struct Summa {
    world: Team,
    grid: Grid,
    problem: Problem,
    /// The factors. All their entries are integers.
    a: Matrix,
    b: Matrix,
}

/// The panels of A and B of a step.
type Panels = [Vec<f64>; 2];

impl Summa {
    /// Forms the teams of the grid and fills the factors. Collective.
    ///
    /// # Errors
    /// See [`Team::cartesian`].
    pub fn new(world: &Team, problem: Problem) -> Result<Self> {
        let grid = world.cartesian(problem.shape.rows)?;
        let (own_row, own_column) = (grid.column.rank(), grid.row.rank());
        let (block, Shape { rows, columns }) = (problem.block, problem.shape);
        let down = |len| Cyclic { len, block, parts: rows, own: own_row };
        let across = |len| Cyclic { len, block, parts: columns, own: own_column };
        let a = Matrix::new(down(problem.rows), across(problem.inner), |i, j| entry(1, i, j));
        let b = Matrix::new(down(problem.inner), across(problem.columns), |i, j| entry(2, i, j));
        Ok(Self { world: world.clone(), grid, problem, a, b })
    }

    /// Returns a matrix C of zeros.
    #[must_use]
    pub fn zeros(&self) -> Matrix {
        Matrix::new(self.a.rows, self.b.columns, |_, _| 0.0)
    }

    /// Adds A B to `c`. Collective.
    ///
    /// # Errors
    /// See [`Team`].
    pub fn multiply(&self, c: &mut Matrix, mode: Mode, recorder: &Recorder) -> Result<()> {
        let steps = self.a.columns.blocks();
        let mut spare = Panels::default();
        let mut ahead = match mode {
            Mode::Overlap if steps > 0 => Some(self.start(0, Panels::default(), recorder)?),
            _ => None,
        };
        for step in 0..steps {
            let panels = match ahead.take() {
                Some([a, b]) => [recorder.wait(|| a.wait())?, recorder.wait(|| b.wait())?],
                None => self.broadcast(step, std::mem::take(&mut spare), recorder)?,
            };
            if mode == Mode::Overlap && step + 1 < steps {
                ahead = Some(self.start(step + 1, std::mem::take(&mut spare), recorder)?);
            }
            self.add_product(c, step, &panels, mode, recorder)?;
            spare = panels;
        }
        Ok(())
    }

    /// Returns this PE's panels of a step. Only the owners fill them.
    fn pack(&self, step: usize, [mut a, mut b]: Panels) -> Panels {
        let width = self.a.columns.width(step);
        a.resize(self.a.rows.own_len() * width, 0.0);
        b.resize(self.b.columns.own_len() * width, 0.0);
        if self.a.columns.owns(step) {
            let panel = self.a.view().part(0..self.a.rows.own_len(), self.a.columns.range(step));
            panel.copy_to(&mut a);
        }
        if self.b.rows.owns(step) {
            let panel = self.b.view().part(self.b.rows.range(step), 0..self.b.columns.own_len());
            panel.copy_to(&mut b);
        }
        [a, b]
    }

    fn broadcast(&self, step: usize, spare: Panels, recorder: &Recorder) -> Result<Panels> {
        recorder.communicate(|| {
            let [mut a, mut b] = self.pack(step, spare);
            self.grid.row.in_place(&mut a).broadcast(self.a.columns.owner(step))?;
            self.grid.column.in_place(&mut b).broadcast(self.b.rows.owner(step))?;
            Ok([a, b])
        })
    }

    fn start(
        &self,
        step: usize,
        spare: Panels,
        recorder: &Recorder,
    ) -> Result<[Request<Vec<f64>>; 2]> {
        recorder.communicate(|| {
            let [a, b] = self.pack(step, spare);
            let a = self.grid.row.start(a).broadcast(self.a.columns.owner(step))?;
            let b = self.grid.column.start(b).broadcast(self.b.rows.owner(step))?;
            Ok([a, b])
        })
    }

    fn add_product(
        &self,
        c: &mut Matrix,
        step: usize,
        [a, b]: &Panels,
        mode: Mode,
        recorder: &Recorder,
    ) -> Result<()> {
        let (rows, columns) = (c.rows.own_len(), c.columns.own_len());
        let width = self.a.columns.width(step);
        let a = View::new(a, (rows, width), rows);
        let b = View::new(b, (width, columns), width);
        let strip = match mode {
            Mode::Blocking => columns,
            Mode::Overlap => STRIP_BLOCKS * self.problem.block,
        };
        for first in (0..columns).step_by(strip.max(1)) {
            let part = first..columns.min(first + strip);
            recorder.compute(|| {
                let b = b.part(0..width, part.clone());
                dense().add_product(c.view_mut().part(0..rows, part), a, b);
            });
            if mode == Mode::Overlap {
                recorder.communicate(|| self.world.progress())?;
            }
        }
        Ok(())
    }
}
