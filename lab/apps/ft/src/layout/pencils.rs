//! The layout in two dimensions: the PEs form a grid, and each PE has some rows of some planes. Two
//! exchanges transpose the array: one in the rows of the grid and one in its columns.
//!
//! In space, a row of the grid shares planes of constant z, and its PEs have different y. Between
//! the exchanges, its PEs have different x and whole rows along y. The array then has the order z,
//! x, y. In the second exchange, the PEs of a column of the grid have the same x. They have
//! different z before it, and different y after it.

use consort::{Grid, Result, Team};
use consort_apps_kernels::{Complex64, recorder::Recorder};

use super::{Parts, Plan, Region, Transforms};
use crate::{
    exchange::{Blocks, Exchange, Planes},
    transpose::transpose,
};

pub(crate) struct Pencils {
    grid: Grid,
    plan: Plan,
}

/// Sends each PE of a team its part of a plane's columns, as rows.
fn send(plane: &[Complex64], width: usize, pes: usize, blocks: &mut Blocks<'_>) {
    let part = width / pes;
    for pe in 0..pes {
        transpose((plane, width), pe * part..(pe + 1) * part, blocks.of(pe));
    }
}

/// Joins the parts of rows that have arrived together. `row` returns where a row begins.
fn join(
    (to, row): (&mut [Complex64], impl Fn(usize) -> usize),
    (pes, part): (usize, usize),
    blocks: &mut Blocks<'_>,
) {
    for pe in 0..pes {
        for (at, from) in blocks.of(pe).chunks_exact(part).enumerate() {
            to[row(at) + pe * part..][..part].copy_from_slice(from);
        }
    }
}

impl Pencils {
    /// Returns the layout for a grid. The columns of the grid must divide the extents along x and
    /// y, and its rows the extents along y and z. Collective.
    ///
    /// # Errors
    /// See [`Team::cartesian`].
    pub(crate) fn new(
        world: &Team,
        rows: usize,
        extents: [usize; 3],
        exchange: Exchange,
    ) -> Result<Self> {
        Ok(Self { grid: world.cartesian(rows)?, plan: Plan::new(extents, exchange) })
    }

    /// Returns the number of PEs in a row and in a column of the grid.
    fn pes(&self) -> (usize, usize) {
        (self.grid.row.size(), self.grid.column.size())
    }
}

impl Parts for Pencils {
    fn space(&self) -> Region {
        let [x, y, z] = self.plan.extents;
        Region([0..x, self.grid.row.local_range(y), self.grid.column.local_range(z)])
    }

    fn spectrum(&self) -> Region {
        let [x, y, z] = self.plan.extents;
        Region([self.grid.row.local_range(x), self.grid.column.local_range(y), 0..z])
    }

    fn forward(&mut self, space: &[Complex64], recorder: &Recorder) -> Result<Vec<Complex64>> {
        let [x, y, z] = self.plan.extents;
        let (across, down) = self.pes();
        let (own_x, row_y, column_y, own_z) = (x / across, y / across, y / down, z / down);
        let Transforms { x: along_x, y: along_y, z: along_z } = &mut self.plan.forward;

        let turned = &mut self.plan.turned;
        turned.resize(own_z * own_x * y, Complex64::ZERO);
        let mut plane = vec![Complex64::ZERO; row_y * x];
        let planes = Planes { team: &self.grid.row, planes: own_z, block: own_x * row_y };
        self.plan.exchanger.run(
            planes,
            recorder,
            |own, blocks| {
                plane.copy_from_slice(&space[own * row_y * x..][..row_y * x]);
                along_x.transform(&mut plane);
                send(&plane, x, across, blocks);
            },
            |own, blocks| {
                let row = |at| (own * own_x + at) * y;
                join((&mut *turned, row), (across, row_y), blocks);
            },
        )?;

        let mut spectrum = vec![Complex64::ZERO; own_x * column_y * z];
        let mut plane = vec![Complex64::ZERO; own_z * y];
        let planes = Planes { team: &self.grid.column, planes: own_x, block: column_y * own_z };
        self.plan.exchanger.run(
            planes,
            recorder,
            |own, blocks| {
                for (at, row) in plane.chunks_exact_mut(y).enumerate() {
                    row.copy_from_slice(&turned[(at * own_x + own) * y..][..y]);
                }
                along_y.transform(&mut plane);
                send(&plane, y, down, blocks);
            },
            |own, blocks| {
                let row = |at| (own * column_y + at) * z;
                join((&mut spectrum, row), (down, own_z), blocks);
            },
        )?;
        recorder.compute(|| along_z.transform(&mut spectrum));
        Ok(spectrum)
    }

    fn inverse(
        &mut self,
        spectrum: &[Complex64],
        space: &mut [Complex64],
        recorder: &Recorder,
    ) -> Result<()> {
        let [x, y, z] = self.plan.extents;
        let (across, down) = self.pes();
        let (own_x, row_y, column_y, own_z) = (x / across, y / across, y / down, z / down);
        let Transforms { x: along_x, y: along_y, z: along_z } = &mut self.plan.inverse;

        let turned = &mut self.plan.turned;
        turned.resize(own_z * own_x * y, Complex64::ZERO);
        let mut plane = vec![Complex64::ZERO; column_y * z];
        let planes = Planes { team: &self.grid.column, planes: own_x, block: own_z * column_y };
        self.plan.exchanger.run(
            planes,
            recorder,
            |own, blocks| {
                plane.copy_from_slice(&spectrum[own * column_y * z..][..column_y * z]);
                along_z.transform(&mut plane);
                send(&plane, z, down, blocks);
            },
            |own, blocks| {
                let row = |at| (at * own_x + own) * y;
                join((&mut *turned, row), (down, column_y), blocks);
            },
        )?;

        let planes = Planes { team: &self.grid.row, planes: own_z, block: row_y * own_x };
        self.plan.exchanger.run(
            planes,
            recorder,
            |own, blocks| {
                let plane = &mut turned[own * own_x * y..][..own_x * y];
                along_y.transform(plane);
                send(plane, y, across, blocks);
            },
            |own, blocks| {
                let row = |at| (own * row_y + at) * x;
                join((&mut *space, row), (across, own_x), blocks);
                along_x.transform(&mut space[own * row_y * x..][..row_y * x]);
            },
        )
    }
}
