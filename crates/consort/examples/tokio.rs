//! Nonblocking collectives under an executor: a PE computes in one task while another waits.
//!
//! ```sh
//! cargo run --release -p consort --example tokio
//! ```
//!
//! A request stays on its PE's thread. So a task of a `LocalSet` awaits it, or, as here, one task
//! awaits it together with other futures. A task that computes yields from time to time: the calls
//! of its PE progress at these points.

use consort::{Job, Pe, Rank, Result, ops::Sum};
use tokio::{
    runtime,
    task::{LocalSet, yield_now},
};

/// The parts of each PE's computation.
const PARTS: u64 = 1000;

/// Computes a sum that other PEs do not need.
async fn compute(seed: u64) -> u64 {
    let mut sum = seed;
    for part in 0..PARTS {
        sum = sum.rotate_left(5) ^ part;
        if part % 100 == 0 {
            yield_now().await;
        }
    }
    sum
}

async fn program(pe: &Pe) -> Result<(u64, u64)> {
    let world = pe.world();
    let me = u64::from(world.rank().0);
    let table = world.start(vec![me; 10_000]).broadcast(Rank(3))?;
    let ranks = world.start(vec![me]).all_reduce(Sum)?;
    let computed = tokio::task::spawn_local(compute(me));
    let (table, ranks) = tokio::join!(table, ranks);
    let (table, ranks) = (table?, ranks?);
    // Await this PE's computation only now: it progressed during the calls.
    let computed = computed.await.expect("a task that does not panic");
    let all = world.start(vec![computed ^ table[0]]).all_reduce(Sum)?.await?;
    Ok((ranks[0], all[0]))
}

fn main() -> Result<()> {
    let results = Job::threads(4).run(|pe| {
        let executor = runtime::Builder::new_current_thread().build();
        let executor = executor.expect("an executor without I/O");
        LocalSet::new().block_on(&executor, program(pe))
    })?;
    for (rank, (ranks, all)) in results.ranked() {
        println!("PE {rank}: the ranks' sum {ranks}, all that was computed {all:x}");
    }
    assert!(results.iter().all(|result| *result == results[0]), "all have the same");
    assert_eq!(results[0].0, 6, "0 + 1 + 2 + 3");
    Ok(())
}
