//! Fits a line by gradient descent. The sum of the gradients is planned once, and started in each
//! step.

use consort::{Job, Result, Team, ops::Sum};

/// The number of points that each PE reads for a step.
const BATCH: usize = 64;
const STEPS: usize = 400;

/// Replaces `batch` by this PE's points for a step, which are on the line `y = 3 x + 1`.
fn read(batch: &mut Vec<(f64, f64)>, world: &Team, step: usize) {
    let first = (step * world.size() + world.rank().index()) * BATCH;
    let x = |i: usize| (i * 37 % 101) as f64 / 101.0;
    batch.clear();
    batch.extend((first..first + BATCH).map(|i| (x(i), 3.0 * x(i) + 1.0)));
}

fn main() -> Result<()> {
    let lines = Job::threads(4).run(|pe| {
        let world = pe.world();
        let sums = world.plan::<f64>(2).all_reduce(Sum)?;
        let (mut gradient, mut sum) = (vec![0.0; 2], vec![0.0; 2]);
        let (mut slope, mut height, mut batch) = (0.0, 0.0, Vec::new());
        read(&mut batch, world, 0);
        for step in 1..=STEPS {
            gradient.fill(0.0);
            for (x, y) in &batch {
                let error = slope * x + height - y;
                gradient[0] += error * x;
                gradient[1] += error;
            }
            let summing = sums.start_into(gradient, sum)?; // takes both vectors
            read(&mut batch, world, step); // the points of the next step
            (gradient, sum) = summing.wait()?; // returns both
            slope -= sum[0] / (BATCH * world.size()) as f64;
            height -= sum[1] / (BATCH * world.size()) as f64;
        }
        Ok((slope, height))
    })?;
    assert!(lines.iter().all(|line| *line == lines[0]), "all PEs have the same result");
    let (slope, height) = lines[0];
    println!("y = {slope:.3} x + {height:.3}");
    Ok(())
}
