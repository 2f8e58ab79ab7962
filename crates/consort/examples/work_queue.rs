//! Tasks of unequal length: a PE that has time takes the next task from a counter on PE 0, and puts
//! its result into the memory of PE 0.

use consort::{Job, Rank, Result};

const TASKS: usize = 20;

/// Returns the longest Collatz sequence that starts at one of a thousand numbers.
fn longest(task: usize) -> u64 {
    let steps = |mut x: u64| {
        let mut steps = 0;
        while x > 1 {
            x = if x.is_multiple_of(2) { x / 2 } else { 3 * x + 1 };
            steps += 1;
        }
        steps
    };
    let first = task as u64 * 1000;
    (first..first + 1000).map(steps).max().unwrap_or(0)
}

fn main() -> Result<()> {
    Job::from_env(4).run(|pe| {
        let world = pe.world();
        let next = world.symmetric::<usize>(1)?; // symmetric memory starts with zeros
        let results = world.symmetric::<u64>(TASKS)?;
        let done = world.completion_counter()?;
        loop {
            let task = next.fetch_add(Rank(0), 0, 1)?;
            if task >= TASKS {
                break;
            }
            // Puts the result, then adds 1 to the counter of PE 0.
            results.put_counted(Rank(0), task, &[longest(task)], &done)?;
        }
        if world.rank() == Rank(0) {
            done.wait(TASKS as u64)?; // all results have arrived
            println!("{:?}", results.to_vec()?);
        }
        Ok(())
    })?;
    Ok(())
}
