//! One program whose PEs are threads, processes of this machine, or processes of many machines.

use consort::{Job, Rank, Result, ops::Sum};

const STRIPS: usize = 1_000_000;

fn main() -> Result<()> {
    // Four threads, unless `consort run` or `mpirun` has started this process.
    Job::from_env(4).run(|pe| {
        let world = pe.world();
        let area = |i: usize| {
            let x = (i as f64 + 0.5) / STRIPS as f64;
            4.0 / (1.0 + x * x) / STRIPS as f64
        };
        let mine: f64 = world.local_range(STRIPS).map(area).sum();
        let sum = world.reduce(mine, Sum, Rank(0))?; // `Some` on PE 0, `None` on the others
        if let Some(pi) = sum {
            println!("pi is about {pi:.9}, says PE 0 of {}", world.size());
        }
        Ok(())
    })?;
    Ok(())
}
