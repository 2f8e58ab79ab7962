//! The program of README.md.

use consort::{Job, ops::Sum};

fn main() -> consort::Result<()> {
    // Four PEs (processing elements): threads, unless the program is started as processes.
    let sums = Job::from_env(4).run(|pe| {
        let world = pe.world();
        world.barrier()?; // no PE continues before all have arrived
        world.all_reduce(world.rank().0, Sum)
    })?; // if a PE panics, the calls of the others return an error that names it
    for (rank, sum) in sums.ranked() {
        println!("PE {rank}: {sum}"); // PE 0: 6
    }
    Ok(())
}
