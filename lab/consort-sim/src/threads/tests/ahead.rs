//! Tests of lines that are fetched in advance, and of stores past the caches.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use consort_fabric::splitmix64;
use consort_machine::{Line, Machine, Until};

use super::{MACHINES, OPTERON, SimulatedThread, TILE, XEON, at, coherent, run, timed};
use crate::threads::{Stall, Tally};

/// Returns lines that another core has written.
fn lines(count: usize) -> Vec<Line> {
    (0..count).map(|_| Line::new()).collect()
}

/// Returns the tally of the first thread on lines that another thread has written. If `spin`, all
/// other threads spin on one of these lines each. The first thread rests for `rest` cycles between
/// two lines.
fn tally(
    name: &str,
    lines: &[Line],
    order: &[usize],
    rest: u64,
    spin: bool,
    access: impl AsyncFn(&SimulatedThread, &Line),
) -> Tally {
    let machine = coherent(name);
    let others: u32 = if spin { 30 } else { 1 };
    let apart = 2 * (machine.threads() / 80).max(1);
    let placement: Vec<u32> =
        (0..=others).map(|thread| thread * apart % machine.threads()).collect();
    let outcome = run(name, &placement, async |thread: SimulatedThread| {
        if thread.me == 1 {
            for line in lines {
                thread.store(&line[0], 1, Relaxed).await;
            }
        }
        if thread.me == 0 {
            thread.announce(lines);
        } else if spin {
            at(&thread, 500).await;
            thread.serve();
            let mine = &lines[order[thread.me as usize - 1]];
            let Ok(_) = thread.wait_until(&mine[7], Until::Equals(9)).await;
            return Tally::default();
        } else {
            return Tally::default();
        }
        at(&thread, 1000).await;
        let before = *thread.world.tally(0);
        for &index in order {
            access(&thread, &lines[index]).await;
            thread.pause(rest).await;
        }
        *thread.world.tally(0) - before
    });
    outcome.results[0].expect("it ends")
}

async fn load(thread: &SimulatedThread, line: &Line) {
    thread.load(&line[0], Relaxed).await;
}

async fn load_and_store(thread: &SimulatedThread, line: &Line) {
    thread.load(&line[0], Relaxed).await;
    thread.store(&line[0], 2, Relaxed).await;
}

#[test]
fn tile_fetches_next_line_when_one_arrives() {
    let lines = lines(20);
    let order: Vec<usize> = (0..20).collect();
    let forward = tally(TILE, &lines, &order, 200, false, load);
    assert_eq!((forward.remote_reads, forward.prefetched), (1, 19));
    let backward: Vec<usize> = (0..20).rev().collect();
    // Each arriving line causes a fetch of the next one, which is already there.
    let backward = tally(TILE, &lines, &backward, 200, false, load);
    assert_eq!((backward.remote_reads, backward.prefetched), (20, 0));
}

/// Learning a pattern takes some misses on each page.
#[test]
fn strides_are_relearnt_on_each_page() {
    for (name, stride) in [(XEON, 2), (OPTERON, 1), (OPTERON, 3)] {
        let order: Vec<usize> = (0..3 * 64).step_by(stride).collect();
        let lines = lines(3 * 64 + 1);
        let learnt = tally(name, &lines, &order, 2000, false, load);
        assert_eq!(learnt.remote_reads, 3 * 3, "{name}, {stride}");
        let mut mixed = order.clone();
        let count = mixed.len();
        let mut state = 5;
        for last in (1..count).rev() {
            let drawn = splitmix64(&mut state) % (last as u64 + 1);
            mixed.swap(last, usize::try_from(drawn).unwrap());
        }
        let mixed = tally(name, &lines, &mixed, 2000, false, load);
        assert!(mixed.remote_reads > count as u64 * 8 / 10, "{name}: {}", mixed.remote_reads);
    }
}

/// Lines are fetched for writing if the previous ones were written. Threads that spin on them undo
/// that.
#[test]
fn spinning_and_prefetching_collide() {
    for name in [XEON, OPTERON] {
        let lines = lines(61);
        let order: Vec<usize> = (0..30).map(|slot| 2 * slot).collect();
        let free = tally(name, &lines, &order, 2000, false, load_and_store);
        assert!(free.remote_writes <= 5, "{name}: {} remote writes", free.remote_writes);
        let spun = tally(name, &lines, &order, 2000, true, load_and_store);
        assert!(spun.remote_writes >= 28, "{name}: {} remote writes", spun.remote_writes);
        assert!(spun.remote_reads <= 5, "{name}: {} remote reads", spun.remote_reads);
    }
}

#[test]
fn lines_without_neighbours_are_not_fetched() {
    for name in MACHINES {
        let lines = lines(40);
        let outcome = run(name, &[0, 4], async |thread: SimulatedThread| {
            for line in &lines {
                thread.load(&line[0], Relaxed).await;
            }
        });
        assert!(outcome.tallies.iter().all(|tally| tally.prefetched == 0), "{name}");
    }
}

#[test]
fn streaming_stores_wait_only_for_buffers() {
    for name in [XEON, OPTERON] {
        let buffers = coherent(name).threads.unwrap().streaming.unwrap().buffers as usize;
        for count in [buffers, buffers + 1] {
            let lines = lines(count);
            let outcome = run(name, &[0], async |thread: SimulatedThread| {
                for line in &lines {
                    thread.stream(&line[0], 5).await;
                }
                thread.fence(SeqCst).await;
                assert_eq!(thread.load(&lines[0][0], Relaxed).await, 5);
            });
            let stalled = outcome.tallies[0].stalled_ns(Stall::StoreBuffer);
            assert_eq!(stalled > 0.0, count > buffers, "{name}: {stalled} ns");
            assert_eq!(outcome.tallies[0].remote_writes, 0);
        }
    }
}

#[test]
fn spinner_delays_streaming_stores_on_the_xeon() {
    for (name, factor) in [(XEON, 3.0), (OPTERON, 1.0)] {
        let machine = coherent(name);
        let written = machine.threads.as_ref().unwrap().streaming.as_ref().unwrap().cycles;
        let took = |spins: bool| {
            let line = Line::new();
            let outcome = run(name, &[0, 44], async |thread: SimulatedThread| {
                if thread.me == 1 {
                    if spins {
                        let Ok(_) = thread.wait_until(&line[0], Until::Equals(5)).await;
                    }
                    return 0.0;
                }
                at(&thread, 10).await;
                timed(&thread, async {
                    thread.stream(&line[0], 5).await;
                    thread.fence(SeqCst).await;
                })
                .await
            });
            outcome.results[0].unwrap() * machine.ghz / written
        };
        let (alone, spun) = (took(false), took(true));
        assert!((1.0..1.2).contains(&alone), "{name}: {alone}");
        assert!((factor..factor + 0.2).contains(&spun), "{name}: {spun}");
    }
}
