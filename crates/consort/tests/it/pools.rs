//! Regions of a pool, inputs, and errors of the program's own.

use std::{
    fs, io,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    thread,
    time::Duration,
};

use consort::{Candidate, Collective, Error, Pes, Pool, Rank, Sum, SyncModes};

fn pool(pes: u32) -> Pool {
    Pes::threads(pes).heap_bytes(1 << 16).pool().expect("a pool")
}

#[test]
fn regions_follow_each_other_and_borrow() {
    for pes in [1, 2, 5] {
        let pool = pool(pes);
        let count = AtomicU64::new(0);
        for round in 1..300_u64 {
            let sums = pool.run(|pe| {
                count.fetch_add(1, Relaxed);
                let world = pe.world();
                if round % 50 == 0 {
                    let table = world.symmetric::<u64>(10)?;
                    let half = world.split(Some(world.rank().0 % 2), 0)?.expect("a team");
                    half.barrier()?;
                    table.store(0, round)?;
                    drop(world.start_all_reduce(vec![round], Sum)?);
                }
                world.all_reduce(round, Sum)
            });
            let sums = sums.expect("a region");
            let expected: Vec<_> = (0..pes).map(|pe| (Rank(pe), round * u64::from(pes))).collect();
            assert_eq!(sums, expected);
        }
        assert_eq!(count.into_inner(), 299 * u64::from(pes));
    }
}

#[test]
fn after_a_failed_region_the_next_one_works() {
    let pool = pool(3);
    let last = |pe: &consort::Pe| pe.world().rank() == Rank(2);
    for _ in 0..5 {
        let panics = pool.run(|pe| {
            assert!(!last(pe), "on purpose");
            pe.world().barrier()
        });
        assert!(matches!(panics, Err(Error::PeFailed { rank: Rank(2), .. })), "{panics:?}");
        let fails = pool.run(|pe| if last(pe) { Err(Error::Taken) } else { pe.world().barrier() });
        assert_eq!(fails, Err(Error::Taken));
        let leaves = pool.run(|pe| if last(pe) { Ok(()) } else { pe.world().barrier() });
        assert!(matches!(leaves, Err(Error::Mismatched(_))), "{leaves:?}");
        // Nobody waits for PE 2, and so nobody but the caller notices.
        let skips = pool.run(|pe| {
            let loose = pe.world().with(SyncModes::LOOSE);
            let tree = Candidate::new("knomial").with("radix", 2);
            loose.force(Collective::Broadcast, Some(tree)); // the root waits for nobody
            if last(pe) { Ok(0) } else { loose.broadcast(1, pe.world().rank().min(Rank(0))) }
        });
        assert!(matches!(skips, Err(Error::Mismatched(_))), "{skips:?}");
        assert_eq!(pool.run(|pe| pe.world().all_reduce(1, Sum)).map(|all| all[0].1), Ok(3));
    }
}

#[test]
fn a_region_inside_a_region_is_an_error() {
    let (pool, other) = (pool(2), pool(2));
    let nested = pool.run(|_| pool.run(|_| Ok(())));
    assert_eq!(nested, Err(Error::Nested));
    let inner = AtomicU64::new(0);
    let both = pool.run(|pe| {
        if pe.world().rank() == Rank(1) {
            other.run(|_| Ok(inner.fetch_add(1, Relaxed)))?;
        }
        pe.world().barrier()
    });
    assert!(both.is_ok());
    assert_eq!(inner.into_inner(), 2);
}

#[test]
fn a_pool_serves_one_thread_after_the_other() {
    let pool = pool(2);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..100 {
                    assert_eq!(
                        pool.run(|pe| pe.world().all_reduce(1, Sum)).map(|all| all[1].1),
                        Ok(2)
                    );
                }
            });
        }
    });
}

#[test]
fn inputs_go_to_pes_by_rank() {
    let mut data = [0_u32; 12];
    let sums = Pes::threads(3).run_with(data.chunks_mut(4), |pe, part| {
        part.fill(pe.world().rank().0);
        Ok(part.len())
    });
    assert_eq!(sums, Ok((0..3).map(|pe| (Rank(pe), 4)).collect()));
    assert_eq!(data[..5], [0, 0, 0, 0, 1]);
    let texts = [String::from("a"), String::from("b")];
    let back = pool(2).run_with(texts, |_, text| Ok(text + "!"));
    assert_eq!(back, Ok(vec![(Rank(0), "a!".to_owned()), (Rank(1), "b!".to_owned())]));
    let run = |given: usize| Pes::threads(3).run_with(vec![(); given], |_, ()| Ok(()));
    assert_eq!(run(2), Err(Error::Inputs { given: 2, pes: 3 }));
    assert_eq!(run(4), Err(Error::Inputs { given: 4, pes: 3 }));
    let endless = pool(3).run_with(std::iter::repeat(()), |_, ()| Ok(()));
    assert_eq!(endless, Err(Error::Inputs { given: 4, pes: 3 }));
}

#[test]
fn a_programs_own_error_comes_back_as_it_was() {
    let missing = |pe: &consort::Pe| {
        if pe.world().rank() == Rank(1) {
            fs::read("there is no such file")?;
        }
        Ok::<_, io::Error>(pe.world().barrier()?)
    };
    let error = Pes::threads(2).try_run(missing).expect_err("there is no such file");
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    let error = pool(2).try_run(missing).expect_err("there is no such file");
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    let error = pool(2).try_run(|_| -> Result<(), io::Error> { panic!("on purpose") });
    assert!(error.expect_err("it panics").to_string().contains("on purpose"));
}

#[test]
fn a_wait_that_lasts_for_too_long_names_who_is_late() {
    let ended = Pes::threads(3).run(|pe| {
        if pe.world().rank() == Rank(1) {
            thread::sleep(Duration::from_millis(300));
        }
        pe.within(Duration::from_millis(50), || pe.world().barrier())
    });
    let error = ended.expect_err("PE 1 is late");
    assert!(matches!(error, Error::TimedOut(_)), "{error:?}");
    assert!(error.to_string().contains("which PE 1 has not begun"), "{error}");
    // The limit ends with the closure.
    let ended = Pes::threads(2).run(|pe| {
        pe.within(Duration::from_millis(20), || pe.world().barrier())?;
        if pe.world().rank() == Rank(1) {
            thread::sleep(Duration::from_millis(100));
        }
        pe.world().barrier()
    });
    assert_eq!(ended.map(|_| ()), Ok(()));
}

#[test]
fn a_request_is_waited_for_in_parts() {
    let waits = Pes::threads(2).run(|pe| {
        let world = pe.world();
        if world.rank() == Rank(1) {
            thread::sleep(Duration::from_millis(100));
        }
        let mut request = world.start_all_reduce(vec![1], Sum)?;
        for waits in 0.. {
            match request.wait_timeout(Duration::from_millis(10))? {
                Ok(sum) => {
                    assert_eq!(sum, [2]);
                    return Ok(waits);
                }
                Err(later) => request = later,
            }
        }
        unreachable!("it ends")
    });
    assert!(waits.expect("no failure")[0].1 > 2);
}
