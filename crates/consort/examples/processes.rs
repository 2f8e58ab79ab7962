//! Processes that something else has started become the PEs of a job.
//!
//! ```sh
//! cargo run --release -p consort --example processes
//! ```

use std::{env, io, process, process::Command};

use consort::{Job, Rank, Rendezvous, ops::Sum};

const SIZE: usize = 3;

/// One of the processes: it knows its rank, and the name of the job.
fn work(rank: Rank, name: &str) -> consort::Result<()> {
    Job::processes(rank, SIZE, Rendezvous::name(name)).run(|pe| {
        let world = pe.world();
        let sum = world.reduce(rank.0, Sum, Rank(0))?;
        if let Some(sum) = sum {
            println!("the ranks of {SIZE} processes add up to {sum}");
        }
        Ok(())
    })?;
    Ok(())
}

/// Starts the processes, as a shell, a test harness or a batch system would.
fn main() -> io::Result<()> {
    let arguments: Vec<String> = env::args().collect();
    if let [_, rank, name] = &arguments[..] {
        let rank = rank.parse().map_err(io::Error::other)?;
        return Ok(work(Rank(rank), name)?);
    }
    let name = format!("sum-{}", process::id());
    let mut all = Vec::new();
    for rank in 0..SIZE {
        let mut command = Command::new(env::current_exe()?);
        all.push(command.args([&rank.to_string(), &name]).spawn()?);
    }
    for mut process in all {
        assert!(process.wait()?.success());
    }
    Ok(())
}
