//! Vector variants on blocks of various lengths and positions.

use std::time::Duration;

use consort::{
    Displacements, Error, Job, Rank, Result, Symmetric, Team,
    error::{CallError, DisplacementsError, Failure},
    sync_modes::{SyncMode, SyncModes},
    tune::Collective,
};
use consort_conformance::{data::Random, turns::alone};
use consort_sandbox::seeds::seeds;

use crate::data::Element;

const LIMIT: Duration = Duration::from_secs(20);
/// The content of a target where nothing is received.
const BLANK: u64 = 0xA5A5;

/// Returns the number of elements that `from` sends to `to`; often none.
fn count(seed: u64, from: Rank, to: Rank) -> usize {
    let mut random = Random(seed ^ u64::from(from.0) << 20 ^ u64::from(to.0) << 40);
    if random.chance(3) { 0 } else { *random.pick(&[1, 2, 7, 64, 1000, 5001]) }
}

/// Returns element `at` of the data that `from` sends to `to`.
fn element<T: Element>(seed: u64, from: Rank, to: Rank, at: usize) -> T {
    T::of(Random(seed ^ u64::from(from.0) << 32 ^ u64::from(to.0) << 48 ^ at as u64).next_word())
}

fn data<T: Element>(seed: u64, from: Rank, to: Rank) -> Vec<T> {
    (0..count(seed, from, to)).map(|at| element(seed, from, to, at)).collect()
}

/// Returns displacements of these lengths in any order, with gaps, and the length of a buffer with
/// enough room.
fn strewn(counts: &[usize], random: &mut Random) -> (Displacements, usize) {
    let mut order: Vec<usize> = (0..counts.len()).collect();
    for index in (1..order.len()).rev() {
        order.swap(index, random.below(index + 1));
    }
    let (mut places, mut next) = (vec![0; counts.len()], random.below(3));
    for block in order {
        places[block] = next;
        next += counts[block] + random.below(3);
    }
    (Displacements::at(counts, &places).expect("short"), next)
}

/// The data of the PEs of a team in a call of a vector variant, and the expected results.
struct Play {
    collective: Collective,
    seed: u64,
    me: Rank,
    pes: usize,
}

impl Play {
    fn everyone(&self) -> impl Iterator<Item = Rank> + use<> {
        (0..self.pes).map(Rank::new)
    }

    fn root(&self) -> Rank {
        Rank::new(self.pes / 2)
    }

    fn is_root(&self) -> bool {
        self.me == self.root()
    }

    /// Returns whether a PE sends the same data to all PEs.
    fn alike(&self) -> bool {
        matches!(self.collective, Collective::GatherVector | Collective::AllGatherVector)
    }

    /// Returns the data that `from` sends to `to`.
    fn block<T: Element>(&self, from: Rank, to: Rank) -> Vec<T> {
        data(self.seed, from, if self.alike() { from } else { to })
    }

    /// Returns the caller's contribution, and its displacements.
    fn given<T: Element>(&self, random: &mut Random) -> (Vec<T>, Displacements) {
        let has_blocks = match self.collective {
            Collective::ScatterVector => self.is_root(),
            collective => collective == Collective::AllToAllVector,
        };
        if !has_blocks {
            let gives = self.collective != Collective::ScatterVector;
            let own = if gives { self.block(self.me, self.me) } else { Vec::new() };
            return (own, Displacements::default());
        }
        let all: Vec<Vec<T>> = self.everyone().map(|to| self.block(self.me, to)).collect();
        let counts: Vec<usize> = all.iter().map(Vec::len).collect();
        let (blocks, len) = strewn(&counts, random);
        let mut source = vec![T::of(BLANK); len];
        for (to, block) in self.everyone().zip(all) {
            source[blocks.range(to)].copy_from_slice(&block);
        }
        (source, blocks)
    }

    /// Returns the expected content of the caller's initially blank target, and the displacements;
    /// `None` if it receives nothing.
    fn received<T: Element>(&self, random: &mut Random) -> Option<(Vec<T>, Displacements)> {
        if self.collective == Collective::ScatterVector {
            return Some((self.block(self.root(), self.me), Displacements::default()));
        }
        if self.collective == Collective::GatherVector && !self.is_root() {
            return None;
        }
        let all: Vec<Vec<T>> = self.everyone().map(|from| self.block(from, self.me)).collect();
        let counts: Vec<usize> = all.iter().map(Vec::len).collect();
        let (blocks, len) = strewn(&counts, random);
        let mut target = vec![T::of(BLANK); len];
        for (from, block) in self.everyone().zip(all) {
            target[blocks.range(from)].copy_from_slice(&block);
        }
        Some((target, blocks))
    }

    /// Returns the data that the caller receives when blocks are placed one after the other.
    fn packed<T: Element>(&self) -> Option<Vec<T>> {
        if self.collective == Collective::ScatterVector {
            return Some(self.block(self.root(), self.me));
        }
        let gets = self.collective != Collective::GatherVector || self.is_root();
        gets.then(|| self.everyone().flat_map(|from| self.block(from, self.me)).collect())
    }

    fn check<T: Element>(&self, what: &str, given: &[T], expected: &[T]) {
        let Self { collective, seed, me, pes } = self;
        assert!(given == expected, "{collective} {what} on PE {me} of {pes}, seed {seed}");
    }

    fn slices<T: Element>(&self, team: &Team) -> Result<()> {
        let mut random = Random(self.seed ^ u64::from(self.me.0));
        let (source, given) = self.given::<T>(&mut random);
        let (expected, received) = self.received(&mut random).unwrap_or_default();
        let mut target = vec![T::of(BLANK); expected.len()];
        match self.collective {
            Collective::ScatterVector => {
                team.slices(&source, &mut target).with_counts(&given).scatter(self.root())
            }
            Collective::GatherVector => {
                team.slices(&source, &mut target).with_counts(&received).gather(self.root())
            }
            Collective::AllGatherVector => {
                team.slices(&source, &mut target).with_counts(&received).all_gather()
            }
            _ => team.slices(&source, &mut target).with_counts((&given, &received)).all_to_all(),
        }?;
        self.check("on slices", &target, &expected);
        Ok(())
    }

    fn values<T: Element>(&self, team: &Team) -> Result<()> {
        let (source, given) = self.given::<T>(&mut Random(self.seed));
        let result = match self.collective {
            Collective::ScatterVector => {
                Some(team.values(&source).uneven().scatter(&given, self.root())?)
            }
            Collective::GatherVector => {
                team.values(&source).uneven().gather(self.root())?.map(|(all, _)| all)
            }
            Collective::AllGatherVector => Some(team.values(&source).uneven().all_gather()?.0),
            _ => Some(team.values(&source).uneven().all_to_all(&given)?.0),
        };
        assert_eq!(result.is_some(), self.packed::<T>().is_some());
        self.check("of values", &result.unwrap_or_default(), &self.packed().unwrap_or_default());
        Ok(())
    }

    fn symmetric<T: Element + Send>(
        &self,
        team: &Team,
        [source, target]: [&Symmetric<T>; 2],
    ) -> Result<()> {
        let mut random = Random(self.seed ^ u64::from(self.me.0));
        let (data, given) = self.given::<T>(&mut random);
        let (expected, received) = self.received(&mut random).unwrap_or_default();
        source.put(self.me, 0, &data)?;
        target.put(self.me, 0, &vec![T::of(BLANK); expected.len()])?;
        match self.collective {
            Collective::ScatterVector => team
                .in_symmetric(source, target)
                .with_len(expected.len())
                .with_counts(&given)
                .scatter(self.root()),
            Collective::GatherVector => team
                .in_symmetric(source, target)
                .with_len(data.len())
                .with_counts(&received)
                .gather(self.root()),
            Collective::AllGatherVector => team
                .in_symmetric(source, target)
                .with_len(data.len())
                .with_counts(&received)
                .all_gather(),
            _ => team.in_symmetric(source, target).with_counts((&given, &received)).all_to_all(),
        }?;
        team.barrier()?;
        let mut result = expected.clone();
        target.get(self.me, 0, &mut result)?;
        self.check("in symmetric memory", &result, &expected);
        team.barrier()
    }

    /// Starts a call, and returns its later steps: wait, and check.
    fn start<T: Element + Send>(self, team: &Team) -> Result<Box<dyn FnOnce() -> Result<()>>> {
        let mut random = Random(self.seed ^ u64::from(self.me.0));
        let (source, given) = self.given::<T>(&mut random);
        let (mut expected, received) = self.received::<T>(&mut random).unwrap_or_default();
        let (collective, len, root) = (self.collective, expected.len(), self.root());
        if received.number() > 0 {
            // Such a call allocates its own target, of the required length, filled with zeros.
            let kept = std::mem::replace(&mut expected, vec![T::zeroed(); received.extent()]);
            for range in self.everyone().map(|from| received.range(from)) {
                expected[range.clone()].copy_from_slice(&kept[range]);
            }
        }
        let check = move |result: &[T]| self.check("started", result, &expected);
        Ok(match collective {
            Collective::ScatterVector => {
                let request = team.start(source).with_len(len).with_counts(&given).scatter(root)?;
                Box::new(move || request.wait().map(|result| check(&result)))
            }
            Collective::GatherVector => {
                let request = team.start(source).with_counts(&received).gather(root)?;
                Box::new(move || request.wait().map(|all| check(&all.unwrap_or_default())))
            }
            Collective::AllGatherVector => {
                let request = team.start(source).with_counts(&received).all_gather()?;
                Box::new(move || request.wait().map(|result| check(&result)))
            }
            _ => {
                let request = team.start(source).with_counts((&given, &received)).all_to_all()?;
                Box::new(move || request.wait().map(|result| check(&result)))
            }
        })
    }
}

fn vector_variants() -> impl Iterator<Item = Collective> {
    Collective::EVERY.into_iter().filter(|collective| collective.is_vector())
}

/// The candidates for vector all-to-alls: the usual one, and one by which short blocks travel
/// together.
const ALL_TO_ALL: [Option<&str>; 2] = [None, Some("two_phase_bruck(radix=2,block_bytes=520)")];

fn force_all_to_all(world: &Team, candidate: Option<&str>) {
    let candidate = candidate.map(|name| name.parse().expect("a candidate"));
    world.algorithms().force(Collective::AllToAllVector, candidate);
}

/// Makes many calls of different lengths, in all forms, among `pes` PEs.
fn blocks_of_all_sorts<T: Element + Send>((pes, all_to_all): (usize, Option<&'static str>)) {
    let programs: Vec<u64> = seeds(24, 24, &[]).collect();
    alone(LIMIT, move || {
        let job = Job::threads(pes).heap_bytes(64 << 20);
        let outcome = job.run(|pe| {
            let world = pe.world();
            force_all_to_all(world, all_to_all);
            let room = 5100 * pes;
            let memory = [world.symmetric::<T>(room)?, world.symmetric::<T>(room)?];
            let mut under_way = Vec::new();
            for (round, &seed) in programs.iter().enumerate() {
                let exits = [SyncMode::Mine, SyncMode::All];
                let (entry, exit) = (SyncMode::EVERY[round % 3], exits[round / 3 % 2]);
                let team = world.with_sync(SyncModes { entry, exit });
                for collective in vector_variants() {
                    let seed = seed << 8 | collective as u64;
                    let play = || Play { collective, seed, me: world.rank(), pes };
                    play().slices::<T>(&team)?;
                    play().values::<T>(&team)?;
                    play().values::<T>(&world.with_sync(SyncModes::LOOSE))?;
                    play().symmetric::<T>(&team, memory.each_ref())?;
                    under_way.push(play().start::<T>(&team)?);
                }
                if under_way.len() > 8 {
                    // In a different order than they were started.
                    under_way.drain(..).rev().try_for_each(|ending| ending())?;
                }
            }
            Ok(())
        });
        outcome.map(|_| ()).expect("all is right");
    });
}

#[test]
fn blocks_of_bytes_reach_their_pes() {
    let teams = [2, 5].into_iter();
    let each = teams.flat_map(|pes| ALL_TO_ALL.map(|candidate| (pes, candidate)));
    each.for_each(blocks_of_all_sorts::<u8>);
}

#[test]
fn blocks_of_words_reach_their_pes() {
    let teams = [1, 3].into_iter();
    let each = teams.flat_map(|pes| ALL_TO_ALL.map(|candidate| (pes, candidate)));
    each.for_each(blocks_of_all_sorts::<u64>);
}

/// Makes a call of a vector variant in which two PEs state different lengths for a block.
fn one_more(team: &Team, collective: Collective) -> Result<()> {
    let (me, pes) = (team.rank(), team.size());
    let more = usize::from(me == Rank(1));
    let mut counts = vec![3; pes];
    counts[1] += more;
    let (blocks, even) = (Displacements::new(&counts)?, Displacements::new(&vec![3; pes])?);
    let (source, mut target) = (vec![7_u32; 3 * pes + 1], vec![0_u32; 3 * pes + 1]);
    match collective {
        Collective::ScatterVector => {
            team.slices(&source, &mut target[..3 + more]).with_counts(&even).scatter(Rank(0))
        }
        Collective::GatherVector => {
            team.slices(&source[..3 + more], &mut target).with_counts(&even).gather(Rank(0))
        }
        Collective::AllGatherVector => {
            team.slices(&source[..3 + more], &mut target).with_counts(&blocks).all_gather()
        }
        _ => {
            // PE 1 has one more for PE 0 than PE 0 expects.
            let mut counts = vec![3; pes];
            counts[0] += more;
            team.slices(&source, &mut target)
                .with_counts((&Displacements::new(&counts)?, &even))
                .all_to_all()
        }
    }
}

#[test]
fn mismatched_lengths_are_reported() {
    // Blocks of 12 and 16 bytes: short ones, long ones, and one of each.
    let bruck = ["block_bytes=128", "block_bytes=11", "block_bytes=12"];
    let bruck = bruck.map(|parameter| format!("two_phase_bruck(radix=2,{parameter})"));
    let of_all_to_all = bruck.iter().map(|name| (Collective::AllToAllVector, Some(&**name)));
    for (collective, all_to_all) in vector_variants().map(|one| (one, None)).chain(of_all_to_all) {
        for (parts, pes) in [(false, 2), (false, 3), (true, 4)] {
            let all_to_all = all_to_all.map(str::to_owned);
            let error = alone(LIMIT, move || {
                let outcome = Job::threads(pes).run(|pe| {
                    let world = pe.world();
                    force_all_to_all(world, all_to_all.as_deref());
                    let part = world.split(Some(world.rank().0 % 2), 0)?.expect("a part");
                    let team = if parts { &part } else { world };
                    one_more(team, collective).and_then(|()| world.barrier())
                });
                outcome.map(|_| ()).expect_err("counts that do not match")
            });
            let Error::Mismatched(Failure::Counts { call, owner, peer }) = &error else {
                panic!("{collective}: {error}")
            };
            let mut said = [*owner, *peer];
            said.sort_unstable();
            // In a team of every second PE, the PEs with rank 1 are PEs 2 and 3 of the world.
            let ranks = said.map(|(rank, _)| rank.0);
            let are_right = if parts {
                ranks == [0, 2] || ranks == [1, 3]
            } else {
                ranks[1] == 1 || ranks[0] == 1
            };
            assert!(are_right, "{collective}: {error}");
            let mut bytes = said.map(|(_, bytes)| bytes);
            bytes.sort_unstable();
            assert_eq!(bytes, [12, 16], "{collective}: {error}");
            assert!(call.starts_with(collective.name()), "{error}");
            assert_eq!(call.contains("in the team of PEs"), parts, "{error}");
            let text = error.to_string();
            assert!(text.contains("counts do not match") && text.contains("16"), "{text}");
        }
    }
}

#[test]
fn blocks_that_cannot_be_moved() {
    let outcome = alone(LIMIT, || {
        Job::threads(2).run(|pe| {
            let world = pe.world();
            let (three, even) = (Displacements::new(&[1; 3])?, Displacements::new(&[2, 2])?);
            let overlapping = Displacements::at(&[2, 2], &[0, 1])?;
            let (source, mut target) = ([1_u8; 4], [0_u8; 4]);
            let mut exchange = |given: &Displacements, received: &Displacements, len: usize| {
                world
                    .slices(&source, &mut target[..len])
                    .with_counts((given, received))
                    .all_to_all()
            };
            let number = DisplacementsError::Number { given: 3, pes: 2 };
            assert_eq!(exchange(&three, &even, 4), Err(number.clone().into()));
            assert_eq!(exchange(&even, &three, 4), Err(number.into()));
            let beyond = DisplacementsError::Beyond { rank: Rank(1), range: 2..4, len: 3 };
            assert_eq!(exchange(&even, &even, 3), Err(beyond.into()));
            let overlap = DisplacementsError::Overlap { one: Rank(0), other: Rank(1) };
            assert_eq!(exchange(&even, &overlapping, 4), Err(overlap.clone().into()));
            assert_eq!(
                world.start(vec![1_u8; 2]).with_counts(&overlapping).all_gather().map(|_| ()),
                Err(overlap.into())
            );
            // A source, which is only read, may overlap.
            exchange(&overlapping, &even, 4)?;
            assert_eq!(
                world
                    .with_sync(SyncModes::LOOSE)
                    .slices(&source[..2], &mut [0; 4])
                    .with_counts(&even)
                    .all_gather(),
                Err(Error::Call(CallError::BorrowedSlice(SyncModes::LOOSE)))
            );
            let outside = Error::Call(CallError::RootOutOfRange { root: Rank(2), pes: 2 });
            assert_eq!(world.values(&source).uneven().gather(Rank(2)), Err(outside));
            let (memory, other) = (world.symmetric::<u64>(4)?, world.symmetric::<u64>(4)?);
            let same =
                world.in_symmetric(&memory, &memory).with_counts((&even, &even)).all_to_all();
            assert_eq!(same, Err(Error::Call(CallError::InPlace)));
            let long =
                world.in_symmetric(&memory, &other).with_len(5).with_counts(&even).all_gather();
            assert_eq!(long, Err(Error::Call(CallError::OutOfBounds { first: 0, end: 5, len: 4 })));
            Ok(())
        })
    });
    outcome.map(|_| ()).expect("errors are local, and the job goes on");
}
