//! Every collective by every algorithm of the registry: all values of its parameters, modes, sizes
//! and roots, with borrowed and symmetric buffers, on many numbers of PEs.
//!
//! The cases of a number of PEs are a product that is walked in strides, so that each call is
//! served by another algorithm than the one before, at another size; a budget says how far. A case
//! is two calls in a row. Between cases PEs synchronize only where a mode asks for it.

use std::{
    collections::{BTreeMap, HashSet, btree_map::Entry},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use consort::{
    Candidate, Collective, Error, Mode, Operator, Pes, Rank, Result, Sum, Symmetric, Sync, Team,
};
use consort_collectives::PlanError;

use crate::{
    data::{Call, Element, Random, affine, affine_in_a_byte, blank},
    registry::everything,
    turns::{alone, note},
    typed,
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
    /// The size that the length of a block was made of.
    size: usize,
    /// Of a block.
    bytes: usize,
    root: Rank,
    symmetric: bool,
    /// Whether the operator is not commutative.
    ordered: bool,
}

impl Case {
    /// What it shows of its collective: an algorithm at a size, and modes, memory and root.
    fn shows(&self) -> [(Collective, String); 2] {
        let Self { collective, ref candidate, sync, size, root, symmetric, .. } = *self;
        let by = candidate.as_ref().map(ToString::to_string);
        let modes = format!("{sync} {symmetric} {root}");
        [(collective, format!("{by:?} {size}")), (collective, modes)]
    }
}

/// So many PEs are many: cases take long, and show no more.
const MANY: u32 = 64;

/// `count` cases, or all there are, and those that show what these leave out: no algorithm, value,
/// size, mode or root is never seen.
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
    let spread = (0..count.min(all.len())).map(|index| all[index * stride % all.len()].clone());
    let mut cases: Vec<Case> = spread.collect();
    if pes < MANY {
        let mut seen: HashSet<_> = cases.iter().flat_map(Case::shows).collect();
        for case in all {
            let new = case.shows().into_iter().filter(|one| seen.insert(one.clone())).count();
            if new > 0 {
                cases.push(case);
            }
        }
    }
    cases
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
            size: 0,
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
            for (&size, &root) in SIZES.iter().flat_map(|b| roots.iter().map(move |r| (b, r))) {
                for sync in Sync::every() {
                    for symmetric in [true, false].into_iter().take(1 + borrows(sync)) {
                        all.extend(operators.iter().map(|&ordered| Case {
                            collective,
                            candidate: candidate.clone(),
                            barrier: next(),
                            sync,
                            size,
                            bytes: block_bytes(collective, pes, size),
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

/// The length of a block at a size: of many blocks, those of long messages are as long in all.
fn block_bytes(collective: Collective, pes: u32, size: usize) -> usize {
    let blocks = collective.source_blocks(pes, true).max(collective.target_blocks(pes, true));
    if size <= 112 || blocks <= 1 {
        return size;
    }
    let block = size.div_ceil(blocks as usize);
    if size.is_multiple_of(8) { block.next_multiple_of(8) } else { block | 1 }
}

fn borrows(sync: Sync) -> usize {
    usize::from(sync.exit != Mode::None)
}

/// Symmetric buffers of a source and a target.
struct Pair<'p, T: Element> {
    source: Symmetric<'p, T>,
    target: Symmetric<'p, T>,
}

impl<'p, T: Element> Pair<'p, T> {
    /// What is written to; of one buffer, the source.
    fn written(&self, is_one: bool) -> &Symmetric<'p, T> {
        if is_one { &self.source } else { &self.target }
    }
}

/// Pairs by the elements of a source and of a target, one for each call of a row.
type Pairs<'p, T> = BTreeMap<(usize, usize), Vec<Pair<'p, T>>>;

/// One PE at work on the cases.
struct Worker<'p> {
    world: Team<'p>,
    bytes: Pairs<'p, u8>,
    words: Pairs<'p, u64>,
    random: Random,
    entered: &'p [AtomicU64],
}

impl<'p> Worker<'p> {
    fn new(world: Team<'p>, entered: &'p [AtomicU64]) -> Self {
        let random = Random(u64::from(world.rank().0) << 32);
        Self { world, bytes: BTreeMap::new(), words: BTreeMap::new(), random, entered }
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
            (_, 0, false) => self.call(case, seed, |w| &mut w.words, Sum),
            (_, 0, true) => self.call(case, seed, |w| &mut w.words, affine),
            (_, _, false) => self.call(case, seed, |w| &mut w.bytes, Sum),
            (_, _, true) => self.call(case, seed, |w| &mut w.bytes, affine_in_a_byte),
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

    fn call<T: Element, O: Operator<T> + Copy>(
        &mut self,
        case: &Case,
        seed: u64,
        pairs: impl for<'w> Fn(&'w mut Worker<'p>) -> &'w mut Pairs<'p, T>,
        operator: O,
    ) -> Result<()> {
        let Case { collective, sync, bytes, root, .. } = *case;
        let (world, rank, pes) = (self.world, self.world.rank(), self.world.size());
        let (team, len) = (world.with(sync), bytes / size_of::<T>());
        let mut random = Random(self.random.next());
        let calls: [_; ROW] = std::array::from_fn(|call| Call {
            collective,
            pes,
            root,
            len,
            seed: seed + call as u64,
        });
        let verify = |call: &Call, found: &[T], before: &[T]| {
            let expected = call.result(rank, &operator);
            let expected = expected.as_deref().unwrap_or(before);
            assert!(found == expected, "PE {rank} has another result: {case:?}");
        };
        if !case.symmetric {
            for call in &calls {
                random.dawdle();
                let mut source = call.source(rank);
                let mut target = blank(call.target_len(rank));
                typed::slices(team, collective, &source, &mut target, operator, root)?;
                // A buffer is the caller's again when the call returns.
                std::hint::black_box(&mut source).fill(T::of(0));
                let len = target.len();
                verify(call, &target, &blank(len));
            }
            return Ok(());
        }
        let is_one = collective == Collective::Broadcast;
        let source_len = collective.source_blocks(pes, true) as usize * len;
        let target_len = collective.target_blocks(pes, !is_one) as usize * len;
        let pairs = match pairs(self).entry((source_len, target_len)) {
            Entry::Occupied(found) => found.into_mut(),
            Entry::Vacant(place) => {
                let pair = |_| {
                    let (source, target) =
                        (world.symmetric(source_len)?, world.symmetric(target_len)?);
                    Ok(Pair { source, target })
                };
                place.insert((0..ROW).map(pair).collect::<Result<_>>()?)
            }
        };
        let read = |memory: &Symmetric<'_, T>| {
            let mut data = blank(memory.len());
            memory.get(rank, 0, &mut data).map(|()| data)
        };
        let before = |call: &Call| {
            if is_one && rank == root { call.source(rank) } else { blank(target_len) }
        };
        for (call, pair) in calls.iter().zip(&*pairs) {
            pair.written(is_one).put(rank, 0, &before(call))?;
            pair.source.put(rank, 0, &call.source(rank))?;
        }
        if sync.entry == Mode::None {
            world.barrier()?;
        }
        for (call, pair) in calls.iter().zip(&*pairs) {
            random.dawdle();
            typed::symmetric(team, collective, &pair.source, &pair.target, operator, root)?;
            if sync.exit != Mode::None {
                verify(call, &read(pair.written(is_one))?, &before(call));
                pair.source.put(rank, 0, &blank(source_len))?;
            }
        }
        if sync.exit == Mode::None {
            world.barrier()?;
            for (call, pair) in calls.iter().zip(&*pairs) {
                verify(call, &read(pair.written(is_one))?, &before(call));
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
        let all = Pes::threads(pes).heap_bytes(32 << 20).run(|pe| {
            let mut worker = Worker::new(pe.world(), &entered);
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
    one: 1 PEs, 25_000 cases;
    two: 2 PEs, 25_000 cases;
    three: 3 PEs, 6_000 cases;
    four: 4 PEs, 6_000 cases;
    five: 5 PEs, 3_000 cases;
    six: 6 PEs, 2_400 cases;
    seven: 7 PEs, 2_400 cases;
    eight: 8 PEs, 2_400 cases;
    nine: 9 PEs, 2_400 cases;
    ten: 10 PEs, 2_400 cases;
    eleven: 11 PEs, 2_400 cases;
    twelve: 12 PEs, 2_400 cases;
    thirteen: 13 PEs, 2_400 cases;
    fourteen: 14 PEs, 2_400 cases;
    fifteen: 15 PEs, 2_400 cases;
    sixteen: 16 PEs, 2_400 cases;
    seventeen: 17 PEs, 2_400 cases;
    sixty_four: 64 PEs, 500 cases;
}
