//! Existing threads of a program join a job: scoped threads, rayon's pool, tokio's blocking
//! threads.
//!
//! ```sh
//! cargo run --release -p consort --example joining
//! ```

use std::{io, thread};

use consort::{Job, Result, ops::Sum};
use tokio::{runtime, task::spawn_blocking};

/// The work of each thread: it joins, runs this as a PE, and leaves.
fn program(job: &Job) -> Result<u64> {
    job.run(|pe| {
        let world = pe.world();
        let sum = world.all_reduce(u64::from(world.rank().0), Sum)?;
        world.barrier()?;
        Ok(sum)
    })
}

/// Threads that borrow from their caller.
fn scoped() -> Result<Vec<u64>> {
    let job = Job::threads(4).build()?;
    thread::scope(|scope| {
        let threads = [(); 4].map(|()| scope.spawn(|| program(&job)));
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

/// All threads of a rayon pool. Only `broadcast` runs on all of them at once: tasks that wait for
/// each other must not be given to fewer threads than there are tasks.
fn rayon() -> Result<Vec<u64>> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().expect("a pool");
    let job = Job::threads(4).build()?;
    pool.broadcast(|_| program(&job)).into_iter().collect()
}

/// Threads of a tokio runtime on which tasks may block.
fn tokio() -> io::Result<Vec<u64>> {
    let runtime = runtime::Builder::new_current_thread().max_blocking_threads(4).build()?;
    let job = Job::threads(4).build()?;
    runtime.block_on(async {
        let tasks = [(); 4].map(|()| {
            let job = job.clone();
            spawn_blocking(move || program(&job))
        });
        let mut sums = Vec::new();
        for task in tasks {
            sums.push(task.await??);
        }
        Ok(sums)
    })
}

fn main() -> io::Result<()> {
    for (threads, sums) in [("scoped", scoped()?), ("rayon", rayon()?), ("tokio", tokio()?)] {
        println!("{threads}: each has the sum of the ranks, {}", sums[0]);
        assert_eq!(sums, [6; 4]);
    }
    Ok(())
}

#[test]
fn each_kind_of_thread_joins() -> io::Result<()> {
    main()
}
