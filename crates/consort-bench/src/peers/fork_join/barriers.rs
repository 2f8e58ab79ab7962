//! Regions built on a barrier: threads wait in a barrier until a region begins, and in another
//! after each of its steps.
//!
//! This is the usual way to run regions with a library that has only barriers. A region of `n`
//! steps costs `n + 1` barriers.
#![expect(
    unsafe_code,
    reason = "threads borrow a region from the stack of the thread that runs it"
)]

use std::{
    cell::UnsafeCell,
    process, ptr,
    sync::Arc,
    thread::{self, JoinHandle},
};

use anyhow::{Context, Result};

use super::threads::{ForkJoin, Part, ThreadPlacement};
use crate::peers::barriers::Barrier;

// The drop-in replacement for the barrier of the standard library.
impl Barrier for consort::Barrier {
    unsafe fn wait(&self, _rank: u32) {
        consort::Barrier::wait(self);
    }
}

/// The region that the threads run next.
#[derive(Clone, Copy)]
struct Region {
    steps: usize,
    /// Null at the end.
    part: *const Part<'static>,
}

struct Shared<B> {
    barrier: B,
    region: UnsafeCell<Region>,
}

// SAFETY: the cell is written by rank 0 only, before a barrier that begins a region, and read by
// the others only between that barrier and the one that ends the region.
unsafe impl<B: Sync> Sync for Shared<B> {}
// SAFETY: the pointer in the cell is used only as above, whichever thread drops the cell.
unsafe impl<B: Send> Send for Shared<B> {}

impl<B: Barrier> Shared<B> {
    fn wait(&self, rank: usize) {
        // SAFETY: each rank belongs to one thread of `Barriers`.
        unsafe { self.barrier.wait(u32::try_from(rank).unwrap_or(u32::MAX)) }
    }

    fn set(&self, region: Region) {
        // SAFETY: only rank 0 calls this, between two regions, when the others wait in the barrier.
        unsafe { *self.region.get() = region }
    }

    /// Runs regions on the thread of a rank until the end.
    fn serve(&self, rank: usize) {
        loop {
            self.wait(rank);
            // SAFETY: rank 0 wrote it before the barrier, and writes again only after the last one.
            let Region { steps, part } = unsafe { *self.region.get() };
            if part.is_null() {
                return;
            }
            // SAFETY: rank 0 keeps the part in `run` until this thread has reached the last barrier.
            let part = unsafe { *part };
            self.steps(steps, part, rank);
        }
    }

    fn steps(&self, steps: usize, part: Part<'_>, rank: usize) {
        let _guard = AbortsOnPanic;
        for step in 0..steps {
            part(step, rank);
            self.wait(rank);
        }
    }
}

/// Ends the process if a part panics: the other threads would wait forever, or use a region that is
/// gone.
struct AbortsOnPanic;

impl Drop for AbortsOnPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            process::abort();
        }
    }
}

/// The threads of a barrier. The thread that creates them is rank 0.
pub(super) struct Barriers<B: Barrier + Send + 'static> {
    shared: Arc<Shared<B>>,
    others: Vec<JoinHandle<()>>,
}

impl<B: Barrier + Send + 'static> Barriers<B> {
    pub(super) fn new(placement: &ThreadPlacement, barrier: B) -> Result<Self> {
        let region = UnsafeCell::new(Region { steps: 0, part: ptr::null() });
        let shared = Arc::new(Shared { barrier, region });
        placement.pin(0);
        let spawn = |rank| {
            let (shared, placement) = (Arc::clone(&shared), placement.clone());
            let serve = move || {
                placement.pin(rank);
                shared.serve(rank);
            };
            thread::Builder::new().spawn(serve).context("cannot create a thread")
        };
        let others = (1..placement.threads).map(spawn).collect::<Result<_>>()?;
        Ok(Self { shared, others })
    }
}

// SAFETY: each rank has a thread, which calls the part once in each step, with a barrier between
// two steps and one before `run` returns. A barrier orders all calls before it before all after it.
unsafe impl<B: Barrier + Send + 'static> ForkJoin for Barriers<B> {
    fn threads(&self) -> usize {
        self.others.len() + 1
    }

    fn run(&mut self, steps: usize, part: Part<'_>) -> Result<()> {
        self.shared.set(Region { steps, part: (&raw const part).cast() });
        self.shared.wait(0);
        self.shared.steps(steps, part, 0);
        Ok(())
    }
}

impl<B: Barrier + Send + 'static> Drop for Barriers<B> {
    fn drop(&mut self) {
        self.shared.set(Region { steps: 0, part: ptr::null() });
        self.shared.wait(0);
        for thread in self.others.drain(..) {
            // A part that panics has ended the process.
            let _ = thread.join();
        }
    }
}
