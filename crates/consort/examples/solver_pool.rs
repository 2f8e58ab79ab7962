//! A function that solves a problem on several threads. The program calls it many times, and the
//! same threads serve all calls.

use consort::{Job, Pool, Result, ops::Sum, pieces};

/// Returns the limit at which all demands together, each cut to the limit, use the capacity.
fn fair_share(pool: &Pool, demands: &[f64], capacity: f64) -> Result<f64> {
    let limits = pool.run_with(pieces(demands, pool.size()), |pe, piece| {
        let world = pe.world();
        let (mut low, mut high) = (0.0, capacity);
        while high - low > 1e-6 {
            let limit = (low + high) / 2.0;
            let used = piece.iter().map(|demand| demand.min(limit)).sum();
            let used: f64 = world.all_reduce(used, Sum)?;
            (low, high) = if used > capacity { (low, limit) } else { (limit, high) };
        }
        Ok(low)
    })?;
    Ok(limits[0])
}

fn main() -> Result<()> {
    let pool = Job::threads(4).pool()?; // starts the threads
    let demands: Vec<f64> = (0..1000).map(|i| f64::from(i % 10)).collect();
    for capacity in [1000.0, 2000.0, 3000.0, 4000.0] {
        let limit = fair_share(&pool, &demands, capacity)?;
        println!("capacity {capacity}: each gets at most {limit:.3}");
    }
    Ok(()) // dropping the pool ends the threads
}
