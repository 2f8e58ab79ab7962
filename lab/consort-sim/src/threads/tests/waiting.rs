//! Tests of waits, and of threads that wait for a store that never happens.

use std::{
    cell::Cell,
    sync::atomic::Ordering::{Acquire, Release},
};

use consort_machine::{Line, Machine, Queue, Until};

use super::{
    Description, MACHINES, SimulatedThread, TILE, ThreadSimulation, XEON, at, coherent, cycles,
    near, run, timed,
};
use crate::threads::{ThreadsError, WaitsFor};

#[test]
fn a_wait_is_two_loads() {
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
fn wait_with_a_deadline_ends() {
    let line = Line::new();
    run(XEON, &[0], async |thread: SimulatedThread| {
        let Ok(none) = thread.wait_until_time(&line[0], Until::Equals(1), 5000).await;
        assert_eq!(none, None);
        assert!((5000..5100).contains(&thread.now_ns()), "{}", thread.now_ns());
    });
}

/// With `pause`, the first thread would end before the second one begins.
#[test]
fn other_threads_run_while_a_thread_rests() {
    for name in MACHINES {
        let inside = Cell::new(0);
        let seen = run(name, &[0, 4], async |thread: SimulatedThread| {
            inside.update(|inside| inside + 1);
            near(timed(&thread, thread.rest(1000)).await, cycles(name, 1000.0), name);
            inside.get()
        });
        assert_eq!(seen.results, [Some(2), Some(2)], "{name}");
    }
}

/// All threads that spin on a line get it again one after the other.
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
fn deadlock_names_each_waiter() {
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
fn endless_program_is_an_error() {
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
fn machine_without_thread_costs_or_enough_threads_is_an_error() {
    let on = |name, threads| {
        let simulation = ThreadSimulation::on(Description::find(name).unwrap(), threads);
        simulation.run(async |_| ()).map(drop).unwrap_err().to_string()
    };
    assert!(on("barcelona-x8", 2).starts_with("the description of barcelona-x8 has no costs"));
    assert!(on("scc", 2).starts_with("the description of scc has no costs"));
    assert_eq!(on(TILE, 37), "tile-gx36 has 36 hardware threads, so thread 36 does not exist");
}
