//! Tests of loads, stores, fences and atomic operations.

use std::{
    cell::Cell,
    sync::atomic::Ordering::{Relaxed, Release, SeqCst},
};

use consort_machine::{Line, Machine, Until};

use super::{
    MACHINES, OPTERON, SimulatedThread, TILE, XEON, at, coherent, cycles, near, run, timed,
};
use crate::{
    machines::{AtomicOp, State},
    threads::Stall,
};

#[test]
fn loads_stores_and_atomics_match_the_table() {
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
fn pair_exchange_is_atomic_where_supported() {
    for (name, has_pairs) in [(TILE, false), (XEON, true), (OPTERON, true)] {
        let line = Line::new();
        run(name, &[0, 4, 9], async |thread: SimulatedThread| {
            assert_eq!(thread.has_pairs(), has_pairs, "{name}");
            let (pair, mut seen) = (&line.pairs()[2], [0, 0]);
            let mut left = if has_pairs { 20 } else { 0 };
            while left > 0 {
                let [first, second] = seen;
                let new = [first + 1, second + 2];
                let exchanged = thread.compare_exchange_pair(pair, seen, new, Relaxed).await;
                left -= u32::from(exchanged.is_ok());
                seen = exchanged.unwrap_or_else(|old| old);
            }
        });
        let all = if has_pairs { [60, 120] } else { [0, 0] };
        assert_eq!([4, 5].map(|word: usize| line[word].atomic().load(Relaxed)), all, "{name}");
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
            // If stores overlap, the first ones are done when the buffer is full.
            assert_eq!(stalled > 0.0, stalls, "{name}, {count}: {stalled} ns");
            assert_eq!(outcome.tallies[0].remote_writes, count as u64);
        }
    }
}

/// If stores are in order, a thread that spins on a line does not get it between two consecutive
/// stores of another thread.
#[test]
fn consecutive_stores_to_a_line_are_seen_together() {
    for name in [XEON, OPTERON] {
        let (line, other) = (Line::new(), Line::new());
        run(name, &[0, 40], async |thread: SimulatedThread| {
            if thread.me == 1 {
                thread.load(&other[0], Relaxed).await;
                let Ok(_) = thread.wait_until(&line[0], Until::Equals(1)).await;
                return assert_eq!(thread.load(&line[7], Relaxed).await, 7, "{name}");
            }
            at(&thread, 10).await;
            for (word, value) in [(&other[0], 1), (&line[0], 1), (&line[1], 1), (&line[7], 7)] {
                thread.store(word, value, Relaxed).await;
            }
            thread.fence(SeqCst).await;
            assert_eq!(thread.state().stores.get(), 0, "{name}");
        });
    }
}

/// A release waits for data if stores overlap, and for nothing if they are in order.
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
            // A second release has nothing to wait for, because only a flag is in transit.
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

/// A thread that sees a flag also sees the data stored before it, wherever the lines are.
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

/// If stores overlap, a store to a line that the core may write is visible before an earlier store
/// to a line that others have copies of. In order, never.
#[test]
fn relaxed_stores_overtake_only_on_relaxed_machines() {
    let relaxed = [(TILE, Relaxed, true), (XEON, Relaxed, false), (OPTERON, Relaxed, false)];
    for (name, order, may) in relaxed.into_iter().chain([(TILE, Release, false)]) {
        let (shared, flag, overtaken) = (Line::new(), Line::new(), Cell::new(false));
        let all: Vec<u32> = (0..36).collect();
        run(name, &all, async |thread: SimulatedThread| {
            if thread.me == 35 {
                // Thread 0 is the home of the first line and gets it first.
                thread.store(&flag[0], 0, Relaxed).await;
                at(&thread, 5).await;
                thread.store(&shared[0], 1, order).await;
                return thread.store(&flag[0], 1, order).await;
            }
            at(&thread, 3).await;
            thread.load(&shared[0], Relaxed).await;
            thread.world.engine.reach(5_004_000).await;
            let set = thread.load(&flag[0], Relaxed).await == 1;
            let stale = thread.load(&shared[0], Relaxed).await == 0;
            overtaken.set(overtaken.get() || set && stale);
        });
        assert_eq!(overtaken.get(), may, "{name}, {order:?}");
    }
}

/// The home notifies the cores that have a copy one after the other.
#[test]
fn write_takes_longer_with_more_copies() {
    let took = |holders: u32| {
        let line = Line::new();
        let all: Vec<u32> = (0..=holders).collect();
        let outcome = run(TILE, &all, async |thread: SimulatedThread| {
            if thread.me > 0 {
                thread.load(&line[0], Relaxed).await;
                return 0.0;
            }
            at(&thread, 10).await;
            timed(&thread, thread.swap(&line[0], 1, Relaxed)).await
        });
        outcome.results[0].unwrap()
    };
    let each = coherent(TILE).threads.unwrap().sharer_cycles;
    near(took(31) - took(1), cycles(TILE, 30.0 * each), "30 more copies");
}

/// At home, a line executes one operation at a time, each for the time in the description.
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
    // The next core has requested the line before it arrives at the previous one.
    let move_ns = 0.5 * machine.atomic_ns(AtomicOp::FetchAdd, State::Modified, 3);
    let moves = outcome.tallies.iter().map(|tally| tally.remote_atomics).sum::<u64>();
    assert!(outcome.measured_ns > move_ns * (moves - 2) as f64, "{moves} moves");
    assert!(moves > 100, "{moves} moves");
}
