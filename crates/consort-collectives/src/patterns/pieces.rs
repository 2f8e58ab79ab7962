//! Pieces of any lengths, copied from where they lie: what varied collectives are made of.
//!
//! A PE alone knows where its pieces lie and how long they are, so it lends each of them by itself:
//! the rendezvous of the GASNet collectives (Nishtala and Yelick 2009, section 2). Whoever takes a
//! loan says how long it thinks that the piece is, and the job fails if the two do not agree. An
//! empty piece is lent as well, or a PE that counts on it would wait for ever.
//!
//! A plan thus does not depend on lengths, and serves calls with any.

use consort_fabric::{Capabilities, Fabric, MachineModel, Op, Place, Query, Rank, Span};

use super::{access::Access, shown::others};
use crate::Direction;

/// Whether a fabric can do it.
#[must_use]
pub const fn serves(capabilities: &Capabilities) -> bool {
    capabilities.lending
}

/// What it costs by the model if a PE copies `copies` pieces of the query's length.
#[must_use]
pub fn cost_ns(query: &Query, copies: f64, model: &MachineModel) -> f64 {
    let bytes = query.bytes as f64;
    let rendezvous =
        Access::cost_ns(&Query { symmetric: false, ..*query }, Direction::Neither, model);
    let turns = f64::from(query.pes) / f64::from(model.cores.min(query.pes).max(1));
    let work = copies * (bytes / model.pull_gbps + model.overhead_ns) + bytes / model.copy_gbps;
    rendezvous + work * turns
}

/// From everyone's source to everyone's target.
///
/// # Errors
/// When the job has failed, as it does if PEs do not agree on a length; so in all that follow.
#[inline(always)]
pub async fn all_to_all<F: Fabric>(f: &F) -> Op {
    let peers = || others(f.rank(), f.size());
    for peer in peers() {
        lend(f, peer, Place::Source).await?;
    }
    copy_own(f).await?;
    for peer in peers() {
        get(f, peer).await?;
    }
    f.reclaim().await
}

/// From the root's source to everyone's target.
///
/// # Errors
/// See [`all_to_all`].
#[inline(always)]
pub async fn one_to_all<F: Fabric>(f: &F, root: Rank) -> Op {
    if f.rank() != root {
        return get(f, root).await;
    }
    for peer in others(root, f.size()) {
        lend(f, peer, Place::Source).await?;
    }
    copy_own(f).await?;
    f.reclaim().await
}

/// From everyone's source to the root's target.
///
/// # Errors
/// See [`all_to_all`].
#[inline(always)]
pub async fn all_to_one<F: Fabric>(f: &F, root: Rank) -> Op {
    if f.rank() != root {
        let own = own(f, Place::Source);
        let lease = f.borrow(root, 0).await?;
        f.agree(&lease, own.bytes).await?;
        f.put(&lease, 0, own).await?;
        // What says so may be a barrier that counts, which a fence does not hold back.
        f.quiet().await?;
        return f.give_back(lease).await;
    }
    for peer in others(root, f.size()) {
        lend(f, peer, Place::Target).await?;
    }
    copy_own(f).await?;
    f.reclaim().await
}

async fn lend<F: Fabric>(f: &F, peer: Rank, place: Place) -> Op {
    f.lend(peer, 0, f.piece(place, peer.0)).await
}

async fn get<F: Fabric>(f: &F, peer: Rank) -> Op {
    let piece = f.piece(Place::Target, peer.0);
    let lease = f.borrow(peer, 0).await?;
    f.agree(&lease, piece.bytes).await?;
    f.get(&lease, 0, piece).await?;
    f.give_back(lease).await
}

/// What a PE has for itself.
fn own<F: Fabric>(f: &F, place: Place) -> Span {
    f.piece(place, f.rank().0)
}

async fn copy_own<F: Fabric>(f: &F) -> Op {
    f.copy(own(f, Place::Target), own(f, Place::Source)).await
}
