//! Random programs, compared with what they must come to one call after the other.
//!
//! A program is made from a seed, the same for all PEs; so is what every call must leave behind.
//! The generator keeps to the rules of the modes: what an entry or an exit of mode None leaves in
//! use is not touched before a barrier. `CONSORT_SEED=N` repeats one program alone.

use std::fmt::Debug;

use consort::{Candidate, Collective, Error, Mode, Pes, Rank, Result, Sum, Symmetric, Sync, Team};
use consort_collectives::PlanError;

use crate::{
    data::{Random, affine, contribution},
    registry::everything,
    turns::{LIMIT, alone, note},
};

const PROGRAMS: u64 = 150;
const STEPS: usize = 60;
/// Symmetric blocks of a program; each has another length.
const LENGTHS: [usize; 6] = [1, 3, 7, 130, 900, 3000];

/// What all PEs do next.
#[derive(Clone, Debug)]
enum Step {
    Barrier,
    /// Write the caller's own part of a block.
    Refill {
        block: usize,
        seed: u64,
    },
    /// Put into the part of the PE to the right.
    Put {
        block: usize,
        seed: u64,
    },
    Force {
        collective: Collective,
        candidate: Option<Candidate>,
    },
    BroadcastSlice {
        sync: Sync,
        root: Rank,
        len: usize,
        seed: u64,
    },
    BroadcastValue {
        sync: Sync,
        root: Rank,
        seed: u64,
    },
    BroadcastBlock {
        sync: Sync,
        root: Rank,
        block: usize,
    },
    ReduceSlice {
        sync: Sync,
        root: Rank,
        len: usize,
        seed: u64,
        ordered: bool,
    },
    ReduceValue {
        sync: Sync,
        root: Rank,
        seed: u64,
    },
    ReduceBlock {
        sync: Sync,
        root: Rank,
        from: usize,
        to: usize,
        ordered: bool,
    },
    AllReduceSlice {
        sync: Sync,
        len: usize,
        seed: u64,
        ordered: bool,
    },
    AllReduceValue {
        sync: Sync,
        seed: u64,
    },
    AllReduceBlock {
        sync: Sync,
        from: usize,
        to: usize,
        ordered: bool,
    },
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Use {
    /// Touched since the last barrier: no mode None before the next.
    touched: bool,
    /// Perhaps still in use by others: not to be touched before the next barrier.
    busy: bool,
}

struct Generator {
    random: Random,
    pes: u32,
    steps: Vec<Step>,
    uses: Vec<Use>,
}

impl Generator {
    fn program(seed: u64, pes: u32) -> Vec<Step> {
        let uses = vec![Use::default(); 2 * LENGTHS.len()];
        let mut generator = Self { random: Random(seed), pes, steps: Vec::new(), uses };
        while generator.steps.len() < STEPS {
            generator.step();
        }
        generator.barrier();
        generator.steps
    }

    fn barrier(&mut self) {
        self.steps.push(Step::Barrier);
        self.uses.fill(Use::default());
    }

    /// A block to be used in these modes.
    fn claim(&mut self, block: usize, sync: Sync) {
        let loose = sync.entry == Mode::None || sync.exit == Mode::None;
        let Use { touched, busy } = self.uses[block];
        if busy || (touched && loose) {
            self.barrier();
        }
    }

    fn used(&mut self, block: usize, sync: Sync) {
        self.uses[block] = Use { touched: true, busy: sync.exit == Mode::None };
    }

    fn step(&mut self) {
        let Self { random, pes, .. } = self;
        let seed = random.next();
        let root = Rank(u32::try_from(random.below(*pes as usize)).expect("a rank"));
        let every: Vec<_> = Sync::every().collect();
        let sync = *random.pick(&every);
        let borrows = if sync.exit == Mode::None { Sync::MINE } else { sync };
        let block = random.below(self.uses.len());
        let len = *random.pick(&[0, 1, 2, 7, 8, 50, 500, 1200, 4000]);
        let ordered = random.chance(2);
        let step = match random.below(18) {
            0 => return self.barrier(),
            1 => {
                self.claim(block, Sync::MINE);
                self.used(block, Sync::MINE);
                Step::Refill { block, seed }
            }
            2 => {
                // Anybody's part may change: only between barriers.
                self.barrier();
                self.steps.push(Step::Put { block, seed });
                return self.barrier();
            }
            3 | 4 => {
                let collective = *random.pick(&Collective::EVERY);
                let all = everything(collective);
                let candidate = (!random.chance(4)).then(|| random.pick(&all).clone());
                Step::Force { collective, candidate }
            }
            5 | 6 => Step::BroadcastSlice { sync: borrows, root, len, seed },
            7 => Step::BroadcastValue { sync, root, seed },
            8 | 9 => {
                self.claim(block, sync);
                self.used(block, sync);
                Step::BroadcastBlock { sync, root, block }
            }
            10 | 11 => Step::ReduceSlice { sync: borrows, root, len, seed, ordered },
            12 => Step::ReduceValue { sync, root, seed },
            13 | 14 => Step::AllReduceSlice { sync: borrows, len, seed, ordered },
            15 => Step::AllReduceValue { sync, seed },
            which => {
                let (from, to) = (block, (block + LENGTHS.len()) % self.uses.len());
                self.claim(from, sync);
                self.claim(to, sync);
                self.used(from, sync);
                self.used(to, sync);
                if which == 16 {
                    Step::AllReduceBlock { sync, from, to, ordered }
                } else {
                    Step::ReduceBlock { sync, root, from, to, ordered }
                }
            }
        };
        self.steps.push(step);
    }
}

fn length(block: usize) -> usize {
    LENGTHS[block % LENGTHS.len()]
}

/// All PEs' parts of all blocks, as they must be.
struct Oracle {
    pes: u32,
    /// By block, then by PE.
    parts: Vec<Vec<Vec<u64>>>,
}

impl Oracle {
    fn new(pes: u32) -> Self {
        let parts = |block| vec![vec![0; length(block)]; pes as usize];
        Self { pes, parts: (0..2 * LENGTHS.len()).map(parts).collect() }
    }

    fn combined(&self, ordered: bool, of: impl Fn(Rank) -> Vec<u64>) -> Vec<u64> {
        let len = of(Rank(0)).len();
        if ordered {
            crate::data::combined(self.pes, len, &affine, of)
        } else {
            crate::data::combined(self.pes, len, &Sum, of)
        }
    }

    /// Changes blocks as a call does that was served.
    fn follow(&mut self, step: &Step) {
        match *step {
            Step::Refill { block, seed } => {
                for (rank, part) in (0..).zip(&mut self.parts[block]) {
                    *part = contribution(seed, Rank(rank), length(block));
                }
            }
            Step::Put { block, seed } => {
                for rank in 0..self.pes {
                    let right = (rank + 1) % self.pes;
                    let data = contribution(seed, Rank(rank), length(block));
                    self.parts[block][right as usize] = data;
                }
            }
            Step::BroadcastBlock { root, block, .. } => {
                let data = self.parts[block][root.index()].clone();
                self.parts[block].fill(data);
            }
            Step::ReduceBlock { root, from, to, ordered, .. } => {
                let sum = self.combined(ordered, |rank| self.parts[from][rank.index()].clone());
                self.parts[to][root.index()] = sum;
            }
            Step::AllReduceBlock { from, to, ordered, .. } => {
                let sum = self.combined(ordered, |rank| self.parts[from][rank.index()].clone());
                self.parts[to].fill(sum);
            }
            _ => {}
        }
    }
}

/// One PE that runs a program.
struct Runner<'p> {
    world: Team<'p>,
    blocks: Vec<Symmetric<'p, u64>>,
    oracle: Oracle,
}

impl Runner<'_> {
    fn part(&self, block: usize) -> Result<Vec<u64>> {
        let mut data = vec![0; length(block)];
        self.blocks[block].get(self.world.rank(), 0, &mut data)?;
        Ok(data)
    }

    /// A block of this PE is as it must be.
    fn verify(&self, block: usize, step: &dyn Debug) -> Result<()> {
        let expected = &self.oracle.parts[block][self.world.rank().index()];
        assert!(self.part(block)? == *expected, "PE {}: {step:?}", self.world.rank());
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<()> {
        let (world, me) = (self.world, self.world.rank());
        match *step {
            Step::Barrier => {
                world.barrier()?;
                for block in 0..self.blocks.len() {
                    self.verify(block, step)?;
                }
                // Nobody goes on before all have looked.
                world.barrier()?;
            }
            Step::Refill { block, seed } => {
                self.blocks[block].put(me, 0, &contribution(seed, me, length(block)))?;
                self.oracle.follow(step);
            }
            Step::Put { block, seed } => {
                let data = contribution(seed, me, length(block));
                self.blocks[block].put(world.right(), 0, &data)?;
                self.oracle.follow(step);
            }
            Step::Force { collective, ref candidate } => world.force(collective, candidate.clone()),
            Step::BroadcastSlice { sync, root, len, seed } => {
                let sent: Vec<u64> = contribution(seed, root, len);
                let mut data = if me == root { sent.clone() } else { vec![1; len] };
                world.with(sync).broadcast_slice(&mut data, root)?;
                assert!(data == sent, "PE {me}: {step:?}");
            }
            Step::BroadcastValue { sync, root, seed } => {
                let mine = (u64::from(me.0) << 32) ^ seed;
                let sent = (u64::from(root.0) << 32) ^ seed;
                assert_eq!(world.with(sync).broadcast(mine, root)?, sent, "PE {me}: {step:?}");
            }
            Step::BroadcastBlock { sync, root, block } => {
                world.with(sync).broadcast_symmetric(&self.blocks[block], root)?;
                self.oracle.follow(step);
                if sync.exit != Mode::None {
                    self.verify(block, step)?;
                }
            }
            Step::ReduceSlice { sync, root, len, seed, ordered } => {
                let of = |rank| contribution(seed, rank, len);
                let mut data = vec![1; if me == root { len } else { 0 }];
                let team = world.with(sync);
                if ordered {
                    team.reduce_slice(&of(me), &mut data, affine, root)?;
                } else {
                    team.reduce_slice(&of(me), &mut data, Sum, root)?;
                }
                if me == root {
                    assert!(data == self.oracle.combined(ordered, of), "PE {me}: {step:?}");
                }
            }
            Step::ReduceValue { sync, root, seed } => {
                let of = |rank| contribution::<u64>(seed, rank, 1);
                let sum = world.with(sync).reduce(of(me)[0], affine, root)?;
                let expected = (me == root).then(|| self.oracle.combined(true, of)[0]);
                assert_eq!(sum, expected, "PE {me}: {step:?}");
            }
            Step::ReduceBlock { sync, root, from, to, ordered } => {
                let (source, target) = (&self.blocks[from], &self.blocks[to]);
                let team = world.with(sync);
                if ordered {
                    team.reduce_symmetric(source, target, affine, root)?;
                } else {
                    team.reduce_symmetric(source, target, Sum, root)?;
                }
                self.oracle.follow(step);
                if sync.exit != Mode::None {
                    self.verify(to, step)?;
                }
            }
            Step::AllReduceSlice { sync, len, seed, ordered } => {
                let of = |rank| contribution(seed, rank, len);
                let mut data = of(me);
                let team = world.with(sync);
                if ordered {
                    team.all_reduce_in_place(&mut data, affine)?;
                } else {
                    team.all_reduce_slice(&of(me), &mut data, Sum)?;
                }
                assert!(data == self.oracle.combined(ordered, of), "PE {me}: {step:?}");
            }
            Step::AllReduceValue { sync, seed } => {
                let of = |rank| contribution::<u64>(seed, rank, 1);
                let sum = world.with(sync).all_reduce(of(me)[0], affine)?;
                assert_eq!(sum, self.oracle.combined(true, of)[0], "PE {me}: {step:?}");
            }
            Step::AllReduceBlock { sync, from, to, ordered } => {
                let (source, target) = (&self.blocks[from], &self.blocks[to]);
                let team = world.with(sync);
                if ordered {
                    team.all_reduce_symmetric(source, target, affine)?;
                } else {
                    team.all_reduce_symmetric(source, target, Sum)?;
                }
                self.oracle.follow(step);
                if sync.exit != Mode::None {
                    self.verify(to, step)?;
                }
            }
        }
        Ok(())
    }
}

/// Runs the program of a seed.
fn run(seed: u64) {
    let mut random = Random(seed);
    let pes = *random.pick(&[1, 2, 2, 3, 3, 4, 5, 6, 8, 11]);
    let waiting = *random.pick(&consort::Waiting::EVERY);
    let spins = waiting == consort::Waiting::Spin;
    let waiting = Some(waiting).filter(|_| pes <= 2 || !spins);
    let program = Generator::program(random.next(), pes);
    let replay = format!("CONSORT_SEED={seed} repeats this program of {pes} PEs");
    let outcome = alone(LIMIT, move || {
        let threads = Pes::threads(pes).heap_bytes(1 << 20);
        let threads = match waiting {
            Some(waiting) => threads.waiting(waiting),
            None => threads,
        };
        threads.run(|pe| {
            let world = pe.world();
            let blocks = (0..2 * LENGTHS.len()).map(|block| world.symmetric(length(block)));
            let blocks = blocks.collect::<Result<_>>()?;
            let mut runner = Runner { world, blocks, oracle: Oracle::new(pes) };
            let mut random = Random(seed ^ u64::from(world.rank().0));
            for (number, step) in program.iter().enumerate() {
                random.dawdle();
                if world.rank() == Rank(0) {
                    note(format!("CONSORT_SEED={seed}, {pes} PEs, step {number}: {step:?}"));
                }
                match runner.step(step) {
                    // All get this alike, and no data moves.
                    Err(Error::Plan(PlanError::Incapable { .. })) => {}
                    other => other?,
                }
            }
            Ok(())
        })
    });
    if let Err(error) = outcome {
        panic!("{replay}: {error}");
    }
}

#[test]
fn programs_come_to_what_they_must() {
    match std::env::var("CONSORT_SEED") {
        Ok(seed) => run(seed.parse().expect("CONSORT_SEED is a number")),
        Err(_) => (0..PROGRAMS).for_each(run),
    }
}

#[test]
fn programs_use_everything() {
    let steps: Vec<_> = (0..20).flat_map(|seed| Generator::program(seed, 3)).collect();
    let kinds: std::collections::HashSet<_> = steps.iter().map(std::mem::discriminant).collect();
    assert_eq!(kinds.len(), 13);
    let loose = |step: &&Step| {
        matches!(step, Step::BroadcastBlock { sync, .. } | Step::ReduceBlock { sync, .. }
            if *sync == Sync::LOOSE)
    };
    assert!(steps.iter().filter(loose).count() > 10);
}
