//! One-sided operations of every width, in strides, and from threads that are not PEs.

use std::{fmt::Debug, sync::Mutex, thread, time::Duration};

use consort::{
    Error, Job, Rank, Result, Results, Symmetric, Team,
    bindings::{JobBuilderExt as _, Origin},
    error::{CallError, HeapError, LaunchError},
    symmetric::{Atomic, SharedSymmetric, Signal, Until, Word},
};
use consort_conformance::{
    data::Random,
    turns::{LIMIT, alone},
};

/// Returns the outcomes of a job of `pes` PEs, in memory of either origin.
fn outcomes<R: Send + 'static>(
    pes: usize,
    program: impl Fn(&Team) -> Result<R> + Clone + Send + Sync + 'static,
) -> [Result<Vec<R>>; 2] {
    [Origin::Private, Origin::Shared].map(|origin| {
        let program = program.clone();
        let pes = Job::threads(pes).without_wisdom().heap_bytes(1 << 20).memory(origin);
        let all = alone(LIMIT, move || pes.run(|pe| program(pe.world())));
        all.map(Results::into_vec)
    })
}

fn go_well<R: Debug + Send + 'static>(
    pes: usize,
    program: impl Fn(&Team) -> Result<R> + Clone + Send + Sync + 'static,
) {
    for outcome in outcomes(pes, program) {
        outcome.expect("a job that goes well");
    }
}

/// Returns a word after an operation; `all` has all bits of a word.
fn after(word: u64, all: u64, operation: Atomic) -> u64 {
    let after = match operation {
        Atomic::Load => word,
        Atomic::Swap(new) => new,
        Atomic::CompareSwap { current, new } if current & all == word => new,
        Atomic::CompareSwap { .. } => word,
        Atomic::FetchAdd(by) => word.wrapping_add(by),
        Atomic::FetchAnd(by) => word & by,
        Atomic::FetchOr(by) => word | by,
        Atomic::FetchXor(by) => word ^ by,
    };
    after & all
}

fn operation(random: &mut Random) -> Atomic {
    // Now and then, a word that may be present.
    let mut word =
        || if random.below(2) == 0 { random.below(3) as u64 } else { random.next_word() };
    let (one, other) = (word(), word());
    match random.below(7) {
        0 => Atomic::Load,
        1 => Atomic::Swap(one),
        2 => Atomic::CompareSwap { current: one, new: other },
        3 => Atomic::FetchAdd(one),
        4 => Atomic::FetchAnd(one),
        5 => Atomic::FetchOr(one),
        _ => Atomic::FetchXor(one),
    }
}

/// One PE performs random operations on adjacent words of another.
fn as_an_oracle_says<W: Word + Debug + PartialEq>(world: &Team, seed: u64) -> Result<()> {
    const WORDS: usize = 5;
    let memory = world.symmetric::<W>(WORDS)?;
    let all = u64::MAX >> (64 - 8 * size_of::<W>());
    if world.rank() == Rank(0) {
        let mut random = Random(seed);
        let mut oracle = [0_u64; WORDS];
        for _ in 0..2000 {
            let index = random.below(WORDS);
            if random.below(3) == 0 {
                let value = random.next_word();
                let how =
                    if value.is_multiple_of(2) { Signal::Set(value) } else { Signal::Add(value) };
                memory.signal(Rank(1), index, how)?;
                let word = oracle[index];
                oracle[index] =
                    if value.is_multiple_of(2) { value } else { word.wrapping_add(value) } & all;
                continue;
            }
            let operation = operation(&mut random);
            let before = memory.atomic(Rank(1), index, operation)?;
            assert_eq!(before, W::from_bits(oracle[index]), "{operation:?}");
            oracle[index] = after(oracle[index], all, operation);
        }
        let mut words = [W::from_bits(0); WORDS];
        memory.get(Rank(1), 0, &mut words)?;
        assert_eq!(words.map(W::to_bits), oracle);
    }
    world.barrier()
}

#[test]
fn words_of_every_width_match_an_oracle() {
    go_well(2, |world| {
        as_an_oracle_says::<u32>(world, 1)?;
        as_an_oracle_says::<i32>(world, 2)?;
        as_an_oracle_says::<u64>(world, 3)?;
        as_an_oracle_says::<i64>(world, 4)
    });
}

#[test]
fn signed_words_wait_as_unsigned_ones() {
    go_well(1, |world| {
        let (short, long) = (world.symmetric::<i32>(2)?, world.symmetric::<i64>(1)?);
        short.store(1, -5)?;
        long.store(0, -5)?;
        let at_least = |bits| Until::AtLeast(bits);
        assert_eq!(short.wait_until(1, at_least(i32::MAX.to_bits()))?, -5);
        assert_eq!(long.wait_until(0, at_least(i64::MAX.to_bits()))?, -5);
        assert_eq!(short.wait_until(1, Until::Equals((-5_i32).to_bits()))?, -5);
        assert_eq!(short.wait_until(1, Until::AtMost(u32::MAX.to_bits()))?, -5);
        Ok(())
    });
}

/// Adjacent words of 4 bytes: each PE adds to one, and all add to the last.
#[test]
fn short_words_side_by_side_lose_nothing() {
    go_well(3, |world| {
        let memory = world.symmetric::<u32>(4)?;
        let me = world.rank();
        for _ in 0..500 {
            memory.fetch_add(Rank(1), me.index(), 1)?;
            memory.signal(Rank(1), 3, Signal::Add(1))?;
        }
        world.barrier()?;
        let mut words = [0; 4];
        memory.get(Rank(1), 0, &mut words)?;
        assert_eq!(words, [500, 500, 500, 1500]);
        Ok(())
    });
}

#[test]
fn strided_copies_match_an_oracle() {
    const LEN: usize = 60;
    go_well(2, |world| {
        let memory = world.symmetric::<u16>(LEN)?;
        if world.rank() == Rank(0) {
            let mut random = Random(7);
            let mut theirs = [0_u16; LEN];
            for round in 0..500_u16 {
                let (first, stride) = (random.below(LEN), 1 + random.below(9));
                let (len, data_stride) = (random.below(20), 1 + random.below(4));
                let mut data: Vec<u16> = (0..20).map(|at| 100 * round + at).collect();
                let places = (first..).step_by(stride).take(len.div_ceil(data_stride));
                let places: Vec<usize> = places.collect();
                let end = places.last().map_or(first, |last| last + 1);
                let put = memory.put_strided(Rank(1), first, stride, &data[..len], data_stride);
                if end > LEN {
                    let error = Error::Call(CallError::OutOfBounds { first, end, len: LEN });
                    assert_eq!(put, Err(error.clone()));
                    let got =
                        memory.get_strided(Rank(1), first, stride, &mut data[..len], data_stride);
                    assert_eq!(got, Err(error));
                    continue;
                }
                put?;
                for (at, place) in places.iter().enumerate() {
                    theirs[*place] = data[at * data_stride];
                }
                let mut all = [0; LEN];
                memory.get(Rank(1), 0, &mut all)?;
                assert_eq!(all, theirs);
                let mut got = vec![9; len];
                memory.get_strided(Rank(1), first, stride, &mut got, data_stride)?;
                let kept = |(at, value): (usize, &u16)| {
                    *value == if at % data_stride == 0 { data[at] } else { 9 }
                };
                assert!(got.iter().enumerate().all(kept));
            }
            assert!(memory.put_strided(Rank(2), 0, 1, &[1], 1).is_err());
        }
        world.barrier()
    });
}

#[test]
fn other_threads_use_handles_like_the_pe() {
    const ROUNDS: u32 = 300;
    go_well(2, |world| {
        let (data, flags) = (world.symmetric::<u64>(4)?, world.symmetric::<u32>(5)?);
        let (me, peer) = (world.rank(), Rank(1 - world.rank().0));
        let (shared, shared_flags) = (data.share()?, flags.share()?);
        assert_eq!((shared.rank(), shared.len(), shared.is_empty()), (me, 4, false));
        thread::scope(|scope| -> Result<()> {
            for number in 0..2 {
                let (data, flags) = (shared.clone(), shared_flags.clone());
                scope.spawn(move || -> Result<()> {
                    for round in 1..=ROUNDS {
                        let pair = [u64::from(round), u64::from(round) * 3];
                        let how = Signal::Set(round.into());
                        data.put_signal(peer, 2 * number, &pair, &flags, number, how)?;
                        flags.wait_until(number, Until::AtLeast(round.into()))?;
                        let mut found = [0; 2];
                        data.get(me, 2 * number, &mut found)?;
                        assert_eq!(found, pair, "they go in step");
                        // The peer's thread continues when this one has read its data.
                        flags.fetch_add(peer, 4, 1)?;
                        flags.signal(peer, 2 + number, how)?;
                        flags.wait_until(2 + number, Until::AtLeast(round.into()))?;
                        data.fence();
                        data.quiet();
                    }
                    Ok(())
                });
            }
            flags.wait_until(4, Until::Equals((2 * ROUNDS).into()))?;
            Ok(())
        })?;
        world.barrier()
    });
}

#[test]
fn other_threads_put_and_get_single_elements() {
    go_well(2, |world| {
        let (me, peer) = (world.rank(), world.right());
        let shared = world.symmetric::<[u8; 3]>(4)?.share()?;
        let of = |rank: Rank| [rank.0.to_le_bytes()[0], 8, 9];
        let puts = thread::spawn(move || -> Result<SharedSymmetric<[u8; 3]>> {
            shared.put_one(peer, 3, of(me))?;
            shared.quiet();
            Ok(shared)
        });
        let shared = puts.join().expect("no panic")?;
        world.barrier()?;
        let gets = thread::spawn(move || -> Result<()> {
            assert_eq!((shared.get_one(me, 3)?, shared.get_one(peer, 3)?), (of(peer), of(me)));
            assert_eq!(shared.get_one(peer, 2)?, [0; 3]);
            let outside = Error::Call(CallError::OutOfBounds { first: 4, end: 5, len: 4 });
            assert_eq!(shared.put_one(peer, 4, [1; 3]), Err(outside.clone()));
            assert_eq!(shared.get_one(peer, 4), Err(outside));
            let stranger = Error::Call(CallError::RankOutOfRange { rank: Rank(2), pes: 2 });
            assert_eq!(shared.put_one(Rank(2), 0, [1; 3]), Err(stranger.clone()));
            assert_eq!(shared.get_one(Rank(2), 0), Err(stranger));
            Ok(())
        });
        gets.join().expect("no panic")
    });
}

#[test]
fn a_handle_outlives_its_memory_and_its_team() {
    go_well(2, |world| {
        let team = world.split(Some(0), -i64::from(world.rank().0))?.expect("all are in it");
        let memory = team.symmetric::<u64>(10)?;
        let peer = Rank(1 - team.rank().0);
        memory.put(peer, 3, &[u64::from(peer.0) + 7])?;
        team.barrier()?;
        let shared = memory.share()?;
        team.free()?;
        assert_eq!(memory.share().err(), Some(Error::Call(CallError::Freed)));
        assert_eq!(memory.load(3), Err(Error::Call(CallError::Freed)));
        drop(memory);
        // New allocations do not overlap the handle's memory.
        for _ in 0..20 {
            let other = world.symmetric::<u64>(500)?;
            other.put(world.rank(), 0, &[u64::MAX; 500])?;
            world.barrier()?;
        }
        let mut found = [0];
        for at in [shared.rank(), peer] {
            shared.get(at, 3, &mut found)?;
            assert_eq!(found, [u64::from(at.0) + 7]);
        }
        let out = |result: Result<()>| {
            assert!(matches!(result, Err(Error::Call(CallError::OutOfBounds { .. }))))
        };
        out(shared.put(peer, 10, &[1]));
        out(shared.put(peer, usize::MAX, &[1, 2]));
        out(shared.get(peer, 9, &mut [0; 2]));
        out(shared.put_strided(peer, 0, 9, &[0; 3], 1));
        out(shared.signal(peer, 10, Signal::Set(1)));
        out(shared.wait_until(11, Until::Equals(0)).map(drop));
        let stranger = shared.fetch_add(Rank(2), 0, 1);
        assert_eq!(stranger, Err(Error::Call(CallError::RankOutOfRange { rank: Rank(2), pes: 2 })));
        world.barrier()
    });
}

#[test]
fn memory_stays_allocated_while_handles_exist() {
    go_well(2, |world| {
        let large = |world: &Team| world.symmetric::<u8>(700 << 10).map(drop);
        let shared = world.symmetric::<u8>(700 << 10)?.share()?;
        let again = shared.clone();
        world.barrier()?;
        assert!(matches!(large(world), Err(Error::Memory(HeapError::Exhausted { .. }))));
        drop(shared);
        assert!(matches!(large(world), Err(Error::Memory(HeapError::Exhausted { .. }))));
        drop(again);
        large(world)
    });
}

#[test]
fn a_pe_waits_for_handles_at_its_end() {
    go_well(2, |world| {
        let shared = world.symmetric::<u32>(1)?.share()?;
        thread::spawn(move || {
            thread::sleep(Duration::from_millis(50));
            shared.fetch_add(Rank(0), 0, 1).expect("the job goes on");
        });
        Ok(())
    });
}

#[test]
fn a_pe_that_leaves_handles_fails() {
    static LEFT: Mutex<Vec<SharedSymmetric<u32>>> = Mutex::new(Vec::new());
    let failed = outcomes(2, |world| {
        let memory: Symmetric<u32> = world.symmetric(4)?;
        memory.store(2, 8)?;
        if world.rank() == Rank(1) {
            LEFT.lock().expect("no panic").push(memory.share()?);
        }
        world.barrier()
    });
    for outcome in failed {
        let error = outcome.expect_err("a handle is left");
        assert_eq!(error, Error::Launch(LaunchError::StillShared { handles: 1 }), "{error}");
        // The memory still exists, but the job has failed.
        let left = LEFT.lock().expect("no panic").pop().expect("the handle");
        let mut found = [0; 4];
        let got = left.get(Rank(0), 0, &mut found);
        assert!(matches!(got, Err(Error::PeFailed { rank: Rank(1), .. })), "{got:?}");
        assert!(left.fetch_add(Rank(0), 1, 1).is_err(), "the job has failed");
        assert!(left.wait_until(0, Until::Equals(1)).is_err(), "the job has failed");
        assert_eq!(left.clone().len(), 4);
    }
}

#[test]
fn a_failure_ends_the_wait_of_a_thread() {
    for outcome in outcomes(2, |world| {
        let memory = world.symmetric::<u64>(1)?;
        let shared = memory.share()?;
        world.barrier()?;
        if world.rank() == Rank(0) {
            panic!("as planned");
        }
        let waits = thread::spawn(move || shared.wait_until(0, Until::Equals(1)));
        let received = waits.join().expect("no panic").expect_err("nobody writes");
        assert!(matches!(received, Error::PeFailed { rank: Rank(0), .. }), "{received}");
        Err::<(), _>(received)
    }) {
        assert!(matches!(outcome, Err(Error::PeFailed { rank: Rank(0), .. })));
    }
}
