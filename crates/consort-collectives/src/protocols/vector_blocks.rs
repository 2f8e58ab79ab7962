//! Blocks of any lengths, copied between the callers' buffers: the basis of vector variants.
//!
//! Only a PE itself knows the places and lengths of its blocks, so it exposes each block
//! separately: the rendezvous of the GASNet collectives (Nishtala, Zheng, Hargrove and Yelick 2011,
//! section 3.3.2). The PE that attaches a block passes the length that it expects, and the job
//! fails if the two lengths differ. An empty block is exposed too, because a PE that expects a
//! longer one would wait forever.
//!
//! So a plan does not depend on lengths, and serves calls with any lengths.

use consort_fabric::{Local, MachineModel, Op, Place, Query, Rank, Rendezvous, Span};

use super::{exposed::others, rendezvous::Access};
use crate::Direction;

/// Returns the model's estimate if a PE copies `copies` blocks of the query's length, in
/// nanoseconds.
#[must_use]
pub fn cost_ns(query: &Query, copies: f64, model: &MachineModel) -> f64 {
    let bytes = query.bytes as f64;
    let rendezvous =
        Access::cost_ns(&Query { symmetric: false, ..*query }, Direction::Neither, model);
    let turns = model.pes_a_core(query.pes);
    // For each block after the first, the PE waits for the lines of the exposure and of the count
    // of detaches. If many PEs share a cache, most of these lines are there.
    let lines = if model.is_shared(query.pes) { 0.0 } else { 2.0 * (copies - 1.0).max(0.0) };
    let work = copies * (bytes / model.pull_gbps + model.get_ns + model.overhead_ns)
        + lines * model.transfer_ns
        + bytes / model.copy_gbps;
    rendezvous + work * turns
}

/// Copies blocks from every PE's source to every PE's target.
///
/// # Errors
/// If the job has failed, which includes PEs that disagree on a length; also in the functions
/// below.
#[inline(always)]
pub async fn all_to_all<F: Rendezvous>(f: &F) -> Op {
    let peers = || others(f.rank(), f.size());
    for peer in peers() {
        expose(f, peer, Place::Source).await?;
    }
    copy_own(f).await?;
    for peer in peers() {
        get(f, peer).await?;
    }
    f.await_detached().await
}

/// Copies blocks from the root's source to every PE's target.
///
/// # Errors
/// See [`all_to_all`].
#[inline(always)]
pub async fn one_to_all<F: Rendezvous>(f: &F, root: Rank) -> Op {
    if f.rank() != root {
        return get(f, root).await;
    }
    for peer in others(root, f.size()) {
        expose(f, peer, Place::Source).await?;
    }
    copy_own(f).await?;
    f.await_detached().await
}

/// Copies blocks from every PE's source to the root's target.
///
/// # Errors
/// See [`all_to_all`].
#[inline(always)]
pub async fn all_to_one<F: Rendezvous>(f: &F, root: Rank) -> Op {
    if f.rank() != root {
        let own = own(f, Place::Source);
        let remote = f.attach(root, 0).await?;
        f.check_length(&remote, own.bytes).await?;
        f.put(&remote, 0, own).await?;
        // A counting barrier may signal the completion, and a fence does not order counting.
        f.quiet().await?;
        return f.detach(remote).await;
    }
    for peer in others(root, f.size()) {
        expose(f, peer, Place::Target).await?;
    }
    copy_own(f).await?;
    f.await_detached().await
}

pub(crate) async fn expose<F: Rendezvous>(f: &F, peer: Rank, place: Place) -> Op {
    f.expose(peer, 0, f.vector_block(place, peer.0)).await
}

pub(crate) async fn get<F: Rendezvous>(f: &F, peer: Rank) -> Op {
    let block = f.vector_block(Place::Target, peer.0);
    let remote = f.attach(peer, 0).await?;
    f.check_length(&remote, block.bytes).await?;
    f.get(&remote, 0, block).await?;
    f.detach(remote).await
}

/// Returns the block from a PE to itself.
fn own<F: Local>(f: &F, place: Place) -> Span {
    f.vector_block(place, f.rank().0)
}

pub(crate) async fn copy_own<F: Local>(f: &F) -> Op {
    f.copy(own(f, Place::Target), own(f, Place::Source)).await
}
