//! Many successive calls without synchronization.
//!
//! A run is several times longer than the team's window of calls, and one PE is late in it, so that
//! the others reach the end of the window.

use std::{thread, time::Duration};

use consort::{
    Error, Job, Rank, Result, Symmetric, Team,
    error::CallError,
    sync_modes::SyncModes,
    tune::{Algorithms, Candidate, Collective, Query},
};
use consort_collectives::PlanError;
use consort_conformance::{
    data::{Random, affine},
    registry::everything,
    turns::{LIMIT, alone, note},
};
use consort_fabric::{CallSpec, OperatorClass};
use consort_sandbox::seeds;
use consort_tuner::Catalog;

use crate::data::{blank, combined, contribution, count, nth};

/// The calls of a run: three windows of 64 and some more.
const RUN: usize = 200;
const LATE: Duration = Duration::from_millis(1);

/// The calls of a run.
#[derive(Clone, Debug)]
struct Run {
    collective: Collective,
    /// One algorithm for all calls, or a different one for each call.
    candidates: Vec<Candidate>,
    words: usize,
    /// The same root in all calls, or a different one for each call.
    root: Option<Rank>,
    /// The PE that is late, in call 5 and every 17 calls after that.
    late: Rank,
}

/// Sources and targets of every call of a run: nothing is used twice.
struct Buffers {
    sources: Vec<Symmetric<u64>>,
    targets: Vec<Symmetric<u64>>,
}

impl Buffers {
    fn new(world: &Team, words: usize) -> Result<Self> {
        let all = || (0..RUN).map(|_| world.symmetric(words)).collect::<Result<_>>();
        Ok(Self { sources: all()?, targets: all()? })
    }
}

/// Makes one run, in which all calls are Loose.
fn loose(world: &Team, buffers: &Buffers, run: &Run, seed: u64) -> Result<()> {
    let (rank, pes) = (world.rank(), world.size());
    let root = |call: usize| run.root.unwrap_or(nth(pes, call * 7));
    let of = |call: usize, rank| contribution::<u64>(seed + call as u64, rank, run.words);
    let writes = |call| run.collective == Collective::Reduce || root(call) == rank;
    for call in 0..RUN {
        let before = if writes(call) { of(call, rank) } else { blank(run.words) };
        buffers.sources[call].put(rank, 0, &before)?;
        buffers.targets[call].put(rank, 0, &blank(run.words))?;
    }
    world.barrier()?;
    let team = world.with_sync(SyncModes::LOOSE);
    for call in 0..RUN {
        if rank == run.late && call % 17 == 5 {
            thread::sleep(LATE);
        }
        let candidate = &run.candidates[call % run.candidates.len()];
        if call < 2 || run.candidates.len() > 1 {
            world.algorithms().force(run.collective, Some(candidate.clone()));
        }
        let (source, target) = (&buffers.sources[call], &buffers.targets[call]);
        match run.collective {
            Collective::Broadcast => team.in_symmetric(source, source).broadcast(root(call))?,
            _ => team.in_symmetric(source, target).reduce(affine, root(call))?,
        }
        assert_eq!(world.algorithms().served_by(run.collective).as_ref(), Some(candidate));
    }
    world.barrier()?;
    for call in 0..RUN {
        let mut result = blank(run.words);
        let expected = if run.collective == Collective::Broadcast {
            buffers.sources[call].get(rank, 0, &mut result)?;
            of(call, root(call))
        } else if rank == root(call) {
            buffers.targets[call].get(rank, 0, &mut result)?;
            combined(pes, run.words, &affine, |rank| of(call, rank))
        } else {
            continue;
        };
        assert!(result == expected, "PE {rank} in call {call}: {run:?}");
    }
    world.barrier()
}

/// Returns runs by all candidates that can serve them.
fn runs(pes: usize, words: usize) -> Vec<Run> {
    let last = Rank::new(pes - 1);
    let mut all = Vec::new();
    for collective in [Collective::Broadcast, Collective::Reduce] {
        let query = Query {
            collective,
            sync: SyncModes::LOOSE,
            pes: count(pes),
            bytes: words as u64 * 8,
            operator: OperatorClass::Ordered,
            symmetric: true,
        };
        let able = |one: &Candidate| Algorithms::here().serves(&CallSpec::from(&query), one);
        let mut candidates = everything(collective);
        let count = candidates.len();
        candidates.retain(able);
        assert!(2 * candidates.len() > count, "{} of {count} serve {collective}", candidates.len());
        for candidate in &candidates {
            let run = Run {
                collective,
                candidates: vec![candidate.clone()],
                words,
                root: Some(Rank(0)),
                late: last,
            };
            all.push(run.clone());
            all.push(Run { root: None, late: Rank::new(pes / 2), ..run });
        }
        let run = Run { collective, candidates, words, root: Some(last), late: Rank(0) };
        all.push(run.clone());
        all.push(Run { root: None, late: last, ..run });
    }
    all
}

fn wrap_the_window(pes: usize, sizes: &'static [usize]) {
    let all: Vec<Run> = sizes.iter().flat_map(|&words| runs(pes, words)).collect();
    let drawn = seeds::some_of(0..all.len() as u64);
    alone(LIMIT, move || {
        let ended = Job::threads(pes).run(|pe| {
            let world = pe.world();
            for &words in sizes {
                let buffers = Buffers::new(world, words)?;
                let is_drawn =
                    |(index, run): &(u64, &Run)| run.words == words && drawn.contains(index);
                for (index, run) in (0..).zip(&all).filter(is_drawn) {
                    if world.rank() == Rank(0) {
                        note(format!("run {index} on {pes} PEs: {run:?}"));
                    }
                    loose(world, &buffers, run, index << 8)?;
                }
            }
            Ok(())
        });
        ended.unwrap_or_else(|error| panic!("{pes} PEs: {error}"));
    });
}

#[test]
fn two_pes_run_loose() {
    wrap_the_window(2, &[1, 100, 3000]);
}

#[test]
fn five_pes_run_loose() {
    wrap_the_window(5, &[1, 3000]);
}

#[test]
fn seventeen_pes_run_loose() {
    wrap_the_window(17, &[1, 50]);
}

/// A team of this size has a short window, and its credits are sent in steps. PEs are late,
/// including the last one at the end of a run of calls that otherwise do not wait.
#[test]
fn seventy_pes_run_loose() {
    const PES: usize = 70;
    alone(LIMIT, || {
        Job::threads(PES).run(|pe| {
            let world = pe.world();
            let buffers = Buffers::new(world, 3)?;
            let flat = Candidate::new("flat");
            let tree = Candidate::new("knomial").with("radix", 4);
            let candidates = [vec![flat.clone()], vec![tree.clone()], vec![flat, tree]];
            for (seed, candidates) in (0..).zip(candidates) {
                for collective in [Collective::Broadcast, Collective::Reduce] {
                    let candidates = candidates.clone();
                    let root = Some(Rank::new(seed * 30));
                    let late = Rank::new(PES - 1 - seed * 20);
                    let run = Run { collective, candidates, words: 3, root, late };
                    loose(world, &buffers, &run, (seed as u64) << 8)?;
                }
            }
            Ok(())
        })
    })
    .unwrap();
}

/// Values are copied into the call: Loose, without symmetric memory.
#[test]
fn loose_values_are_right_at_once() {
    for pes in [2, 3, 8] {
        alone(LIMIT, move || {
            let all = Job::threads(pes).run(|pe| {
                let world = pe.world();
                let (me, team) = (world.rank(), world.with_sync(SyncModes::LOOSE));
                let mut random = Random(u64::from(me.0));
                for candidate in everything(Collective::Broadcast).into_iter().map(Some) {
                    world.algorithms().force(Collective::Broadcast, candidate);
                    for call in 0..RUN {
                        random.dawdle();
                        let root = nth(pes, call);
                        let mine: [u64; 3] = [call as u64, u64::from(me.0), 7];
                        match team.broadcast(mine, root) {
                            Err(Error::Call(CallError::Plan(PlanError::Incapable { .. }))) => break,
                            other => assert_eq!(other?, [call as u64, u64::from(root.0), 7]),
                        }
                    }
                }
                for candidate in everything(Collective::Reduce).into_iter().map(Some) {
                    world.algorithms().force(Collective::Reduce, candidate);
                    for call in 0..RUN {
                        random.dawdle();
                        let root = nth(pes, call);
                        let of = |rank: Rank| contribution(call as u64, rank, 1);
                        match team.reduce(of(me)[0], affine, root) {
                            Err(Error::Call(CallError::Plan(PlanError::Incapable { .. }))) => break,
                            other => {
                                let sum = combined(pes, 1, &affine, of)[0];
                                assert_eq!(other?, (me == root).then_some(sum));
                            }
                        }
                    }
                }
                world.barrier()
            });
            all.unwrap_or_else(|error| panic!("{pes} PEs: {error}"));
        });
    }
}
