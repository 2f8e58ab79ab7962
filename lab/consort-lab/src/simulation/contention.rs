//! Lets many cores access one message buffer: the experiment of Petrović 2015, section 4.1.3.

use anyhow::{Result, anyhow};
use consort::Rank;
use consort_sim::{Pe, Simulation};

use super::transfers::Transfer;

/// The times of operations on a contended message buffer.
#[derive(Clone, Copy, Debug)]
pub struct Contention {
    /// The mean time of an operation, in nanoseconds, over all cores.
    pub mean_ns: f64,
    /// The mean time of the fastest core.
    pub fastest_ns: f64,
    /// The mean time of the slowest core.
    pub slowest_ns: f64,
}

/// Makes the first `accessors` cores repeat transfers with the buffer of core 0 at the same time,
/// for `window_ns`.
///
/// # Errors
/// When the machine has fewer cores, or no such buffers.
pub fn contention(
    simulation: &Simulation,
    transfer: Transfer,
    accessors: u32,
    bytes: usize,
    window_ns: f64,
) -> Result<Contention> {
    let outcome = simulation.run(async |pe: &Pe<'_>| {
        if pe.rank().0 >= accessors {
            return None;
        }
        transfer.repeat(pe, Rank(0), bytes, window_ns).await.map(|repeated| repeated.mean_ns)
    })?;
    let times: Vec<f64> = outcome.results.into_iter().flatten().collect();
    if times.len() != accessors as usize {
        return Err(anyhow!("the machine has no message buffers of {bytes} bytes"));
    }
    Ok(Contention {
        mean_ns: times.iter().sum::<f64>() / f64::from(accessors),
        fastest_ns: times.iter().copied().fold(f64::INFINITY, f64::min),
        slowest_ns: times.iter().copied().fold(0.0, f64::max),
    })
}
