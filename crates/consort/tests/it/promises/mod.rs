//! The guarantees of the synchronization modes, for every algorithm of every collective that moves
//! data, in symmetric memory; and on slices (`private`).
//!
//! | mode | at entry | at exit |
//! | --- | --- | --- |
//! | All | no data is read or written before all have entered | no PE leaves before all data has moved |
//! | Mine | a PE's data is private until the PE enters | and again when it leaves |
//! | None | data may move once any PE has entered | a PE leaves once it is not needed any more |
//!
//! In each call, one PE enters at another time than the rest. It enters last, so that the others
//! have time to break the promise. Or it enters first, and the others observe whether it leaves.
//! Both two and three PEs are tested: with two, the entry or exit barrier is only one signal, so
//! the signals that carry data must keep the rest of the promise.

mod all_and_mine;
mod none;
mod private;

use std::{
    collections::BTreeSet,
    sync::atomic::{
        AtomicU64,
        Ordering::{Acquire, Release},
    },
    thread,
    time::{Duration, Instant},
};

use consort::{
    Job, Rank, Result, Symmetric, Team,
    ops::Sum,
    sync_modes::{SyncMode, SyncModes},
    tune::{Algorithms, Candidate, Collective, Query},
};
use consort_collectives::names;
use consort_conformance::{
    data::affine,
    registry::everything,
    turns::{alone, note},
};
use consort_fabric::{CallSpec, OperatorClass};
use consort_tuner::Catalog;

use crate::{
    data::{Call, blank, count, source_blocks, target_blocks},
    typed,
};

const ROOT: Rank = Rank(1);
/// The words of a block: one, and more than an inbox holds.
const SIZES: [usize; 2] = [1, 2500];
/// The time that the others have for what they must not do.
const APART: Duration = Duration::from_micros(200);
/// More time than any correct step takes.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time limit of a test; with a core for each PE it takes a second.
const LIMIT: Duration = Duration::from_secs(120);
/// The value with which a PE overwrites data that is its own again.
const OVER: u64 = 0x5A5A_5A5A_5A5A_5A5A;

/// A step of a PE in a call.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Has observed another PE.
    Sees,
    Enters,
    Leaves,
}

/// The last call in which each PE has reached each step.
type Marks = [[AtomicU64; 3]; 3];

/// The contributions of all PEs to a call, and the expected results, if any.
struct Data {
    sources: Vec<Vec<u64>>,
    results: Vec<Option<Vec<u64>>>,
}

impl Data {
    fn of(call: &Call, ordered: bool) -> Self {
        let ranks = || (0..call.pes).map(Rank::new);
        let result =
            |rank| if ordered { call.result(rank, &affine) } else { call.result(rank, &Sum) };
        Self {
            sources: ranks().map(|rank| call.source(rank)).collect(),
            results: ranks().map(result).collect(),
        }
    }
}

/// A call by one algorithm, from the view of one PE.
struct Scene<'s> {
    world: &'s Team,
    query: Query,
    candidate: &'s Candidate,
    source: &'s Symmetric<u64>,
    target: &'s Symmetric<u64>,
    data: &'s Data,
    /// The PE that is last, or first.
    apart: Rank,
    number: u64,
    marks: &'s Marks,
}

impl Scene<'_> {
    fn me(&self) -> Rank {
        self.world.rank()
    }

    fn everyone(&self) -> impl Iterator<Item = Rank> {
        self.world.ranks()
    }

    /// Returns the memory that receives results.
    fn results(&self) -> &Symmetric<u64> {
        let is_one = self.query.collective == Collective::Broadcast;
        if is_one { self.source } else { self.target }
    }

    /// Clears the buffers of this PE.
    fn clear(&self) -> Result<()> {
        let all = [self.source, self.target];
        all.into_iter().try_for_each(|it| it.put(self.me(), 0, &blank(it.len())))
    }

    /// Writes a PE's contribution to its place.
    fn contribute(&self, rank: Rank) -> Result<()> {
        self.source.put(rank, 0, &self.data.sources[rank.index()])?;
        self.source.quiet()
    }

    /// Writes this PE's contribution to its place, in time for modes that read it at any moment.
    fn contribute_for(&self, sync: SyncModes) -> Result<()> {
        self.contribute(self.me())?;
        if sync.entry == SyncMode::None { self.world.barrier() } else { Ok(()) }
    }

    /// Checks that this PE has its result after the call of all PEs.
    fn ends(&self) -> Result<()> {
        self.world.barrier()?;
        assert!(self.has_result(self.me())?, "{self}");
        Ok(())
    }

    /// Overwrites a PE's contribution.
    fn spoil(&self, buffer: &Symmetric<u64>, rank: Rank) -> Result<()> {
        buffer.put(rank, 0, &vec![OVER; buffer.len()])?;
        buffer.quiet()
    }

    /// Returns whether the place of a PE's result is still blank.
    fn is_untouched(&self, rank: Rank) -> Result<bool> {
        let mut found = vec![0; self.results().len()];
        self.results().get(rank, 0, &mut found)?;
        Ok(found == blank::<u64>(found.len()))
    }

    /// Returns whether a PE has its result, if it expects one.
    fn has_result(&self, rank: Rank) -> Result<bool> {
        let Some(expected) = &self.data.results[rank.index()] else { return Ok(true) };
        let mut found = vec![0; expected.len()];
        self.results().get(rank, 0, &mut found)?;
        Ok(found == *expected)
    }

    fn mark(&self, step: Step) {
        self.marks[step as usize][self.me().index()].store(self.number, Release);
    }

    fn has(&self, step: Step, rank: Rank) -> bool {
        self.marks[step as usize][rank.index()].load(Acquire) >= self.number
    }

    /// Waits until all but the PE that is apart have reached a step.
    fn waits_for_others(&self, step: Step) {
        let all = || self.everyone().all(|rank| rank == self.apart || self.has(step, rank));
        assert!(waits_until(PATIENCE, all), "not all PEs reach {step:?}: {self}");
    }

    /// If this PE is apart, waits until the others are in the call, and some more time.
    fn is_last(&self) -> bool {
        let is_last = self.me() == self.apart;
        if is_last {
            self.waits_for_others(Step::Enters);
            thread::sleep(APART);
        }
        is_last
    }

    /// Makes the call.
    fn call(&self, sync: SyncModes) -> Result<()> {
        let team = self.world.with_sync(sync);
        let (collective, source, target) = (self.query.collective, self.source, self.target);
        self.mark(Step::Enters);
        if self.query.operator == OperatorClass::Ordered {
            typed::symmetric(&team, collective, source, target, affine, ROOT)?;
        } else {
            typed::symmetric(&team, collective, source, target, Sum, ROOT)?;
        }
        self.mark(Step::Leaves);
        Ok(())
    }
}

impl std::fmt::Display for Scene<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { query, candidate, apart, .. } = self;
        write!(f, "PE {} of {}, {apart} apart, in ", self.me(), query.pes)?;
        let Query { collective, sync, bytes, operator, .. } = query;
        write!(f, "{collective} {sync} of {bytes} B, {operator:?}, by {candidate}")
    }
}

/// Returns whether a condition becomes true in time.
fn waits_until(patience: Duration, is_so: impl Fn() -> bool) -> bool {
    let end = Instant::now() + patience;
    while !is_so() {
        if Instant::now() > end {
            return false;
        }
        thread::yield_now();
    }
    true
}

/// Lets every algorithm serve calls in these modes, with each PE apart in turn: of both sizes, with
/// commutative operators and others, on two PEs and on three.
fn each_call(
    syncs: impl Fn(SyncModes) -> bool,
    play: impl Fn(&Scene<'_>, SyncModes) -> Result<()> + Send + Sync + 'static,
) {
    let syncs: Vec<SyncModes> = SyncModes::every().filter(|&sync| syncs(sync)).collect();
    let served = alone(LIMIT, move || {
        let mut served = BTreeSet::new();
        for pes in [2, 3] {
            let marks: Marks = Default::default();
            let all = Job::threads(pes).run(|pe| plays(pe.world(), &marks, &syncs, &play));
            let all = all.unwrap_or_else(|error| panic!("{pes} PEs: {error}"));
            served.extend(all.into_iter().flatten());
        }
        served
    });
    let data = Collective::EVERY.into_iter().filter(|&one| one != Collective::Barrier);
    // Threads are on one node, and the fabric has no collectives.
    let is_here = |name: &&&str| !["two_level", "vendor"].contains(*name);
    let all = data
        .flat_map(|of| names(of).iter().filter(is_here).map(move |name| (of, (*name).to_owned())));
    assert!(served.into_iter().eq(all.collect::<BTreeSet<_>>()), "an algorithm served nothing");
}

/// Returns each able algorithm with the first and with the last values of its parameters.
fn able(query: &Query) -> Vec<Candidate> {
    let mut all = everything(query.collective);
    all.retain(|candidate| Algorithms::here().serves(&CallSpec::from(query), candidate));
    let of_one = all.chunk_by(|one, next| one.algorithm == next.algorithm);
    of_one.flat_map(|all| all.first().into_iter().chain(all[1..].last())).cloned().collect()
}

/// Runs one PE's part of all calls, and returns the algorithms that served.
fn plays(
    world: &Team,
    marks: &Marks,
    syncs: &[SyncModes],
    play: &impl Fn(&Scene<'_>, SyncModes) -> Result<()>,
) -> Result<BTreeSet<(Collective, String)>> {
    let pes = world.size();
    let (mut served, mut number) = (BTreeSet::new(), 0);
    for collective in Collective::EVERY.into_iter().filter(|&one| one != Collective::Barrier) {
        let operators = [OperatorClass::Commutative, OperatorClass::Ordered];
        // Only in reductions does the order of the operands change the senders and receivers.
        let both = collective == Collective::Reduce;
        let operators = operators.into_iter().take(1 + usize::from(both));
        for (words, operator) in SIZES.iter().flat_map(|&w| operators.clone().map(move |o| (w, o)))
        {
            let source = world.symmetric(source_blocks(collective, pes, true) * words)?;
            let target = world.symmetric(target_blocks(collective, pes, true) * words)?;
            let data: Vec<_> = (0..3)
                .map(|seed| Call { collective, pes, root: ROOT, len: words, seed })
                .map(|call| Data::of(&call, operator == OperatorClass::Ordered))
                .collect();
            let bytes = words as u64 * 8;
            for &sync in syncs {
                let pes = count(pes);
                let query = Query { collective, sync, pes, bytes, operator, symmetric: true };
                for candidate in &able(&query) {
                    served.insert((collective, candidate.algorithm.clone()));
                    world.algorithms().force(collective, Some(candidate.clone()));
                    for apart in world.ranks() {
                        number += 1;
                        let scene = Scene {
                            world,
                            query,
                            candidate,
                            source: &source,
                            target: &target,
                            data: &data[apart.index()],
                            apart,
                            number,
                            marks,
                        };
                        if world.rank() == ROOT {
                            note(scene.to_string());
                        }
                        scene.clear()?;
                        world.barrier()?;
                        play(&scene, sync)?;
                    }
                }
            }
        }
    }
    Ok(served)
}
