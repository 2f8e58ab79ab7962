//! Blocks of any lengths, copied from where they lie: what vector variants are made of.
//!
//! A PE alone knows where its blocks lie and how long they are, so it exposes each of them by
//! itself: the rendezvous of the GASNet collectives (Nishtala and Yelick 2009, section 2). Whoever
//! attaches one says how long it thinks that the block is, and the job fails if the two do not
//! agree. An empty block is exposed as well, or a PE that counts on it would wait for ever.
//!
//! A plan thus does not depend on lengths, and serves calls with any.

use consort_fabric::{Capabilities, Local, MachineModel, Op, Place, Query, Rank, Rendezvous, Span};

use super::{exposed::others, rendezvous::Access};
use crate::Direction;

/// Whether a fabric can do it.
#[must_use]
pub const fn serves(capabilities: &Capabilities) -> bool {
    capabilities.exposes
}

/// What it costs by the model if a PE copies `copies` blocks of the query's length.
#[must_use]
pub fn cost_ns(query: &Query, copies: f64, model: &MachineModel) -> f64 {
    let bytes = query.bytes as f64;
    let rendezvous =
        Access::cost_ns(&Query { symmetric: false, ..*query }, Direction::Neither, model);
    let turns = model.pes_a_core(query.pes);
    let work = copies * (bytes / model.pull_gbps + model.overhead_ns) + bytes / model.copy_gbps;
    rendezvous + work * turns
}

/// From everyone's source to everyone's target.
///
/// # Errors
/// When the job has failed, as it does if PEs do not agree on a length; so in all that follow.
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

/// From the root's source to everyone's target.
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

/// From everyone's source to the root's target.
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
        // What says so may be a barrier that counts, which a fence does not hold back.
        f.quiet().await?;
        return f.detach(remote).await;
    }
    for peer in others(root, f.size()) {
        expose(f, peer, Place::Target).await?;
    }
    copy_own(f).await?;
    f.await_detached().await
}

async fn expose<F: Rendezvous>(f: &F, peer: Rank, place: Place) -> Op {
    f.expose(peer, 0, f.vector_block(place, peer.0)).await
}

async fn get<F: Rendezvous>(f: &F, peer: Rank) -> Op {
    let block = f.vector_block(Place::Target, peer.0);
    let remote = f.attach(peer, 0).await?;
    f.check_length(&remote, block.bytes).await?;
    f.get(&remote, 0, block).await?;
    f.detach(remote).await
}

/// What a PE has for itself.
fn own<F: Local>(f: &F, place: Place) -> Span {
    f.vector_block(place, f.rank().0)
}

async fn copy_own<F: Local>(f: &F) -> Op {
    f.copy(own(f, Place::Target), own(f, Place::Source)).await
}
