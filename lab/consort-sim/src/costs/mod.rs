//! The costs of operations in virtual time: one file for each kind of machine.
//!
//! A PE spends a cost by sleeping. An operation returns when its PE is free again, with the time at
//! which its data or signal arrives. Nothing in this module moves data.

mod chaos;
mod cluster;
mod coherent;
mod mesh;

pub(crate) use chaos::Chaos;
pub(crate) use cluster::Cluster;
pub(crate) use coherent::{CALL_CYCLES, Coherent};
pub(crate) use mesh::Mesh;

use std::cell::Cell;

use consort_fabric::{Capabilities, Place, Rank};

use crate::{
    account::{Account, Cause},
    engine::{Engine, Time},
};

/// The PE of an operation, its account, and the engine.
#[derive(Clone, Copy)]
pub(crate) struct Site<'w> {
    pub(crate) engine: &'w Engine,
    pub(crate) account: &'w Account,
    pub(crate) me: u32,
}

impl Site<'_> {
    /// Spends time for a cause.
    pub(crate) async fn spend(&self, cause: Cause, time: Time) {
        self.account.spend(cause, time);
        self.engine.sleep(time).await;
    }
}

/// A position in the memory of a PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Where {
    pub(crate) pe: Rank,
    pub(crate) place: Place,
    pub(crate) at: usize,
}

/// The effects that are simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effects {
    /// Queueing. Without it, every resource is always free.
    pub contention: bool,
    /// Queueing for the links of a mesh as well, in addition to contention and distances. It takes
    /// long to simulate and changes little: the links of the Intel SCC have spare capacity.
    pub links: bool,
    /// Distances. Without them, all are the shortest.
    pub distances: bool,
    /// The parameters that were fitted to published results, if the machine's description has them:
    /// the overhead of a call, flags that are written by whole puts and reset, and the time of a
    /// signal.
    pub fitted: bool,
}

impl Effects {
    /// All effects except links and fitted parameters.
    pub const PUBLISHED: Self =
        Self { contention: true, links: false, distances: true, fitted: false };
}

/// The costs of a machine.
#[expect(clippy::large_enum_variant, reason = "a simulation has one and never moves it")]
pub(crate) enum Costs {
    /// Random times.
    Chaos(Chaos),
    /// Cores with coherent caches.
    Coherent(Coherent),
    /// Cores with message buffers on a mesh.
    Mesh(Mesh),
    /// Nodes on a network.
    Cluster(Cluster),
}

/// Calls the same method on the costs of any kind.
macro_rules! each {
    ($costs:expr, $kind:ident => $body:expr) => {
        match $costs {
            Costs::Chaos($kind) => $body,
            Costs::Coherent($kind) => $body,
            Costs::Mesh($kind) => $body,
            Costs::Cluster($kind) => $body,
        }
    };
}

impl Costs {
    /// Returns the capabilities of the machine's fabric.
    pub(crate) fn capabilities(&self, pes: u32) -> Capabilities {
        each!(self, kind => kind.capabilities(pes))
    }

    /// Returns the size of the pieces in which sender and receiver transfer a message together, in
    /// bytes. Returns `None` if a sender continues without its receiver.
    pub(crate) const fn hands_over(&self) -> Option<usize> {
        match self {
            Self::Chaos(_) | Self::Cluster(_) | Self::Coherent(_) => None,
            Self::Mesh(mesh) => Some(mesh.piece_bytes()),
        }
    }

    /// Returns whether a put and the signal that follows it are one message.
    pub(crate) const fn bundles(&self) -> bool {
        matches!(self, Self::Cluster(_))
    }

    /// Returns the time that a receipt takes from `from`, where data has landed, back to `to`. No
    /// receipt is sent if puts keep their order.
    pub(crate) fn answers_in(&self, from: Rank, to: Rank) -> Time {
        match self {
            Self::Chaos(_) | Self::Mesh(_) | Self::Coherent(_) => 0,
            Self::Cluster(cluster) => cluster.answers_in(from, to),
        }
    }

    /// Begins a call of a collective.
    pub(crate) async fn begin(&self, site: Site<'_>) {
        each!(self, kind => kind.begin(site).await);
    }

    /// Moves bytes from one memory to another. At least one of them is the PE's own. Returns when
    /// they have landed.
    pub(crate) async fn transfer(
        &self,
        site: Site<'_>,
        from: Where,
        to: Where,
        bytes: usize,
    ) -> Time {
        each!(self, kind => kind.transfer(site, from, to, bytes).await)
    }

    /// Combines bytes of another memory with bytes of the PE's own memory, into its own.
    pub(crate) async fn get_combine(
        &self,
        site: Site<'_>,
        from: Where,
        left: Where,
        to: Where,
        bytes: usize,
    ) {
        if let Self::Coherent(kind) = self {
            return kind.get_combine(site, from, left, to, bytes).await;
        }
        self.transfer(site, from, to, bytes).await;
        self.combine(site, bytes).await;
    }

    /// Returns when all accesses that a PE has started are complete, on machines where they overlap
    /// with its later operations.
    pub(crate) fn settled(&self, pe: Rank) -> Time {
        if let Self::Coherent(kind) = self { kind.settled(pe.0) } else { 0 }
    }

    /// Combines this many bytes of the PE's own memory.
    pub(crate) async fn combine(&self, site: Site<'_>, bytes: usize) {
        each!(self, kind => kind.combine(site, bytes).await);
    }

    /// Sets a flag at a peer. Returns when it is set there.
    pub(crate) async fn signal(&self, site: Site<'_>, to: Rank) -> Time {
        each!(self, kind => kind.signal(site, to).await)
    }

    /// Reads a flag that is set. The PE has polled it since a time. `from` is the PE that set it,
    /// if it was a single PE.
    pub(crate) async fn observe(&self, site: Site<'_>, since: Time, from: Option<Rank>) {
        match self {
            Self::Chaos(chaos) => chaos.observe(site, since, from).await,
            Self::Mesh(mesh) => mesh.observe(site, since, from).await,
            Self::Coherent(coherent) => coherent.observe(site, since, from).await,
            Self::Cluster(cluster) => cluster.observe(site, from).await,
        }
    }

    /// Returns when an arrival is delivered to its PE. This is later than now if it queues behind
    /// others. A put is in memory when it arrives, but later arrivals queue behind it.
    pub(crate) fn hands_on(&self, now: Time, from: Rank, to: Rank, bytes: usize) -> Time {
        match self {
            Self::Chaos(_) | Self::Mesh(_) | Self::Coherent(_) => now,
            Self::Cluster(cluster) => cluster.hands_on(now, from, to, bytes),
        }
    }

    /// Sends a message. Returns when it arrives. On machines with two-sided transfers, that is when
    /// the receiver can get it.
    pub(crate) async fn send(&self, site: Site<'_>, to: Rank, from: Where, bytes: usize) -> Time {
        each!(self, kind => kind.send(site, to, from, bytes).await)
    }

    /// Receives a message that has arrived. The PE has polled for it since a time. Returns when its
    /// sender is notified, on machines with two-sided transfers.
    pub(crate) async fn receive(
        &self,
        site: Site<'_>,
        since: Time,
        from: Rank,
        to: Where,
        bytes: usize,
    ) -> Time {
        each!(self, kind => kind.receive(site, since, from, to, bytes).await)
    }

    /// Reads the notification that the receiver has taken a message of a two-sided transfer.
    pub(crate) async fn handed_over(&self, site: Site<'_>, since: Time) {
        each!(self, kind => kind.handed_over(site, since).await);
    }

    /// Interrupts some peers. Returns when each receives the interrupt. On machines without
    /// interrupts, it sets a flag at one peer after the other.
    pub(crate) async fn interrupt(&self, site: Site<'_>, to: &[Rank]) -> Vec<Time> {
        if let Self::Mesh(mesh) = self {
            return mesh.interrupt(site, to).await;
        }
        let mut arrivals = Vec::new();
        for &peer in to {
            arrivals.push(self.signal(site, peer).await);
        }
        arrivals
    }

    /// Calls a handler for a notification that arrived at time `arrived`. Notifications that arrive
    /// while the kernel is `serving` others share the switch back to the program.
    pub(crate) async fn interrupted(&self, site: Site<'_>, serving: &Cell<Time>, arrived: Time) {
        match self {
            Self::Mesh(mesh) => mesh.interrupted(site, serving, arrived).await,
            _ => self.observe(site, site.engine.now(), None).await,
        }
    }

    /// Spends the time to change a word at a peer and return its old value. The caller changes it
    /// after that time.
    pub(crate) async fn reach_word(&self, site: Site<'_>, at: Rank) {
        each!(self, kind => kind.reach_word(site, at).await);
    }
}
