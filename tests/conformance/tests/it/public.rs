//! The suite by the public interface of `consort`, on PEs that are threads or processes.
//!
//! A launch runs many programs. Each call is forced to use its candidate under test. PEs are late
//! at random. Private buffers cannot be used with exit mode None, which the library rejects.
//! Elements are words if a block consists of whole ones, and bytes otherwise.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    future::Future,
    ops::Range,
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};

use consort::{
    JobBuilder, Pod, Rank, Result, Results, Symmetric, Team,
    ops::{Operator, Sum},
    symmetric::Atomic,
    tune::Collective,
};
use consort_conformance::{
    Case, Coverage, Member, Program, Progress, Side, Space,
    cases::spread,
    data::{Random, affine, affine_in_a_byte, elements},
    run,
    turns::note,
};
use consort_fabric::Capabilities;

#[path = "../../../../crates/consort/tests/fixtures/typed.rs"]
mod typed;

pub(crate) static SIZES: [usize; 15] =
    [0, 1, 7, 8, 9, 56, 57, 112, 1000, 4096, 7000, 7057, 20_000, 50_001, 100_000];
/// The number of calls of a program: more than a window.
pub(crate) const CALLS: usize = 24;
/// From this number of PEs on, cases take long and show nothing new.
const MANY: u32 = 64;

/// A buffer of words or of bytes in symmetric memory.
pub(crate) enum Memory {
    Words(Symmetric<u64>),
    Bytes(Symmetric<u8>),
}

impl Memory {
    fn new(world: &Team, key: &Key) -> Result<Self> {
        if key.is_of_words {
            return world.symmetric(key.bytes / 8).map(Self::Words);
        }
        world.symmetric(key.bytes).map(Self::Bytes)
    }

    fn read(&self, of: Rank) -> Vec<u8> {
        fn copied<T: Pod>(memory: &Symmetric<T>, of: Rank) -> Vec<u8> {
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

/// The key of one of the buffers in symmetric memory that the calls of programs share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    is_of_words: bool,
    bytes: usize,
    /// The number among the equal buffers that a program uses.
    number: usize,
}

pub(crate) type Pool = BTreeMap<Key, Memory>;

/// A PE that runs programs.
pub(crate) struct Player<'r> {
    pub(crate) world: Team,
    pub(crate) pool: &'r Pool,
    /// The keys of each call's buffers in the pool.
    pub(crate) keys: &'r [[Key; 2]],
    pub(crate) random: &'r mut Random,
}

/// Returns the keys of a program's buffers in a pool. A broadcast has one buffer.
pub(crate) fn keys(program: &Program) -> Vec<[Key; 2]> {
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

impl Player<'_> {
    fn memory(&self, call: usize, side: Side) -> &Memory {
        let [source, target] = self.keys[call];
        &self.pool[&if side == Side::Source { source } else { target }]
    }

    /// Makes a call on elements of a type.
    fn call_on<T: Pod, O: Operator<T>>(
        &self,
        call: usize,
        case: &Case,
        private: Option<[Vec<u8>; 2]>,
        (operator, symmetric): (O, fn(&Memory) -> &Symmetric<T>),
    ) -> Result<Vec<u8>> {
        let team = &self.world.with_sync(case.sync);
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
            // A PE that receives nothing leaves its target unchanged.
            return Ok(bytemuck::cast_slice(&value.unwrap_or(target)).to_vec());
        }
        typed::slices(team, collective, &source, &mut target, operator, root)?;
        // When the call returns, the buffer belongs to the caller again.
        std::hint::black_box(&mut source).fill(T::zeroed());
        Ok(bytemuck::cast_slice(&target).to_vec())
    }

    pub(crate) fn forced(
        &self,
        call: usize,
        case: &Case,
        private: Option<[Vec<u8>; 2]>,
    ) -> Result<Vec<u8>> {
        fn words(memory: &Memory) -> &Symmetric<u64> {
            let Memory::Words(memory) = memory else { unreachable!("blocks of words") };
            memory
        }
        fn bytes(memory: &Memory) -> &Symmetric<u8> {
            let Memory::Bytes(memory) = memory else { unreachable!("blocks of bytes") };
            memory
        }
        let Case { kind, barrier, .. } = case;
        self.world.algorithms().force(Collective::Barrier, Some((**barrier).clone()));
        if kind.collective.is_vector() {
            // Calls on values first exchange counts, which the forced candidate may not serve.
            for counts in [Collective::Gather, Collective::AllGather, Collective::AllToAll] {
                self.world.algorithms().force(counts, None);
            }
        }
        self.world.algorithms().force(kind.collective, kind.candidate.clone());
        match (case.bytes.is_multiple_of(8), kind.is_ordered) {
            (true, false) => self.call_on(call, case, private, (Sum, words)),
            (true, true) => self.call_on(call, case, private, (affine, words)),
            (false, false) => self.call_on(call, case, private, (Sum, bytes)),
            (false, true) => self.call_on(call, case, private, (affine_in_a_byte, bytes)),
        }
    }
}

impl Member for Player<'_> {
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
        let by = self.world.algorithms().served_by(case.kind.collective);
        assert!(case.kind.candidate.is_none() || by == case.kind.candidate, "{by:?} for {case}");
        received
    }
}

/// Runs a future that only waits inside a call.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => unreachable!("threads wait inside their calls"),
    }
}

/// Returns programs of `count` cases that `able` PEs can serve, spread over all cases, and programs
/// that show what these leave out: no algorithm, value, size, mode or root is missing.
pub(crate) fn programs(pes: u32, able: Capabilities, count: usize) -> Vec<Program> {
    let space = Space::of(pes, &SIZES).and_selected();
    let can_be = |case: &Case| case.settles() && case.is_served(pes, able);
    let mut cases: Vec<Case> = space.from(0).filter(can_be).take(count).collect();
    let mut coverage = Coverage::default();
    coverage.note(pes, &cases);
    if pes < MANY {
        cases.extend(space.in_few_modes().filter(|case| coverage.note_if_new(pes, case, can_be)));
    }
    let numbered = cases.chunks(CALLS).zip(0..);
    numbered.map(|(cases, number)| Program::new(pes, number, cases)).collect()
}

/// The progress of the PEs in the programs of a launch: words of PE 0, changed one-sidedly.
struct Words<'w> {
    words: &'w Symmetric<u64>,
    /// The first word of this program.
    first: usize,
}

impl Words<'_> {
    /// Adds one to a word; returns the old value.
    fn count(&self, index: usize) -> u64 {
        self.words.fetch_add(Rank(0), self.first + index, 1).expect("no PE has failed")
    }
}

impl Progress for Words<'_> {
    fn enter(&self, call: usize, pes: u32) -> bool {
        self.count(2 * call) + 1 == u64::from(pes)
    }

    fn all_have_entered(&self, call: usize, pes: u32) -> bool {
        let entered = self.words.atomic(Rank(0), self.first + 2 * call, Atomic::Load);
        entered.expect("no PE has failed") == u64::from(pes)
    }

    fn leave(&self, call: usize) -> bool {
        self.count(2 * call + 1) == 0
    }
}

/// Runs the programs with these seeds on the PEs that `launch` starts. Returns the rank of each PE
/// in this process, and the number of programs that it has run.
pub(crate) fn play(
    launch: JobBuilder,
    programs: &[Program],
    seeds: Range<u64>,
) -> Result<Results<usize>> {
    let count = programs.len();
    let of_seed = |seed: u64| {
        let number = usize::try_from(seed % count as u64).expect("there are few programs");
        &programs[spread(number, count)]
    };
    let programs: Vec<&Program> = seeds.map(of_seed).collect();
    assert!(!programs.is_empty(), "a suite plays some programs");
    launch.heap_bytes(64 << 20).run(|pe| {
        let (world, mut pool) = (pe.world(), Pool::new());
        let calls: usize = programs.iter().map(|program| program.cases.len()).sum();
        let words = world.symmetric(2 * calls)?;
        let (mut first, mut played) = (0, 0);
        let mut random = Random(u64::from(world.rank().0) << 32);
        for &program in &programs {
            let keys = keys(program);
            for &key in keys.iter().flatten() {
                if let Entry::Vacant(place) = pool.entry(key) {
                    place.insert(Memory::new(world, &key)?);
                }
            }
            let (pool, keys, random) = (&pool, &*keys, &mut random);
            let mut member = Player { world: world.clone(), pool, keys, random };
            at_once(run(&mut member, program, &Words { words: &words, first }));
            first += 2 * program.cases.len();
            played += 1;
        }
        Ok(played)
    })
}
