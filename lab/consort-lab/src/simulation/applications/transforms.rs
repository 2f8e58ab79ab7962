//! The Fourier transform in three dimensions on a grid of PEs, with one PE on each core. There is
//! an exchange in the rows and one in the columns (section 6.3).

use std::{
    cell::Cell,
    future::{Future, poll_fn},
    pin::Pin,
    task::Poll,
};

use anyhow::Result;
use consort::{Rank, tune::Collective};
use consort_fabric::Ranks;
use consort_sim::{
    Buffer, Call, Operands, Pe, Simulation,
    machines::{Kind, Machine},
};

use super::{Square, Teams, Tuned, WINDOW, Way, all, failed, gflops, run};

/// Bytes in a complex number.
const COMPLEX: usize = 16;

/// A grid of PEs, and their parts of the array.
#[derive(Clone, Copy, Debug)]
pub struct Ft {
    /// The number of PEs along a side of the grid.
    pub side: u32,
    /// The number of slabs of a PE.
    pub slabs: usize,
    /// The number of bytes of a slab that a PE sends to each other PE of its row or column.
    pub slab_bytes: usize,
    /// The number of points along each dimension of the whole array. The number of operations
    /// follows from them.
    pub extents: [usize; 3],
}

impl Ft {
    /// Returns the time of a transform, in nanoseconds.
    ///
    /// # Errors
    /// When the simulation fails.
    pub fn transform_ns(&self, machine: &Machine, way: Way, by: &Tuned) -> Result<f64> {
        let square = Square { side: self.side };
        let each = match &machine.kind {
            Kind::Cluster(cluster) => cluster.pes_per_node,
            _ => 1,
        };
        let rate = gflops(machine, each)?;
        let own_bytes = self.side as usize * self.slabs * self.slab_bytes;
        let points = (own_bytes / COMPLEX) as f64;
        // 5 n log2 n operations for n points.
        let ns = self.extents.map(|n| 5.0 * (n as f64).log2() * points / rate);
        let simulation = Simulation::on(machine.clone(), square.pes()).window(WINDOW);
        let simulation = simulation.heap_bytes(2 * own_bytes);
        let teams = Teams::new(&simulation, self.side, by);
        run(&simulation, async |pe: &Pe<'_>| {
            for (team, ns) in [square.row(pe.rank()), square.column(pe.rank())].into_iter().zip(ns)
            {
                self.exchange(pe, team, &teams, (way, ns)).await?;
            }
            pe.compute(ns[2]).await;
            Ok(())
        })
    }

    /// Transforms along a dimension and exchanges slabs: each slab after its transform, or all at
    /// the end.
    async fn exchange(
        &self,
        pe: &Pe<'_>,
        team: Ranks,
        teams: &Teams<'_>,
        (way, ns): (Way, f64),
    ) -> Result<()> {
        let calls = if way == Way::Overlap { self.slabs } else { 1 };
        let block_bytes = self.slabs / calls * self.slab_bytes;
        let plans = teams.plans(Collective::AllToAll, Rank(0), block_bytes)?;
        let bytes = self.side as usize * block_bytes;
        let mut begun: Vec<Call<'_>> = Vec::new();
        for call in 0..calls {
            let buffer =
                |part: usize| Buffer::Symmetric { at: (part * calls + call) * bytes, bytes };
            let operands = Operands { source: buffer(0), target: buffer(1), ..Operands::NONE };
            begun.push(pe.begin_in(team, operands).await);
        }
        // The number of transformed slabs.
        let ready = Cell::new(0);
        let transform = async {
            for slab in 1..=calls {
                pe.compute(ns / calls as f64).await;
                ready.set(slab);
            }
            Ok(())
        };
        let mut parts: Vec<Pin<Box<dyn Future<Output = Result<()>> + '_>>> =
            vec![Box::pin(transform)];
        for (slab, call) in begun.iter().enumerate() {
            let (ready, plans) = (&ready, &plans);
            parts.push(Box::pin(async move {
                let is_ready = || if ready.get() > slab { Poll::Ready(()) } else { Poll::Pending };
                poll_fn(|_| is_ready()).await;
                plans.run(call).await.map_err(failed)
            }));
        }
        all(parts).await.into_iter().collect()
    }
}
