//! Programs that keep their state allocate nothing after the first region.

#![expect(unsafe_code, reason = "counts the allocations of a thread")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

use consort::{Error, Job};
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

/// Returns the number of allocations that `run` makes on this thread.
fn allocations<R>(run: impl FnOnce() -> R) -> (u64, R) {
    let before = COUNT.get();
    let result = run();
    (COUNT.get() - before, result)
}

#[test]
fn kept_solver_allocates_nothing() {
    alone(LIMIT, || {
        let pool = Job::threads(3).without_wisdom().pool().unwrap();
        for region in 0..20 {
            let counts = pool.run(|pe| {
                let (count, done) = allocations(|| {
                    let mut solver = pe.keep(|pe| solver_handle::Solver::new(pe, 300))?;
                    solver.solve(|row| ((row + region) % 7) as f64)
                });
                done.map(|_| count)
            });
            let counts = counts.unwrap();
            assert!(counts.iter().all(|&count| (count > 0) == (region == 0)), "{counts:?}");
        }
    });
}

#[test]
fn kept_graph_allocates_nothing() {
    alone(LIMIT, || {
        let pool = Job::threads(2).without_wisdom().pool().unwrap();
        for token in 0..20 {
            let counts = pool.run(|pe| {
                let (count, sum) =
                    allocations(|| pe.keep(compute_graph::Context::new)?.evaluate(token));
                sum.map(|_| count)
            });
            let counts = counts.unwrap();
            assert!(counts.iter().all(|&count| (count > 0) == (token == 0)), "{counts:?}");
        }
    });
}

/// Leaving a region and entering the next allocate nothing either, on the threads of a pool.
#[test]
fn region_allocates_nothing_on_its_threads() {
    alone(LIMIT, || {
        let pool = Job::threads(3).without_wisdom().pool().unwrap();
        thread_local! {
            static AT_END: Cell<u64> = const { Cell::new(0) };
        }
        for region in 0..50 {
            let counts = pool.run(|pe| {
                let between = COUNT.get() - AT_END.get();
                let kept = pe.keep(|pe| Ok::<_, Error>(pe.world().clone()))?;
                kept.barrier()?;
                drop(kept);
                AT_END.set(COUNT.get());
                Ok(if pe.world().rank().0 == 0 { 0 } else { between })
            });
            let counts = counts.unwrap();
            assert!(region < 2 || counts.iter().all(|&count| count == 0), "{counts:?}");
        }
    });
}
