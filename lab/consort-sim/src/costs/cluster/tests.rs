//! Tests that the simulation agrees with the formulas of the model in small cases.

use std::{
    future::{Future, poll_fn},
    task::Poll,
};

use consort_fabric::{
    CallSpec, Candidate, Channel, Collective, Kernel, Messages, Op, Poisoned, Rank, Ranks, Rma,
    Signal, Span, Sum, SyncModes,
};
use consort_machine::Until;

use crate::{
    Buffer, Call, Caller, Effects, Operands, Pe, Simulation,
    analytic::loggp::LogGp,
    machines::{Cluster, Inside, Kind, Machine, Network, Placement, Provenance},
};

/// Parameters whose digits identify each term of a sum.
const DIGITS: LogGp =
    LogGp { latency_ns: 1000.0, overhead_ns: 10.0, gap_ns: 100.0, gap_per_byte_ns: 1.0 };
/// The time of combining eight bytes.
const COMBINE_NS: f64 = 4.0;

fn machine(model: LogGp, nodes: u32, pes_per_node: u32) -> Machine {
    let LogGp { latency_ns, overhead_ns, gap_ns, gap_per_byte_ns } = model;
    let cluster = Cluster {
        nodes,
        pes_per_node,
        call_ns: 0.0,
        interfaces_per_node: pes_per_node,
        placement: Placement::Blocks,
        latency_ns,
        overhead_ns,
        gap_ns,
        gap_per_byte_ns,
        hop_ns: 7.0,
        network: Network::FatTree { arity: 64 },
        inside: Inside {
            transfer_ns: 50.0,
            overhead_ns: 3.0,
            copy_gbps: 8.0 / COMBINE_NS,
            groups: Vec::new(),
        },
        compute: None,
    };
    let text = String::from("a test");
    let (name, title, source) = (text.clone(), text.clone(), text);
    let provenance = Provenance::default();
    Machine { name, title, source, provenance, kind: Kind::Cluster(cluster) }
}

fn flat(model: LogGp, pes: u32) -> Simulation {
    Simulation::on(machine(model, pes, 1), pes)
}

/// Returns the time at which one call of a collective by this algorithm ends.
fn ends_ns(
    collective: Collective,
    candidate: &str,
    simulation: &Simulation,
    pes: u32,
    bytes: usize,
) -> f64 {
    let candidate: Candidate = candidate.parse().unwrap();
    let call = CallSpec { collective, sync: SyncModes::MINE, bytes, ..CallSpec::barrier(pes) };
    let plans = simulation.plan(&call, &candidate, &candidate).unwrap();
    let member = async |pe: &Pe<'_>| {
        let operands = Operands {
            kernel: Some(Kernel::new::<u64, _>(&Sum)),
            source: Buffer::Owned(vec![1; bytes]),
            target: Buffer::Owned(vec![0; bytes]),
            layouts: None,
        };
        Caller::new(pe).call(&plans, operands).await
    };
    simulation.run(member).unwrap().ended_ns
}

/// Runs an operation on each of two PEs, and returns the time at which the last one ends.
fn two_end_ns(
    simulation: &Simulation,
    first: impl AsyncFn(&Call<'_>) -> Op,
    second: impl AsyncFn(&Call<'_>) -> Op,
) -> f64 {
    let member = async |pe: &Pe<'_>| {
        let bytes = || Buffer::Owned(vec![0; 100]);
        let call = pe.begin(Operands { source: bytes(), target: bytes(), ..Operands::NONE }).await;
        if pe.rank().0 == 0 { first(&call).await } else { second(&call).await }
    };
    simulation.run(member).unwrap().ended_ns
}

#[test]
fn broadcasts_match_the_model() {
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
fn reductions_match_the_model() {
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
fn barriers_match_the_model() {
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
fn puts_and_gets_do_not_involve_the_peer() {
    let nothing = async |_: &Call<'_>| Ok(());
    let data = Span::buffer(0, 5);
    let theirs = |f: &Call<'_>| f.reach(Rank(1), data);
    let get = async |f: &Call<'_>| f.get(&theirs(f), 0, Span::target(0, 5)).await;
    // There and back, each after its overhead, plus the four bytes after the first.
    assert_eq!(two_end_ns(&flat(DIGITS, 2), get, nothing), 10.0 + 1000.0 + 1004.0 + 10.0);
    let put = async |f: &Call<'_>| f.put(&theirs(f), 0, Span::source(0, 5)).await;
    assert_eq!(two_end_ns(&flat(DIGITS, 2), put, nothing), 10.0 + 1004.0);
}

#[test]
fn messages_within_a_node_are_copied() {
    let channel = Channel::new(3);
    let send = async |f: &Call<'_>| f.send(Rank(1), channel, 0, Span::source(0, 100)).await;
    let receive = async |f: &Call<'_>| f.receive(channel, 0, Span::target(0, 100)).await;
    let inside = Simulation::on(machine(DIGITS, 1, 2), 2);
    assert_eq!(two_end_ns(&inside, send, receive), 3.0 + 50.0 + 50.0 + 3.0);
    let signal = async |f: &Call<'_>| f.signal(Rank(1), channel, 0).await;
    let wait = async |f: &Call<'_>| f.wait(channel, 0).await;
    assert_eq!(two_end_ns(&inside, signal, wait), 3.0 + 50.0 + 3.0);
}

#[test]
fn hops_add_to_the_latency_unless_all_are_near() {
    let mut far = machine(DIGITS, 2, 1);
    if let Kind::Cluster(cluster) = &mut far.kind {
        cluster.nodes = 4;
        cluster.network = Network::Torus { sides: vec![4] };
    }
    let channel = Channel::new(3);
    let member = async |pe: &Pe<'_>| {
        let call = pe.begin(Operands::NONE).await;
        match pe.rank().0 {
            0 => call.signal(Rank(2), channel, 0).await,
            2 => call.wait(channel, 0).await,
            _ => Ok(()),
        }
    };
    let far = Simulation::on(far, 4);
    assert_eq!(far.run(member).unwrap().ended_ns, 1020.0 + 7.0);
    let near = Effects { distances: false, ..Effects::PUBLISHED };
    assert_eq!(far.with(near).run(member).unwrap().ended_ns, 1020.0);
}

/// The sender and the receiver each make a call.
#[test]
fn calls_take_time() {
    let signal_ns = |call_ns: f64| {
        let mut machine = machine(DIGITS, 2, 1);
        if let Kind::Cluster(cluster) = &mut machine.kind {
            cluster.call_ns = call_ns;
        }
        let channel = Channel::new(3);
        let first = async |call: &Call<'_>| call.signal(Rank(1), channel, 0).await;
        let second = async |call: &Call<'_>| call.wait(channel, 0).await;
        two_end_ns(&Simulation::on(machine, 2), first, second)
    };
    assert_eq!([0.0, 500.0].map(signal_ns), [1020.0, 1520.0]);
}

/// Of four messages that arrive at once, the last is delivered three gaps later.
#[test]
fn simultaneous_messages_queue() {
    let flat_ns = |simulation| ends_ns(Collective::Barrier, "flat", &simulation, 5, 0);
    let alone = Effects { contention: false, ..Effects::PUBLISHED };
    let alone_ns = flat_ns(flat(DIGITS, 5).with(alone));
    // PE 0 receives from all, one after the other, and sends to all.
    assert_eq!(alone_ns, 10.0 + 1000.0 + 4.0 * 10.0 + 4.0 * 10.0 + 1000.0 + 10.0);
    let queued_ns = 1020.0 + 3.0 * 100.0 + 3.0 * 100.0 + 1020.0;
    assert_eq!(flat_ns(flat(DIGITS, 5)), queued_ns);
}

/// All PEs of one node send one message each to the PEs of another node, through the same number of
/// interfaces.
#[test]
fn pes_of_a_node_share_its_interfaces() {
    let ends_ns = |model, interfaces, placement| {
        let mut machine = machine(model, 2, 4);
        if let Kind::Cluster(cluster) = &mut machine.kind {
            cluster.interfaces_per_node = interfaces;
            cluster.placement = placement;
        }
        let channel = Channel::new(3);
        let member = async |pe: &Pe<'_>| {
            let call = pe.begin(Operands::NONE).await;
            let (own, across) = match placement {
                Placement::Blocks => (pe.rank().0 / 4, 4),
                Placement::InTurn => (pe.rank().0 % 2, 1),
            };
            if own == 0 {
                call.signal(Rank(pe.rank().0 + across), channel, 0).await
            } else {
                call.wait(channel, 0).await
            }
        };
        Simulation::on(machine, 8).run(member).unwrap().ended_ns
    };
    // A PE attends only to its own message. The others follow after the gap, however busy it is.
    let busy = LogGp { overhead_ns: 300.0, ..DIGITS };
    for (model, alone_ns) in [(DIGITS, 1020.0), (busy, 1600.0)] {
        for placement in [Placement::Blocks, Placement::InTurn] {
            assert_eq!(ends_ns(model, 4, placement), alone_ns);
            assert_eq!(ends_ns(model, 2, placement), alone_ns + 100.0);
            assert_eq!(ends_ns(model, 1, placement), alone_ns + 3.0 * 100.0);
        }
    }
}

/// With node leaders, fewer messages share an interface. A plain tree is also grouped by node if
/// the nodes have consecutive PEs.
#[test]
fn two_levels_take_less_than_one() {
    for (placement, at_least) in [(Placement::Blocks, 1.5), (Placement::InTurn, 3.0)] {
        let mut machine = Machine::find("cluster").unwrap();
        if let Kind::Cluster(cluster) = &mut machine.kind {
            cluster.nodes = 64;
            cluster.placement = placement;
        }
        let simulation = Simulation::on(machine, 1024);
        let ends_ns = |candidate| ends_ns(Collective::AllReduce, candidate, &simulation, 1024, 8);
        let flat =
            ["recursive_doubling(radix=2)", "knomial(radix=2)", "knomial(radix=4)"].map(ends_ns);
        let flat_ns = flat.into_iter().fold(f64::INFINITY, f64::min);
        let levels_ns =
            ends_ns("two_level(knomial(radix=2),recursive_doubling(radix=2),knomial(radix=2))");
        assert!(levels_ns * at_least < flat_ns, "{placement:?}: {levels_ns} and {flat_ns} ns");
    }
}

/// A put that signals is one message. A fence of a network without order waits for a round trip.
#[test]
fn counted_put_is_one_message_with_a_receipt() {
    let outcome = flat(DIGITS, 2).heap_bytes(24).run(async |pe: &Pe<'_>| {
        let call = pe.begin(Operands::NONE).await;
        if pe.rank() == Rank(1) {
            call.wait_until(16, Until::AtLeast(1)).await?;
            let counted_ns = pe.now_ns();
            call.wait_until(16, Until::AtLeast(2)).await?;
            return Ok((counted_ns, pe.now_ns()));
        }
        let remote = call.reach(Rank(1), Span::heap(0, 24));
        call.put_signal(&remote, 0, Span::heap(8, 8), 16, Signal::Add(1)).await?;
        call.receipts().await?;
        let receipt_ns = pe.now_ns();
        call.put_signal(&remote, 0, Span::heap(8, 0), 16, Signal::Add(1)).await?;
        Ok::<_, Poisoned>((receipt_ns, 0.0))
    });
    let results: Vec<(f64, f64)> = outcome.unwrap().results.into_iter().flatten().collect();
    let [(receipt_ns, _), (counted_ns, flagged_ns)] = results[..] else { panic!("{results:?}") };
    let (one_way_ns, observed_ns) = (10.0 + 7.0 + 1000.0, 3.0);
    assert_eq!(counted_ns, one_way_ns + observed_ns);
    // A moment later, since simultaneous events may occur in any order.
    assert_eq!(receipt_ns.round(), one_way_ns + 1000.0);
    assert_eq!(flagged_ns.round(), receipt_ns.round() + 10.0 + 1000.0 + observed_ns);
}

/// Teams of two make their own calls, two at a time, while their PEs compute.
#[test]
fn team_calls_progress_while_pes_compute() {
    let call = CallSpec {
        collective: Collective::Broadcast,
        sync: SyncModes::MINE,
        bytes: 101,
        symmetric: true,
        ..CallSpec::barrier(2)
    };
    let simulation = flat(DIGITS, 4).heap_bytes(202);
    let candidate: Candidate = "flat".parse().unwrap();
    let plans = simulation.plan(&call, &candidate, &candidate).unwrap();
    let outcome = simulation.run(async |pe: &Pe<'_>| {
        let Rank(me) = pe.rank();
        let row = Ranks { first: me / 2 * 2, stride: 1, count: 2 };
        let column = Ranks { first: me % 2, stride: 2, count: 2 };
        let buffer = |at| Buffer::Symmetric { at, bytes: 101 };
        let operands = |at| Operands { source: buffer(at), target: buffer(at), ..Operands::NONE };
        for (at, team) in [(0, row), (101, column)] {
            if me == team.first {
                pe.set_heap(at, &[u8::try_from(me).unwrap() + 1; 101]);
            }
        }
        let calls = [pe.begin_in(row, operands(0)).await, pe.begin_in(column, operands(101)).await];
        let mut both = Box::pin(async {
            plans.run(&calls[0]).await?;
            plans.run(&calls[1]).await
        });
        let mut compute = Box::pin(pe.compute(9000.0));
        let mut left = (false, false);
        poll_fn(|context| {
            left.0 = left.0 || compute.as_mut().poll(context).is_ready();
            left.1 = left.1 || both.as_mut().poll(context).is_ready();
            if left == (true, true) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        let first = |at| pe.heap(at, 101)[100];
        (pe.now_ns(), first(0), first(101))
    });
    let results = outcome.unwrap().results;
    let data: Vec<_> = results.iter().map(|&(_, row, column)| (row, column)).collect();
    assert_eq!(data, [(1, 1), (1, 2), (3, 1), (3, 2)]);
    // Each PE is busy with two messages: it sends two, receives two, or does one of each.
    let ended_ns: Vec<f64> = results.iter().map(|&(ns, ..)| ns).collect();
    assert_eq!(ended_ns, [9020.0; 4]);
}
