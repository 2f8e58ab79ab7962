//! Calls on borrowed slices, which are complete when their scope ends.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::Instant,
};

use consort::{
    Error, Rank, Result, Team, error::CallError, ops::Sum, sync_modes::SyncModes, tune::Collective,
};
use consort_conformance::turns::{LIMIT, alone};

use crate::jobs::{SOON, on, pes_of};

#[test]
fn borrowed_slices_are_filled_when_the_scope_ends() {
    on(pes_of(3), |world| {
        let me = u64::from(world.rank().0);
        for len in [0, 1, 100, 20_000] {
            let (mut one, mut two, source) = (vec![me; len], vec![me; len], vec![me; len]);
            let (mut sum, mut sums, mut all) = (vec![9; len], vec![0; len], vec![0; 3 * len]);
            let scale = 2;
            let scaled = |a: u64, b: u64| a + b * scale / scale; // also borrows
            let here = world.overlap(|scope| {
                scope.start_in_place(&mut one).broadcast(Rank(1))?.wait()?;
                scope.start_in_place(&mut two).broadcast(Rank(2))?;
                scope.start_into(&source, &mut sum).reduce(scaled, Rank(1))?;
                scope.start_into(&source, &mut sums).all_reduce(scaled)?;
                let gather = Collective::AllGather;
                scope.start_into(&source, &mut all).any(gather, Sum, Rank(0))?;
                world.all_reduce(1, Sum)
            })?;
            assert_eq!(here, 3);
            assert!(one.iter().all(|&x| x == 1) && two.iter().all(|&x| x == 2));
            assert!(sum.iter().all(|&x| x == if me == 1 { 3 } else { 9 }));
            assert!(sums.iter().all(|&x| x == 3));
            assert!(all.iter().enumerate().all(|(at, &x)| x == (at / len) as u64));
        }
        let (source, mut target) = ([1; 5], [1; 6]);
        let loose = world.with_sync(SyncModes::LOOSE);
        let error =
            loose.overlap(|scope| scope.start_in_place(&mut target).broadcast(Rank(0)).map(drop));
        assert!(matches!(error, Err(Error::Call(CallError::BorrowedSlice(_)))));
        let error =
            world.overlap(|scope| scope.start_into(&source, &mut target).all_to_all().map(drop));
        assert!(
            matches!(error, Err(Error::Call(CallError::Blocks { contributed: 3, .. }))),
            "{error:?}"
        );
        Ok(())
    });
}

/// Buffers that a request returns are changed immediately, even if others' calls are pending.
#[test]
fn buffers_are_returned_within_the_scope() {
    let program = |world: &Team| {
        let me = u64::from(world.rank().0);
        for len in [0, 1, 100, 20_000] {
            let (mut table, mut source, mut target) =
                (vec![0; len], vec![0; 3 * len], vec![0; 3 * len]);
            world.overlap(|scope| {
                let (mut table, mut source, mut target) =
                    (&mut table[..], &mut source[..], &mut target[..]);
                for step in 0..30 {
                    let value = |from: u64, to: u64| 100 * step + 10 * from + to;
                    let root = step % 3;
                    table.fill(value(me, me));
                    source.iter_mut().zip(0..).for_each(|(x, at)| *x = value(me, at / len as u64));
                    let sent = scope.start_in_place(table).broadcast(Rank(root as u32))?;
                    let exchanged = scope.start_into(source, target).all_to_all()?;
                    (source, target) = exchanged.wait()?;
                    source.fill(u64::MAX); // peers may have progressed no further than before
                    let blocks = target.iter().zip(0..);
                    assert!(blocks.into_iter().all(|(&x, at)| x == value(at / len as u64, me)));
                    target.fill(u64::MAX);
                    table = sent.wait()?;
                    assert_eq!((table.len(), source.len(), target.len()), (len, 3 * len, 3 * len));
                    assert!(table.iter().all(|&x| x == value(root, root)));
                }
                Ok(())
            })?;
        }
        Ok(())
    };
    on(pes_of(3), program);
    on(pes_of(3).helper_threads(), program);
}

/// A borrow whose request is lost stays with the call, which ends nevertheless.
#[test]
#[expect(clippy::mem_forget, reason = "tests what happens after this")]
fn lost_requests_leave_borrows_to_the_scope() {
    on(pes_of(3), |world| {
        let me = world.rank().0;
        for len in [1, 5000] {
            let (mut source, mut forgotten) = (vec![me; 3 * len], vec![9; 3 * len]);
            let (mut other, mut dropped) = (vec![me; len], vec![9; len]);
            world.overlap(|scope| {
                std::mem::forget(scope.start_into(&mut source, &mut forgotten).all_to_all()?);
                drop(scope.start_into(&mut other, &mut dropped).all_reduce(Sum)?);
                Ok(())
            })?;
            source.fill(7);
            other.fill(7);
            assert!(forgotten.iter().enumerate().all(|(at, &x)| x as usize == at / len));
            assert_eq!(dropped, vec![3; len]);
        }
        Ok(())
    });
}

/// A scope whose closure fails waits for its calls; one that panics does not wait for peers.
#[test]
fn failing_scope_ends_its_calls() {
    let error = alone(LIMIT, || {
        pes_of(3).run(|pe| {
            let world = pe.world();
            let mut data = vec![world.rank().0; 5000];
            let own = Error::Wisdom("nothing is known".to_owned());
            let result: Result<()> = world.overlap(|scope| {
                scope.start_in_place(&mut data).broadcast(Rank(1))?;
                Err(own.clone())
            });
            assert_eq!(result.err(), Some(own));
            assert_eq!(data, [1; 5000]);
            world.barrier()?;
            let since = Instant::now();
            let result = catch_unwind(AssertUnwindSafe(|| {
                world.overlap(|scope| {
                    let request = scope.start_in_place(&mut data).broadcast(Rank(1))?;
                    assert!(world.rank() != Rank(2), "as planned");
                    // The scope of 2 ends this job, regardless of which PEs have its data by then.
                    request.wait().and_then(|_| world.barrier())
                })
            }));
            data.fill(7); // nobody accesses it any more
            assert!(since.elapsed() < SOON, "{:?}", since.elapsed());
            match (world.rank(), result) {
                (Rank(2), Err(panic)) => std::panic::resume_unwind(panic),
                (_, Ok(Err(error))) => Err::<(), _>(error),
                (_, other) => panic!("{other:?}"),
            }
        })
    });
    let error = error.expect_err("PE 2 panics");
    assert!(error.to_string().contains("PE 2 failed: it panicked: as planned"), "{error}");
}
