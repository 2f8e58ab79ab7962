//! G10 on the paper's machines, simulated (Nishtala, Zheng, Hargrove and Yelick 2011, section 6):
//! how much the applications gain in weak scaling, from overlap and from broadcasts that are not
//! binomial trees of messages.
//!
//! The paper compares with ScaLAPACK and an MPI. Here, blocking calls with binomial trees of
//! messages represent them, with the same computation. In figures 10 to 14 each PE has a node; in
//! figures 16 and 17 it has a core. The paper's numbers of PEs are up to 32 768; here they are up
//! to 64. A PE's part of a matrix in SUMMA, and a message in FT, are as large as in the paper.

use anyhow::{Context, Result};
use consort::tune::{Candidate, Collective};
use consort_sim::machines::Machine;

use super::{
    applications::{CHOLESKY_MESSAGES, FT_BLOCKING, FT_MESSAGES, SUMMA_BLOCKING, SUMMA_MESSAGES},
    figure::Figure,
    networks::{self, BLUE_GENE, CRAY, RANGER},
    quantity::Quantity,
};
use crate::simulation::{
    applications::{Cholesky, Ft, Summa, Tuned, Way, query},
    counting::with_pes_per_node,
};

/// The sides of the grids of PEs.
const SIDES: [u32; 2] = [4, 8];
/// Section 6.1: 8192 by 8192 per node. The paper does not give the width of a panel of columns.
const OWN: usize = 8192;
const WIDTH: usize = 8;
/// Each row and column of the grid is a root once.
const STEPS: u32 = 8;
/// The number of blocks along a side of a PE's part of the factored matrix, and their width. The
/// paper gives neither.
const BLOCKS: u32 = 16;
const BLOCK_WIDTH: usize = 64;
/// Section 6.3: "128KB messages" packed, or "8KB messages", of "a 4096x4096x2048 grid".
const SLABS: usize = 16;
const SLAB_BYTES: usize = 8 << 10;
const EXTENTS: [usize; 3] = [4096, 4096, 2048];

/// Returns the algorithm that represents an MPI's broadcast.
fn binomial() -> [(usize, Candidate); 1] {
    [(0, Candidate::new("knomial").with("radix", 2))]
}

/// Returns the fastest broadcast for calls in a row, in a row or column alone: "the collectives
/// autotuning is done offline". All may be in progress together, because they use no scratch memory
/// and no message buffer.
fn broadcast(machine: &Machine, side: u32, bytes: usize) -> Result<Candidate> {
    let tree = |name| move |radix: u64| Candidate::new(name).with("radix", radix);
    let trees =
        [2, 4].into_iter().flat_map(|radix| ["knomial_put", "knomial"].map(|it| tree(it)(radix)));
    let candidates = trees.chain([Candidate::new("scatter_allgather")]);
    let alone = networks::Machine::of(with_pes_per_node(machine.clone(), 1)?, side);
    let (best, _) = alone.best(&query(Collective::Broadcast, side, bytes), candidates)?;
    best.context("a tree serves broadcasts")
}

/// Adds the figures of an application: its rate or time with its own calls, and the times of others
/// relative to that.
fn push(
    all: &mut Vec<Quantity>,
    (machine, pes): (&'static str, u32),
    (name, unit): (&str, &'static str),
    value: f64,
    over: &[(&'static Figure, f64)],
) {
    all.push(Quantity::new(machine, name, unit).with_pes(pes).simulated(value));
    all.extend(over.iter().map(|&(of, ratio)| of.on(machine).with_pes(pes).simulated(ratio)));
}

/// Simulates G10 on the paper's machines.
///
/// # Errors
/// When a simulation fails.
pub fn simulated() -> Result<Vec<Quantity>> {
    let mut all = Vec::new();
    for name in [CRAY, BLUE_GENE, RANGER] {
        let machine = Machine::find(name)?;
        for side in SIDES {
            let of = (name, side * side);
            summa(&mut all, of, &machine, side)?;
            cholesky(&mut all, of, &machine, side)?;
            ft(&mut all, of, &machine, side)?;
        }
    }
    Ok(all)
}

/// Figures 10 and 11.
fn summa(
    all: &mut Vec<Quantity>,
    of: (&'static str, u32),
    machine: &Machine,
    side: u32,
) -> Result<()> {
    let problem = Summa { side, own: OWN, width: WIDTH, steps: STEPS };
    let best = [(0, broadcast(machine, side, problem.panel_bytes())?)];
    let rate = |way, by: &Tuned| problem.node_gflops(machine, way, by);
    let overlap = rate(Way::Overlap, &best)?;
    let over = [
        (&SUMMA_BLOCKING, overlap / rate(Way::Blocking, &best)?),
        (&SUMMA_MESSAGES, overlap / rate(Way::Messages, &binomial())?),
    ];
    push(all, of, ("summa, overlap", "Gflop/s a node"), overlap, &over);
    Ok(())
}

/// Figures 13 and 14.
fn cholesky(
    all: &mut Vec<Quantity>,
    of: (&'static str, u32),
    machine: &Machine,
    side: u32,
) -> Result<()> {
    let problem = Cholesky { side, blocks: BLOCKS, width: BLOCK_WIDTH };
    // Panels become shorter, and each length has its own best algorithm.
    let mut tuned = Vec::new();
    for blocks in [1, 2, 4, 8, 16] {
        let bytes = blocks * BLOCK_WIDTH * BLOCK_WIDTH * size_of::<f64>();
        let from_bytes = if blocks == 1 { 0 } else { bytes };
        tuned.push((from_bytes, broadcast(machine, side, bytes)?));
    }
    let rate = problem.node_gflops(machine, &tuned)?;
    let over = rate / problem.node_gflops(machine, &binomial())?;
    let over = [(&CHOLESKY_MESSAGES, over)];
    push(all, of, ("cholesky, blocking", "Gflop/s a node"), rate, &over);
    Ok(())
}

/// Figures 16 and 17.
fn ft(
    all: &mut Vec<Quantity>,
    of: (&'static str, u32),
    machine: &Machine,
    side: u32,
) -> Result<()> {
    let problem = Ft { side, slabs: SLABS, slab_bytes: SLAB_BYTES, extents: EXTENTS };
    let ns = |way, name| problem.transform_ns(machine, way, &[(0, Candidate::new(name))]);
    let overlap_ns = ns(Way::Overlap, "flat")?;
    // An exchange sends to all at once, or to one after the other.
    let blocking_ns = ns(Way::Blocking, "flat")?.min(ns(Way::Blocking, "pairwise")?);
    let over = [
        (&FT_BLOCKING, blocking_ns / overlap_ns),
        (&FT_MESSAGES, ns(Way::Messages, "pairwise")? / overlap_ns),
    ];
    push(all, of, ("ft, overlap", "ms a transform"), overlap_ns / 1e6, &over);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIDE: u32 = 4;

    /// Computation takes its time, and a step's panels are hidden behind it as far as possible.
    #[test]
    fn overlap_hides_panels_behind_computing() {
        for name in [CRAY, BLUE_GENE] {
            let machine = Machine::find(name).unwrap();
            let problem = Summa { side: SIDE, own: OWN, width: WIDTH, steps: STEPS };
            let best = [(0, broadcast(&machine, SIDE, problem.panel_bytes()).unwrap())];
            let rate = |way, by: &Tuned| problem.node_gflops(&machine, way, by).unwrap();
            let peak = crate::simulation::applications::gflops(&machine, 1).unwrap();
            let [overlap, blocking] = [Way::Overlap, Way::Blocking].map(|way| rate(way, &best));
            let messages = rate(Way::Messages, &binomial());
            assert!(overlap > blocking && blocking >= messages, "{name}: {overlap} {blocking}");
            // All panels but the first ones, in eight steps.
            assert!(overlap < peak && overlap > 0.97 * peak, "{name}: {overlap} of {peak}");
        }
    }

    #[test]
    fn factorization_has_the_right_operation_count() {
        let mut machine = Machine::find(CRAY).unwrap();
        let consort_sim::machines::Kind::Cluster(cluster) = &mut machine.kind else { panic!() };
        // Computation that takes so long that nothing else counts.
        cluster.compute.as_mut().unwrap().node_gflops = 1e-3;
        let problem = Cholesky { side: 2, blocks: 16, width: 64 };
        let rate = problem.node_gflops(&machine, &binomial()).unwrap();
        // No PE has more than its share, except for the diagonal and the last blocks.
        assert!((0.75..1.0).contains(&(rate / 1e-3)), "{rate}");
    }

    /// Figure 17: "17 % at 32,768 cores".
    #[test]
    fn slabs_are_sent_while_others_are_transformed() {
        let machine = Machine::find(BLUE_GENE).unwrap();
        let problem = Ft { side: SIDE, slabs: SLABS, slab_bytes: SLAB_BYTES, extents: EXTENTS };
        let flat = [(0, Candidate::new("flat"))];
        let ns = |way| problem.transform_ns(&machine, way, &flat).unwrap();
        let gain = ns(Way::Blocking) / ns(Way::Overlap);
        assert!((1.05..1.5).contains(&gain), "{gain}");
    }
}
