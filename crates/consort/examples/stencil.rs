//! Heat spreads along a ring of cells. Each PE owns a part of the ring, and exchanges the cells at
//! its ends with its neighbours in each step.

use consort::{
    Job, Rank, Result,
    ops::{Max, Sum},
};

const CELLS: usize = 100;

fn main() -> Result<()> {
    let all = Job::from_env(4).run(|pe| {
        let world = pe.world();
        let n = world.local_range(CELLS).len();
        // Cells 0 and n + 1 are the halo: copies of the neighbours' cells.
        let (mut old, mut new) = (vec![0.0_f64; n + 2], vec![0.0; n + 2]);
        if world.rank() == Rank(0) {
            old[1] = 1000.0;
        }
        let (mut steps, mut change) = (0, f64::INFINITY);
        while change > 0.01 {
            let (mut before, mut after) = ([0.0], [0.0]);
            world.send_receive(world.right(), &old[n..=n], world.left(), &mut before)?;
            world.send_receive(world.left(), &old[1..2], world.right(), &mut after)?;
            (old[0], old[n + 1]) = (before[0], after[0]);
            let mut largest = 0.0_f64;
            for i in 1..=n {
                new[i] = 0.25 * old[i - 1] + 0.5 * old[i] + 0.25 * old[i + 1];
                largest = largest.max((new[i] - old[i]).abs());
            }
            (old, new) = (new, old);
            steps += 1;
            change = world.all_reduce(largest, Max)?; // the same on all PEs: all leave together
        }
        let heat = world.all_reduce(old[1..=n].iter().sum::<f64>(), Sum)?;
        Ok((steps, old[1], heat))
    })?;
    for (rank, (steps, first, heat)) in all.ranked() {
        println!("PE {rank}: {steps} steps, first cell {first:.1}, heat of the ring {heat:.1}");
    }
    Ok(())
}
