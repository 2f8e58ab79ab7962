//! Each mechanism alone, against the numbers of the machine's description.

use std::{
    cell::Cell,
    sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst},
};

use consort_fabric::{Line, Machine, Queue, Thread, Until};

use super::{SimulatedThread, Stall, ThreadSimulation, ThreadsError, ThreadsOutcome, WaitsFor};
use crate::machines::{AtomicOp, Coherent, Kind, Machine as Description, State};

const TILE: &str = "tile-gx36";
const XEON: &str = "xeon-e7-8867l-x8";
const OPTERON: &str = "opteron-6176-x4";
const MACHINES: [&str; 3] = [TILE, XEON, OPTERON];

fn coherent(name: &str) -> Coherent {
    match Description::find(name).unwrap().kind {
        Kind::Coherent(machine) => machine,
        kind => panic!("{name} is {}", kind.name()),
    }
}

/// The time of so many cycles of a machine.
fn cycles(name: &str, count: f64) -> f64 {
    count / coherent(name).ghz
}

/// Runs a program on threads at these hardware threads.
fn run<R>(
    name: &str,
    placement: &[u32],
    program: impl AsyncFn(SimulatedThread) -> R,
) -> ThreadsOutcome<R> {
    let machine = Description::find(name).unwrap();
    let simulation = ThreadSimulation::on(machine, 0).placed(placement.to_vec());
    simulation.run(program).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The time that an operation takes, in nanoseconds.
async fn timed(thread: &SimulatedThread, operation: impl Future) -> f64 {
    let begin = thread.clock();
    operation.await;
    (thread.clock() - begin) as f64 / 1e3
}

#[track_caller]
fn near(found: f64, expected: f64, what: &str) {
    assert!((found - expected).abs() < 0.1, "{what}: {found} ns, not {expected}");
}

/// Whose turn it is, for programs whose threads take turns at given times.
async fn at(thread: &SimulatedThread, us: u64) {
    thread.world.engine.reach(us * 1_000_000).await;
}

#[test]
fn loads_stores_and_atomics_cost_what_the_table_says() {
    for name in MACHINES {
        let machine = coherent(name);
        let own = cycles(name, machine.threads.as_ref().unwrap().operation_cycles);
        let fence = cycles(name, machine.threads.as_ref().unwrap().fence_cycles);
        for other in [2, 7, 13, machine.threads() - 1] {
            let (one, two, three) = (Line::new(), Line::new(), Line::new());
            run(name, &[0, other], async |thread: SimulatedThread| {
                let owner = thread.me == 0;
                for line in [&one, &two, &three].into_iter().filter(|_| owner) {
                    thread.store(&line[0], 1, Relaxed).await;
                    thread.fence(SeqCst).await;
                }
                at(&thread, 10).await;
                if owner {
                    return;
                }
                let distance = |line: &Line| match name {
                    TILE => {
                        let (number, _) = thread.world.find(&line[0], thread.me);
                        machine.distance(thread.world.lines.at(number).home, other)
                    }
                    _ => machine.distance(0, other),
                };
                let (to, what) = (distance(&one), format!("{name}, {other}"));
                let load = timed(&thread, thread.load(&one[0], Relaxed)).await;
                near(load, own + machine.load_ns(State::Modified, to), &what);
                let stored = timed(&thread, async {
                    thread.store(&one[0], 2, Relaxed).await;
                    thread.fence(SeqCst).await;
                });
                let cost = own + machine.store_ns(State::Shared, to) + fence;
                near(stored.await, cost, &what);
                let stored = timed(&thread, async {
                    thread.store(&two[0], 2, Relaxed).await;
                    thread.fence(SeqCst).await;
                });
                let cost = machine.store_ns(State::Modified, distance(&two));
                near(stored.await, own + cost + fence, &what);
                let added = timed(&thread, thread.fetch_add(&three[0], 1, Relaxed)).await;
                let cost = machine.atomic_ns(AtomicOp::FetchAdd, State::Modified, distance(&three));
                near(added, own + cost, &what);
            });
        }
    }
}

#[test]
fn a_wait_is_one_load_and_one_more() {
    for name in MACHINES {
        let line = Line::new();
        let outcome = run(name, &[0, 4], async |thread: SimulatedThread| {
            if thread.me == 0 {
                at(&thread, 1000).await;
                return thread.store(&line[0], 7, Release).await;
            }
            let Ok(seen) = thread.wait_until(&line[0], Until::Equals(7)).await;
            assert_eq!(seen, 7);
        });
        assert_eq!(outcome.tallies[1].remote_reads, 2, "{name}");
        assert!(outcome.events < 30, "{name}: {} events", outcome.events);
        let idle = outcome.tallies[1].idle_ns();
        assert!((998_000.0..1_001_000.0).contains(&idle), "{name}: {idle} ns");
    }
}

#[test]
fn a_wait_has_an_end_if_it_is_given_one() {
    let line = Line::new();
    run(XEON, &[0], async |thread: SimulatedThread| {
        let Ok(none) = thread.wait_until_time(&line[0], Until::Equals(1), 5000).await;
        assert_eq!(none, None);
        assert!((5000..5100).contains(&thread.now_ns()), "{}", thread.now_ns());
    });
}

/// All who spin on a line get it again one after the other.
#[test]
fn waiters_of_one_line_are_served_in_turn() {
    for name in MACHINES {
        let (line, machine) = (Line::new(), coherent(name));
        let placement: Vec<u32> =
            (0..20).map(|core| core * machine.threads() / 40 * 2 % machine.threads()).collect();
        let ends = run(name, &placement, async |thread: SimulatedThread| {
            if thread.me == 0 {
                at(&thread, 20).await;
                thread.store(&line[0], 1, Release).await;
                return 0.0;
            }
            let Ok(_) = thread.wait_until(&line[0], Until::Equals(1)).await;
            thread.clock() as f64 / 1e3
        });
        let ends: Vec<f64> = ends.results.into_iter().flatten().filter(|&end| end > 0.0).collect();
        let (first, last) =
            ends.iter().fold((f64::MAX, 0.0_f64), |(a, b), &t| (a.min(t), b.max(t)));
        assert!(last - first > 15.0 * machine.line_serve_ns, "{name}: {first} to {last}");
    }
}

#[test]
fn a_store_is_seen_late_by_others() {
    for name in MACHINES {
        let line = Line::new();
        run(name, &[0, 4], async |thread: SimulatedThread| {
            if thread.me == 1 {
                thread.load(&line[0], Relaxed).await;
                at(&thread, 10).await;
                return assert_eq!(thread.load(&line[0], Relaxed).await, 0, "{name}");
            }
            thread.load(&line[0], Relaxed).await;
            thread.world.engine.reach(9_995_000).await;
            thread.store(&line[0], 5, Relaxed).await;
            assert_eq!(thread.load(&line[0], Relaxed).await, 5, "{name}");
        });
    }
}

#[test]
fn a_full_store_buffer_stalls() {
    for name in MACHINES {
        let entries = coherent(name).threads.unwrap().store_buffer;
        let lines: Vec<Line> = (0..entries + 1).map(|_| Line::new()).collect();
        for (count, stalls) in [(entries, false), (entries + 1, true)] {
            let outcome = run(name, &[0], async |thread: SimulatedThread| {
                for line in &lines[..count] {
                    thread.store(&line[0], 1, Relaxed).await;
                }
            });
            let stalled = outcome.tallies[0].stalled_ns(Stall::StoreBuffer);
            // Where stores overlap, the first ones are done when the buffer is full.
            assert_eq!(stalled > 0.0, stalls, "{name}, {count}: {stalled} ns");
            assert_eq!(outcome.tallies[0].remote_writes, count as u64);
        }
    }
}

/// A release waits for data where stores overlap, and for nothing where they are in order.
#[test]
fn a_release_waits_for_data() {
    for (name, waits) in [(TILE, true), (XEON, false), (OPTERON, false)] {
        let (data, flag, machine) = (Line::new(), Line::new(), coherent(name));
        let outcome = run(name, &[0, 4], async |thread: SimulatedThread| {
            if thread.me == 0 {
                thread.load(&data[0], Relaxed).await;
                return;
            }
            at(&thread, 10).await;
            thread.store(&data[0], 1, Relaxed).await;
            thread.store(&flag[0], 1, Release).await;
            // A second one has nothing to wait for: only a flag is on its way.
            thread.store(&flag[1], 1, Release).await;
        });
        let stalled = outcome.tallies[1].stalled_ns(Stall::Fence);
        let least = machine.store_ns(State::Shared, 0);
        assert_eq!(stalled > 0.9 * least, waits, "{name}: {stalled} ns");
        assert!(
            stalled < 1.5 * machine.store_ns(State::Shared, 10.min(machine.distances.len() - 1))
        );
    }
}

/// Whoever sees a flag sees what was stored before it, however the lines lie.
#[test]
fn flags_come_after_data() {
    for name in MACHINES {
        let rounds = 40;
        let lines: Vec<[Line; 2]> = (0..rounds).map(|_| Default::default()).collect();
        run(name, &[0, 14], async |thread: SimulatedThread| {
            for [data, flag] in &lines {
                if thread.me == 0 {
                    thread.store(&data[0], 1, Relaxed).await;
                    thread.store(&flag[0], 1, Release).await;
                } else {
                    let Ok(_) = thread.wait_until(&flag[0], Until::Equals(1)).await;
                    assert_eq!(thread.load(&data[0], Relaxed).await, 1, "{name}");
                }
            }
        });
    }
}

/// Where stores overlap, one to a line that the core may write is seen before an earlier one to a
/// line that others have copies of. In order, never.
#[test]
fn stores_without_release_overtake_each_other_on_relaxed_machines_alone() {
    for (name, may) in [(TILE, true), (XEON, false), (OPTERON, false)] {
        let (shared, flag, overtaken) = (Line::new(), Line::new(), Cell::new(false));
        let all: Vec<u32> = (0..36).collect();
        run(name, &all, async |thread: SimulatedThread| {
            if thread.me == 35 {
                // The first line is at home at thread 0, which gets it first.
                thread.store(&flag[0], 0, Relaxed).await;
                at(&thread, 5).await;
                thread.store(&shared[0], 1, Relaxed).await;
                return thread.store(&flag[0], 1, Relaxed).await;
            }
            at(&thread, 3).await;
            thread.load(&shared[0], Relaxed).await;
            thread.world.engine.reach(5_004_000).await;
            let set = thread.load(&flag[0], Relaxed).await == 1;
            let stale = thread.load(&shared[0], Relaxed).await == 0;
            overtaken.set(overtaken.get() || set && stale);
        });
        assert_eq!(overtaken.get(), may, "{name}");
    }
}

/// At home, a line executes an operation at a time, each for as long as the description says.
#[test]
fn atomic_operations_occupy_their_line() {
    let (line, machine) = (Line::new(), coherent(TILE));
    let all: Vec<u32> = (0..36).collect();
    let outcome = run(TILE, &all, async |thread: SimulatedThread| {
        for _ in 0..100 {
            thread.fetch_add(&line[0], 1, Relaxed).await;
        }
    });
    assert_eq!(line[0].atomic().load(Relaxed), 3600);
    let each = outcome.measured_ns / 3600.0;
    assert!((1.0..1.05).contains(&(each / machine.line_serve_ns)), "{each} ns each");
    assert_eq!(outcome.tallies.iter().map(|tally| tally.atomics).sum::<u64>(), 3600);
}

/// In a cache, the line moves for each operation of another core.
#[test]
fn atomic_operations_move_their_line() {
    let (line, machine) = (Line::new(), coherent(OPTERON));
    let outcome = run(OPTERON, &[0, 12], async |thread: SimulatedThread| {
        for _ in 0..100 {
            thread.fetch_add(&line[0], 1, Relaxed).await;
        }
    });
    // The next core has asked before the line arrives at the one before.
    let move_ns = 0.5 * machine.atomic_ns(AtomicOp::FetchAdd, State::Modified, 3);
    let moves = outcome.tallies.iter().map(|tally| tally.remote_atomics).sum::<u64>();
    assert!(outcome.measured_ns > move_ns * (moves - 2) as f64, "{moves} moves");
    assert!(moves > 100, "{moves} moves");
}

#[test]
fn a_deadlock_names_who_waits_for_what() {
    let machine = Description::find(TILE).unwrap();
    let line = Line::new();
    let error =
        ThreadSimulation::on(machine, 3).seed(4).run(
            async |thread: SimulatedThread| match thread.me {
                0 => drop(thread.wait_until(&line[3], Until::AtLeast(2)).await),
                1 => drop(thread.receive::<1>(Queue(9)).await),
                _ => {}
            },
        );
    let Err(ThreadsError::Deadlock { waiting, seed: 4, .. }) = &error else { panic!("{error:?}") };
    let until = Until::AtLeast(2);
    let word = WaitsFor::Word { line: 0, place: 3, until, value: 0 };
    assert_eq!(waiting[..], [(0, word), (1, WaitsFor::Message(9))]);
    let text = error.unwrap_err().to_string();
    let expected = "(seed 4): thread 0 waits for word 3 of line 0, which is 0, to be AtLeast(2); \
                    thread 1 waits for a message in queue 0x9;";
    assert!(text.ends_with(expected), "{text}");
}

#[test]
fn what_never_ends_is_an_error() {
    let machine = Description::find(XEON).unwrap();
    let line = Line::new();
    let error = ThreadSimulation::on(machine, 2).run(async |thread: SimulatedThread| {
        if thread.me == 1 {
            let Ok(_) = thread.receive_answer().await;
        }
        while thread.load(&line[0], Acquire).await == 0 {
            thread.pause(1_000_000).await;
        }
    });
    assert!(matches!(error, Err(ThreadsError::Endless { .. })), "{error:?}");
}

#[test]
fn machines_without_costs_of_threads_or_with_fewer_are_errors() {
    let on = |name, threads| {
        let simulation = ThreadSimulation::on(Description::find(name).unwrap(), threads);
        simulation.run(async |_| ()).map(drop).unwrap_err().to_string()
    };
    assert!(on("barcelona-x8", 2).starts_with("the description of barcelona-x8 has no costs"));
    assert!(on("scc", 2).starts_with("the description of scc has no costs"));
    assert_eq!(on(TILE, 37), "tile-gx36 has 36 hardware threads, so there is no 36");
}

#[test]
fn messages_take_what_the_network_takes() {
    let queue = coherent(TILE).queue.unwrap();
    for (to, hops) in [(1, 1.0), (35, 10.0)] {
        run(TILE, &[0, to], async |thread: SimulatedThread| {
            if thread.me == 0 {
                at(&thread, 1).await;
                let Ok(()) = thread.send(Thread(1), Queue(3), &[4, 5]).await;
                return;
            }
            let Ok(words) = thread.receive(Queue(3)).await;
            assert_eq!(words, [4, 5]);
            let words = 3.0 * queue.word_cycles + 2.0 * queue.word_cycles;
            let operation = coherent(TILE).threads.unwrap().operation_cycles;
            let all = operation + words + queue.message_cycles + hops * queue.hop_cycles;
            near(thread.clock() as f64 / 1e3, 1000.0 + cycles(TILE, all), "one way");
        });
    }
}

#[test]
fn a_sender_waits_while_the_buffer_is_full() {
    let words = coherent(TILE).queue.unwrap().words;
    let outcome = run(TILE, &[0, 1], async |thread: SimulatedThread| {
        if thread.me == 0 {
            // As many as there is room for, one that the network holds, and one that has to wait.
            for number in 0..=words as u64 + 1 {
                let Ok(()) = thread.send(Thread(1), Queue(3), &[number]).await;
                thread.pause(200).await;
            }
            return;
        }
        at(&thread, 100).await;
        for number in 0..=words as u64 + 1 {
            let Ok([got]) = thread.receive(Queue(3)).await;
            assert_eq!(got, number);
        }
    });
    let idle = outcome.tallies[0].idle_ns();
    assert!((50_000.0..90_000.0).contains(&idle), "{idle} ns");
    assert_eq!(outcome.tallies[0].messages, words as u64 + 2);
}
