//! Sample sort: every PE sends a block to every PE, and the blocks have different lengths.

use consort::{Displacements, Job, Result};

const KEYS: usize = 100_000;

fn main() -> Result<()> {
    let all = Job::from_env(4).run(|pe| {
        let world = pe.world();
        let pes = world.size();
        let random = |i: usize| (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44;
        let mut keys: Vec<u64> = world.local_range(KEYS).map(random).collect();
        keys.sort_unstable();
        // The splitters divide a sample of all keys into equal parts, one for each PE.
        let step = keys.len() / pes;
        let sample: Vec<u64> = (0..pes).map(|i| keys[i * step]).collect();
        let mut samples = world.values(&sample).all_gather()?;
        samples.sort_unstable();
        let splitters: Vec<u64> = (1..pes).map(|i| samples[i * pes]).collect();
        let mut lens = vec![0; pes];
        for key in &keys {
            lens[splitters.partition_point(|splitter| splitter <= key)] += 1;
        }
        // The call first exchanges the lengths, and then the keys.
        let sent = Displacements::new(&lens)?;
        let (mut sorted, _) = world.values(&keys).uneven().all_to_all(&sent)?;
        sorted.sort_unstable();
        Ok(sorted)
    })?;
    for (rank, keys) in all.ranked() {
        assert!(keys.is_sorted());
        println!("PE {rank}: {} keys from {:?} to {:?}", keys.len(), keys.first(), keys.last());
    }
    Ok(())
}
