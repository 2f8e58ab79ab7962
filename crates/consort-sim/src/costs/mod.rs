//! What operations cost in virtual time: one file a kind of machine.
//!
//! A cost is spent by sleeping: an operation returns when its PE is free again, and says when what
//! it sent arrives. Nothing here moves data.

mod chaos;
mod cluster;
mod coherent;
mod mesh;

pub(crate) use chaos::Chaos;
pub(crate) use cluster::Cluster;
pub(crate) use coherent::{CALL_CYCLES, Coherent};
pub(crate) use mesh::Mesh;

use consort_fabric::{Capabilities, Place, Rank};

use crate::{
    account::{Account, Cause},
    engine::{Engine, Time},
};

/// Where, and on whose account, an operation happens.
#[derive(Clone, Copy)]
pub(crate) struct Site<'w> {
    pub(crate) engine: &'w Engine,
    pub(crate) account: &'w Account,
    pub(crate) me: u32,
}

impl Site<'_> {
    /// The PE spends time on something.
    pub(crate) async fn spend(&self, cause: Cause, time: Time) {
        self.account.spend(cause, time);
        self.engine.sleep(time).await;
    }
}

/// Memory of a PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Where {
    pub(crate) pe: Rank,
    pub(crate) place: Place,
    pub(crate) at: usize,
}

/// The costs of a machine.
#[expect(clippy::large_enum_variant, reason = "a simulation has one, and moves none")]
pub(crate) enum Costs {
    /// Any time at all.
    Chaos(Chaos),
    /// Cores whose caches are kept coherent.
    Coherent(Coherent),
    /// Cores with message buffers on a mesh.
    Mesh(Mesh),
    /// Nodes on a network.
    Cluster(Cluster),
}

/// Calls the same method on the costs of whichever kind.
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
    /// What the machine's fabric can do.
    pub(crate) fn capabilities(&self, pes: u32) -> Capabilities {
        each!(self, kind => kind.capabilities(pes))
    }

    /// Bytes of the pieces in which sender and receiver hand a message over together; `None` where
    /// a sender goes on without its receiver.
    pub(crate) const fn hands_over(&self) -> Option<usize> {
        match self {
            Self::Chaos(_) | Self::Cluster(_) | Self::Coherent(_) => None,
            Self::Mesh(mesh) => Some(mesh.piece_bytes()),
        }
    }

    /// A call of a collective begins.
    pub(crate) async fn begin(&self, site: Site<'_>) {
        each!(self, kind => kind.begin(site).await);
    }

    /// Moves bytes from one memory to another, of which one at least is the PE's own. Returns when
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

    /// Combines bytes of another memory with some of the PE's own, into its own.
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

    /// When all that a PE has begun is done, where that goes on beside what it does next.
    pub(crate) fn settled(&self, pe: Rank) -> Time {
        if let Self::Coherent(kind) = self { kind.settled(pe.0) } else { 0 }
    }

    /// Combines so many bytes of the PE's own memory.
    pub(crate) async fn combine(&self, site: Site<'_>, bytes: usize) {
        each!(self, kind => kind.combine(site, bytes).await);
    }

    /// Sets a flag at a peer. Returns when it is set there.
    pub(crate) async fn signal(&self, site: Site<'_>, to: Rank) -> Time {
        each!(self, kind => kind.signal(site, to).await)
    }

    /// Sees that a flag is set, for which the PE has polled since a time, and who has set it, if it
    /// was one PE.
    pub(crate) async fn observe(&self, site: Site<'_>, since: Time, from: Option<Rank>) {
        match self {
            Self::Chaos(chaos) => chaos.observe(site, since, from).await,
            Self::Mesh(mesh) => mesh.observe(site, since, from).await,
            Self::Coherent(coherent) => coherent.observe(site, since, from).await,
            Self::Cluster(cluster) => cluster.observe(site, from).await,
        }
    }

    /// When what comes to a PE now is handed on to it: later, if others are before it. A put is in
    /// memory when it comes, but those after it wait.
    pub(crate) fn hands_on(&self, now: Time, from: Rank, to: Rank, bytes: usize) -> Time {
        match self {
            Self::Chaos(_) | Self::Mesh(_) | Self::Coherent(_) => now,
            Self::Cluster(cluster) => cluster.hands_on(now, from, to, bytes),
        }
    }

    /// Sends a message. Returns when it has arrived; one that is handed over has been put where the
    /// receiver can get it.
    pub(crate) async fn send(&self, site: Site<'_>, to: Rank, from: Where, bytes: usize) -> Time {
        each!(self, kind => kind.send(site, to, from, bytes).await)
    }

    /// Takes a message that has arrived, and for which the PE has polled since a time. Returns when
    /// its sender is notified, where it is.
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

    /// Sees that a message that was handed over is taken.
    pub(crate) async fn handed_over(&self, site: Site<'_>, since: Time) {
        each!(self, kind => kind.handed_over(site, since).await);
    }

    /// Interrupts some peers. Returns when each is reached; where there are no interrupts,
    /// it is a flag that is set at one after the other.
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

    /// A handler is called for what has come since the last time.
    pub(crate) async fn interrupted(&self, site: Site<'_>) {
        match self {
            Self::Mesh(mesh) => mesh.interrupted(site).await,
            _ => self.observe(site, site.engine.now(), None).await,
        }
    }

    /// Changes a word at a peer and returns its old value; the change happens between the two times
    /// that pass.
    pub(crate) async fn reach_word(&self, site: Site<'_>, at: Rank) {
        each!(self, kind => kind.reach_word(site, at).await);
    }
}
