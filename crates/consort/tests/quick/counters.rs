//! Counting puts and gets: exactly one count per operation, and the guarantees of a count.

use std::{
    thread,
    time::{Duration, Instant},
};

use consort::{Error, Job, Rank, Result, Waiting, error::CallError};
use consort_conformance::{
    data::Random,
    turns::{LIMIT, alone},
};
use consort_native::{Failure, HeapError};

use crate::jobs::{SOON, on};

/// Every PE puts to every PE: the final counts equal the puts, and earlier ones are not larger.
#[test]
fn each_put_is_counted_once() {
    const PUTS: u64 = 3000;
    for (pes, waiting) in [(1, Waiting::SpinYield), (2, Waiting::SpinYield), (6, Waiting::EVERY[2])]
    {
        on(Job::threads(pes).waiting(waiting), |world| {
            let (me, pes) = (world.rank(), world.size() as u64);
            let inbox = world.symmetric::<u64>(world.size())?;
            let arrived = world.completion_counter()?;
            let others = world.completion_counter()?;
            for number in 1..=PUTS {
                for to in world.ranks() {
                    inbox.put_counted(to, me.index(), &[number], &arrived)?;
                }
                assert!(arrived.get()? <= PUTS * pes);
            }
            assert_eq!(arrived.wait(PUTS * pes)?, PUTS * pes);
            assert_eq!((arrived.get()?, others.get()?), (PUTS * pes, 0));
            let mut last = vec![0; world.size()];
            inbox.get(me, 0, &mut last)?;
            assert!(last.iter().all(|&number| number == PUTS), "{last:?}");
            world.barrier()
        });
    }
}

/// A PE that sees the count sees the data, at every length: words, odd bytes, several lines.
#[test]
fn data_has_arrived_when_it_is_counted() {
    for bytes in [1, 8, 13, 56, 57, 64, 1000, 40_000] {
        on(Job::threads(2), move |world| {
            let data = world.symmetric::<u8>(bytes + 3)?;
            let (full, empty) = (world.completion_counter()?, world.completion_counter()?);
            let mut random = Random(u64::from(world.rank().0));
            for round in 1..=200_u64 {
                let content = vec![u8::try_from(round % 251).expect("a byte"); bytes];
                if world.rank() == Rank(0) {
                    empty.wait(round - 1)?;
                    random.dawdle();
                    data.put_counted(Rank(1), 3, &content, &full)?;
                } else {
                    full.wait(round)?;
                    let mut got = vec![0; bytes];
                    data.get(Rank(1), 3, &mut got)?;
                    assert!(got == content, "round {round} of {bytes} bytes");
                    data.put_counted(Rank(0), 0, &[], &empty)?;
                }
            }
            world.barrier()
        });
    }
}

/// A producer overwrites a buffer that all others have read, but never while one reads it. The
/// buffer is so long that copying it takes longer than the count takes to arrive.
#[test]
fn an_owner_knows_when_its_buffer_is_free() {
    const WORDS: usize = 20_000;
    const ROUNDS: u64 = 100;
    for pes in [2, 4] {
        on(Job::threads(pes), |world| {
            let buffer = world.symmetric::<u64>(WORDS)?;
            let (full, empty) = (world.completion_counter()?, world.completion_counter()?);
            let consumers = world.size() as u64 - 1;
            let mut data = vec![0; WORDS];
            for round in 1..=ROUNDS {
                if world.rank() == Rank(0) {
                    data.fill(round);
                    empty.wait((round - 1) * consumers)?;
                    buffer.put(Rank(0), 0, &data)?;
                    buffer.fence()?;
                    for to in world.ranks().skip(1) {
                        buffer.put_counted(to, 0, &[], &full)?;
                    }
                } else {
                    full.wait(round)?;
                    buffer.get_counted(Rank(0), 0, &mut data, &empty)?;
                    assert!(data.iter().all(|&word| word == round), "in round {round}");
                }
            }
            let owner = world.rank() == Rank(0);
            if owner {
                empty.wait(ROUNDS * consumers)?;
            }
            world.barrier()?;
            let expected = if owner { (0, ROUNDS * consumers) } else { (ROUNDS, 0) };
            assert_eq!((full.get()?, empty.get()?), expected, "the owner's alone counts gets");
            world.barrier()
        });
    }
}

/// The counter counts on the PE whose memory is accessed, even if it belongs to another team. Where
/// it has none, nothing is accessed.
#[test]
fn counters_of_other_teams_count_on_the_accessed_pe() {
    on(Job::threads(3), |world| {
        let me = world.rank();
        let (all, part) = (world.completion_counter()?, world.split(Some(me.0 / 2), 0)?);
        let part = part.expect("a color"); // PEs 0 and 1, and PE 2
        let (memory, counter) = (world.symmetric::<u64>(1)?, part.completion_counter()?);
        let pairs = world.split(Some(me.0.min(1)), 0)?.expect("a color"); // PE 0, and PEs 1 and 2
        let shared = pairs.symmetric::<u64>(1)?;
        if me == Rank(2) {
            shared.get_counted(Rank(0), 0, &mut [1], &all)?;
            shared.put_counted(Rank(0), 0, &[7], &all)?;
            let mut data = [9];
            let elsewhere = Some(Error::Call(CallError::WordElsewhere { rank: Rank(1) }));
            assert_eq!(memory.get_counted(Rank(1), 0, &mut data, &counter).err(), elsewhere);
            assert_eq!(memory.put_counted(Rank(1), 0, &data, &counter).err(), elsewhere);
            assert_eq!(data, [9]);
        }
        world.barrier()?;
        let is_one = me == Rank(1);
        assert_eq!((all.get()?, counter.get()?), (if is_one { 2 } else { 0 }, 0));
        assert_eq!((shared.load(0)?, memory.load(0)?), (if is_one { 7 } else { 0 }, 0));
        world.barrier()
    });
}

/// The paper's ping-pong: wait for one, reset to zero, reply.
#[test]
fn a_counter_can_be_set_back_between_operations() {
    on(Job::threads(2), |world| {
        let ball = world.symmetric::<u64>(1)?;
        let arrived = world.completion_counter()?;
        let peer = world.right();
        for round in 0..1000 {
            if world.rank() == Rank(0) {
                ball.put_counted(peer, 0, &[round], &arrived)?;
            }
            assert_eq!(arrived.wait(1)?, 1);
            arrived.set(0)?;
            assert_eq!(ball.load(0)?, round);
            if world.rank() == Rank(1) {
                ball.put_counted(peer, 0, &[round], &arrived)?;
            }
        }
        arrived.set(u64::MAX)?;
        assert_eq!((arrived.wait(7)?, arrived.get()?), (u64::MAX, u64::MAX));
        world.barrier()
    });
}

/// The count wakes a PE that sleeps in a wait.
#[test]
fn a_count_ends_a_wait() {
    for waiting in Waiting::EVERY {
        on(Job::threads(2).waiting(waiting), |world| {
            let word = world.symmetric::<u64>(1)?;
            let arrived = world.completion_counter()?;
            if world.rank() == Rank(0) {
                thread::sleep(Duration::from_millis(30));
                word.put_counted(Rank(1), 0, &[4], &arrived)?;
                word.get_counted(Rank(1), 0, &mut [0], &arrived)?;
            } else {
                assert!(arrived.wait(1)? >= 1);
                assert_eq!((word.load(0)?, arrived.wait(2)?), (4, 2));
            }
            world.barrier()
        });
    }
}

/// A count that is added follows the puts before the last fence, in both directions of a ring.
#[test]
fn counts_without_data_follow_fenced_puts() {
    const ROUNDS: u64 = 200;
    for waiting in Waiting::EVERY {
        on(Job::threads(2).waiting(waiting), |world| {
            let data = world.symmetric::<u64>(100)?;
            let (full, empty) = (world.completion_counter()?, world.completion_counter()?);
            for round in 1..=ROUNDS {
                data.put(world.right(), 0, &[round; 99])?;
                data.put_one(world.right(), 99, round)?;
                data.fence()?;
                full.add(world.right(), 1)?;
                full.wait(round)?;
                assert_eq!(data.to_vec()?, [round; 100]);
                empty.add(world.left(), 1)?; // it may put the next round's
                empty.wait(round)?;
            }
            assert_eq!((full.get()?, empty.get()?), (ROUNDS, ROUNDS));
            world.barrier()
        });
    }
}

#[test]
fn counts_of_all_pes_add_up() {
    on(Job::threads(4), |world| {
        let (total, data) = (world.completion_counter()?, world.symmetric::<u64>(1)?);
        for _ in 0..500 {
            total.add(Rank(2), u64::from(world.rank().0) + 1)?;
            data.put_counted(Rank(2), 0, &[1], &total)?;
        }
        if world.rank() == Rank(2) {
            let all = 500 * (1 + 2 + 3 + 4 + 4);
            assert_eq!(total.wait(all)?, all);
        }
        world.barrier()?;
        // A counter wraps around.
        total.set(5)?;
        total.add(world.rank(), 0)?;
        total.add(world.rank(), u64::MAX)?;
        assert_eq!(total.get()?, 4);
        let stranger = Error::Call(CallError::RankOutOfRange { rank: Rank(4), pes: 4 });
        assert_eq!(total.add(Rank(4), 1), Err(stranger));
        assert_eq!(total.get()?, 4);
        world.barrier()
    });
}

/// A PE that waits or polls gets the error of another PE's panic; so does a sender.
#[test]
fn a_pe_that_panics_ends_waits_for_counts() {
    for waiting in Waiting::EVERY {
        alone(LIMIT, move || {
            let since = Instant::now();
            let outcome = Job::threads(4).waiting(waiting).run(|pe| {
                let world = pe.world();
                let word = world.symmetric::<u64>(1)?;
                let arrived = world.completion_counter()?;
                world.barrier()?;
                let failed = |error: Option<Error>| {
                    let named = matches!(&error, Some(Error::PeFailed { rank, reason })
                        if *rank == Rank(3) && reason.contains("as planned"));
                    assert!(named, "{error:?}");
                };
                match world.rank().0 {
                    0 => failed(arrived.wait(u64::MAX).err()),
                    1 => failed(std::iter::from_fn(|| Some(arrived.get())).find_map(Result::err)),
                    2 => {
                        let put = || word.put_counted(Rank(1), 0, &[1], &arrived);
                        failed(std::iter::from_fn(|| Some(put())).find_map(Result::err));
                        failed(word.get_counted(Rank(1), 0, &mut [0], &arrived).err());
                        failed(arrived.add(Rank(1), 1).err());
                        failed(arrived.set(0).err());
                    }
                    _ => panic!("as planned"),
                }
                Ok(())
            });
            assert!(matches!(outcome, Err(Error::PeFailed { rank: Rank(3), .. })), "{outcome:?}");
            assert!(since.elapsed() < SOON);
        });
    }
}

/// No PE is left that could count.
#[test]
fn wait_for_too_high_a_count_fails() {
    alone(LIMIT, || {
        let outcome = Job::threads(2).run(|pe| {
            let world = pe.world();
            let word = world.symmetric::<u64>(1)?;
            let arrived = world.completion_counter()?;
            if world.rank() == Rank(0) {
                return word.put_counted(Rank(1), 0, &[1], &arrived);
            }
            arrived.wait(2).map(|_| ())
        });
        let named = matches!(&outcome, Err(Error::Mismatched(Failure::Finished {
            waiting, ..
        })) if *waiting == Rank(1));
        assert!(named, "{outcome:?}");
    });
}

#[test]
fn out_of_bounds_put_is_not_counted() {
    on(Job::threads(2), |world| {
        let memory = world.symmetric::<u64>(4)?;
        let counter = world.completion_counter()?;
        let bounds = |first, end| Some(Error::Call(CallError::OutOfBounds { first, end, len: 4 }));
        for to in [Rank(0), Rank(1)] {
            let put = |first, len| memory.put_counted(to, first, &vec![1; len], &counter).err();
            let get = |first, len| memory.get_counted(to, first, &mut vec![1; len], &counter).err();
            let calls: [&dyn Fn(usize, usize) -> Option<Error>; 2] = [&put, &get];
            for call in calls {
                assert_eq!(call(0, 5), bounds(0, 5));
                assert_eq!(call(4, 1), bounds(4, 5));
                assert_eq!(call(5, 0), bounds(5, 5));
                assert_eq!(call(usize::MAX, 2), bounds(usize::MAX, usize::MAX));
            }
        }
        let stranger = Some(Error::Call(CallError::RankOutOfRange { rank: Rank(2), pes: 2 }));
        assert_eq!(memory.put_counted(Rank(2), 0, &[1], &counter).err(), stranger);
        assert_eq!(memory.get_counted(Rank(2), 0, &mut [1], &counter).err(), stranger);
        world.barrier()?;
        let mut all = [9; 4];
        memory.get(world.rank(), 0, &mut all)?;
        assert_eq!((all, counter.get()?), ([0; 4], 0));
        world.barrier()
    });
}

/// A dropped counter's memory serves the next one, which begins at 0, once all have dropped theirs.
#[test]
fn a_dropped_counter_is_free() {
    on(Job::threads(3).heap_bytes(256), |world| {
        let word = world.symmetric::<u64>(1)?;
        for _ in 0..50 {
            let counter = world.completion_counter()?;
            word.put_counted(world.right(), 0, &[1], &counter)?;
            assert_eq!(counter.wait(1)?, 1);
            let none_left = world.completion_counter().err();
            let exhausted = matches!(none_left, Some(Error::Memory(HeapError::Exhausted { .. })));
            assert!(exhausted, "{none_left:?}");
            drop(counter);
            world.barrier()?;
        }
        Ok(())
    });
}

/// One PE creates a counter where another allocates something else.
#[test]
fn a_counter_is_made_by_all() {
    let outcome = alone(LIMIT, || {
        Job::threads(2).run(|pe| {
            let world = pe.world();
            if world.rank() == Rank(0) {
                return world.completion_counter().map(|_| ());
            }
            world.symmetric::<u64>(2).map(|_| ())
        })
    });
    let error = outcome.expect_err("they disagree");
    let named = ["PE 0 called completion_counter()", "PE 1 called symmetric(2 of u64)"];
    assert!(named.iter().all(|named| error.to_string().contains(named)), "{error}");
}
