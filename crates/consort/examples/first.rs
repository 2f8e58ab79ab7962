//! The program of README.md.

use consort::{Job, Rank, ops::Sum};

fn main() -> consort::Result<()> {
    // Four PEs (processing elements) with ranks from 0 to 3: threads, unless the program is started
    // as processes.
    let results = Job::from_env(4).run(|pe| {
        let world = pe.world();
        let me = f64::from(world.rank().0);

        let mut table = vec![me; 1000];
        world.broadcast_slice(&mut table, Rank(2))?; // everyone has PE 2's table

        world.barrier()?; // no PE continues before all have arrived

        world.reduce(me * table[0], Sum, Rank(0)) // Some(sum) on PE 0, None elsewhere
    })?; // if a PE panics, every other PE's next call is Err(PeFailed)

    for (rank, sum) in results.ranked() {
        println!("PE {rank}: {sum:?}"); // PE 0: Some(12.0)
    }
    Ok(())
}
