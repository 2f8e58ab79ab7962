//! Tests broadcasts that only their source calls: every message arrives everywhere, once and in
//! order.

use consort_collectives::async_broadcast::{OcBcastAsync, Variant};
use consort_fabric::Rank;
use consort_sandbox::seeds::seeds;
use consort_sim::{Listener, Pe, Simulation, machines::Machine};

/// Bytes in a chunk in random schedules.
const CHUNK: usize = 64;
/// Bytes in a chunk of the thesis: 96 lines.
const LARGE: usize = 96 * 32;
/// Lengths of messages: empty, less than a chunk, whole chunks, and more than that.
const LENGTHS: [usize; 5] = [0, 1, CHUNK, 2 * CHUNK, 2 * CHUNK + 7];

/// Returns message `number` of `source`.
fn message(source: Rank, number: usize) -> Vec<u8> {
    let len = LENGTHS[(source.index() + number) % LENGTHS.len()];
    let first = source.index() * 7 + number * 31;
    (0..=250).cycle().skip(first % 251).step_by(3).take(len).collect()
}

/// The messages that a PE received, by source.
type Got = Vec<Vec<Vec<u8>>>;

fn keep(broadcasts: &mut OcBcastAsync<Listener<'_>>, got: &mut Got) {
    while let Some((source, data)) = broadcasts.next_delivered() {
        got[source.index()].push(data);
    }
}

/// Lets each of the first `sources` PEs broadcast `messages` messages, with polls in between. All
/// PEs close.
fn all_arrive(simulation: &Simulation, sources: u32, k: u32, messages: usize) {
    for variant in [Variant::Published, Variant::Fair] {
        arrive(simulation, sources, k, messages, variant);
    }
}

fn arrive(simulation: &Simulation, sources: u32, k: u32, messages: usize, variant: Variant) {
    let outcome = simulation
        .run(async |pe: &Pe<'_>| {
            let mut broadcasts = OcBcastAsync::new(pe.listener(), k, CHUNK, variant);
            let mut got = vec![Vec::new(); pe.size() as usize];
            if pe.rank().0 < sources {
                for number in 0..messages {
                    broadcasts.broadcast(&message(pe.rank(), number)).await.expect("no PE fails");
                    if number % 3 == 1 {
                        broadcasts.poll().await.expect("no PE fails");
                    }
                    keep(&mut broadcasts, &mut got);
                }
            }
            broadcasts.close().await.expect("no PE fails");
            keep(&mut broadcasts, &mut got);
            got
        })
        .unwrap_or_else(|error| panic!("{sources} sources, k = {k}: {error}"));
    for (pe, got) in outcome.results.iter().enumerate() {
        for (source, got) in (0..).map(Rank).zip(got) {
            let sends = source.0 < sources && source.index() != pe;
            let messages = if sends { messages } else { 0 };
            let expected: Vec<_> = (0..messages).map(|number| message(source, number)).collect();
            assert!(*got == expected, "PE {pe} of source {source}; {simulation:?}, k = {k}");
        }
    }
}

#[test]
fn every_message_arrives_once_and_in_order_under_any_schedule() {
    let seeds: Vec<u64> = seeds(8, 80, &[]).collect();
    for pes in [1_u32, 2, 3, 5, 8, 13] {
        for k in 1..pes.max(2) {
            for sources in [1, pes.div_ceil(2), pes] {
                for &seed in &seeds {
                    all_arrive(&Simulation::explored(pes).seed(seed), sources, k, 5);
                }
            }
        }
    }
}

#[test]
fn every_message_arrives_once_among_48() {
    const KS: [u32; 8] = [1, 2, 3, 5, 7, 13, 24, 47];
    for seed in seeds(8, 8, &[]) {
        let k = KS[(seed % 8) as usize];
        for sources in [1, 2, 5, 24, 48] {
            all_arrive(&Simulation::explored(48).seed(seed), sources, k, 3);
        }
    }
}

#[test]
fn every_message_arrives_once_on_the_scc() {
    let machine = Machine::find("scc").expect("a shipped machine");
    for (sources, k) in [(1, 47), (5, 7), (48, 2)] {
        all_arrive(&Simulation::on(machine.clone(), 48), sources, k, 2);
    }
}

/// Returns how many messages of each source reach the others within some time if all PEs broadcast
/// without end.
fn under_endless_load(
    simulation: &Simulation,
    k: u32,
    variant: Variant,
    until_ns: f64,
) -> Vec<usize> {
    let outcome = simulation.run(async |pe: &Pe<'_>| {
        let mut broadcasts = OcBcastAsync::new(pe.listener(), k, LARGE, variant);
        let mut got = vec![0; pe.size() as usize];
        while pe.now_ns() < until_ns {
            broadcasts.broadcast(&[1; LARGE]).await.expect("no PE fails");
            while let Some((source, _)) = broadcasts.next_delivered() {
                got[source.index()] += 1;
            }
        }
        broadcasts.close().await.expect("no PE fails");
        got
    });
    let results = outcome.expect("it ends").results;
    (0..results.len()).map(|source| results.iter().map(|got| got[source]).sum()).collect()
}

#[test]
fn published_turns_starve_pes_and_fair_ones_do_not() {
    let machine = Machine::find("scc").expect("a shipped machine");
    for k in [2, 47] {
        let share = |variant| {
            let simulation = Simulation::on(machine.clone(), 48);
            let counts = under_endless_load(&simulation, k, variant, 2e7);
            let (least, most) = (counts.iter().min(), counts.iter().max());
            *least.expect("48") as f64 / *most.expect("48") as f64
        };
        let (published, fair) = (share(Variant::Published), share(Variant::Fair));
        assert!(published < 0.2, "k = {k}: the published ones give the last {published:.2}");
        assert!(fair > 0.6, "k = {k}: fair ones give the last {fair:.2} of the first");
    }
}
