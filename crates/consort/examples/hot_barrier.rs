//! Threads that the program has started meet at a barrier after each step of a simulation.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    thread,
};

use consort::{Barrier, Result};

const THREADS: usize = 4;
const STEPS: usize = 10_000;

/// In each step, a thread reads its left neighbour's cell and writes its own cell of the next step.
fn simulate(me: usize, barrier: &Barrier, cells: &[[AtomicU64; THREADS]; 2]) -> Result<u64> {
    let member = barrier.join()?;
    for step in 0..STEPS {
        let (now, next) = (&cells[step % 2], &cells[(step + 1) % 2]);
        let left = now[(me + THREADS - 1) % THREADS].load(Relaxed);
        next[me].store(left + 1, Relaxed);
        member.wait()?; // all have written `next`, and none still reads `now`
    }
    Ok(cells[STEPS % 2][me].load(Relaxed))
}

fn main() -> Result<()> {
    let barrier = Barrier::new(THREADS);
    let cells = [0, 1].map(|_| [0, 10, 20, 30].map(AtomicU64::new));
    thread::scope(|scope| {
        let start = |me| {
            let (barrier, cells) = (&barrier, &cells);
            scope.spawn(move || simulate(me, barrier, cells))
        };
        let threads: Vec<_> = (0..THREADS).map(start).collect();
        for (me, thread) in threads.into_iter().enumerate() {
            println!("thread {me}: {}", thread.join().expect("no panic")?);
        }
        Ok(())
    })
}
