//! Tests of loads, stores, fences and atomic operations.

use std::{
    cell::Cell,
    sync::atomic::Ordering::{Relaxed, Release, SeqCst},
};

use consort_machine::{Line, Machine, Until};

use super::{
    Description, MACHINES, OPTERON, SimulatedThread, TILE, XEON, at, coherent, cycles, near, run,
    run_with, timed,
};
use crate::{
    machines::{AtomicOp, State},
    threads::{PrivateSections, Stall, ThreadSimulation},
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
                    thread.load(&line[0], Relaxed).await;
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
fn load_that_misses_waits_for_stores_only_if_the_machine_says_so() {
    for name in [XEON, OPTERON] {
        let machine = coherent(name);
        let own = cycles(name, machine.threads.as_ref().unwrap().operation_cycles);
        let other = machine.threads() - 1;
        let to = machine.distance(0, other);
        for waits in [false, true] {
            let (stored, loaded) = (Line::new(), Line::new());
            let changes = [("threads.loads_wait", if waits { "true" } else { "false" })];
            run_with(name, &changes, &[0, other], async |thread: SimulatedThread| {
                if thread.me == 1 {
                    thread.store(&stored[0], 1, Relaxed).await;
                    return thread.store(&loaded[0], 1, Relaxed).await;
                }
                at(&thread, 10).await;
                let both = timed(&thread, async {
                    thread.store(&stored[0], 2, Relaxed).await;
                    thread.load(&loaded[0], Relaxed).await;
                });
                let [load, store] =
                    [machine.load_ns(State::Modified, to), machine.store_ns(State::Modified, to)];
                let cost = if waits { own + store + load } else { 2.0 * own + load };
                near(both.await, cost, &format!("{name}, {waits}"));
            });
        }
    }
}

/// A core that loads a line, and then has it, stores to it at once. The core that had the line
/// fetches it again.
#[test]
fn load_takes_the_line_from_its_owner_only_if_the_machine_says_so() {
    for name in [XEON, OPTERON] {
        let machine = coherent(name);
        let threads = machine.threads.as_ref().unwrap();
        let own = cycles(name, threads.operation_cycles);
        let fence = cycles(name, threads.fence_cycles);
        let other = machine.threads() - 1;
        let to = machine.distance(0, other);
        for takes in [false, true] {
            let line = Line::new();
            let changes = [("threads.loads_take_lines", if takes { "true" } else { "false" })];
            let outcome = run_with(name, &changes, &[0, other], async |thread: SimulatedThread| {
                if thread.me == 1 {
                    thread.store(&line[0], 1, Relaxed).await;
                    at(&thread, 20).await;
                    return thread.load(&line[0], Relaxed).await;
                }
                at(&thread, 10).await;
                let load = timed(&thread, thread.load(&line[0], Relaxed)).await;
                near(load, own + machine.load_ns(State::Modified, to), name);
                let stored = timed(&thread, async {
                    thread.store(&line[0], 2, Relaxed).await;
                    thread.fence(SeqCst).await;
                });
                // The instruction of the fence overlaps with a store that takes long.
                let store = if takes { own } else { machine.store_ns(State::Shared, to) };
                near(stored.await, own + store + fence, &format!("{name}, {takes}"));
                0
            });
            assert_eq!((outcome.results[1], outcome.tallies[1].remote_reads), (Some(2), 1));
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
fn a_release_waits_for_stores() {
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
            // A second release waits for the flag.
            thread.store(&flag[1], 1, Release).await;
        });
        let stalled = outcome.tallies[1].stalled_ns(Stall::Fence);
        let both = |distance| {
            machine.store_ns(State::Shared, distance) + machine.store_ns(State::Modified, distance)
        };
        assert_eq!(stalled > 0.9 * both(0), waits, "{name}: {stalled} ns");
        assert!(stalled < 1.5 * both(10.min(machine.distances.len() - 1)), "{name}: {stalled} ns");
    }
}

/// Where homes execute writes, a thread sends each store to the home, also to a line that only its
/// core has. In a cache, the second store is free, also if only atomic operations go home.
#[test]
fn a_store_is_written_through_to_its_home() {
    let owns: &[_] = &[("threads.stores_at_home", "false")];
    for (name, changes, goes_home) in
        [(TILE, &[][..], true), (TILE, owns, false), (XEON, &[], false), (OPTERON, &[], false)]
    {
        let (line, least) = (Line::new(), coherent(TILE).store_ns(State::Modified, 0));
        run_with(name, changes, &[7], async |thread: SimulatedThread| {
            thread.load(&line[0], Relaxed).await;
            thread.store(&line[0], 1, Relaxed).await;
            thread.fence(SeqCst).await;
            let before = thread.tally_of(thread.thread()).remote_reads;
            let stored = timed(&thread, async {
                thread.store(&line[0], 2, Relaxed).await;
                thread.fence(SeqCst).await;
            });
            let took = stored.await;
            assert_eq!(took > least, goes_home, "{name}: {took} ns");
            // The core keeps its copy.
            assert_eq!(thread.load(&line[0], Relaxed).await, 2, "{name}");
            assert_eq!(thread.tally_of(thread.thread()).remote_reads, before, "{name}");
        });
    }
}

/// A core whose stores invalidate its copies fetches a line again after each store to it.
#[test]
fn a_store_invalidates_the_copy_only_if_the_machine_says_so() {
    for (keeps, misses) in [("true", 1), ("false", 3)] {
        let (line, changes) = (Line::new(), [("threads.stores_keep_copies", keeps)]);
        let outcome = run_with(TILE, &changes, &[7], async |thread: SimulatedThread| {
            for value in [1, 2] {
                thread.load(&line[0], Relaxed).await;
                thread.store(&line[0], value, Relaxed).await;
                thread.fence(SeqCst).await;
            }
            thread.load(&line[0], Relaxed).await;
        });
        assert_eq!(outcome.tallies[0].remote_reads, misses, "{keeps}");
    }
}

#[test]
fn drawing_a_random_number_takes_time() {
    let changes = [("threads.random_cycles", "30")];
    run_with(TILE, &changes, &[0], async |thread: SimulatedThread| {
        let drawn = timed(&thread, async { thread.random(100) }).await;
        near(drawn, cycles(TILE, 30.0), "a draw");
    });
}

/// A core that has no copy of a line gets none by writing through.
#[test]
fn a_store_to_a_home_fetches_no_copy() {
    let line = Line::new();
    run(TILE, &[7], async |thread: SimulatedThread| {
        thread.store(&line[0], 1, Relaxed).await;
        thread.fence(SeqCst).await;
        assert_eq!(thread.load(&line[0], Relaxed).await, 1);
        assert_eq!(thread.tally_of(thread.thread()).remote_reads, 1);
    });
}

/// A combiner stores data, a result and its flag, and then lets the next thread combine. If the
/// data is private to sections, only the last release has a fence.
#[test]
fn private_sections_have_a_fence_only_when_the_combiner_changes() {
    let took = |sections: Option<PrivateSections>| {
        let [data, answer, next] = [const { Line::new() }; 3];
        let machine = Description::find(TILE).unwrap();
        let mut simulation = ThreadSimulation::on(machine, 1);
        if let Some(sections) = &sections {
            simulation = simulation.with_sections(sections.clone());
        }
        let outcome = simulation.run(async |thread: SimulatedThread| {
            let section = async {
                thread.store(&data[0], 1, Relaxed).await;
                thread.store(&data[1], 1, Release).await;
            };
            match &sections {
                Some(sections) => sections.execute(thread.thread(), section).await,
                None => section.await,
            }
            thread.store(&answer[0], 1, Relaxed).await;
            thread.store(&answer[1], 1, Release).await;
            let answered = thread.tally_of(thread.thread()).stalled_ns(Stall::Fence);
            thread.store(&next[0], 1, Release).await;
            [answered, thread.tally_of(thread.thread()).stalled_ns(Stall::Fence) - answered]
        });
        outcome.unwrap().results[0].unwrap()
    };
    let [answered, handed_over] = took(Some(PrivateSections::default()));
    assert!(answered == 0.0 && handed_over > 30.0, "{answered} and {handed_over} ns");
    let [answered, handed_over] = took(None);
    assert!(answered > 60.0 && handed_over > 30.0, "{answered} and {handed_over} ns");
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

/// If stores overlap, a store to a line without copies is visible before an earlier store to a line
/// that others have copies of. In order, never.
#[test]
fn relaxed_stores_overtake_only_on_relaxed_machines() {
    let relaxed = [(TILE, Relaxed, true), (XEON, Relaxed, false), (OPTERON, Relaxed, false)];
    for (name, order, may) in relaxed.into_iter().chain([(TILE, Release, false)]) {
        let (shared, flag, overtaken) = (Line::new(), Line::new(), Cell::new(false));
        let all: Vec<u32> = (0..36).collect();
        run(name, &all, async |thread: SimulatedThread| {
            if thread.me == 1 {
                // Thread 0 is the home of the first line, and gets it first.
                thread.store(&flag[0], 0, Relaxed).await;
                at(&thread, 5).await;
                thread.store(&shared[0], 1, order).await;
                return thread.store(&flag[0], 1, order).await;
            }
            at(&thread, 3).await;
            thread.load(&shared[0], Relaxed).await;
            if thread.me > 0 {
                return;
            }
            // Looks every nanosecond what is visible, without loads, which take time.
            let seen = |line: &Line| {
                let (number, place) = thread.world.find(&line[0], thread.me);
                thread.world.lines.at(number).value(place, &line[0], thread.me)
            };
            for now in (5_000_000..6_000_000).step_by(1_000) {
                thread.world.engine.reach(now).await;
                overtaken.set(overtaken.get() || seen(&flag) == 1 && seen(&shared) == 0);
            }
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
    near(took(32) - took(2), cycles(TILE, 30.0 * each), "30 more copies");
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

/// A home executes atomic operations on different lines one at a time (Petrović 2015, section
/// 6.2.4).
#[test]
fn atomic_operations_occupy_their_home() {
    let lines: Vec<Line> = (0..200).map(|_| Line::new()).collect();
    let machine = coherent(TILE);
    let all: Vec<u32> = (0..36).collect();
    let each = |same_home: bool| {
        let outcome = run(TILE, &all, async |thread: SimulatedThread| {
            let home = |line: &&Line| {
                let (number, _) = thread.world.find(&line[0], 0);
                thread.world.lines.at(number).home
            };
            let first = home(&&lines[0]);
            let fits = |line: &&Line| (home(line) == first) == same_home;
            let mine: Vec<&Line> = lines.iter().filter(fits).collect();
            let mine = mine[thread.me as usize % mine.len()];
            for _ in 0..100 {
                thread.fetch_add(&mine[0], 1, Relaxed).await;
            }
        });
        outcome.measured_ns / 3600.0 / machine.line_serve_ns
    };
    let [one, many] = [true, false].map(each);
    assert!((1.0..1.05).contains(&one) && many < 0.3, "{one} and {many} of a line's time each");
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
