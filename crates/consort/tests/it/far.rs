//! PEs that share no memory, on nodes that only exchange messages.

use std::{
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use consort::{
    Error, Job, JobBuilder, Rank,
    bindings::JobBuilderExt as _,
    error::CallError,
    ops::Sum,
    symmetric::{Signal, Until},
    sync_modes::SyncModes,
    tune::{Candidate, Collective},
};
use consort_conformance::turns::alone;
use consort_fabric::Nodes;
use consort_sandbox::seeds::seeds;

/// The time limit of a job whose PEs get the report of a failure.
const LIMIT: Duration = Duration::from_secs(10);

/// The limit when long data moves: less than the time after which a process gives up in a failed
/// job. All pulls end because their owners refuse them.
const LIMIT_OF_TRANSFERS: Duration = Duration::from_secs(5);

/// Returns four PEs on two nodes.
fn four() -> JobBuilder {
    Job::threads(4).loopback([Nodes::Blocks(2); 2], 1)
}

#[test]
fn one_sided_operations_reach_far_memory() {
    let ended = four().run(|pe| {
        let world = pe.world();
        let me = world.rank();
        let memory = world.symmetric::<u64>(100_000)?;
        let next = world.right();
        let of = |rank: Rank, index: u64| u64::from(rank.0) << 32 | index;
        let data: Vec<u64> = (0..99_000).map(|index| of(me, index)).collect();
        memory.put_signal(next, 1000, &data, &memory, 0, Signal::Set(7))?;
        memory.wait_until(0, Until::Equals(7))?;
        let mut came = vec![0; 99_000];
        memory.get(me, 1000, &mut came)?;
        let from = world.left();
        assert!(came.iter().zip(0..).all(|(&word, index)| word == of(from, index)));
        for rank in world.ranks() {
            memory.fetch_add(rank, 1, 1)?;
        }
        world.barrier()?;
        let mut counted = [0];
        memory.get(next, 1, &mut counted)?;
        assert_eq!(counted, [world.size() as u64]);
        world.barrier()
    });
    ended.expect("no PE fails");
}

#[test]
fn far_memory_has_no_address() {
    let ended = four().run(|pe| {
        let world = pe.world();
        let memory = world.symmetric::<u64>(1)?;
        for rank in world.ranks() {
            let is_near = rank.0 / 2 == world.rank().0 / 2;
            match memory.address(rank, 0) {
                Ok(at) => assert!(is_near && !at.is_null()),
                Err(Error::Call(CallError::NeedsSharedMemory(_))) => assert!(!is_near),
                Err(other) => return Err(other),
            }
        }
        world.barrier()
    });
    ended.expect("no PE fails");
}

/// A mismatch is found across nodes, and a failure ends the waits on all of them.
#[test]
fn failures_reach_far_pes() {
    let ended = alone(LIMIT, || {
        four().run(|pe| match pe.world().rank() {
            Rank(3) => pe.world().all_reduce(1_u64, Sum).map(drop),
            _ => pe.world().barrier(),
        })
    });
    assert!(matches!(ended, Err(Error::Mismatched(_))), "{ended:?}");
    let ended = alone(LIMIT, || {
        four().run(|pe| {
            assert!(pe.world().rank() != Rank(2), "on purpose");
            pe.world().barrier()
        })
    });
    assert!(matches!(ended, Err(Error::PeFailed { rank: Rank(2), .. })), "{ended:?}");
}

/// A barrier in two levels cannot be the entry and exit barrier of other calls.
#[test]
fn two_level_barrier_is_not_used_around_calls() {
    let pes = four().force(Collective::Barrier, "two_level".parse().expect("a candidate"));
    let ended = pes.run(|pe| {
        let strict = pe.world().with_sync(SyncModes::STRICT);
        strict.barrier()?;
        strict.broadcast(pe.world().rank().0, Rank(2))
    });
    assert_eq!(ended.expect("no PE fails"), [2; 4]);
}

/// These PEs have no counters, which the forced barrier needs. It is not used to free a team.
#[test]
fn freed_team_is_reported_under_forced_barrier() {
    let ended = four().force(Collective::Barrier, Candidate::new("central")).run(|pe| {
        let team = pe.world().split(Some(0), 0)?.expect("a colour");
        let refused = team.barrier();
        assert!(matches!(refused, Err(Error::Call(CallError::Plan(_)))), "{refused:?}");
        team.clone().free()?;
        assert_eq!(team.barrier().err(), Some(Error::Call(CallError::Freed)));
        assert_eq!(team.async_broadcasts(|_, _| ()).err(), Some(Error::Call(CallError::Freed)));
        Ok(())
    });
    ended.expect("no PE fails");
}

#[test]
fn calls_that_need_shared_memory_are_refused() {
    let refused = four().run(|pe| {
        let asked = pe.world().async_broadcasts(|_, _| ()).map(drop);
        assert!(matches!(asked, Err(Error::Call(CallError::NeedsSharedMemory(_)))), "{asked:?}");
        pe.world().barrier()
    });
    refused.expect("no PE fails");
}

/// A PE fails while long data moves between the memory of others: none of them keeps waiting.
#[test]
fn failures_end_transfers() {
    for seed in seeds(100, 500, &[]) {
        let ended = alone(LIMIT_OF_TRANSFERS, move || {
            let pes = Job::threads(4).loopback([Nodes::Blocks(1); 2], seed);
            pes.force(Collective::Broadcast, Candidate::new("direct")).run(|pe| {
                let world = pe.world();
                let mut data = vec![1_u64; 10_000];
                for call in 0..8 {
                    assert!((world.rank(), call) != (Rank(1), 5), "on purpose");
                    world.in_place(&mut data).broadcast(Rank(call % 4))?;
                }
                Ok(())
            })
        });
        assert!(matches!(ended, Err(Error::PeFailed { rank: Rank(1), .. })), "{ended:?}");
    }
}

/// A test of a request, and a wait with a limit, do not wait for puts to a PE that computes.
#[test]
fn tests_of_requests_wait_for_no_puts() {
    const COMPUTES: Duration = Duration::from_millis(400);
    let ended = Job::threads(2).loopback([Nodes::Blocks(1); 2], 3).run(|pe| {
        let world = pe.world();
        let memory = world.symmetric::<u64>(1)?;
        world.barrier()?;
        if world.rank() == Rank(1) {
            thread::sleep(COMPUTES);
            return world.start(vec![1]).all_reduce(Sum)?.wait();
        }
        let mut request = world.start(vec![2]).all_reduce(Sum)?;
        memory.put(Rank(1), 0, &[1])?;
        let begun = Instant::now();
        assert!(!request.test()?);
        let request = request.wait_timeout(Duration::from_millis(1))?.expect_err("PE 1 computes");
        assert!(begun.elapsed() < COMPUTES / 2, "{:?}", begun.elapsed());
        request.wait()
    });
    assert_eq!(ended.expect("no PE fails"), [[3]; 2]);
}

/// An operation after a long put finds it complete, even if its message is faster.
#[test]
fn signals_after_a_put_arrive_after_it() {
    for seed in seeds(10, 100, &[]) {
        let ended = Job::threads(2).loopback([Nodes::Blocks(1); 2], seed).run(|pe| {
            let world = pe.world();
            let memory = world.symmetric::<u64>(20_000)?;
            for round in 1..=5 {
                if world.rank() == Rank(0) {
                    memory.put_signal(
                        Rank(1),
                        1,
                        &vec![round; 19_000],
                        &memory,
                        0,
                        Signal::Set(round),
                    )?;
                } else {
                    memory.wait_until(0, Until::Equals(round))?;
                    let mut came = vec![0; 19_000];
                    memory.get(Rank(1), 1, &mut came)?;
                    assert!(came.iter().all(|&word| word == round), "round {round}");
                }
                world.barrier()?;
            }
            Ok(())
        });
        ended.expect("no PE fails");
    }
}

/// Data that a far PE has not sent because the job has failed is not used.
#[test]
fn unsent_data_is_not_delivered() {
    const STORED: u64 = 77;
    for (seed, words) in seeds(60, 500, &[]).flat_map(|seed| [(seed, 100), (seed, 10_000)]) {
        let pes = Job::threads(4).loopback([Nodes::Blocks(2); 2], seed);
        let wrong = AtomicU32::new(0);
        let check = |data: &[u64], stored| {
            wrong.fetch_add(u32::from(data.iter().any(|&word| word != stored)), Relaxed);
        };
        let ended = pes.force(Collective::Broadcast, Candidate::new("direct")).run(|pe| {
            let world = pe.world();
            let me = world.rank().0;
            let memory = world.symmetric::<u64>(words)?;
            memory.put(world.rank(), 0, &vec![STORED; words])?;
            let mut data = vec![0; words];
            for call in 1..20 {
                assert!((me, call) != (1, 5 + seed % 4), "on purpose");
                let root = u32::try_from(call % 4).expect("a rank");
                data.fill(if me == root { call } else { 0 });
                world.in_place(&mut data).broadcast(Rank(root))?;
                check(&data, call);
            }
            if seed % 2 == 1 {
                return Ok(());
            }
            loop {
                memory.get(Rank((me + 2) % 4), 0, &mut data)?;
                check(&data, STORED);
                check(&[memory.fetch_add(Rank((me + 2) % 4), 0, 0)?], STORED);
            }
        });
        assert_eq!(wrong.into_inner(), 0, "seed {seed}, {words} words");
        assert!(matches!(ended, Err(Error::PeFailed { rank: Rank(1), .. })), "{ended:?}");
    }
}
