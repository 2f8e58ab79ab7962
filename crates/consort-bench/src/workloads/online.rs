//! The gain and the cost of refining choices while a program runs.
//!
//! Wisdom gives each kind of call the choice that is slowest in the tuner's model. One launch keeps
//! this choice, one refines it, and one is forced to use the choice that the second launch has
//! found. The time of the second launch relative to the third is the cost of refinement, including
//! look-ups and later tries. The refining launch reports the number of calls and the time before
//! its last choice.

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use consort::{
    Job, JobBuilder, Pe, Rank, Waiting,
    ops::Sum,
    sync_modes::SyncModes,
    tune::{Algorithms, Candidate, Collective},
};
use consort_fabric::statistics::Summary;
use consort_tuner::{Catalog, Entry, Wisdom};

use crate::{
    harness::{Figure, Mode},
    query_json::sums,
};

/// The share of the time in calls that refinement may cost.
pub const SHARE: f64 = 0.05;
/// The number of calls in a block, as far as a tenth of the time allows.
const BLOCK: u32 = 64;
const KINDS: [(Collective, usize); 3] = [
    (Collective::AllReduce, 8),
    (Collective::Broadcast, 8 << 10),
    (Collective::AllGather, 64 << 10),
];

/// The results of a launch, on PE 0.
pub struct LaunchResults {
    /// The time of a call in nanoseconds, over the last half of the blocks.
    pub calls: Summary,
    /// The last choice.
    pub choice: Option<Candidate>,
    /// The number of calls before it.
    pub after_calls: u64,
    /// The time before it.
    pub after: Duration,
}

/// A kind of call in three launches.
pub struct RefinedCall {
    /// The collective.
    pub collective: Collective,
    /// The size of a block.
    pub bytes: usize,
    /// The number of PEs.
    pub pes: u32,
    /// The slowest choice by the model.
    pub bad: Candidate,
    /// The launch with the slowest choice throughout.
    pub kept: LaunchResults,
    /// The launch with the slowest choice at first.
    pub refined: LaunchResults,
    /// The choice that the refining launch found.
    pub found: Candidate,
    /// The launch with that choice throughout.
    pub forced: LaunchResults,
}

/// Measures the default kinds of calls, or the same collectives at these sizes, until `stop` is
/// set. Returns the kinds that were measured by then.
///
/// # Errors
/// If a job fails, or wisdom cannot be written.
pub fn measure(
    pes: u32,
    sizes_bytes: &[usize],
    waiting: Option<Waiting>,
    budget: Duration,
    stop: &AtomicBool,
) -> Result<Vec<RefinedCall>> {
    let sized = |&(collective, _): &(Collective, usize)| {
        sizes_bytes.iter().map(move |&bytes| (collective, bytes))
    };
    let kinds: Vec<_> = if sizes_bytes.is_empty() {
        KINDS.to_vec()
    } else {
        KINDS.iter().flat_map(sized).collect()
    };
    let budget = budget / u32::try_from(3 * kinds.len()).unwrap_or(u32::MAX);
    let folder = tempfile::tempdir().context("cannot create a temporary folder for wisdom")?;
    let path = folder.path().join("wisdom.toml");
    let mut all = Vec::new();
    for (collective, bytes) in kinds {
        let bad = worst(collective, pes, bytes)?;
        wisdom(collective, pes, bytes, &bad).save(&path)?;
        let launch = || {
            let pes = Job::threads(pes as usize).pinned().heap_bytes(1 << 20);
            waiting.map_or(pes.clone(), |waiting| pes.waiting(waiting))
        };
        let member = |pe: &Pe| member((pe, pes), collective, bytes, budget, stop);
        let first = |pes: JobBuilder| {
            Ok::<LaunchResults, consort::Error>(pes.run(member)?.into_vec().swap_remove(0))
        };
        // Relaxed: the flag publishes no other data.
        let is_stopped = || stop.load(Relaxed);
        let kept = first(launch().wisdom(&path))?;
        if is_stopped() {
            break;
        }
        let refined = first(launch().wisdom(&path).online(SHARE))?;
        if is_stopped() {
            break;
        }
        let found = refined.choice.clone().unwrap_or_else(|| bad.clone());
        let forced = first(launch().without_wisdom().force(collective, found.clone()))?;
        if is_stopped() {
            break;
        }
        all.push(RefinedCall { collective, bytes, pes, bad, kept, refined, found, forced });
    }
    Ok(all)
}

impl RefinedCall {
    /// Returns the cost of refinement, as a share of the time with the last choice forced.
    pub fn cost(&self) -> f64 {
        self.refined.calls.median / self.forced.calls.median - 1.0
    }

    /// Returns a figure for each launch.
    pub fn figures(&self) -> [Figure; 3] {
        let Self { collective, bytes, pes, bad, kept, refined, found, forced } = self;
        let launches =
            [("kept", bad, kept), ("refined", found, refined), ("forced", found, forced)];
        launches.map(|(name, candidate, run)| {
            let figure = Figure {
                algorithm: Some(format!("{collective} by {candidate}, {name}")),
                bytes: Some(*bytes),
                ..Figure::of("online", *pes, Mode::Throughput)
            };
            figure.with(&run.calls)
        })
    }
}

/// Returns the slowest candidate by the model.
fn worst(collective: Collective, pes: u32, bytes: usize) -> Result<Candidate> {
    let (algorithms, query) =
        (Algorithms::here(), sums(collective, SyncModes::MINE, pes, bytes, false));
    let candidates = algorithms.candidates(&query).into_iter();
    let estimate_ns = |candidate: &Candidate| algorithms.estimate_ns(&query, candidate);
    candidates
        .max_by(|one, other| estimate_ns(one).total_cmp(&estimate_ns(other)))
        .with_context(|| format!("no algorithm serves {collective} of {bytes} bytes"))
}

fn wisdom(collective: Collective, pes: u32, bytes: usize, choice: &Candidate) -> Wisdom {
    let mut wisdom = Wisdom::new(Algorithms::here().identity().clone());
    let query = sums(collective, SyncModes::MINE, pes, bytes, false);
    wisdom.insert(Entry::alone(query, choice.clone(), 1.0));
    wisdom
}

/// Makes blocks of calls until the time is over.
fn member(
    (pe, pes): (&Pe, u32),
    collective: Collective,
    bytes: usize,
    budget: Duration,
    stop: &AtomicBool,
) -> consort::Result<LaunchResults> {
    let world = pe.world();
    let is_root = world.rank() == Rank(0);
    let len = bytes / size_of::<f64>();
    let of = |blocks: u32| vec![1.0_f64; blocks as usize * len];
    let source = of(collective.source_blocks(pes, is_root));
    let mut target = of(collective.target_blocks(pes, is_root));
    let (mut blocks_ns, mut choice) = (Vec::new(), None);
    let (mut after_calls, mut after) = (0, Duration::ZERO);
    let (mut calls, mut block_calls) = (0, 1);
    let begun = Instant::now();
    loop {
        let block_begun = Instant::now();
        for _ in 0..block_calls {
            world.slices(&source, &mut target).any(collective, Sum, Rank(0))?;
        }
        let block_time = block_begun.elapsed();
        blocks_ns.push(block_time.as_secs_f64() * 1e9 / f64::from(block_calls));
        let served_by = world.algorithms().served_by(collective);
        if served_by != choice {
            choice = served_by;
            (after_calls, after) = (calls, begun.elapsed());
        }
        calls += u64::from(block_calls);
        let is_over = begun.elapsed() >= budget || stop.load(Relaxed);
        let next = if is_over { 0 } else { fitting(block_time / block_calls, budget) };
        // A scatter, because it is not one of the measured collectives.
        block_calls = world.scatter(&vec![next; world.size()], Rank(0))?;
        if block_calls == 0 {
            break;
        }
    }
    let calls = Summary::of(&blocks_ns[blocks_ns.len() / 2..]);
    Ok(LaunchResults { calls, choice, after_calls, after })
}

/// Returns the number of calls in a block if one takes `call`.
fn fitting(call: Duration, budget: Duration) -> u32 {
    let fitting = (budget / 10).as_nanos() / call.as_nanos().max(1);
    u32::try_from(fitting).map_or(BLOCK, |fitting| fitting.clamp(1, BLOCK))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_calls_have_shorter_blocks() {
        let (us, s) = (Duration::from_micros, Duration::from_secs);
        assert_eq!(fitting(us(2), s(1)), BLOCK);
        assert_eq!(fitting(us(10_000), s(1)), 10);
        assert_eq!(fitting(s(3), s(1)), 1);
        assert_eq!(fitting(Duration::ZERO, s(0)), 1);
    }
}
