//! The communication of the applications on a simulated cluster: broadcasts of panels in the rows
//! and columns of a grid of PEs, and exchanges in them.
//!
//! Source: Nishtala, Zheng, Hargrove and Yelick (2011), section 6. The applications themselves are
//! the programs in `/lab/apps`. This module makes their calls in the same order, with blocks of
//! zeros that are never multiplied. Computation takes time: the number of operations at the peak
//! rate of the machine's processors. The model:
//!
//! - each call uses Consort's algorithm among the PEs of a row or a column, and all rows and
//!   columns run at once on one network;
//! - with overlap, calls progress without polls while a PE computes, and each message occupies the
//!   PE for its overhead; a real program polls, so it reacts later;
//! - links within the network never limit the rate, as in the whole simulator.

mod factors;
mod transforms;

pub use factors::{Cholesky, Summa};
pub use transforms::Ft;

use std::{
    cell::RefCell,
    collections::HashMap,
    future::{Future, poll_fn},
    pin::Pin,
    rc::Rc,
    task::Poll,
};

use anyhow::{Context, Result, anyhow, bail};
use consort::{
    Rank,
    sync_modes::SyncModes,
    tune::{Candidate, Collective, Query},
};
use consort_fabric::{CallSpec, Poisoned, Ranks};
use consort_sim::{
    Buffer, Call, Operands, Pe, Plans, Simulation,
    machines::{Kind, Machine},
};

use super::program::barrier;
use consort_bench::query_json::sums;

/// More calls than any program makes, so that no call waits for credits.
const WINDOW: u64 = 1 << 12;

/// How an application communicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Nonblocking calls during computation.
    Overlap,
    /// The same calls, but blocking.
    Blocking,
    /// Blocking calls with the algorithm that represents an MPI's.
    Messages,
}

/// Returns the rate of a PE that has all cores of its node, or one of them, in operations per
/// nanosecond.
///
/// # Errors
/// When the description has no rate.
pub fn gflops(machine: &Machine, pes_per_node: u32) -> Result<f64> {
    let compute = match &machine.kind {
        Kind::Cluster(cluster) => cluster.compute.as_ref(),
        _ => None,
    };
    let Some(compute) = compute else {
        bail!("{}: the description has no computing rate", machine.name)
    };
    Ok(compute.node_gflops / f64::from(pes_per_node))
}

/// A square grid of PEs, numbered row by row.
#[derive(Clone, Copy, Debug)]
struct Square {
    side: u32,
}

impl Square {
    fn pes(self) -> u32 {
        self.side * self.side
    }

    fn place(self, rank: Rank) -> (u32, u32) {
        (rank.0 / self.side, rank.0 % self.side)
    }

    fn row(self, rank: Rank) -> Ranks {
        Ranks { first: rank.0 / self.side * self.side, stride: 1, count: self.side }
    }

    fn column(self, rank: Rank) -> Ranks {
        Ranks { first: rank.0 % self.side, stride: self.side, count: self.side }
    }
}

/// The algorithms of a call, with the sizes from which they serve it. The first size is 0.
pub type Tuned = [(usize, Candidate)];

/// The plans of a row or a column, made when they are first needed.
struct Teams<'s> {
    simulation: &'s Simulation,
    side: u32,
    tuned: &'s Tuned,
    plans: RefCell<HashMap<(Rank, usize), Rc<Plans>>>,
}

impl<'s> Teams<'s> {
    fn new(simulation: &'s Simulation, side: u32, tuned: &'s Tuned) -> Self {
        Self { simulation, side, tuned, plans: RefCell::default() }
    }

    fn plans(&self, collective: Collective, root: Rank, bytes: usize) -> Result<Rc<Plans>> {
        if let Some(plans) = self.plans.borrow().get(&(root, bytes)) {
            return Ok(Rc::clone(plans));
        }
        let reached = self.tuned.iter().rev().find(|(from_bytes, _)| *from_bytes <= bytes);
        let (_, candidate) = reached.context("the algorithm of a size")?;
        let call = CallSpec { root, ..CallSpec::from(&query(collective, self.side, bytes)) };
        let plans = Rc::new(self.simulation.plan(&call, candidate, &barrier())?);
        self.plans.borrow_mut().insert((root, bytes), Rc::clone(&plans));
        Ok(plans)
    }

    /// Runs a broadcast that `call` has started.
    async fn broadcast(&self, call: &Call<'_>, root: Rank, bytes: usize) -> Result<()> {
        let plans = self.plans(Collective::Broadcast, root, bytes)?;
        plans.run(call).await.map_err(failed)
    }
}

fn failed(_: Poisoned) -> anyhow::Error {
    anyhow!("a simulated job has failed")
}

/// Returns a call of a team in symmetric memory. Its PEs may be late.
pub fn query(collective: Collective, pes: u32, bytes: usize) -> Query {
    sums(collective, SyncModes::MINE, pes, bytes, true)
}

/// Returns the operands of a broadcast in place.
fn in_place(at: usize, bytes: usize) -> Operands<'static> {
    let buffer = Buffer::Symmetric { at, bytes };
    Operands { source: buffer.clone(), target: buffer, ..Operands::NONE }
}

/// Waits for all futures of a PE.
async fn all<'f, T: 'f>(futures: Vec<Pin<Box<dyn Future<Output = T> + 'f>>>) -> Vec<T> {
    let mut futures: Vec<_> = futures.into_iter().map(|one| (one, None)).collect();
    poll_fn(|context| {
        for (future, done) in &mut futures {
            if done.is_none()
                && let Poll::Ready(value) = future.as_mut().poll(context)
            {
                *done = Some(value);
            }
        }
        if futures.iter().all(|(_, done)| done.is_some()) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    futures.into_iter().filter_map(|(_, done)| done).collect()
}

/// Returns the time of a program on a cluster, in nanoseconds.
fn run(simulation: &Simulation, program: impl AsyncFn(&Pe<'_>) -> Result<()>) -> Result<f64> {
    let outcome = simulation.run(async |pe: &Pe<'_>| {
        program(pe).await?;
        Ok(pe.now_ns())
    })?;
    let ended_ns = outcome.results.into_iter().collect::<Result<Vec<f64>>>()?;
    Ok(ended_ns.into_iter().fold(0.0, f64::max))
}
