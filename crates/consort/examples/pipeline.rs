//! A pipeline: each PE is a stage, which receives items from the stage before it.
//!
//! ```sh
//! cargo run --release -p consort --example pipeline
//! ```

use consort::{Job, Rank, Result};

const ITEMS: u64 = 1000;

fn main() -> Result<()> {
    let all = Job::from_env(4).run(|pe| {
        let world = pe.world();
        let stage = world.rank();
        let is_last = stage.index() + 1 == world.size();
        let mut sum = 0;
        for number in 0..ITEMS {
            let mut item = [number; 8]; // the first stage makes the items
            if stage != Rank(0) {
                world.receive(world.left(), &mut item)?;
            }
            item.iter_mut().for_each(|x| *x = 3 * *x + 1);
            if !is_last {
                world.send(world.right(), &item)?; // rarely waits: up to 48 items may be on the way
            }
            sum += item[7];
        }
        Ok(sum)
    })?;
    for (stage, sum) in all.ranked() {
        println!("stage {stage}: the last elements add up to {sum}");
    }
    Ok(())
}
