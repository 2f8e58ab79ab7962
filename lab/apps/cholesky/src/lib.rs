//! The Cholesky factorization A = L Lᵀ of a matrix that is distributed over a checkerboard of PEs.
//!
//! Source: Choi et al. (1996), "Design and implementation of the ScaLAPACK LU, QR, and Cholesky
//! factorization routines": right-looking, square blocks distributed over a grid of PEs in both
//! dimensions. Step k has four parts:
//!
//! 1. The owner of the diagonal block factors it and broadcasts the factor along its column.
//! 2. That column of the grid solves for the blocks below. These blocks and the factor are *panel*
//!    k of L.
//! 3. Each row of the grid gets its rows of the panel from the PE in that column.
//! 4. Each column of the grid gets the blocks that correspond to its own columns, transposed in the
//!    product, from the PEs that own those rows.
//!
//! Then each PE subtracts products of both from its part of the blocks to the right.
//!
//! With [`Mode::Overlap`] a PE updates block column k + 1 first, factors panel k + 1 and starts its
//! broadcasts. Only then does it update the rest with panel k, block column by block column. The
//! broadcasts progress between the block columns.
//!
//! Cost: N³/3 operations over all PEs. In a grid of R by C, a PE receives about N² (1/R + 1/C) / 2
//! elements.

mod check;
mod checkerboard;
mod panel;

use consort::Team;
use consort_apps_kernels::{
    dense::{NotPositiveDefinite, View, ViewMut, dense},
    entries::definite,
    grid::Shape,
    matrix::Matrix,
    mode::Mode,
    recorder::Recorder,
};

pub use check::{Wrong, check};

use checkerboard::Checkerboard;
use panel::{Ahead, Panel};

/// The order of the matrix, and its distribution.
#[derive(Clone, Copy, Debug)]
pub struct Problem {
    /// Rows and columns.
    pub order: usize,
    /// Rows and columns of a block.
    pub block: usize,
    /// The grid of PEs.
    pub shape: Shape,
}

impl Problem {
    /// Returns the number of floating-point operations of the factorization.
    #[must_use]
    pub fn flops(&self) -> f64 {
        (self.order as f64).powi(3) / 3.0
    }
}

/// The reason why there is no factor.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The matrix has no factor.
    #[error(transparent)]
    NotPositiveDefinite(#[from] NotPositiveDefinite),
    /// A call failed.
    #[error(transparent)]
    Call(#[from] consort::Error),
}

/// A PE's part of the factorization.
pub struct Cholesky {
    checkerboard: Checkerboard,
}

impl Cholesky {
    /// Forms the teams of the grid. Collective.
    ///
    /// # Errors
    /// See [`Team::cartesian`].
    pub fn new(world: &Team, problem: Problem) -> consort::Result<Self> {
        let Problem { order, block, shape } = problem;
        Ok(Self { checkerboard: Checkerboard::new(world, (order, block), shape)? })
    }

    /// Returns the matrix to factor.
    #[must_use]
    pub fn matrix(&self) -> Matrix {
        Matrix::new(self.checkerboard.rows, self.checkerboard.columns, |i, j| {
            definite(self.checkerboard.rows.len, i, j)
        })
    }

    /// Factors `a`: its lower triangle becomes L. The part above the diagonal is undefined
    /// afterwards. Collective.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`] on the PE that finds it. Also see [`Team`].
    pub fn factor(&self, a: &mut Matrix, mode: Mode, recorder: &Recorder) -> Result<(), Error> {
        let blocks = self.checkerboard.rows.blocks();
        self.factor_panel(a, 0, recorder)?;
        let mut panel = self.broadcast(a, 0, Panel::default(), recorder)?;
        let mut spare = Panel::default();
        for step in 0..blocks.saturating_sub(1) {
            let next = step + 1;
            let next_panel = match mode {
                Mode::Blocking => {
                    for column in self.checkerboard.columns.own_blocks(next) {
                        self.update(a, &panel, column, recorder);
                    }
                    self.factor_panel(a, next, recorder)?;
                    self.broadcast(a, next, spare, recorder)?
                }
                Mode::Overlap => {
                    if self.checkerboard.columns.owns(next) {
                        self.update(a, &panel, next, recorder);
                    }
                    self.factor_panel(a, next, recorder)?;
                    let mut ahead = Ahead::start(&self.checkerboard, a, next, spare, recorder)?;
                    for column in self.checkerboard.columns.own_blocks(next + 1) {
                        self.update(a, &panel, column, recorder);
                        ahead = recorder.communicate(|| ahead.progress(&self.checkerboard))?;
                    }
                    ahead.wait(&self.checkerboard, recorder)?
                }
            };
            spare = std::mem::replace(&mut panel, next_panel);
        }
        Ok(())
    }

    /// Factors the diagonal block of this step and solves for the blocks below.
    fn factor_panel(&self, a: &mut Matrix, step: usize, recorder: &Recorder) -> Result<(), Error> {
        if !self.checkerboard.columns.owns(step) {
            return Ok(());
        }
        let (width, columns) =
            (self.checkerboard.rows.width(step), self.checkerboard.columns.range(step));
        let mut diagonal = vec![0.0; width * width];
        if self.checkerboard.rows.owns(step) {
            recorder.compute(|| {
                let mut a = a.view_mut();
                let mut block = a.part(self.checkerboard.rows.range(step), columns.clone());
                let whole = block.part(0..width, 0..width);
                let before = |error: NotPositiveDefinite| NotPositiveDefinite {
                    order: step * self.checkerboard.rows.block + error.order,
                };
                dense().factor(whole).map_err(before)?;
                block.view().copy_to(&mut diagonal);
                Ok::<_, Error>(())
            })?;
        }
        if step + 1 == self.checkerboard.rows.blocks() {
            return Ok(());
        }
        let root = self.checkerboard.rows.owner(step);
        recorder.communicate(|| {
            self.checkerboard.grid.column.in_place(&mut diagonal).broadcast(root)
        })?;
        recorder.compute(|| {
            let mut a = a.view_mut();
            let below: ViewMut<'_> = a.part(self.checkerboard.below(step), columns);
            dense().solve(View::new(&diagonal, (width, width), width), below);
        });
        Ok(())
    }

    /// Subtracts the contribution of `panel` from a block column of `a`, on and below the diagonal.
    fn update(&self, a: &mut Matrix, panel: &Panel, column: usize, recorder: &Recorder) {
        recorder.compute(|| {
            let Checkerboard { rows, columns, .. } = &self.checkerboard;
            let facing = panel.facing(&self.checkerboard, column);
            let (mut a, columns) = (a.view_mut(), columns.range(column));
            let below = rows.before(column + 1)..rows.own_len();
            if rows.owns(column) {
                dense().subtract_square(a.part(rows.range(column), columns.clone()), facing);
            }
            let factors = panel.rows(&self.checkerboard, below.clone());
            dense().subtract_product(a.part(below, columns), factors, facing);
        });
    }

    /// Gets panel `step` by blocking broadcasts. Reuses the memory of an old panel.
    fn broadcast(
        &self,
        a: &Matrix,
        step: usize,
        spare: Panel,
        recorder: &Recorder,
    ) -> Result<Panel, consort::Error> {
        recorder.communicate(|| {
            let mut panel = Panel::own_rows(&self.checkerboard, a, step, spare);
            if !panel.rows.is_empty() {
                self.checkerboard
                    .grid
                    .row
                    .in_place(&mut panel.rows)
                    .broadcast(self.checkerboard.columns.owner(step))?;
            }
            for (root, mut blocks) in panel.for_columns(&self.checkerboard) {
                self.checkerboard.grid.column.in_place(&mut blocks).broadcast(root)?;
                panel.facing[root.index()] = blocks;
            }
            Ok(panel)
        })
    }
}
