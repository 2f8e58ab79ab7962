//! Requests: tested, awaited, dropped, planned; completed by a helper or by freeing their team.

use std::{
    sync::{
        Arc,
        atomic::{
            AtomicUsize,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
    thread,
    time::{Duration, Instant},
};

use consort::{
    Displacements, Error, Rank, Result, Waiting,
    error::{CallError, DisplacementsError},
    ops::Sum,
    tune::{Candidate, Collective},
};
use consort_conformance::turns::{LIMIT, alone};

use super::block_on;
use crate::jobs::{on, pes_of};

/// Requests that are dropped, forgotten, or left until the end.
#[test]
#[expect(clippy::mem_forget, reason = "tests what happens after this")]
fn unawaited_requests_complete() {
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    struct Owned;
    impl Drop for Owned {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Relaxed);
        }
    }
    alone(LIMIT, || {
        DROPPED.store(0, Relaxed);
        pes_of(4).run(|pe| {
            let world = pe.world();
            for round in 0..100_u64 {
                let owned = Arc::new(Owned);
                let add = move |a: u64, b: u64| {
                    let _kept = &owned;
                    a.wrapping_add(b)
                };
                let request = world.start(vec![round; 1000]).all_reduce(add)?;
                match round % 3 {
                    0 => drop(request),
                    1 => std::mem::forget(request),
                    _ => assert_eq!(request.wait()?, vec![4 * round; 1000]),
                }
            }
            world.start(vec![1_u8; 10_000]).broadcast(Rank(3)).map(drop)
        })?;
        assert_eq!(DROPPED.load(Relaxed), 400, "every operation ends");
        Ok::<(), Error>(())
    })
    .unwrap();
}

/// An all-to-all that owns its vectors returns the same two.
#[test]
fn all_to_all_returns_its_vectors() {
    on(pes_of(3), |world| {
        let me = u64::from(world.rank().0);
        for len in [0, 1, 100, 20_000] {
            let (mut source, mut target) = (vec![0; 3 * len], vec![0; 3 * len]);
            let places = [source.as_ptr(), target.as_ptr()];
            for step in 0..20 {
                source.fill(100 * step + me);
                let exchanged = world.start_into(source, target).all_to_all()?;
                (source, target) = exchanged.wait()?;
                assert_eq!([source.as_ptr(), target.as_ptr()], places);
                source.fill(u64::MAX); // peers may have progressed no further than before
                let from = |at: usize| 100 * step + (at / len) as u64;
                assert!(target.iter().enumerate().all(|(at, &x)| x == from(at)));
            }
        }
        for lens in [[6, 7], [7, 7], [6, 3]] {
            let error = world.start_into(vec![1; lens[0]], vec![1; lens[1]]).all_to_all().err();
            assert!(
                matches!(error, Some(Error::Call(CallError::Blocks { .. }))),
                "{lens:?}: {error:?}"
            );
        }
        Ok(())
    });
}

#[test]
fn a_request_is_tested_polled_and_taken_once() {
    on(pes_of(2), |world| {
        let mut request = world.start(vec![1]).all_reduce(Sum)?;
        while !request.test()? {
            thread::yield_now();
        }
        assert!(request.test()?);
        assert_eq!(block_on(&mut request)?, [2]);
        assert!(request.test()?);
        assert_eq!(block_on(&mut request).err(), Some(Error::Call(CallError::Taken)));
        assert_eq!(request.wait().err(), Some(Error::Call(CallError::Taken)));
        // Many tasks of one thread, in an order that differs from PE to PE.
        let mut sums: Vec<_> = (0..50)
            .map(|index| world.start(vec![index; 100]).all_reduce(Sum))
            .collect::<Result<_>>()?;
        if world.rank() == Rank(1) {
            sums.reverse();
        }
        let mut total = 0;
        block_on(async {
            for sum in sums {
                total += sum.await?[99];
            }
            Ok::<(), Error>(())
        })?;
        assert_eq!(total, 49 * 50);
        Ok(())
    });
}

/// PE 1 must forward a message for which the others wait, and computes until they have it.
#[test]
fn a_helper_moves_calls_on_while_its_pe_computes() {
    static OTHERS: AtomicUsize = AtomicUsize::new(0);
    for waiting in [Waiting::SpinYield, Waiting::SpinYieldPark] {
        alone(LIMIT, move || {
            OTHERS.store(0, Relaxed);
            let chain = Candidate::new("knomial").with("radix", 2);
            let pes = pes_of(4).waiting(waiting).force(Collective::Broadcast, chain);
            pes.helper_threads().run(|pe| {
                let world = pe.world();
                let request =
                    world.start(vec![u64::from(world.rank().0); 10]).broadcast(Rank(3))?;
                // 3 is the root: its first child forwards to another PE.
                let computes = world.rank() == Rank(1);
                if computes {
                    let since = Instant::now();
                    while OTHERS.load(Acquire) < 3 {
                        assert!(since.elapsed() < LIMIT / 4, "nobody moves the call on");
                        thread::sleep(Duration::from_micros(100));
                    }
                }
                assert_eq!(request.wait()?, [3; 10]);
                OTHERS.fetch_add(1, Release);
                Ok(())
            })
        })
        .unwrap();
    }
}

#[test]
fn planned_calls_are_started_many_times() {
    on(pes_of(3), |world| {
        let sums = world.plan::<u64>(40).all_reduce(Sum)?;
        let tables = world.plan::<u64>(1000).broadcast(Rank(2))?;
        let me = u64::from(world.rank().0);
        for round in 0..100 {
            let table = tables.start(vec![me + round; 1000])?;
            let sum = sums.start(vec![round; 40])?;
            assert_eq!(sum.wait()?, [3 * round; 40]);
            assert_eq!(table.wait()?[999], 2 + round);
        }
        for given in [39, 41] {
            let error = Error::Call(CallError::PlannedLength { given, planned: 40 });
            assert_eq!(sums.start(vec![1; given]).err(), Some(error));
        }
        Ok(())
    });
}

/// Source and target come back from every start, even if one of them is ignored.
#[test]
fn planned_calls_give_their_vectors_back() {
    on(pes_of(3), |world| {
        let me = world.rank().0;
        let is_root = me == 1;
        let table = world.plan::<u32>(2).broadcast(Rank(1))?;
        let (source, target) = table.start_into(vec![me; 2], vec![9; 2])?.wait()?;
        assert_eq!((source, target), (vec![me; 2], vec![1; 2]));
        let parts = world.plan::<u32>(1).scatter(Rank(1))?;
        let given = if is_root { vec![7, 8, 9] } else { vec![me; 5] };
        let (source, target) = parts.start_into(given.clone(), vec![0])?.wait()?;
        assert_eq!((source, target), (given, vec![7 + me]));
        let whole = world.plan::<u32>(1).gather(Rank(1))?;
        let place = if is_root { vec![0; 3] } else { Vec::new() };
        let (source, target) = whole.start_into(vec![me], place)?.wait()?;
        assert_eq!((source, target), (vec![me], if is_root { vec![0, 1, 2] } else { vec![] }));
        let blocks = Displacements::at(&[1, 0, 2], &[3, 0, 0])?;
        let len = blocks.counts()[me as usize];
        let gathered = world.plan::<u32>(len).with_counts(&blocks).all_gather()?;
        for _ in 0..3 {
            assert_eq!(gathered.start(vec![me + 1; len])?.wait()?, [3, 3, 0, 1]);
        }
        let (source, target) = gathered.start_into(vec![me + 1; len], vec![9; 4])?.wait()?;
        assert_eq!((source, target), (vec![me + 1; len], vec![3, 3, 9, 1]));
        let error = Error::Call(CallError::PlannedLength { given: 5, planned: 4 });
        assert_eq!(gathered.start_into(vec![0; len], vec![0; 5]).err(), Some(error));
        Ok(())
    });
}

/// Planning a call reports everything that is wrong with it.
#[test]
fn plans_of_bad_calls_are_refused() {
    on(pes_of(2), |world| {
        let root = Rank(2);
        let error = Error::Call(CallError::RootOutOfRange { root, pes: 2 });
        assert_eq!(world.plan::<u8>(1).reduce(Sum, root).err(), Some(error.clone()));
        assert_eq!(world.plan::<u8>(1).gather(root).err(), Some(error));
        let blocks = Displacements::new(&[1, 2, 3])?;
        let number = DisplacementsError::Number { given: 3, pes: 2 };
        let refused = world.plan::<u8>(1).with_counts(&blocks).all_gather();
        assert_eq!(refused.err(), Some(Error::Call(CallError::Displacements(number))));
        let two = Displacements::new(&[1, 2])?;
        let error = Error::Call(CallError::LengthWithCounts { len: 3 });
        let refused = world.plan::<u8>(3).with_counts((&two, &two)).all_to_all();
        assert_eq!(refused.err(), Some(error));
        let refused = world.plan::<u64>(usize::MAX / 2 + 1).all_to_all();
        assert!(matches!(refused.err(), Some(Error::Call(CallError::Blocks { .. }))));
        // The number of bytes overflows.
        let len = usize::MAX / 8 + 2;
        let is_refused = |error| matches!(error, Some(Error::Call(CallError::Plan(_))));
        assert!(is_refused(world.plan::<u64>(len).broadcast(Rank(0)).err()));
        assert!(is_refused(world.plan::<u64>(len).all_reduce(Sum).err()));
        let [one, each] = [&[len, 0], &[1, 1]].map(|counts| Displacements::new(counts));
        assert!(is_refused(world.plan::<u64>(len).with_counts(&each?).gather(Rank(0)).err()));
        if world.rank() == Rank(0) {
            assert!(is_refused(world.plan::<u64>(1).with_counts(&one?).scatter(Rank(0)).err()));
        }
        Ok(())
    });
}

/// A team is freed once its calls are complete, regardless of which were waited for.
#[test]
fn freeing_a_team_completes_its_calls() {
    on(pes_of(4), |world| {
        let team = world.split(Some(world.rank().0 % 2), 0)?.expect("a colour");
        let sum = team.start(vec![1; 3000]).all_reduce(Sum)?;
        drop(team.start_barrier()?);
        team.clone().free()?;
        assert_eq!(sum.wait()?, [2; 3000]);
        assert_eq!(team.start_barrier().err(), Some(Error::Call(CallError::Freed)));
        Ok(())
    });
}
