//! The suite on threads, by the public interface of `consort`.
//!
//! A launch plays many programs, whose calls are forced, one by one, to be served by the
//! candidates under test. PEs are late at random. Private buffers cannot be used with exit mode
//! None, which the library refuses; elements are words where a block is made of whole ones, and
//! bytes else.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    future::Future,
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};

use consort::{
    Collective, Error, Operator, Pes, PlanError, Pod, Rank, Result, Sum, Symmetric, Team,
};
use consort_conformance::{
    Case, Coverage, Member, Program, Progress, Side, Space,
    data::{Random, affine, affine_in_a_byte, elements},
    run,
    turns::{alone, note},
};
use consort_fabric::Capabilities;
use consort_native::Job;

#[path = "../../../../crates/consort/tests/it/typed.rs"]
mod typed;

static SIZES: [usize; 15] =
    [0, 1, 7, 8, 9, 56, 57, 112, 1000, 4096, 7000, 7057, 20_000, 50_001, 100_000];
/// What one number of PEs may take; the suite is much faster.
const LIMIT: Duration = Duration::from_secs(240);
/// Calls of a program: more than a window.
const CALLS: usize = 24;
/// So many PEs are many: cases take long, and show no more.
const MANY: u32 = 64;

/// The environment variable that says what memory PEs share; the same suite must pass on each kind.
/// The library reads it.
const SEGMENT: &str = "CONSORT_SEGMENT";

/// A buffer of words or of bytes in symmetric memory.
enum Memory<'p> {
    Words(Symmetric<'p, u64>),
    Bytes(Symmetric<'p, u8>),
}

impl<'p> Memory<'p> {
    fn new(world: &Team<'p>, key: &Key) -> Result<Self> {
        if key.is_of_words {
            return world.symmetric(key.bytes / 8).map(Self::Words);
        }
        world.symmetric(key.bytes).map(Self::Bytes)
    }

    fn read(&self, of: Rank) -> Vec<u8> {
        fn copied<T: Pod>(memory: &Symmetric<'_, T>, of: Rank) -> Vec<u8> {
            let mut data = vec![T::zeroed(); memory.len()];
            memory.get(of, 0, &mut data).expect("no PE has failed");
            bytemuck::cast_slice(&data).to_vec()
        }
        match self {
            Self::Words(memory) => copied(memory, of),
            Self::Bytes(memory) => copied(memory, of),
        }
    }

    fn write(&self, of: Rank, data: &[u8]) {
        let done = match self {
            Self::Words(memory) => memory.put(of, 0, &elements(data)),
            Self::Bytes(memory) => memory.put(of, 0, data),
        };
        done.expect("no PE has failed");
    }
}

/// Which of the buffers in symmetric memory, that the calls of programs share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    is_of_words: bool,
    bytes: usize,
    /// Of those like it that a program uses.
    number: usize,
}

type Pool<'p> = BTreeMap<Key, Memory<'p>>;

/// A PE that plays programs.
struct Threads<'p, 'r> {
    world: Team<'p>,
    pool: &'r Pool<'p>,
    /// Where in the pool the buffers of each call are.
    keys: &'r [[Key; 2]],
    random: &'r mut Random,
}

/// Where the buffers of a program's calls are in a pool. A broadcast's are one.
fn keys(program: &Program) -> Vec<[Key; 2]> {
    let mut used = BTreeMap::new();
    let mut next = |is_of_words, bytes| {
        let number = used.entry((is_of_words, bytes)).or_insert(0);
        *number += 1;
        Key { is_of_words, bytes, number: *number }
    };
    let of = |(call, case): (usize, &Case)| {
        let Some(place) = program.place(call) else { return [Key::default(); 2] };
        let is_of_words = case.bytes.is_multiple_of(8);
        let source = next(is_of_words, place.source_bytes);
        let is_one = case.kind.collective == Collective::Broadcast;
        [source, if is_one { source } else { next(is_of_words, place.target_bytes) }]
    };
    program.cases.iter().enumerate().map(of).collect()
}

impl<'p> Threads<'p, '_> {
    fn memory(&self, call: usize, side: Side) -> &Memory<'p> {
        let [source, target] = self.keys[call];
        &self.pool[&if side == Side::Source { source } else { target }]
    }

    /// On elements of a type.
    fn call_on<T: Pod, O: Operator<T>>(
        &self,
        call: usize,
        case: &Case,
        private: Option<[Vec<u8>; 2]>,
        (operator, symmetric): (O, for<'m> fn(&'m Memory<'p>) -> &'m Symmetric<'p, T>),
    ) -> Result<Vec<u8>> {
        let team = self.world.with(case.sync);
        let (collective, root) = (case.kind.collective, case.root);
        let Some([source, target]) = private else {
            let [source, target] =
                [Side::Source, Side::Target].map(|side| symmetric(self.memory(call, side)));
            typed::symmetric(team, collective, source, target, operator, root)?;
            return Ok(Vec::new());
        };
        let (mut source, mut target) = (elements::<T>(&source), elements::<T>(&target));
        if case.kind.in_place {
            let data = if source.is_empty() { &mut target } else { &mut source };
            typed::in_place(team, collective, data, operator, root)?;
            return Ok(bytemuck::cast_slice(&target).to_vec());
        }
        if case.bytes == size_of::<T>() && call.is_multiple_of(2) {
            let value = typed::values(team, collective, &source, operator, root)?;
            // What receives nothing leaves its target as it was.
            return Ok(bytemuck::cast_slice(&value.unwrap_or(target)).to_vec());
        }
        typed::slices(team, collective, &source, &mut target, operator, root)?;
        // A buffer is the caller's again when the call returns.
        std::hint::black_box(&mut source).fill(T::zeroed());
        Ok(bytemuck::cast_slice(&target).to_vec())
    }

    fn forced(&self, call: usize, case: &Case, private: Option<[Vec<u8>; 2]>) -> Result<Vec<u8>> {
        fn words<'m, 'p>(memory: &'m Memory<'p>) -> &'m Symmetric<'p, u64> {
            let Memory::Words(memory) = memory else { unreachable!("blocks of words") };
            memory
        }
        fn bytes<'m, 'p>(memory: &'m Memory<'p>) -> &'m Symmetric<'p, u8> {
            let Memory::Bytes(memory) = memory else { unreachable!("blocks of bytes") };
            memory
        }
        let Case { ref kind, ref barrier, .. } = *case;
        self.world.force(Collective::Barrier, Some(barrier.clone()));
        self.world.force(kind.collective, kind.candidate.clone());
        match (case.bytes.is_multiple_of(8), kind.is_ordered) {
            (true, false) => self.call_on(call, case, private, (Sum, words)),
            (true, true) => self.call_on(call, case, private, (affine, words)),
            (false, false) => self.call_on(call, case, private, (Sum, bytes)),
            (false, true) => self.call_on(call, case, private, (affine_in_a_byte, bytes)),
        }
    }
}

impl Member for Threads<'_, '_> {
    const ALONE_BETWEEN_WAITS: bool = false;

    fn rank(&self) -> Rank {
        self.world.rank()
    }

    fn read(&self, of: Rank, call: usize, side: Side) -> Vec<u8> {
        self.memory(call, side).read(of)
    }

    fn write(&self, of: Rank, call: usize, side: Side, data: &[u8]) {
        self.memory(call, side).write(of, data);
    }

    async fn align(&self) {
        self.world.barrier().expect("no PE has failed");
    }

    async fn be_late(&self) {
        thread::sleep(Duration::from_micros(300));
    }

    async fn call(&mut self, call: usize, case: &Case, private: Option<[Vec<u8>; 2]>) -> Vec<u8> {
        if self.world.rank() == Rank(0) {
            note(format!("call {call} of a program of {} PEs: {case}", self.world.size()));
        }
        self.random.dawdle();
        let done = self.forced(call, case, private);
        let received = done.unwrap_or_else(|error| panic!("{error}: {case}"));
        let by = self.world.served_by(case.kind.collective);
        assert!(case.kind.candidate.is_none() || by == case.kind.candidate, "{by:?} for {case}");
        received
    }
}

/// Runs what never waits but inside a call.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => unreachable!("threads wait inside their calls"),
    }
}

/// What threads can do in a blocking call.
fn capabilities(pes: u32) -> Capabilities {
    Job::capabilities_of(pes)
}

/// Programs of `count` cases, spread over all there are, and of those that show what these leave
/// out: no algorithm, value, size, mode or root is never seen.
fn programs(pes: u32, count: usize) -> Vec<Program> {
    let space = Space::of(pes, &SIZES).and_selected();
    let can_be = |case: &Case| case.settles() && case.is_served(pes, capabilities(pes));
    let mut cases: Vec<Case> = space.from(0).filter(can_be).take(count).collect();
    let mut coverage = Coverage::default();
    coverage.note(pes, &cases);
    if pes < MANY {
        let left_out = space.in_few_modes().filter(can_be);
        cases.extend(left_out.filter(|case| coverage.is_new(pes, case)));
    }
    let numbered = cases.chunks(CALLS).zip(0..);
    numbered.map(|(cases, number)| Program::new(pes, number, cases)).collect()
}

/// Runs programs of `count` cases on `pes` PEs.
fn conform(pes: u32, count: usize) {
    let ended = alone(LIMIT, move || {
        let programs = programs(pes, count);
        let progress: Vec<_> = programs.iter().map(Progress::of).collect();
        let ended = Pes::threads(pes).heap_bytes(64 << 20).run(|pe| {
            let (world, mut pool) = (pe.world(), Pool::new());
            let mut random = Random(u64::from(world.rank().0) << 32);
            for (program, progress) in programs.iter().zip(&progress) {
                let keys = keys(program);
                for &key in keys.iter().flatten() {
                    if let Entry::Vacant(place) = pool.entry(key) {
                        place.insert(Memory::new(&world, &key)?);
                    }
                }
                let (pool, keys, random) = (&pool, &*keys, &mut random);
                let mut member = Threads { world, pool, keys, random };
                at_once(run(&mut member, program, progress));
            }
            Ok(programs.len())
        });
        ended.unwrap_or_else(|error| {
            let segment = std::env::var(SEGMENT).unwrap_or_default();
            panic!("{pes} PEs, {SEGMENT}={segment}: {error}")
        })
    });
    assert!(ended.iter().all(|&(_, programs)| programs >= count / CALLS));
}

/// What an algorithm cannot serve all PEs refuse alike, and can go on.
#[test]
fn what_cannot_be_served_is_refused_by_all() {
    for pes in [2, 3, 7] {
        alone(LIMIT, move || {
            let space = Space::of(pes, &SIZES);
            let unable = |case: &Case| {
                case.settles() && !case.symmetric && !case.is_served(pes, capabilities(pes))
            };
            let mut coverage = Coverage::default();
            let is_new = |case: &Case| unable(case) && coverage.is_new(pes, case);
            let cases: Vec<Case> = space.in_few_modes().filter(is_new).collect();
            assert!(!cases.is_empty(), "all algorithms serve all calls of {pes} PEs");
            let program = Program::new(pes, 1, &cases);
            let refused = Pes::threads(pes).run(|pe| {
                let mut random = Random(0);
                let (world, pool, keys) = (pe.world(), &Pool::new(), &*keys(&program));
                let member = Threads { world, pool, keys, random: &mut random };
                for (call, case) in cases.iter().enumerate() {
                    let private = program.private(call, member.rank());
                    match member.forced(call, case, Some(private)) {
                        Err(Error::Plan(PlanError::Incapable { .. })) => {}
                        other => panic!("{case}: {other:?}"),
                    }
                }
                world.barrier()
            });
            refused.unwrap_or_else(|error| panic!("{pes} PEs: {error}"));
        });
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
    three: 3 PEs, 12_000 cases;
    four: 4 PEs, 12_000 cases;
    five: 5 PEs, 6_000 cases;
    six: 6 PEs, 4_800 cases;
    seven: 7 PEs, 4_800 cases;
    eight: 8 PEs, 4_800 cases;
    nine: 9 PEs, 4_800 cases;
    ten: 10 PEs, 4_800 cases;
    eleven: 11 PEs, 4_800 cases;
    twelve: 12 PEs, 4_800 cases;
    thirteen: 13 PEs, 4_800 cases;
    fourteen: 14 PEs, 4_800 cases;
    fifteen: 15 PEs, 4_800 cases;
    sixteen: 16 PEs, 4_800 cases;
    seventeen: 17 PEs, 4_800 cases;
    sixty_four: 64 PEs, 1_000 cases;
}
