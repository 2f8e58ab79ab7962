//! The applications that broadcast panels: the product of matrices and the Cholesky factorization
//! (sections 6.1 and 6.2), with one PE on each node.

use anyhow::Result;
use consort::Rank;
use consort_sim::{Pe, Simulation, machines::Machine};

use super::{Square, Teams, Tuned, WINDOW, Way, all, gflops, in_place, run};
use crate::simulation::counting::with_pes_per_node;

/// Bytes in a double.
const DOUBLE: usize = size_of::<f64>();

/// Matrices in a square grid of PEs. Each PE has a square of `own` by `own`.
#[derive(Clone, Copy, Debug)]
pub struct Summa {
    /// The number of PEs along a side of the grid.
    pub side: u32,
    /// The number of rows and columns of a PE's part.
    pub own: usize,
    /// The number of columns of a panel.
    pub width: usize,
    /// The number of steps to simulate.
    pub steps: u32,
}

impl Summa {
    /// Returns the number of bytes in a panel.
    pub const fn panel_bytes(&self) -> usize {
        self.own * self.width * DOUBLE
    }

    /// Returns the rate of a node, in 10^9 operations per second.
    ///
    /// # Errors
    /// When the simulation fails.
    pub fn node_gflops(&self, machine: &Machine, way: Way, by: &Tuned) -> Result<f64> {
        let square = Square { side: self.side };
        let bytes = self.panel_bytes();
        let machine = with_pes_per_node(machine.clone(), 1)?;
        let operations = 2.0 * (self.own * self.own * self.width) as f64;
        let step_ns = operations / gflops(&machine, 1)?;
        // Two panels of each factor, used in turn.
        let simulation = Simulation::on(machine, square.pes()).window(WINDOW);
        let simulation = simulation.heap_bytes(4 * bytes);
        let teams = Teams::new(&simulation, self.side, by);
        let ns = run(&simulation, async |pe: &Pe<'_>| {
            self.panels(pe, square, &teams, 0).await?;
            for step in 0..self.steps {
                let next = (step + 1 < self.steps).then_some(step + 1);
                match next {
                    Some(next) if way == Way::Overlap => {
                        let panels = self.panels(pe, square, &teams, next);
                        let multiply = async {
                            pe.compute(step_ns).await;
                            Ok(())
                        };
                        let both = all(vec![Box::pin(panels), Box::pin(multiply)]).await;
                        both.into_iter().collect::<Result<()>>()?;
                    }
                    _ => {
                        pe.compute(step_ns).await;
                        if let Some(next) = next {
                            self.panels(pe, square, &teams, next).await?;
                        }
                    }
                }
            }
            Ok(())
        })?;
        Ok(f64::from(self.steps) * operations / ns)
    }

    /// Broadcasts the panels of a step: that of A along the rows, that of B along the columns.
    async fn panels(
        &self,
        pe: &Pe<'_>,
        square: Square,
        teams: &Teams<'_>,
        step: u32,
    ) -> Result<()> {
        let (bytes, root) = (self.panel_bytes(), Rank(step % self.side));
        let at = step as usize % 2 * 2 * bytes;
        let across = pe.begin_in(square.row(pe.rank()), in_place(at, bytes)).await;
        let down = pe.begin_in(square.column(pe.rank()), in_place(at + bytes, bytes)).await;
        teams.broadcast(&across, root, bytes).await?;
        teams.broadcast(&down, root, bytes).await
    }
}

/// A matrix on a checkerboard. Each PE has `blocks` by `blocks` blocks.
#[derive(Clone, Copy, Debug)]
pub struct Cholesky {
    /// The number of PEs along a side of the grid.
    pub side: u32,
    /// The number of blocks along a side of a PE's part.
    pub blocks: u32,
    /// The number of rows and columns of a block.
    pub width: usize,
}

impl Cholesky {
    /// Returns the rate of a node, in 10^9 operations per second. All calls are blocking, as in the
    /// paper.
    ///
    /// # Errors
    /// When the simulation fails.
    pub fn node_gflops(&self, machine: &Machine, by: &Tuned) -> Result<f64> {
        let square = Square { side: self.side };
        let machine = with_pes_per_node(machine.clone(), 1)?;
        let rate = gflops(&machine, 1)?;
        let all = self.side * self.blocks;
        let most = self.blocks as usize * self.block_bytes();
        let simulation = Simulation::on(machine, square.pes()).window(WINDOW);
        let simulation = simulation.heap_bytes(2 * most + self.block_bytes());
        let teams = Teams::new(&simulation, self.side, by);
        let ns = run(&simulation, async |pe: &Pe<'_>| {
            for step in 0..all {
                self.step(pe, square, &teams, (step, rate)).await?;
            }
            Ok(())
        })?;
        let order = f64::from(all) * self.width as f64;
        Ok(order.powi(3) / 3.0 / f64::from(square.pes()) / ns)
    }

    const fn block_bytes(&self) -> usize {
        self.width * self.width * DOUBLE
    }

    /// Returns the number of a PE's blocks, in a row or a column of the grid, behind a step.
    fn behind(&self, own: u32, step: u32) -> usize {
        let all = self.side * self.blocks;
        (step + 1..all).filter(|block| block % self.side == own).count()
    }

    async fn step(
        &self,
        pe: &Pe<'_>,
        square: Square,
        teams: &Teams<'_>,
        (step, rate): (u32, f64),
    ) -> Result<()> {
        let (row, column) = square.place(pe.rank());
        let root = Rank(step % self.side);
        let [rows, columns] = [row, column].map(|own| self.behind(own, step));
        let block = (self.width as f64).powi(3);
        // Broadcast the factor of the diagonal block along its column, which solves for the blocks
        // below.
        let [block_bytes, most] = [1, self.blocks as usize].map(|count| count * self.block_bytes());
        let down = pe.begin_in(square.column(pe.rank()), in_place(2 * most, block_bytes)).await;
        if column == root.0 {
            if row == root.0 {
                pe.compute(block / 3.0 / rate).await;
            }
            teams.broadcast(&down, root, block_bytes).await?;
            pe.compute(rows as f64 * block / rate).await;
        }
        // Broadcast the panel along the rows, and the corresponding blocks along the columns.
        let bytes = rows * block_bytes;
        let across = pe.begin_in(square.row(pe.rank()), in_place(0, bytes)).await;
        if rows > 0 {
            teams.broadcast(&across, root, bytes).await?;
        }
        let bytes = columns * block_bytes;
        let down = pe.begin_in(square.column(pe.rank()), in_place(most, bytes)).await;
        if columns > 0 {
            teams.broadcast(&down, Rank(column), bytes).await?;
        }
        // On and below the diagonal.
        let all = self.side * self.blocks;
        let own = |own: u32| (step + 1..all).filter(move |block| block % self.side == own);
        let updated = own(column).map(|j| own(row).filter(|&i| i >= j).count()).sum::<usize>();
        pe.compute(2.0 * updated as f64 * block / rate).await;
        Ok(())
    }
}
