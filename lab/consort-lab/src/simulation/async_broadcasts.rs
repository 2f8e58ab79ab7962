//! Asynchronous broadcasts: the experiments of Petrović 2015, section 3.3.4.

use anyhow::{Result, anyhow};
use consort::Rank;
use consort_collectives::async_broadcast::{OcBcastAsync, Variant};
use consort_fabric::Poisoned;
use consort_sim::{Pe, Simulation};

/// The settings of the broadcasts.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The largest number of children of a PE.
    pub k: u32,
    /// Bytes in a chunk.
    pub chunk_bytes: usize,
    /// The order in which a PE does its work.
    pub variant: Variant,
}

/// The throughput of several sources at once.
#[derive(Clone, Copy, Debug)]
pub struct Aggregate {
    /// The number of megabytes that a PE receives per second, as a mean over all PEs.
    pub mbps: f64,
    /// The messages of the source that completed the fewest, divided by those of the source that
    /// completed the most.
    pub fairness: f64,
}

/// Returns the time of a broadcast from PE 0, in nanoseconds: from its call until every PE has the
/// message and the source has all acknowledgements. It is the mean of `calls` calls, each alone.
///
/// # Errors
/// When the simulation fails.
pub fn latency_ns(
    simulation: &Simulation,
    settings: Settings,
    bytes: usize,
    calls: u32,
) -> Result<f64> {
    let Settings { k, chunk_bytes, variant } = settings;
    let outcome = simulation.run(async |pe: &Pe<'_>| {
        let mut broadcasts = OcBcastAsync::new(pe.listener(), k, chunk_bytes, variant);
        let mut ended_ns = Vec::new();
        let data = vec![0; bytes];
        for _ in 0..calls {
            pe.align().await;
            let began_ns = pe.now_ns();
            if pe.rank() == Rank(0) {
                broadcasts.fabric().begin().await;
                broadcasts.broadcast(&data).await?;
                broadcasts.settle().await?;
                ended_ns.push(pe.now_ns() - began_ns);
            } else {
                while broadcasts.next_delivered().is_none() {
                    broadcasts.serve().await?;
                }
                ended_ns.push(pe.now_ns() - began_ns);
                broadcasts.settle().await?;
            }
        }
        Ok::<_, Poisoned>(ended_ns)
    })?;
    let mut sum_ns = 0.0;
    let ended: Vec<Vec<f64>> = outcome.results.into_iter().flatten().collect();
    for call in 0..calls as usize {
        sum_ns += ended.iter().map(|pe| pe[call]).fold(0.0, f64::max);
    }
    Ok(sum_ns / f64::from(calls))
}

/// Returns the throughput when the PEs of these ranks continuously broadcast messages of this many
/// bytes. It is measured for `window_ns`, starting at `window_ns / 2`.
///
/// # Errors
/// When the simulation fails, or no message was received.
pub fn aggregate(
    simulation: &Simulation,
    settings: Settings,
    sources: &[u32],
    bytes: usize,
    window_ns: f64,
) -> Result<Aggregate> {
    let (from_ns, to_ns) = (window_ns * 0.5, window_ns * 1.5);
    let all = u32::try_from(sources.len())?;
    let Settings { k, chunk_bytes, variant } = settings;
    let outcome = simulation.run(async |pe: &Pe<'_>| {
        let mut broadcasts = OcBcastAsync::new(pe.listener(), k, chunk_bytes, variant);
        let mut counts = vec![0_u32; pe.size() as usize];
        let mut count = |broadcasts: &mut OcBcastAsync<_>| {
            while let Some((source, _)) = broadcasts.next_delivered() {
                counts[source.index()] += u32::from((from_ns..to_ns).contains(&pe.now_ns()));
            }
        };
        let data = vec![0; bytes];
        let is_source = sources.contains(&pe.rank().0);
        while if is_source { pe.now_ns() < to_ns } else { broadcasts.gone() < all } {
            if is_source {
                broadcasts.fabric().begin().await;
                broadcasts.broadcast(&data).await?;
            } else {
                broadcasts.serve().await?;
            }
            count(&mut broadcasts);
        }
        broadcasts.close().await?;
        Ok::<_, Poisoned>(counts)
    })?;
    let counts: Vec<Vec<u32>> = outcome.results.into_iter().flatten().collect();
    let of_source = |source: u32| counts.iter().map(|pe| pe[source as usize]).sum::<u32>();
    let totals: Vec<u32> = sources.iter().map(|&source| of_source(source)).collect();
    let most = totals.iter().copied().max().unwrap_or(0);
    if most == 0 {
        return Err(anyhow!("no message arrived in {window_ns} ns"));
    }
    let least = totals.iter().copied().min().unwrap_or(0);
    // A source does not receive its own messages.
    let each = f64::from(totals.iter().sum::<u32>()) / (counts.len() as f64 - 1.0);
    Ok(Aggregate {
        mbps: each * bytes as f64 / window_ns * 1e3,
        fairness: f64::from(least) / f64::from(most),
    })
}
