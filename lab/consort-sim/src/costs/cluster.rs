//! Nodes on a network: the LogGP model.
//!
//! Alexandrov, Ionescu, Schauser and Scheiman 1995: a message of `b` bytes keeps its sender busy
//! for `o`, goes into the network in `(b - 1) G`, arrives `L` after its last byte, and keeps its
//! receiver busy for `o`. From the last byte of a message to the first of the next it takes
//! `max(g, o)`, at the sender and at the receiver.
//!
//! Assumptions beyond the model:
//!
//! - PEs of a node share its network interfaces. Messages that leave or arrive too fast queue there
//!   in order. The network itself never limits the rate.
//! - Each hop after the first adds to `L`.
//! - Interfaces put and get without the PE at the other end. A put is a message that keeps no PE
//!   busy at its target. A get is a message without data to the target, and one with the data back.
//!   An atomic operation is a get of a word.
//! - A put and the signal that follows it are one message, like GASNet's long active messages and
//!   the counted puts of Portals. An interface answers a put with a receipt, which keeps no PE busy
//!   and does not queue.
//! - Reading a counter to which peers add, such as that of detached exposures, costs as much as
//!   reading the PE's own memory.
//! - Within a node, the sender copies a message. The message is visible after the transfer of one
//!   line.
//! - A PE copies and combines in its own memory as fast as it copies messages.

use std::cell::Cell;

use consort_fabric::{Capabilities, Rank};

use super::{Effects, Site, Where};
use crate::{
    account::Cause,
    engine::{Time, picoseconds},
    machines,
};

/// The costs of a cluster's network and of its nodes.
pub(crate) struct Cluster {
    machine: machines::Cluster,
    overhead: Time,
    gap: Time,
    /// The longer of gap and overhead.
    turn: Time,
    inside_overhead: Time,
    interfaces: Vec<Interface>,
    contention: bool,
}

/// A network interface: the ports through which it sends and accepts messages.
#[derive(Default)]
struct Interface {
    sends: Port,
    accepts: Port,
}

/// The last message of an interface in one direction: the time of its last byte, and its PE.
#[derive(Default)]
struct Port(Cell<Option<(Time, u32)>>);

impl Cluster {
    pub(crate) fn new(machine: &machines::Cluster, effects: Effects) -> Self {
        let mut machine = machine.clone();
        if !effects.distances {
            machine.hop_ns = 0.0;
        }
        let overhead = picoseconds(machine.overhead_ns);
        let interfaces = 0..machine.nodes * machine.interfaces_per_node;
        Self {
            overhead,
            gap: picoseconds(machine.gap_ns),
            turn: picoseconds(machine.gap_ns).max(overhead),
            inside_overhead: picoseconds(machine.inside.overhead_ns),
            interfaces: interfaces.map(|_| Interface::default()).collect(),
            contention: effects.contention,
            machine,
        }
    }

    pub(super) fn capabilities(&self, _: u32) -> Capabilities {
        Capabilities {
            inbox_channels: 1 << 20,
            scratch_bytes: 1 << 20,
            buffer_bytes: 1 << 20,
            exposes: true,
            buffered: true,
            pairwise_bytes: consort_fabric::PAIRWISE_BYTES,
            counts: true,
            vendor: consort_fabric::Vendor::NONE,
            nodes: self.machine.placed(),
            levels: self.machine.levels(),
        }
    }

    /// Returns the time from which a port can accept the first byte of another message of a PE. A
    /// PE must attend to its own messages, but not to those of others.
    fn free_from(&self, port: &Port, pe: u32) -> Time {
        let next = |(last, before)| last + if before == pe { self.turn } else { self.gap };
        port.0.get().map_or(0, next)
    }

    fn interface(&self, pe: u32) -> &Interface {
        &self.interfaces[self.machine.interface(pe) as usize]
    }

    fn is_inside(&self, a: u32, b: u32) -> bool {
        self.machine.node(a) == self.machine.node(b)
    }

    fn latency(&self, a: u32, b: u32) -> Time {
        let (a, b) = (self.machine.node(a), self.machine.node(b));
        picoseconds(self.machine.latency_between_ns(a, b))
    }

    /// Returns the time that the interface at `from` takes to report to `to` that data has landed.
    pub(super) fn answers_in(&self, from: Rank, to: Rank) -> Time {
        if self.is_inside(from.0, to.0) { 0 } else { self.latency(from.0, to.0) }
    }

    /// Returns the time from the first byte of a message to its last.
    fn stream(&self, bytes: usize) -> Time {
        picoseconds(bytes.saturating_sub(1) as f64 * self.machine.gap_per_byte_ns)
    }

    fn copying(&self, bytes: usize) -> Time {
        picoseconds(bytes as f64 / self.machine.inside.copy_gbps)
    }

    /// Returns the time to transfer a line between two PEs of a node.
    fn inside_transfer(&self, a: u32, b: u32) -> Time {
        let [a, b] = [a, b].map(|pe| self.machine.placed().place(pe));
        picoseconds(self.machine.inside.transfer_between_ns(a, b))
    }

    /// Returns the time for which a message between two PEs keeps each of them busy.
    fn overhead_between(&self, a: u32, b: u32) -> Time {
        if self.is_inside(a, b) { self.inside_overhead } else { self.overhead }
    }

    /// Sends a message through the interface of `pe`. Its first byte is ready at time `ready`.
    /// Returns the times when the first and the last byte have left.
    fn send_from(&self, pe: u32, ready: Time, bytes: usize) -> (Time, Time) {
        let port = &self.interface(pe).sends;
        let first = if self.contention { ready.max(self.free_from(port, pe)) } else { ready };
        let last = first + self.stream(bytes);
        port.0.set(Some((last, pe)));
        (first, last)
    }

    /// Returns the time when the interface of `to` delivers a message that arrives now.
    pub(super) fn hands_on(&self, now: Time, from: Rank, to: Rank, bytes: usize) -> Time {
        if !self.contention || self.is_inside(from.0, to.0) {
            return now;
        }
        let port = &self.interface(to.0).accepts;
        let handed_on = now.max(self.free_from(port, to.0) + self.stream(bytes));
        port.0.set(Some((handed_on, to.0)));
        handed_on
    }

    /// Spends the PE's time until `until` for a cause.
    async fn spend_until(site: Site<'_>, cause: Cause, until: Time) {
        site.spend(cause, until.saturating_sub(site.engine.now())).await;
    }

    /// Sends this many bytes. Returns when they arrive.
    async fn inject(&self, site: Site<'_>, to: u32, bytes: usize, cause: Cause) -> Time {
        if self.is_inside(site.me, to) {
            let busy = self.inside_overhead + self.copying(bytes);
            site.account.occupy(busy);
            site.spend(cause, busy).await;
            return site.engine.now() + self.inside_transfer(site.me, to);
        }
        site.account.occupy(self.overhead);
        let (first, last) = self.send_from(site.me, site.engine.now() + self.overhead, bytes);
        Self::spend_until(site, cause, first).await;
        last + self.latency(site.me, to)
    }

    /// Gets this many bytes.
    async fn fetch(&self, site: Site<'_>, from: u32, bytes: usize, cause: Cause) {
        if self.is_inside(site.me, from) {
            let moving = if site.me == from { 0 } else { self.inside_transfer(site.me, from) };
            return site.spend(cause, self.inside_overhead + moving + self.copying(bytes)).await;
        }
        let requested = self.inject(site, from, 0, cause).await;
        Self::spend_until(site, cause, requested).await;
        let arrived = self.hands_on(requested, Rank(site.me), Rank(from), 0);
        Self::spend_until(site, cause, arrived).await;
        let (_, last) = self.send_from(from, arrived, bytes);
        let arrival = last + self.latency(from, site.me);
        Self::spend_until(site, cause, arrival + self.overhead).await;
    }

    pub(super) async fn begin(&self, site: Site<'_>) {
        if self.machine.call_ns > 0.0 {
            let call = picoseconds(self.machine.call_ns);
            site.account.occupy(call);
            site.spend(Cause::Compute, call).await;
        }
    }

    pub(super) async fn transfer(
        &self,
        site: Site<'_>,
        from: Where,
        to: Where,
        bytes: usize,
    ) -> Time {
        if to.pe.0 != site.me {
            return self.inject(site, to.pe.0, bytes, Cause::OnChip).await;
        }
        if from.pe.0 == site.me {
            site.spend(Cause::OffChip, self.copying(bytes)).await;
        } else {
            self.fetch(site, from.pe.0, bytes, Cause::OnChip).await;
        }
        site.engine.now()
    }

    pub(super) async fn combine(&self, site: Site<'_>, bytes: usize) {
        site.spend(Cause::Compute, self.copying(bytes)).await;
    }

    pub(super) async fn signal(&self, site: Site<'_>, to: Rank) -> Time {
        self.inject(site, to.0, 0, Cause::Flags).await
    }

    pub(super) async fn observe(&self, site: Site<'_>, from: Option<Rank>) {
        let overhead =
            from.map_or(self.inside_overhead, |from| self.overhead_between(site.me, from.0));
        site.account.occupy(overhead);
        site.spend(Cause::Flags, overhead).await;
    }

    pub(super) async fn send(&self, site: Site<'_>, to: Rank, _: Where, bytes: usize) -> Time {
        self.inject(site, to.0, bytes, Cause::OnChip).await
    }

    pub(super) async fn receive(
        &self,
        site: Site<'_>,
        _: Time,
        from: Rank,
        _: Where,
        _: usize,
    ) -> Time {
        let overhead = self.overhead_between(site.me, from.0);
        site.account.occupy(overhead);
        site.spend(Cause::OnChip, overhead).await;
        site.engine.now()
    }

    pub(super) async fn handed_over(&self, _: Site<'_>, _: Time) {}

    pub(super) async fn reach_word(&self, site: Site<'_>, at: Rank) {
        self.fetch(site, at.0, 8, Cause::Flags).await;
    }
}

#[cfg(test)]
mod tests;
