//! A rayon program with a hot phase: many short steps, in which the threads of rayon's pool are the
//! PEs of a job.
//!
//! ```sh
//! cargo run --release -p consort --example rayon
//! ```

use consort::{Job, Pe, Rank, Result, ops::Sum};
use rayon::{ThreadPoolBuilder, prelude::*};

const THREADS: usize = 4;

/// Finds the level at which the values above it add up to as much as those below it.
fn balance(pe: &Pe, values: &[f64]) -> Result<f64> {
    let world = pe.world();
    let mine = &values[world.local_range(values.len())];
    let mut level = 0.0;
    for _step in 0..100 {
        let above = world.all_reduce(mine.iter().map(|x| x - level).sum::<f64>(), Sum)?;
        level += 0.5 * above / values.len() as f64;
    }
    Ok(level)
}

fn main() -> Result<()> {
    let threads = ThreadPoolBuilder::new().num_threads(THREADS).build().expect("a pool");
    let job = Job::threads(THREADS).build()?;
    // Independent work is rayon's.
    let values: Vec<f64> =
        threads.install(|| (0..100_000_u32).into_par_iter().map(|i| f64::from(i % 100)).collect());
    // Steps that wait for each other are Consort's. `broadcast` runs on all threads at once.
    let levels = threads
        .broadcast(|thread| job.join_as(Rank::new(thread.index()))?.run(|pe| balance(pe, &values)));
    for (thread, level) in levels.into_iter().enumerate() {
        println!("thread {thread}: {:.2}", level?);
    }
    Ok(())
}
