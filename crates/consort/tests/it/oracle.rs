//! Random programs, compared with what they must come to one call after the other.
//!
//! A program is made from a seed, the same for all PEs; so is what every call must leave behind.
//! The generator keeps to the rules of the modes: what an entry or an exit of mode None leaves in
//! use is not touched before a barrier. `CONSORT_SEED=N` repeats one program alone.

use std::fmt::Debug;

use consort::{Candidate, Collective, Error, Mode, Pes, Rank, Result, Sum, Symmetric, Sync, Team};
use consort_collectives::PlanError;
use consort_fabric::{Kernel, reference};

use crate::{
    data::{Call, Random, affine, blank, contribution, elements},
    registry::everything,
    turns::{LIMIT, alone, note},
    typed,
};

const PROGRAMS: u64 = 150;
const STEPS: usize = 60;
/// The lengths of a program's symmetric blocks.
const LENGTHS: [usize; 6] = [1, 3, 7, 130, 900, 3000];
/// Blocks of each length: two of it, and two of as much for each PE.
const BLOCKS: usize = 4 * LENGTHS.len();

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
    /// A collective on slices, or on values of one element.
    Slices {
        collective: Collective,
        sync: Sync,
        root: Rank,
        len: usize,
        seed: u64,
        ordered: bool,
    },
    Values {
        collective: Collective,
        sync: Sync,
        root: Rank,
        seed: u64,
    },
    /// A collective on blocks; a broadcast's is the first.
    Blocks {
        collective: Collective,
        sync: Sync,
        root: Rank,
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
        let uses = vec![Use::default(); BLOCKS];
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

    /// A source and a target for a collective, of the length class of `block`.
    fn operands(&self, collective: Collective, block: usize) -> (usize, usize) {
        let class = block % LENGTHS.len();
        let of = |blocks: u32, second: usize| {
            let many = if blocks > 1 { 2 * LENGTHS.len() } else { 0 };
            class + second * LENGTHS.len() + many
        };
        let several = 2;
        let from = of(collective.source_blocks(several, true), 0);
        if collective == Collective::Broadcast {
            return (from, from);
        }
        (from, of(collective.target_blocks(several, true), 1))
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
        let moving: Vec<_> =
            Collective::EVERY.into_iter().filter(|&one| one != Collective::Barrier).collect();
        let collective = *random.pick(&moving);
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
            5..=9 => Step::Slices { collective, sync: borrows, root, len, seed, ordered },
            10..=12 => Step::Values { collective, sync, root, seed },
            _ => {
                let (from, to) = self.operands(collective, block);
                self.claim(from, sync);
                self.claim(to, sync);
                self.used(from, sync);
                self.used(to, sync);
                Step::Blocks { collective, sync, root, from, to, ordered }
            }
        };
        self.steps.push(step);
    }
}

/// The elements of a block: as many of one PE, or as many for each PE.
fn length(block: usize, pes: u32) -> usize {
    let each = LENGTHS[block % LENGTHS.len()];
    if block < 2 * LENGTHS.len() { each } else { each * pes as usize }
}

/// All PEs' parts of all blocks, as they must be.
struct Oracle {
    pes: u32,
    /// By block, then by PE.
    parts: Vec<Vec<Vec<u64>>>,
}

impl Oracle {
    fn new(pes: u32) -> Self {
        let parts = |block| vec![vec![0; length(block, pes)]; pes as usize];
        Self { pes, parts: (0..BLOCKS).map(parts).collect() }
    }

    /// Changes blocks as a call does that was served.
    fn follow(&mut self, step: &Step) {
        match *step {
            Step::Refill { block, seed } => {
                for (rank, part) in (0..).zip(&mut self.parts[block]) {
                    *part = contribution(seed, Rank(rank), length(block, self.pes));
                }
            }
            Step::Put { block, seed } => {
                for rank in 0..self.pes {
                    let right = (rank + 1) % self.pes;
                    let data = contribution(seed, Rank(rank), length(block, self.pes));
                    self.parts[block][right as usize] = data;
                }
            }
            Step::Blocks { collective, root, from, to, ordered, .. } => {
                let parts = &self.parts[from];
                let blocks = collective.source_blocks(self.pes, true) as usize;
                let block = |rank: Rank, index: u32| {
                    let part = &parts[rank.index()];
                    let len = part.len() / blocks;
                    bytemuck::cast_slice(&part[index as usize * len..][..len]).to_vec()
                };
                let kernel =
                    if ordered { Kernel::new(&affine) } else { Kernel::new::<u64, _>(&Sum) };
                let (pes, kernel) = (self.pes, Some(&kernel));
                let result =
                    |rank| reference::result(collective, pes, Rank(rank), root, kernel, block);
                let results: Vec<_> = (0..pes).map(result).collect();
                for (part, result) in self.parts[to].iter_mut().zip(results) {
                    if let Some(result) = result {
                        *part = elements(&result);
                    }
                }
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
        let mut data = vec![0; length(block, self.world.size())];
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
                self.blocks[block].put(
                    me,
                    0,
                    &contribution(seed, me, length(block, self.oracle.pes)),
                )?;
                self.oracle.follow(step);
            }
            Step::Put { block, seed } => {
                let data = contribution(seed, me, length(block, self.oracle.pes));
                self.blocks[block].put(world.right(), 0, &data)?;
                self.oracle.follow(step);
            }
            Step::Force { collective, ref candidate } => world.force(collective, candidate.clone()),
            Step::Slices { collective, sync, root, len, seed, ordered } => {
                let call = Call { collective, pes: world.size(), root, len, seed };
                let (source, team) = (call.source::<u64>(me), world.with(sync));
                let mut target = blank(call.target_len(me));
                let before = target.clone();
                let expected = if ordered {
                    typed::slices(team, collective, &source, &mut target, affine, root)?;
                    call.result(me, &affine)
                } else {
                    in_place(team, collective, &source, &mut target, root)?;
                    call.result(me, &Sum)
                };
                assert!(target == expected.unwrap_or(before), "PE {me}: {step:?}");
            }
            Step::Values { collective, sync, root, seed } => {
                let call = Call { collective, pes: world.size(), root, len: 1, seed };
                let source = call.source::<u64>(me);
                let found = typed::values(world.with(sync), collective, &source, affine, root)?;
                assert_eq!(found, call.result(me, &affine), "PE {me}: {step:?}");
            }
            Step::Blocks { collective, sync, root, from, to, ordered } => {
                let (source, target) = (&self.blocks[from], &self.blocks[to]);
                let team = world.with(sync);
                if ordered {
                    typed::symmetric(team, collective, source, target, affine, root)?;
                } else {
                    team.collective_symmetric(collective, source, target, Sum, root)?;
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

/// A collective on slices, in place where it can be.
fn in_place(
    team: Team<'_>,
    collective: Collective,
    source: &[u64],
    target: &mut [u64],
    root: Rank,
) -> Result<()> {
    match collective {
        Collective::AllReduce | Collective::Scan | Collective::Exchange => {
            target.copy_from_slice(source);
        }
        Collective::AllGather => {
            target[team.rank().index() * source.len()..][..source.len()].copy_from_slice(source);
        }
        _ => {}
    }
    match collective {
        Collective::AllReduce => team.all_reduce_in_place(target, Sum),
        Collective::Scan => team.scan_in_place(target, Sum),
        Collective::Exchange => team.exchange_in_place(target),
        Collective::AllGather => team.all_gather_in_place(target),
        _ => team.collective_slice(collective, source, target, Sum, root),
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
        let threads = Pes::threads(pes).heap_bytes(4 << 20);
        let threads = match waiting {
            Some(waiting) => threads.waiting(waiting),
            None => threads,
        };
        threads.run(|pe| {
            let world = pe.world();
            let blocks = (0..BLOCKS).map(|block| world.symmetric(length(block, pes)));
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
    assert_eq!(kinds.len(), 7);
    let loose = |step: &&Step| matches!(step, Step::Blocks { sync, .. } if *sync == Sync::LOOSE);
    assert!(steps.iter().filter(loose).count() > 10);
}
