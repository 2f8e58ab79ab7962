//! The layout in one dimension: each PE has some planes, and one exchange transposes the array.
//!
//! Forward, a PE transforms a plane of constant z along x and y and sends it at once. It transforms
//! the data that arrives along z. In the inverse direction, it transforms a plane of constant x
//! along z and sends it. The receiver transforms the rows along y as they arrive, and along x when
//! all have arrived.

use consort::{Result, Team};
use consort_apps_kernels::{Complex64, recorder::Recorder};

use super::{Parts, Plan, Region, Transforms};
use crate::{
    exchange::{Exchange, Planes},
    transpose::transpose,
};

pub(crate) struct Slabs {
    team: Team,
    plan: Plan,
}

impl Slabs {
    /// Returns the layout. The number of PEs must divide the extents along x and z.
    pub(crate) fn new(team: &Team, extents: [usize; 3], exchange: Exchange) -> Self {
        Self { team: team.clone(), plan: Plan::new(extents, exchange) }
    }
}

impl Parts for Slabs {
    fn space(&self) -> Region {
        let [x, y, z] = self.plan.extents;
        Region([0..x, 0..y, self.team.local_range(z)])
    }

    fn spectrum(&self) -> Region {
        let [x, y, z] = self.plan.extents;
        Region([self.team.local_range(x), 0..y, 0..z])
    }

    fn forward(&mut self, space: &[Complex64], recorder: &Recorder) -> Result<Vec<Complex64>> {
        let [x, y, z] = self.plan.extents;
        let pes = self.team.size();
        let (own_x, own_z) = (x / pes, z / pes);
        let mut spectrum = vec![Complex64::ZERO; own_x * y * z];
        let mut plane = vec![Complex64::ZERO; x * y];
        let planes = Planes { team: &self.team, planes: own_z, block: own_x * y };
        let (along_x, along_y) = (&mut self.plan.forward.x, &mut self.plan.forward.y);
        self.plan.exchanger.run(
            planes,
            recorder,
            |own, blocks| {
                plane.copy_from_slice(&space[own * x * y..][..x * y]);
                along_x.transform(&mut plane);
                for pe in 0..pes {
                    let block = blocks.of(pe);
                    transpose((&plane, x), pe * own_x..(pe + 1) * own_x, block);
                    along_y.transform(block);
                }
            },
            |own, blocks| {
                for pe in 0..pes {
                    let row = spectrum[pe * own_z + own..].iter_mut().step_by(z);
                    row.zip(blocks.of(pe)).for_each(|(to, from)| *to = *from);
                }
            },
        )?;
        recorder.compute(|| self.plan.forward.z.transform(&mut spectrum));
        Ok(spectrum)
    }

    fn inverse(
        &mut self,
        spectrum: &[Complex64],
        space: &mut [Complex64],
        recorder: &Recorder,
    ) -> Result<()> {
        let [x, y, z] = self.plan.extents;
        let pes = self.team.size();
        let (own_x, own_z) = (x / pes, z / pes);
        let turned = &mut self.plan.turned;
        turned.resize(own_z * x * y, Complex64::ZERO);
        let mut plane = vec![Complex64::ZERO; y * z];
        let planes = Planes { team: &self.team, planes: own_x, block: own_z * y };
        let Transforms { x: along_x, y: along_y, z: along_z } = &mut self.plan.inverse;
        self.plan.exchanger.run(
            planes,
            recorder,
            |own, blocks| {
                plane.copy_from_slice(&spectrum[own * y * z..][..y * z]);
                along_z.transform(&mut plane);
                for pe in 0..pes {
                    transpose((&plane, z), pe * own_z..(pe + 1) * own_z, blocks.of(pe));
                }
            },
            |own, blocks| {
                for pe in 0..pes {
                    let block = blocks.of(pe);
                    along_y.transform(block);
                    for (at, row) in block.chunks_exact(y).enumerate() {
                        turned[(at * x + pe * own_x + own) * y..][..y].copy_from_slice(row);
                    }
                }
            },
        )?;
        recorder.compute(|| {
            for (from, to) in turned.chunks_exact(x * y).zip(space.chunks_exact_mut(x * y)) {
                transpose((from, y), 0..y, to);
                along_x.transform(to);
            }
        });
        Ok(())
    }
}
