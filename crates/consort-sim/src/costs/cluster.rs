//! Nodes on a network: the LogGP model.
//!
//! Alexandrov, Ionescu, Schauser and Scheiman 1995: a message of `b` bytes keeps its sender busy
//! for `o`, goes into the network in `(b - 1) G`, arrives `L` after its last byte, and keeps its
//! receiver busy for `o`. From the last byte of a message to the first of the next it takes
//! `max(g, o)`, at the sender and at the receiver.
//!
//! Assumptions beyond the model:
//!
//! - every PE has an interface to the network of its own; what comes in too fast queues there, in
//!   the order in which it has come, and the network itself never is too slow;
//! - each hop after the first adds to `L`;
//! - interfaces put and get without the PE at the other end: a put is a message that keeps nobody
//!   busy where it lands, a get a message without data there and one with the data back, and an
//!   atomic operation a get of a word;
//! - what many have counted, such as loans that are given back, is read like memory of one's own;
//! - in a node the sender copies a message, and it can be seen a line's transfer later;
//! - a PE copies and combines in its own memory as fast as it copies messages.

use std::cell::Cell;

use consort_fabric::{Capabilities, Rank};

use super::{Site, Where};
use crate::{
    account::Cause,
    engine::{Time, picoseconds},
    machines,
};

/// See the head of this file.
pub(crate) struct Cluster {
    machine: machines::Cluster,
    overhead: Time,
    /// The longer one of gap and overhead.
    turn: Time,
    inside_overhead: Time,
    inside_transfer: Time,
    interfaces: Vec<Interface>,
    contention: bool,
}

/// When a PE's interface can send, and take, the first byte of another message.
#[derive(Default)]
struct Interface {
    sends_from: Cell<Time>,
    takes_from: Cell<Time>,
}

impl Cluster {
    pub(crate) fn new(machine: &machines::Cluster, pes: u32) -> Self {
        let overhead = picoseconds(machine.overhead_ns);
        Self {
            overhead,
            turn: picoseconds(machine.gap_ns).max(overhead),
            inside_overhead: picoseconds(machine.inside.overhead_ns),
            inside_transfer: picoseconds(machine.inside.transfer_ns),
            interfaces: (0..pes).map(|_| Interface::default()).collect(),
            contention: true,
            machine: machine.clone(),
        }
    }

    /// With queues at the interfaces, or without.
    pub(crate) fn with_contention(mut self, contention: bool) -> Self {
        self.contention = contention;
        self
    }

    /// With the network's distances, or all of them one hop.
    pub(crate) fn with_distances(mut self, distances: bool) -> Self {
        if !distances {
            self.machine.hop_ns = 0.0;
        }
        self
    }

    pub(super) fn capabilities(&self, _: u32) -> Capabilities {
        Capabilities {
            inbox_lines: 1 << 20,
            scratch_bytes: 1 << 20,
            buffer_bytes: 1 << 20,
            lending: true,
        }
    }

    fn is_inside(&self, a: u32, b: u32) -> bool {
        self.machine.node(a) == self.machine.node(b)
    }

    fn latency(&self, a: u32, b: u32) -> Time {
        let (a, b) = (self.machine.node(a), self.machine.node(b));
        picoseconds(self.machine.latency_between_ns(a, b))
    }

    /// From the first byte of a message to its last.
    fn stream(&self, bytes: usize) -> Time {
        picoseconds(bytes.saturating_sub(1) as f64 * self.machine.gap_per_byte_ns)
    }

    fn copying(&self, bytes: usize) -> Time {
        picoseconds(bytes as f64 / self.machine.inside.copy_gbps)
    }

    /// How long a message keeps each of two PEs busy.
    fn overhead_between(&self, a: u32, b: u32) -> Time {
        if self.is_inside(a, b) { self.inside_overhead } else { self.overhead }
    }

    /// The interface of `pe` sends a message, of which the first byte is there at a time. Returns
    /// when the first and the last byte have left.
    fn send_from(&self, pe: u32, ready: Time, bytes: usize) -> (Time, Time) {
        let sends_from = &self.interfaces[pe as usize].sends_from;
        let first = if self.contention { ready.max(sends_from.get()) } else { ready };
        let last = first + self.stream(bytes);
        sends_from.set(last + self.turn);
        (first, last)
    }

    /// When a message that comes to the interface of `to` now is handed on.
    pub(super) fn hands_on(&self, now: Time, from: Rank, to: Rank, bytes: usize) -> Time {
        if !self.contention || self.is_inside(from.0, to.0) {
            return now;
        }
        let takes_from = &self.interfaces[to.index()].takes_from;
        let handed_on = now.max(takes_from.get() + self.stream(bytes));
        takes_from.set(handed_on + self.turn);
        handed_on
    }

    /// The PE spends the time until then on something.
    async fn spend_until(site: Site<'_>, cause: Cause, until: Time) {
        site.spend(cause, until.saturating_sub(site.engine.now())).await;
    }

    /// Sends so many bytes. Returns when they arrive.
    async fn inject(&self, site: Site<'_>, to: u32, bytes: usize, cause: Cause) -> Time {
        if self.is_inside(site.me, to) {
            site.spend(cause, self.inside_overhead + self.copying(bytes)).await;
            return site.engine.now() + self.inside_transfer;
        }
        let (first, last) = self.send_from(site.me, site.engine.now() + self.overhead, bytes);
        Self::spend_until(site, cause, first).await;
        last + self.latency(site.me, to)
    }

    /// Gets so many bytes.
    async fn fetch(&self, site: Site<'_>, from: u32, bytes: usize, cause: Cause) {
        if self.is_inside(site.me, from) {
            let moving = if site.me == from { 0 } else { self.inside_transfer };
            return site.spend(cause, self.inside_overhead + moving + self.copying(bytes)).await;
        }
        let asked = self.inject(site, from, 0, cause).await;
        Self::spend_until(site, cause, asked).await;
        let heard = self.hands_on(asked, Rank(site.me), Rank(from), 0);
        Self::spend_until(site, cause, heard).await;
        let (_, last) = self.send_from(from, heard, bytes);
        let came = last + self.latency(from, site.me);
        Self::spend_until(site, cause, came + self.overhead).await;
    }

    pub(super) async fn begin(&self, _: Site<'_>) {}

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

    pub(super) async fn notice(&self, site: Site<'_>, from: Option<Rank>) {
        let overhead =
            from.map_or(self.inside_overhead, |from| self.overhead_between(site.me, from.0));
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
        site.spend(Cause::OnChip, self.overhead_between(site.me, from.0)).await;
        site.engine.now()
    }

    pub(super) async fn handed_over(&self, _: Site<'_>, _: Time) {}

    pub(super) async fn reach_word(&self, site: Site<'_>, at: Rank) {
        self.fetch(site, at.0, 8, Cause::Flags).await;
    }
}

#[cfg(test)]
mod tests {
    use consort_collectives::{Algorithm, Plan, Setting, Visitor, visit};
    use consort_fabric::{
        Candidate, Collective, Fabric, Kernel, Op, OperatorClass, Slot, Span, Sum, Sync,
    };

    use crate::{
        Buffer, Call, Operands, Pe, Simulation,
        analytic::loggp::LogGp,
        machines::{Cluster, Inside, Kind, Machine, Network},
    };

    /// Numbers by which each term of a sum can be told from the others.
    const DIGITS: LogGp =
        LogGp { latency_ns: 1000.0, overhead_ns: 10.0, gap_ns: 100.0, gap_per_byte_ns: 1.0 };
    /// Of combining eight bytes.
    const COMBINE_NS: f64 = 4.0;

    fn machine(model: LogGp, nodes: u32, pes_per_node: u32) -> Machine {
        let LogGp { latency_ns, overhead_ns, gap_ns, gap_per_byte_ns } = model;
        let cluster = Cluster {
            nodes,
            pes_per_node,
            latency_ns,
            overhead_ns,
            gap_ns,
            gap_per_byte_ns,
            hop_ns: 7.0,
            network: Network::FatTree { arity: 64 },
            inside: Inside { transfer_ns: 50.0, overhead_ns: 3.0, copy_gbps: 8.0 / COMBINE_NS },
        };
        let text = String::from("a test");
        let (name, title, source) = (text.clone(), text.clone(), text);
        Machine { name, title, source, kind: Kind::Cluster(cluster) }
    }

    fn flat(model: LogGp, pes: u32) -> Simulation {
        Simulation::on(machine(model, pes, 1), pes)
    }

    /// A collective by an algorithm, once.
    struct Once<'o> {
        simulation: &'o Simulation,
        collective: Collective,
        candidate: &'o Candidate,
        setting: Setting,
    }

    impl Visitor for Once<'_> {
        type Output = f64;

        fn visit<A: Algorithm>(self) -> f64 {
            let Self { simulation, collective, candidate, setting } = self;
            let bytes = setting.bytes;
            let member = async |pe: &Pe<'_>| -> Op {
                let plan = Plan::<A>::new(collective, &setting.at(pe.rank()), candidate, candidate);
                let operands = Operands {
                    kernel: Some(Kernel::new::<u64, _>(&Sum)),
                    source: Buffer::Owned(vec![1; bytes]),
                    target: Buffer::Owned(vec![0; bytes]),
                };
                let call = pe.begin(operands).await;
                plan.unwrap().run(&call).await
            };
            simulation.run(member).unwrap().ended_ns
        }
    }

    fn ends_ns(
        collective: Collective,
        candidate: &str,
        simulation: &Simulation,
        pes: u32,
        bytes: usize,
    ) -> f64 {
        let candidate: Candidate = candidate.parse().unwrap();
        let setting = Setting {
            rank: super::Rank(0),
            pes,
            root: super::Rank(0),
            bytes,
            element_bytes: 1,
            operator: OperatorClass::Commutative,
            sync: Sync::MINE,
            symmetric: false,
            capabilities: simulation.capabilities().unwrap(),
            first_slot: Setting::first_slot(collective, pes),
            beside: false,
            counter: 1,
        };
        let once = Once { simulation, collective, candidate: &candidate, setting };
        visit(collective, &candidate.algorithm, once).unwrap()
    }

    /// What two PEs do, and when the last one is done.
    fn two_end_ns(
        simulation: &Simulation,
        first: impl AsyncFn(&Call<'_>) -> Op,
        second: impl AsyncFn(&Call<'_>) -> Op,
    ) -> f64 {
        let member = async |pe: &Pe<'_>| {
            let bytes = || Buffer::Owned(vec![0; 100]);
            let call = pe.begin(Operands { kernel: None, source: bytes(), target: bytes() }).await;
            if pe.rank().0 == 0 { first(&call).await } else { second(&call).await }
        };
        simulation.run(member).unwrap().ended_ns
    }

    #[test]
    fn broadcasts_are_those_of_the_model() {
        let busy = LogGp { overhead_ns: 300.0, ..DIGITS };
        for model in [DIGITS, busy] {
            for (pes, radix, bytes) in [(2, 2, 5), (8, 2, 5), (9, 3, 1), (4, 4, 50), (16, 4, 56)] {
                let candidate = format!("knomial(radix={radix})");
                let simulation = flat(model, pes);
                let ended_ns = ends_ns(Collective::Broadcast, &candidate, &simulation, pes, bytes);
                let by_formula_ns = model.broadcast_ns(pes.into(), radix, bytes as u64);
                assert_eq!(ended_ns, by_formula_ns, "{model:?}, {pes}, {candidate}, {bytes} B");
            }
            let chain = "pipelined(chunk_bytes=25,radix=1)";
            let ended_ns = ends_ns(Collective::Broadcast, chain, &flat(model, 5), 5, 50);
            assert_eq!(ended_ns, model.chain_ns(5, 50, 2), "{model:?}, in two chunks");
        }
    }

    #[test]
    fn reductions_are_those_of_the_model() {
        for model in [DIGITS, LogGp { overhead_ns: 300.0, ..DIGITS }] {
            for (pes, radix) in [(2, 2), (8, 2), (9, 3), (5, 5)] {
                let candidate = format!("knomial(radix={radix})");
                let ended_ns = ends_ns(Collective::Reduce, &candidate, &flat(model, pes), pes, 8);
                let by_formula_ns = model.reduce_ns(pes.into(), radix, 8, COMBINE_NS);
                assert_eq!(ended_ns, by_formula_ns, "{model:?}, {pes}, {candidate}");
            }
        }
    }

    #[test]
    fn barriers_are_those_of_the_model() {
        let close = LogGp { latency_ns: 0.0, gap_ns: 0.0, ..DIGITS };
        for model in [DIGITS, close] {
            for (pes, radix) in [(2, 2), (8, 2), (9, 3), (5, 5), (64, 4)] {
                let candidate = format!("dissemination(radix={radix})");
                let ended_ns = ends_ns(Collective::Barrier, &candidate, &flat(model, pes), pes, 0);
                let by_formula_ns = model.barrier_ns(pes.into(), radix);
                assert_eq!(ended_ns, by_formula_ns, "{model:?}, {pes}, {candidate}");
            }
        }
    }

    #[test]
    fn puts_and_gets_need_no_help() {
        let nothing = async |_: &Call<'_>| Ok(());
        let data = Span::buffer(0, 5);
        let theirs = |f: &Call<'_>| f.reach(super::Rank(1), data).unwrap();
        let get = async |f: &Call<'_>| f.get(&theirs(f), 0, Span::target(0, 5)).await;
        // There and back, each after its overhead, and four bytes after the first.
        assert_eq!(two_end_ns(&flat(DIGITS, 2), get, nothing), 10.0 + 1000.0 + 1004.0 + 10.0);
        let put = async |f: &Call<'_>| f.put(&theirs(f), 0, Span::source(0, 5)).await;
        assert_eq!(two_end_ns(&flat(DIGITS, 2), put, nothing), 10.0 + 1004.0);
    }

    #[test]
    fn in_a_node_messages_are_copied() {
        let slot = Slot::new(3);
        let send = async |f: &Call<'_>| f.send(super::Rank(1), slot, 0, Span::source(0, 100)).await;
        let receive = async |f: &Call<'_>| f.receive(slot, 0, Span::target(0, 100)).await;
        let inside = Simulation::on(machine(DIGITS, 1, 2), 2);
        assert_eq!(two_end_ns(&inside, send, receive), 3.0 + 50.0 + 50.0 + 3.0);
        let signal = async |f: &Call<'_>| f.signal(super::Rank(1), slot, 0).await;
        let wait = async |f: &Call<'_>| f.wait(slot, 0).await;
        assert_eq!(two_end_ns(&inside, signal, wait), 3.0 + 50.0 + 3.0);
    }

    #[test]
    fn hops_add_to_the_latency_unless_all_are_near() {
        let mut far = machine(DIGITS, 2, 1);
        if let Kind::Cluster(cluster) = &mut far.kind {
            cluster.nodes = 4;
            cluster.network = Network::Torus { sides: vec![4] };
        }
        let slot = Slot::new(3);
        let member = async |pe: &Pe<'_>| {
            let call = pe.begin(Operands::NONE).await;
            match pe.rank().0 {
                0 => call.signal(super::Rank(2), slot, 0).await,
                2 => call.wait(slot, 0).await,
                _ => Ok(()),
            }
        };
        let far = Simulation::on(far, 4);
        assert_eq!(far.run(member).unwrap().ended_ns, 1020.0 + 7.0);
        assert_eq!(far.near().run(member).unwrap().ended_ns, 1020.0);
    }

    /// Of four messages that come at once the last is handed on three gaps later.
    #[test]
    fn what_comes_too_fast_queues() {
        let flat_ns = |simulation| ends_ns(Collective::Barrier, "flat", &simulation, 5, 0);
        let alone_ns = flat_ns(flat(DIGITS, 5).uncontended());
        // PE 0 hears all, one after the other, and tells all.
        assert_eq!(alone_ns, 10.0 + 1000.0 + 4.0 * 10.0 + 4.0 * 10.0 + 1000.0 + 10.0);
        let queued_ns = 1020.0 + 3.0 * 100.0 + 3.0 * 100.0 + 1020.0;
        assert_eq!(flat_ns(flat(DIGITS, 5)), queued_ns);
    }
}
