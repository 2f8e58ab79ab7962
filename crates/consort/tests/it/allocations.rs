//! Programs that keep their state allocate nothing after the first region.

#![expect(unsafe_code, reason = "counts the allocations of a thread")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    time::{Duration, Instant},
};

use consort::Job;
use consort_conformance::turns::{LIMIT, alone};

#[path = "../../examples/compute_graph.rs"]
#[expect(dead_code, reason = "an example has a main function")]
mod compute_graph;
#[path = "../../examples/solver_handle.rs"]
#[expect(dead_code, reason = "an example has a main function")]
mod solver_handle;

/// Counts the allocations of each thread.
struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

#[global_allocator]
static COUNTING: Counting = Counting;

// SAFETY: the system's allocator does the work. The counter is a constant without a destructor, so
// counting allocates nothing, and works as long as the thread lives.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) }
    }
}

/// A PE that waits for 5 ms looks for a deadlock, which allocates. A shorter region has no such wait.
const SHORT: Duration = Duration::from_millis(4);

/// The number of allocations of this thread, and when it was read.
#[derive(Clone, Copy)]
struct Reading {
    count: u64,
    at: Instant,
}

impl Reading {
    fn now() -> Self {
        Self { count: COUNT.get(), at: Instant::now() }
    }

    /// Returns the number of allocations since then; `None` if a wait may have looked for a deadlock.
    fn allocations(self) -> Option<u64> {
        (self.at.elapsed() < SHORT).then(|| COUNT.get() - self.count)
    }
}

/// Runs regions until this many of them were short on all PEs. A region returns the allocations of
/// its PEs.
fn run_regions(short: usize, region: impl FnMut(usize) -> Vec<Option<u64>>) {
    let is_short = |counts: &Vec<Option<u64>>| counts.iter().all(Option::is_some);
    let found = (0..100 * short).map(region).filter(is_short).take(short).count();
    assert_eq!(found, short, "the others took more than {SHORT:?}");
}

#[test]
fn kept_solver_allocates_nothing() {
    alone(LIMIT, || {
        let pool = Job::threads(3).without_wisdom().pool().unwrap();
        run_regions(20, |region| {
            let counts = pool.run(|pe| {
                let before = Reading::now();
                let mut solver = pe.keep(|pe| solver_handle::Solver::new(pe, 300))?;
                solver.solve(|row| ((row + region) % 7) as f64)?;
                Ok(before.allocations())
            });
            let counts: Vec<_> = counts.unwrap().into_iter().collect();
            let is_right = |&count: &u64| (count > 0) == (region == 0);
            assert!(counts.iter().flatten().all(is_right), "{counts:?}");
            counts
        });
    });
}

#[test]
fn kept_graph_allocates_nothing() {
    alone(LIMIT, || {
        let pool = Job::threads(2).without_wisdom().pool().unwrap();
        run_regions(20, |token| {
            let counts = pool.run(|pe| {
                let before = Reading::now();
                pe.keep(compute_graph::Context::new)?.evaluate(token)?;
                Ok(before.allocations())
            });
            let counts: Vec<_> = counts.unwrap().into_iter().collect();
            let is_right = |&count: &u64| (count > 0) == (token == 0);
            assert!(counts.iter().flatten().all(is_right), "{counts:?}");
            counts
        });
    });
}

/// A wait that yields for long looks for threads that compete with the PEs.
#[test]
fn looking_for_competitors_allocates_nothing() {
    let before = COUNT.get();
    let _ = consort_machine::usage::others_compete(2);
    assert_eq!(COUNT.get(), before);
}

/// Leaving a region and entering the next allocate nothing either, on the threads of a pool.
#[test]
fn region_allocates_nothing_on_its_threads() {
    alone(LIMIT, || {
        let pool = Job::threads(3).without_wisdom().pool().unwrap();
        thread_local! {
            static AT_END: Cell<Option<Reading>> = const { Cell::new(None) };
        }
        run_regions(48, |region| {
            let counts = pool.run(|pe| {
                let between = AT_END.get().and_then(Reading::allocations);
                let kept = pe.keep(|pe| Ok(pe.world().clone()))?;
                kept.barrier()?;
                drop(kept);
                AT_END.set(Some(Reading::now()));
                Ok(if pe.world().rank().0 == 0 { Some(0) } else { between })
            });
            let counts: Vec<_> = counts.unwrap().into_iter().collect();
            assert!(region < 2 || counts.iter().flatten().all(|&count| count == 0), "{counts:?}");
            counts
        });
    });
}
