//! Every collective by every algorithm of the registry: all values of its parameters, modes, sizes
//! and roots, with borrowed and symmetric buffers, on many numbers of PEs.
//!
//! The cases of a number of PEs are a product that is walked in strides, so that each call is
//! served by another algorithm than the one before, at another size; a budget says how far. A case
//! is two calls in a row. Between cases PEs synchronize only where a mode asks for it.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use consort::{
    Candidate, Collective, Error, Mode, Operator, Pes, Rank, Result, Sum, Symmetric, Sync, Team,
};
use consort_collectives::PlanError;

use crate::{
    data::{Element, Random, affine, affine_in_a_byte, blank, combined, contribution},
    registry::{everything, one_each},
    turns::{alone, note},
};

const SIZES: [usize; 15] =
    [0, 1, 7, 8, 9, 56, 57, 112, 1000, 4096, 7000, 7057, 20_000, 50_001, 100_000];
/// What one PE count may take; the suite is much faster.
const LIMIT: Duration = Duration::from_secs(120);
/// Calls in a row that a case makes.
const ROW: usize = 2;

#[derive(Clone, Debug)]
struct Case {
    collective: Collective,
    /// What is forced; none, and the library chooses.
    candidate: Option<Candidate>,
    /// The barrier that all enter or leave by.
    barrier: Candidate,
    sync: Sync,
    bytes: usize,
    root: Rank,
    symmetric: bool,
    /// Whether the operator is not commutative.
    ordered: bool,
}

/// `count` cases, or all there are.
fn cases(pes: u32, count: usize) -> Vec<Case> {
    let all = every_case(pes);
    // The golden ratio spreads any number of cases evenly.
    let near = all.len() * 61_803 / 100_000;
    let coprime = |&stride: &usize| {
        let (mut a, mut b) = (all.len(), stride);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a == 1
    };
    let stride = (near..).find(coprime).expect("a number coprime to another");
    (0..count.min(all.len())).map(|index| all[index * stride % all.len()].clone()).collect()
}

fn every_case(pes: u32) -> Vec<Case> {
    let barriers = everything(Collective::Barrier);
    let mut barrier = barriers.iter().cycle();
    let mut next = || barrier.next().expect("a cycle").clone();
    let mut roots = vec![Rank(0), Rank(pes / 2), Rank(pes - 1)];
    roots.dedup();
    let mut all = Vec::new();
    for candidate in barriers.iter().cycle().take(40 * barriers.len()) {
        all.push(Case {
            collective: Collective::Barrier,
            candidate: Some(candidate.clone()),
            barrier: candidate.clone(),
            sync: Sync::STRICT,
            bytes: 0,
            root: Rank(0),
            symmetric: false,
            ordered: false,
        });
    }
    for collective in Collective::EVERY.into_iter().filter(|&one| one != Collective::Barrier) {
        let operators: &[bool] = if collective.combines() { &[false, true] } else { &[false] };
        let roots = if collective.is_rooted() { &roots[..] } else { &roots[..1] };
        let candidates = everything(collective).into_iter().map(Some).chain([None]);
        for candidate in candidates {
            for (&bytes, &root) in SIZES.iter().flat_map(|b| roots.iter().map(move |r| (b, r))) {
                for sync in Sync::every() {
                    for symmetric in [true, false].into_iter().take(1 + borrows(sync)) {
                        all.extend(operators.iter().map(|&ordered| Case {
                            collective,
                            candidate: candidate.clone(),
                            barrier: next(),
                            sync,
                            bytes,
                            root,
                            symmetric,
                            ordered,
                        }));
                    }
                }
            }
        }
    }
    all
}

fn borrows(sync: Sync) -> usize {
    usize::from(sync.exit != Mode::None)
}

/// Symmetric buffers of one size: a source and a target for each call of a row.
struct Pair<'p, T: Element> {
    source: Symmetric<'p, T>,
    target: Symmetric<'p, T>,
}

/// One PE at work on the cases.
struct Worker<'p> {
    world: Team<'p>,
    bytes: BTreeMap<usize, Vec<Pair<'p, u8>>>,
    words: BTreeMap<usize, Vec<Pair<'p, u64>>>,
    random: Random,
    entered: &'p [AtomicU64],
}

fn pairs<'p, T: Element>(world: Team<'p>, bytes: usize) -> Result<Vec<Pair<'p, T>>> {
    let len = bytes / size_of::<T>();
    (0..ROW)
        .map(|_| Ok(Pair { source: world.symmetric(len)?, target: world.symmetric(len)? }))
        .collect()
}

impl<'p> Worker<'p> {
    fn new(world: Team<'p>, entered: &'p [AtomicU64]) -> Result<Self> {
        let (mut bytes, mut words) = (BTreeMap::new(), BTreeMap::new());
        for size in SIZES {
            bytes.insert(size, pairs(world, size)?);
            if size % 8 == 0 {
                words.insert(size, pairs(world, size)?);
            }
        }
        let random = Random(u64::from(world.rank().0) << 32);
        Ok(Self { world, bytes, words, random, entered })
    }

    /// Whether the forced algorithm can serve the case. Panics if it serves it wrongly.
    fn check(&mut self, index: usize, case: &Case) -> Result<bool> {
        if self.world.rank() == Rank(0) {
            note(format!("case {index} on {} PEs: {case:?}", self.world.size()));
        }
        self.world.force(case.collective, case.candidate.clone());
        self.world.force(Collective::Barrier, Some(case.barrier.clone()));
        let seed = (index as u64) << 8;
        let served = match (case.collective, case.bytes % 8, case.ordered) {
            (Collective::Barrier, ..) => self.barrier(),
            (Collective::Broadcast, ..) => self.broadcast(case, seed),
            (_, 0, false) => self.reduce(case, seed, |w| &w.words, Sum),
            (_, 0, true) => self.reduce(case, seed, |w| &w.words, affine),
            (_, _, false) => self.reduce(case, seed, |w| &w.bytes, Sum),
            (_, _, true) => self.reduce(case, seed, |w| &w.bytes, affine_in_a_byte),
        };
        match served {
            Ok(()) => {
                let by = self.world.served_by(case.collective);
                assert!(case.candidate.is_none() || by == case.candidate, "{by:?} for {case:?}");
                Ok(true)
            }
            Err(Error::Plan(PlanError::Incapable { .. })) => {
                assert!(case.candidate.is_some(), "nothing serves {case:?}");
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    fn barrier(&mut self) -> Result<()> {
        for _ in 0..ROW {
            self.random.dawdle();
            let mine = &self.entered[self.world.rank().index()];
            let entered = mine.fetch_add(1, Relaxed) + 1;
            self.world.barrier()?;
            for (rank, theirs) in self.entered.iter().enumerate() {
                let theirs = theirs.load(Relaxed);
                assert!(theirs >= entered, "left barrier {entered} before PE {rank} entered it");
            }
        }
        Ok(())
    }

    fn broadcast(&mut self, case: &Case, seed: u64) -> Result<()> {
        let Self { world, bytes, random, .. } = self;
        let (team, len) = (world.with(case.sync), case.bytes);
        let is_root = team.rank() == case.root;
        let expected: [_; ROW] =
            std::array::from_fn(|call| contribution::<u8>(seed + call as u64, case.root, len));
        if !case.symmetric {
            for expected in &expected {
                random.dawdle();
                let mut data = if is_root { expected.clone() } else { blank(len) };
                team.broadcast_slice(&mut data, case.root)?;
                assert!(data == *expected, "PE {} has other data: {case:?}", team.rank());
                // A buffer is the caller's again when the call returns.
                std::hint::black_box(&mut data).fill(0);
            }
            return Ok(());
        }
        let buffers = &bytes[&len];
        for (buffer, expected) in buffers.iter().zip(&expected) {
            let before = if is_root { expected.clone() } else { blank(len) };
            buffer.source.put(team.rank(), 0, &before)?;
        }
        if case.sync.entry == Mode::None {
            world.barrier()?;
        }
        let verify = |buffer: &Pair<'_, u8>, expected: &[u8]| {
            let mut data = blank(len);
            buffer.source.get(team.rank(), 0, &mut data)?;
            assert!(data == expected, "PE {} has other data: {case:?}", team.rank());
            Ok::<_, Error>(())
        };
        for (buffer, expected) in buffers.iter().zip(&expected) {
            random.dawdle();
            team.broadcast_symmetric(&buffer.source, case.root)?;
            if case.sync.exit != Mode::None {
                verify(buffer, expected)?;
                buffer.source.put(team.rank(), 0, &blank(len))?;
            }
        }
        if case.sync.exit == Mode::None {
            world.barrier()?;
            for (buffer, expected) in buffers.iter().zip(&expected) {
                verify(buffer, expected)?;
            }
        }
        Ok(())
    }

    fn reduce<T: Element, O: Operator<T> + Copy>(
        &mut self,
        case: &Case,
        seed: u64,
        buffers: impl for<'w> Fn(&'w Worker<'p>) -> &'w BTreeMap<usize, Vec<Pair<'p, T>>>,
        operator: O,
    ) -> Result<()> {
        let (world, rank) = (self.world, self.world.rank());
        let (team, len) = (world.with(case.sync), case.bytes / size_of::<T>());
        let receives = case.collective.receives(rank == case.root);
        let mine = |call: usize| contribution::<T>(seed + call as u64, rank, len);
        let verify = |call: usize, result: &[T]| {
            let of = |rank| contribution(seed + call as u64, rank, len);
            let expected = combined(world.size(), len, &operator, of);
            assert!(result == expected, "PE {rank} has another result: {case:?}");
        };
        if !case.symmetric {
            for call in 0..ROW {
                self.random.dawdle();
                let mut source = mine(call);
                let mut target = if receives { blank(len) } else { Vec::new() };
                if case.collective == Collective::AllReduce {
                    team.all_reduce_slice(&source, &mut target, operator)?;
                } else {
                    team.reduce_slice(&source, &mut target, operator, case.root)?;
                }
                std::hint::black_box(&mut source).fill(T::of(0));
                if receives {
                    verify(call, &target);
                }
            }
            return Ok(());
        }
        let read = |buffer: &Symmetric<'_, T>| {
            let mut data = blank(len);
            buffer.get(rank, 0, &mut data).map(|()| data)
        };
        for (call, pair) in buffers(self)[&case.bytes].iter().enumerate() {
            pair.source.put(rank, 0, &mine(call))?;
            pair.target.put(rank, 0, &blank(len))?;
        }
        if case.sync.entry == Mode::None {
            world.barrier()?;
        }
        for call in 0..ROW {
            self.random.dawdle();
            let pair = &buffers(self)[&case.bytes][call];
            if case.collective == Collective::AllReduce {
                team.all_reduce_symmetric(&pair.source, &pair.target, operator)?;
            } else {
                team.reduce_symmetric(&pair.source, &pair.target, operator, case.root)?;
            }
            if case.sync.exit != Mode::None {
                pair.source.put(rank, 0, &blank(len))?;
                if receives {
                    verify(call, &read(&pair.target)?);
                }
            }
        }
        if case.sync.exit == Mode::None {
            world.barrier()?;
        }
        for (call, pair) in buffers(self)[&case.bytes].iter().enumerate() {
            let target = read(&pair.target)?;
            if !receives {
                assert!(target == blank::<T>(len), "PE {rank} is no root: {case:?}");
            } else if case.sync.exit == Mode::None {
                verify(call, &target);
            }
        }
        Ok(())
    }
}

/// Runs `count` cases on `pes` PEs.
fn conform(pes: u32, count: usize) {
    let served = alone(LIMIT, move || {
        let cases = cases(pes, count);
        let entered: Vec<_> = (0..pes).map(|_| AtomicU64::new(0)).collect();
        let all = Pes::threads(pes).heap_bytes(4 << 20).run(|pe| {
            let mut worker = Worker::new(pe.world(), &entered)?;
            cases.iter().enumerate().map(|(i, case)| worker.check(i, case)).collect()
        });
        all.unwrap_or_else(|error| panic!("{pes} PEs: {error}"))
    });
    let served: Vec<Vec<bool>> = served.into_iter().map(|(_, served)| served).collect();
    assert!(served[0].iter().filter(|&&served| served).count() > served[0].len() / 2);
    for others in &served[1..] {
        assert!(*others == served[0], "PEs disagree on what an algorithm can serve");
    }
}

macro_rules! conforms {
    ($($name:ident: $pes:literal PEs, $count:literal cases;)*) => {$(
        #[test]
        fn $name() {
            conform($pes, $count);
        }
    )*};
}

conforms! {
    one: 1 PEs, 50_000 cases;
    two: 2 PEs, 50_000 cases;
    three: 3 PEs, 10_000 cases;
    four: 4 PEs, 10_000 cases;
    five: 5 PEs, 6_000 cases;
    six: 6 PEs, 5_400 cases;
    seven: 7 PEs, 5_400 cases;
    eight: 8 PEs, 5_400 cases;
    nine: 9 PEs, 5_400 cases;
    ten: 10 PEs, 5_400 cases;
    eleven: 11 PEs, 5_400 cases;
    twelve: 12 PEs, 5_400 cases;
    thirteen: 13 PEs, 5_400 cases;
    fourteen: 14 PEs, 5_400 cases;
    fifteen: 15 PEs, 5_400 cases;
    sixteen: 16 PEs, 5_400 cases;
    seventeen: 17 PEs, 5_400 cases;
    sixty_four: 64 PEs, 500 cases;
}

/// The budgets leave no algorithm, value, size, mode or root out, nor any pair of them that
/// matters most.
#[test]
fn budgets_cover_what_matters() {
    for (pes, count) in [(4, 10_000), (17, 5400)] {
        let mut seen = BTreeMap::new();
        for case in cases(pes, count) {
            let candidate = case.candidate.map(|candidate| candidate.to_string());
            *seen.entry((case.collective, candidate.clone(), case.bytes)).or_insert(0) += 1;
            let modes = format!("{} {} {}", case.sync, case.symmetric, case.root);
            *seen.entry((case.collective, Some(modes), 0)).or_insert(0) += 1;
        }
        let moving = || Collective::EVERY.into_iter().filter(|&one| one != Collective::Barrier);
        let calls: usize = moving().map(|collective| everything(collective).len()).sum();
        let modes = 15 * 3; // borrowed and symmetric, at three roots
        let least = (calls + 3) * SIZES.len() + 2 * modes;
        assert!(seen.len() >= least, "{pes} PEs: {} of {least}", seen.len());
        assert!(moving().map(|collective| one_each(collective).len()).sum::<usize>() <= calls);
    }
}
