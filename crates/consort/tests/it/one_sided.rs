//! Symmetric memory: puts, gets, signals, atomics, waiting, allocation.

use std::{thread, time::Duration};

use consort::{Atomic, Error, Pes, Rank, Result, Signal, Sum, Symmetric, Team, Until};
use consort_native::HeapError;

use crate::{
    data::{Random, contribution, nth},
    turns::{LIMIT, alone},
};

fn on<R: Send + 'static>(
    pes: Pes,
    program: impl Fn(Team<'_>) -> Result<R> + Send + Sync + 'static,
) -> Vec<R> {
    let all = alone(LIMIT, move || pes.run(|pe| program(pe.world())));
    all.expect("a job that goes well").into_iter().map(|(_, result)| result).collect()
}

const WORDS: usize = 5000;

#[test]
fn what_is_put_is_there_and_can_be_got() {
    for pes in [1, 2, 5] {
        on(Pes::threads(pes), |world| {
            let (me, pes) = (world.rank(), world.size());
            let memory = world.symmetric::<u64>(WORDS * pes as usize)?;
            assert_eq!((memory.len(), memory.is_empty()), (WORDS * pes as usize, false));
            let part = |rank: Rank| rank.index() * WORDS;
            let of = |from: Rank, to: Rank| contribution(u64::from(from.0), to, WORDS);
            for to in (0..pes).map(Rank) {
                memory.put(to, part(me), &of(me, to))?;
            }
            memory.quiet()?;
            world.barrier()?;
            for at in (0..pes).map(Rank) {
                for from in (0..pes).map(Rank) {
                    let mut data = vec![0_u64; WORDS];
                    memory.get(at, part(from), &mut data)?;
                    assert_eq!(data, of(from, at));
                }
            }
            assert_eq!(memory.load(part(me) + 3)?, of(me, me)[3]);
            world.barrier()?;
            memory.store(1, 17)?;
            memory.put(me, 0, &[])?;
            memory.get(me, memory.len(), &mut [])?;
            world.barrier()?;
            let mut two = [0; 2];
            memory.get(world.right(), 0, &mut two)?;
            assert_eq!(two[1], 17);
            Ok(())
        });
    }
}

#[test]
fn elements_of_any_size_lie_where_they_should() {
    on(Pes::threads(2), |world| {
        let odd = world.symmetric::<[u8; 3]>(100)?;
        let large = world.symmetric::<[u64; 700]>(3)?;
        let floats = world.symmetric::<f32>(5)?;
        let peer = world.right();
        for index in 0..100_u8 {
            odd.put(peer, index.into(), &[[index, 1, 2]])?;
        }
        large.put(peer, 1, &[[9; 700]])?;
        floats.put(peer, 4, &[1.5])?;
        world.barrier()?;
        for index in 0..100_u8 {
            assert_eq!(odd.load(index.into())?, [index, 1, 2]);
        }
        assert_eq!([large.load(0)?[699], large.load(1)?[699], large.load(2)?[0]], [0, 9, 0]);
        assert_eq!([floats.load(3)?, floats.load(4)?], [0.0, 1.5]);
        world.barrier()
    });
}

/// Whoever sees the signal sees the data, though the buffer is used again and again.
#[test]
fn a_signal_comes_after_its_data() {
    on(Pes::threads(4), |world| {
        let pes = world.size() as usize;
        let data = world.symmetric::<u64>(64 * pes)?;
        let flags = world.symmetric::<u64>(pes)?;
        let taken = world.symmetric::<u64>(pes)?;
        let me = world.rank().index();
        let mut random = Random(me as u64);
        for round in 1..=500_u64 {
            random.dawdle();
            for to in (0..world.size()).map(Rank) {
                let how = if round % 2 == 0 { Signal::Add(1) } else { Signal::Set(round) };
                data.put_signal(to, 64 * me, &[round << 8 | me as u64; 64], &flags, me, how)?;
            }
            for from in 0..pes {
                assert_eq!(flags.wait_until(from, Until::Equals(round))?, round);
                let mut got = [0; 64];
                data.get(world.rank(), 64 * from, &mut got)?;
                assert_eq!(got, [round << 8 | from as u64; 64]);
                taken.fetch_add(nth(world.size(), from), me, 1)?;
            }
            for from in 0..pes {
                taken.wait_until(from, Until::AtLeast(round))?;
            }
        }
        world.barrier()
    });
}

/// Without a signal of its own: put, fence, put of a flag.
#[test]
fn a_fence_orders_puts() {
    on(Pes::threads(2), |world| {
        let data = world.symmetric::<u64>(300)?;
        let flag = world.symmetric::<u64>(2)?;
        for round in 1..=2000 {
            if world.rank() == Rank(0) {
                data.put(Rank(1), 0, &[round; 300])?;
                data.fence()?;
                flag.put(Rank(1), 0, &[round])?;
                flag.wait_until(1, Until::AtLeast(round))?;
            } else {
                flag.wait_until(0, Until::Equals(round))?;
                let mut got = [0; 300];
                data.get(Rank(1), 0, &mut got)?;
                assert_eq!(got, [round; 300]);
                flag.put(Rank(0), 1, &[round])?;
            }
        }
        world.barrier()
    });
}

#[test]
fn each_atomic_operation_does_what_its_name_says() {
    on(Pes::threads(2), |world| {
        let words = world.symmetric::<u64>(4)?;
        let other = world.right();
        let index = world.rank().index();
        let atomic = |operation| words.atomic(other, index, operation);
        assert_eq!(atomic(Atomic::Load)?, 0);
        assert_eq!(atomic(Atomic::Swap(0b1100))?, 0);
        assert_eq!(atomic(Atomic::FetchAnd(0b0110))?, 0b1100);
        assert_eq!(atomic(Atomic::FetchOr(0b0011))?, 0b0100);
        assert_eq!(atomic(Atomic::FetchXor(0b0101))?, 0b0111);
        assert_eq!(atomic(Atomic::FetchAdd(u64::MAX))?, 0b0010);
        assert_eq!(atomic(Atomic::CompareSwap { current: 7, new: 9 })?, 1);
        assert_eq!(atomic(Atomic::CompareSwap { current: 1, new: 9 })?, 1);
        assert_eq!(words.fetch_add(other, index, 1)?, 9);
        assert_eq!(atomic(Atomic::Load)?, 10);
        world.barrier()?;
        assert_eq!(words.load(other.index())?, 10, "at the other PE, in the caller's word");
        let signed = world.symmetric::<i64>(1)?;
        assert_eq!(signed.fetch_add(other, 0, -3)?, 0);
        assert_eq!(signed.atomic(other, 0, Atomic::Load)?, -3);
        world.barrier()
    });
}

#[test]
fn atomics_from_all_pes_lose_nothing() {
    const ROUNDS: u64 = 2000;
    for pes in [2, 7] {
        on(Pes::threads(pes), |world| {
            let (me, pes) = (u64::from(world.rank().0), u64::from(world.size()));
            let words = world.symmetric::<u64>(6)?;
            let at = Rank(world.size() - 1);
            if world.rank() == at {
                words.store(2, u64::MAX)?;
            }
            world.barrier()?;
            let mut swapped = 0_u64;
            let mut won = 0;
            for round in 0..ROUNDS {
                words.fetch_add(at, 0, me + 1)?;
                words.atomic(at, 1, Atomic::FetchOr(1 << me))?;
                words.atomic(at, 2, Atomic::FetchAnd(!(1 << me)))?;
                words.atomic(at, 3, Atomic::FetchXor(1 << (round % 64)))?;
                let token = 1 + round * pes + me;
                swapped = swapped.wrapping_add(words.atomic(at, 4, Atomic::Swap(token))?);
                let seen = words.atomic(at, 5, Atomic::Load)?;
                let swap = Atomic::CompareSwap { current: seen, new: seen + 1 };
                won += u64::from(words.atomic(at, 5, swap)? == seen);
            }
            // Every token was read by one swap, but for the one that is still there.
            let swapped = world.reduce(swapped, Sum, Rank(0))?;
            let won = world.reduce(won, Sum, Rank(0))?;
            world.barrier()?;
            let mut last = [0; 6];
            words.get(at, 0, &mut last)?;
            let xor: u64 = (0..ROUNDS * pes).fold(0, |bits, n| bits ^ 1 << (n % ROUNDS % 64));
            let sum = ROUNDS * pes * (pes + 1) / 2;
            let all = (1 << pes) - 1;
            assert_eq!(last[..4], [sum, all, !all, xor]);
            if world.rank() == Rank(0) {
                assert_eq!(won, Some(last[5]));
                let tokens: u64 = (1..=ROUNDS * pes).sum();
                assert_eq!(swapped, Some(tokens - last[4]));
            }
            world.barrier()
        });
    }
}

#[test]
fn each_wait_ends_when_its_condition_holds() {
    for waiting in consort::Waiting::EVERY {
        on(Pes::threads(2).waiting(waiting), |world| {
            let word = world.symmetric::<u64>(1)?;
            let answer = world.symmetric::<u64>(1)?;
            word.store(0, 10)?;
            world.barrier()?;
            let steps = [
                (11, Until::Equals(11)),
                (5, Until::Differs(11)),
                (u64::MAX, Until::AtLeast(6)),
                (3, Until::AtMost(3)),
            ];
            for (number, (value, until)) in (1..).zip(steps) {
                if world.rank() == Rank(0) {
                    thread::sleep(Duration::from_millis(2));
                    word.atomic(Rank(1), 0, Atomic::Swap(value))?;
                    answer.wait_until(0, Until::Equals(number))?;
                } else {
                    assert_eq!(word.wait_until(0, until)?, value);
                    answer.fetch_add(Rank(0), 0, 1)?;
                }
            }
            world.barrier()
        });
    }
}

/// A sleeping PE is woken by a plain put as well.
#[test]
fn a_put_ends_a_wait() {
    let parks = Pes::threads(3).waiting(consort::Waiting::SpinYieldPark);
    on(parks, |world| {
        let word = world.symmetric::<u64>(1)?;
        if world.rank() == Rank(0) {
            thread::sleep(Duration::from_millis(50));
            for peer in [Rank(1), Rank(2)] {
                word.put(peer, 0, &[4])?;
            }
        } else {
            word.wait_until(0, Until::AtLeast(1))?;
        }
        world.barrier()
    });
}

fn exhausted<T>(result: Result<T>) -> bool {
    matches!(result, Err(Error::Memory(HeapError::Exhausted { .. })))
}

#[test]
fn memory_is_zero_and_is_used_again() {
    on(Pes::threads(3).heap_bytes(1 << 16), |world| {
        for round in 0..200 {
            let one = world.symmetric::<u64>(1000)?;
            let two = world.symmetric::<u8>(1 + round)?;
            let mut data = [1; 1000];
            one.get(world.right(), 0, &mut data)?;
            assert_eq!(data, [0; 1000], "round {round}");
            assert_eq!(two.load(round)?, 0);
            world.barrier()?;
            one.put(world.left(), 0, &[u64::MAX; 1000])?;
            two.put(world.left(), 0, &vec![255; 1 + round])?;
            world.barrier()?;
            // Dropping is local, and in any order.
            if (round + world.rank().index()) % 2 == 0 {
                drop(one);
            }
        }
        Ok(())
    });
}

#[test]
fn exhaustion_is_an_error_on_all_and_the_job_goes_on() {
    let errors = on(Pes::threads(4).heap_bytes(1 << 12), |world| {
        let held = world.symmetric::<u64>(256)?;
        let error = world.symmetric::<u64>(257).map(|_| ()).expect_err("2056 bytes");
        assert!(exhausted(world.symmetric::<u64>(usize::MAX)));
        assert!(exhausted(world.symmetric::<u64>(usize::MAX / 8)));
        let rest = world.symmetric::<u64>(256)?;
        assert!(exhausted(world.symmetric::<u8>(1)));
        rest.put(world.right(), 255, &[1])?;
        world.barrier()?;
        drop(held);
        world.barrier()?;
        let again = world.symmetric::<u64>(256)?;
        again.put(world.right(), 0, &[7])?;
        world.barrier()?;
        assert_eq!((rest.load(255)?, again.load(0)?), (1, 7));
        world.barrier()?;
        Ok(error.to_string())
    });
    for error in errors {
        for part in ["2056 bytes", "2048 of 4096", "heap_bytes(8192)"] {
            assert!(error.contains(part), "{error}");
        }
    }
}

#[test]
fn nothing_can_be_had_from_a_full_heap() {
    on(Pes::threads(2).heap_bytes(128), |world| {
        let all = world.symmetric::<u8>(128)?;
        let none = world.symmetric::<u64>(0)?;
        assert!(none.is_empty());
        let shapeless = world.symmetric::<[u8; 0]>(9)?;
        assert_eq!((shapeless.len(), shapeless.load(8)?), (9, []));
        drop(all);
        world.barrier()
    });
}

/// A PE that still holds a block keeps it from being used again.
#[test]
fn memory_is_kept_as_long_as_one_pe_holds_it() {
    on(Pes::threads(3).heap_bytes(1024), |world| {
        let keeper = world.rank() == Rank(1);
        let mut held = Some(world.symmetric::<u64>(128)?);
        if !keeper {
            held = None;
        }
        world.barrier()?;
        assert!(exhausted(world.symmetric::<u64>(1)));
        if let Some(held) = held {
            held.put(Rank(0), 0, &[5])?;
        }
        world.barrier()?;
        world.symmetric::<u64>(128).map(|_| ())
    });
}

#[test]
fn what_is_out_of_bounds_is_an_error() {
    on(Pes::threads(2), |world| {
        let me = world.rank();
        let memory = world.symmetric::<u64>(4)?;
        let flags = world.symmetric::<u64>(1)?;
        let bounds = |first, end| Error::OutOfBounds { first, end, len: 4 };
        let put = |first, len| memory.put(me, first, &vec![1; len]).err();
        assert_eq!(put(0, 5), Some(bounds(0, 5)));
        assert_eq!(put(4, 1), Some(bounds(4, 5)));
        assert_eq!(put(5, 0), Some(bounds(5, 5)));
        assert_eq!(put(usize::MAX, 2), Some(bounds(usize::MAX, usize::MAX)));
        assert_eq!(put(4, 0), None);
        assert_eq!(memory.get(me, 3, &mut [0; 2]).err(), Some(bounds(3, 5)));
        assert_eq!(memory.load(4).err(), Some(bounds(4, 5)));
        assert_eq!(memory.store(4, 1).err(), Some(bounds(4, 5)));
        assert_eq!(memory.fetch_add(me, 9, 1).err(), Some(bounds(9, 10)));
        assert_eq!(memory.wait_until(4, Until::Equals(0)).err(), Some(bounds(4, 5)));
        let out = memory.put_signal(me, 0, &[1], &flags, 1, Signal::Set(1));
        assert_eq!(out.err(), Some(Error::OutOfBounds { first: 1, end: 2, len: 1 }));
        let ranks = |symmetric: &Symmetric<'_, u64>| {
            let stranger = Rank(2);
            [
                symmetric.put(stranger, 0, &[1]).err(),
                symmetric.get(stranger, 0, &mut [1]).err(),
                symmetric.fetch_add(stranger, 0, 1).err(),
                symmetric.put_signal(stranger, 0, &[1], &flags, 0, Signal::Add(1)).err(),
            ]
        };
        let error = Error::RankOutOfRange { rank: Rank(2), pes: 2 };
        assert!(ranks(&memory).iter().all(|found| found.as_ref() == Some(&error)));
        assert!(error.to_string().contains("ranks 0 to 1"), "{error}");
        world.barrier()?;
        assert_eq!(memory.load(0)?, 0, "nothing was written");
        world.barrier()
    });
}

/// Untouched memory costs nothing: a launch with gigabytes of it is no slower than another.
#[cfg(target_os = "linux")]
#[test]
fn memory_is_had_only_as_it_is_used() {
    fn resident_pages() -> usize {
        let text = std::fs::read_to_string("/proc/self/statm").expect("Linux");
        let pages = text.split(' ').nth(1).and_then(|pages| pages.parse().ok());
        pages.expect("a number of pages")
    }
    let grown = on(Pes::threads(4).heap_bytes(512 << 20), |world| {
        let before = resident_pages();
        let memory = world.symmetric::<u64>(1000)?;
        memory.store(999, 1)?;
        world.barrier()?;
        Ok(resident_pages().saturating_sub(before))
    });
    assert!(grown[0] < 50_000, "{} pages for 8000 bytes", grown[0]);
}

#[test]
fn what_is_got_is_combined_with_what_there_is() {
    for pes in [1, 2, 5] {
        on(Pes::threads(pes), |world| {
            let memory = world.symmetric::<u64>(WORDS)?;
            let mine = contribution(u64::from(world.rank().0), world.rank(), WORDS);
            memory.put(world.rank(), 0, &mine)?;
            memory.quiet()?;
            world.barrier()?;
            let mut sum = mine[7..].to_vec();
            memory.get_combine(world.right(), 7, &mut sum, Sum)?;
            let right = world.right();
            let theirs = contribution(u64::from(right.0), right, WORDS);
            let expected = mine[7..].iter().zip(&theirs[7..]).map(|(a, b)| a.wrapping_add(*b));
            assert!(sum.into_iter().eq(expected));
            let beyond = memory.get_combine(right, WORDS, &mut [0], Sum);
            assert!(matches!(beyond, Err(Error::OutOfBounds { .. })), "{beyond:?}");
            world.barrier()
        });
    }
}

#[test]
fn a_plain_signal_follows_what_was_fenced() {
    on(Pes::threads(2), |world| {
        let (data, flags) = (world.symmetric::<u64>(WORDS)?, world.symmetric::<u64>(1)?);
        for round in 1..=20 {
            if world.rank() == Rank(0) {
                data.put(Rank(1), 0, &[round; WORDS])?;
                data.fence()?;
                flags.signal(Rank(1), 0, Signal::Add(1))?;
            } else {
                flags.wait_until(0, Until::AtLeast(round))?;
                assert_eq!([data.load(0)?, data.load(WORDS - 1)?], [round, round]);
            }
            world.barrier()?;
        }
        Ok(())
    });
}
