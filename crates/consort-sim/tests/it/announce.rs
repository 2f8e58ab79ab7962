//! Broadcasts that only their source calls: every message everywhere, once and in order.

use consort_collectives::announce::OcBcastAsync;
use consort_fabric::Rank;
use consort_sim::{Listener, Pe, Simulation, machines::Machine};

/// Bytes of a chunk, in schedules at random.
const CHUNK: usize = 64;
/// Lengths of messages: nothing, less than a chunk, chunks, and more than that.
const LENGTHS: [usize; 5] = [0, 1, CHUNK, 2 * CHUNK, 2 * CHUNK + 7];

/// Message `number` of `source`.
fn message(source: Rank, number: usize) -> Vec<u8> {
    let len = LENGTHS[(source.index() + number) % LENGTHS.len()];
    (0..len).map(|at| ((source.index() * 7 + number * 31 + at * 3) % 251) as u8).collect()
}

/// What a PE got, by source.
type Got = Vec<Vec<Vec<u8>>>;

fn keep(board: &mut OcBcastAsync<Listener<'_>>, got: &mut Got) {
    while let Some((source, data)) = board.next_delivered() {
        got[source.index()].push(data);
    }
}

/// The first `sources` PEs broadcast so many messages each, with polls in between; all PEs close.
fn all_arrive(simulation: &Simulation, sources: u32, k: u32, messages: usize, chunk: usize) {
    let outcome = simulation
        .run(async |pe: &Pe<'_>| {
            let mut board = OcBcastAsync::new(pe.listener(), k, chunk);
            let mut got = vec![Vec::new(); pe.size() as usize];
            if pe.rank().0 < sources {
                for number in 0..messages {
                    board.broadcast(&message(pe.rank(), number)).await.expect("nobody fails");
                    if number % 3 == 1 {
                        board.poll().await.expect("nobody fails");
                    }
                    keep(&mut board, &mut got);
                }
            }
            board.close().await.expect("nobody fails");
            keep(&mut board, &mut got);
            got
        })
        .unwrap_or_else(|error| panic!("{sources} sources, k = {k}: {error}"));
    for (pe, got) in outcome.results.iter().enumerate() {
        for (source, got) in got.iter().enumerate() {
            let rank = Rank(source as u32);
            let sends = rank.0 < sources && source != pe;
            let expected: Vec<_> =
                (0..if sends { messages } else { 0 }).map(|number| message(rank, number)).collect();
            assert!(*got == expected, "PE {pe} of source {source}; {simulation:?}, k = {k}");
        }
    }
}

#[test]
fn every_message_arrives_once_and_in_order_under_any_schedule() {
    for pes in [1_u32, 2, 3, 5, 8, 13] {
        for k in 1..pes.max(2) {
            for sources in [1, pes.div_ceil(2), pes] {
                for seed in 0..8 {
                    all_arrive(&Simulation::explored(pes).seed(seed), sources, k, 5, CHUNK);
                }
            }
        }
    }
}

#[test]
fn so_it_does_among_many() {
    for (seed, k) in (0..).zip([1, 2, 3, 5, 7, 13, 24, 47]) {
        for sources in [1, 2, 5, 24, 48] {
            all_arrive(&Simulation::explored(48).seed(seed), sources, k, 3, CHUNK);
        }
    }
}

#[test]
fn so_it_does_on_the_scc() {
    let machine = Machine::find("scc").expect("it is shipped");
    for (sources, k) in [(1, 47), (5, 7), (48, 2)] {
        all_arrive(&Simulation::on(machine.clone(), 48), sources, k, 2, CHUNK);
    }
}
