//! A histogram and a maximum of borrowed data: each thread gets one piece of the data.

use consort::{
    Job, Result,
    ops::{Max, Sum},
    pieces,
};

const THREADS: usize = 4;
const LIMIT: usize = 1000;

fn main() -> Result<()> {
    let data: Vec<usize> = (0..1_000_000).map(|i| i * i % LIMIT).collect();
    let all = Job::threads(THREADS).run_with(pieces(&data, THREADS), |pe, piece| {
        let world = pe.world();
        let mut bins = [0_u64; 5];
        for &value in piece {
            bins[value * bins.len() / LIMIT] += 1;
        }
        world.in_place(&mut bins).all_reduce(Sum)?; // element by element
        let largest = world.all_reduce(piece.iter().max().copied().unwrap_or(0), Max)?;
        Ok((bins, largest))
    })?;
    let (bins, largest) = all[0]; // every PE has the same result
    println!("bins: {bins:?}, {} values in all", bins.iter().sum::<u64>());
    println!("largest value: {largest}");
    Ok(())
}
