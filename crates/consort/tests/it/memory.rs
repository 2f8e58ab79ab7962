//! The memory that a job takes, and the memory that it returns.

use std::{
    fs,
    time::{Duration, Instant},
};

use consort::{
    Job, JobBuilder, Rank, Result, Symmetric, Team,
    bindings::{JobBuilderExt as _, Origin},
    ops::Sum,
};
use consort_conformance::turns::{LIMIT, alone};
use consort_sandbox::seeds::Tier;

use crate::jobs::SOON;

const MB: usize = 1 << 20;

/// Returns the resident bytes of this process; `None` if the system does not report them.
fn resident() -> Option<usize> {
    let statm = fs::read_to_string("/proc/self/statm").ok()?;
    Some(statm.split_whitespace().nth(1)?.parse::<usize>().ok()? * 4096)
}

/// Returns the growth of the resident bytes since `before`.
fn more_than(before: Option<usize>) -> usize {
    resident().unwrap_or(0).saturating_sub(before.unwrap_or(0))
}

/// Returns the memory that a launch of `pes` PEs takes, and the time before PE 0 runs.
fn launch(pes: usize) -> (usize, Duration) {
    alone(LIMIT, move || {
        let (before, begun) = (resident(), Instant::now());
        let all = Job::threads(pes)
            .without_wisdom()
            .run(|pe| {
                let after = begun.elapsed();
                pe.world().barrier()?;
                let bytes = if pe.world().rank() == Rank(0) { more_than(before) } else { 0 };
                pe.world().barrier()?;
                Ok((bytes, after))
            })
            .expect("nothing fails");
        all[0]
    })
}

#[test]
fn a_launch_touches_little() {
    let (bytes, _) = launch(64);
    assert!(bytes < 32 * MB, "64 PEs take {} MB", bytes / MB);
    let (bytes, after) = launch(1000);
    assert!(bytes < 150 * MB, "1000 PEs take {} MB", bytes / MB);
    assert!(after < SOON, "PE 0 begins after {after:?}");
}

#[test]
fn a_split_touches_little_and_is_quick() {
    let (best, bytes) = alone(LIMIT, || {
        let all = Job::threads(64)
            .without_wisdom()
            .run(|pe| {
                let world = pe.world();
                world.barrier()?;
                let before = resident();
                let mut best = Duration::MAX;
                for key in 0..10 {
                    world.barrier()?;
                    let begun = Instant::now();
                    world.split(Some(world.rank().0 % 3), key)?;
                    best = best.min(begun.elapsed());
                }
                world.barrier()?;
                Ok((best, more_than(before)))
            })
            .expect("nothing fails");
        all[0]
    });
    assert!(best < Duration::from_secs(1), "a split of 64 PEs takes {best:?}");
    assert!(bytes < 32 * MB, "ten splits of 64 PEs take {} MB", bytes / MB);
}

fn keeps_its_size(rounds: usize, round: impl Fn(&Team, usize) -> Result<()> + Sync) {
    keeps_its_size_on(Job::threads(3), rounds, round);
}

/// Checks that memory grows by less than 2 MB over all rounds but the first.
fn keeps_its_size_on(
    pes: JobBuilder,
    rounds: usize,
    round: impl Fn(&Team, usize) -> Result<()> + Sync,
) {
    let all = pes
        .without_wisdom()
        .run(|pe| {
            let world = pe.world();
            let mut before = None;
            for number in 0..rounds {
                if number == rounds / 8 {
                    world.barrier()?;
                    before = resident();
                    world.barrier()?;
                }
                round(world, number)?;
            }
            world.barrier()?;
            Ok(more_than(before))
        })
        .expect("nothing fails");
    let bytes = all[0];
    assert!(bytes < 2 * MB, "{bytes} bytes more after {rounds} rounds");
}

#[test]
fn freed_teams_leak_nothing() {
    alone(LIMIT, || {
        keeps_its_size(Tier::now().of(2000, 4000), |world, number| {
            let me = world.rank().0;
            let team = world.split(Some(me % 2), 0)?.expect("all give a colour");
            let sum = team.all_reduce(u64::from(me), Sum)?;
            assert_eq!(sum, [2, 1][(me % 2) as usize]);
            if number % 8 == 0 {
                let memory = team.symmetric::<u64>(100 + number % 50)?;
                memory.store(0, sum)?;
                team.start(vec![number; 10]).broadcast(Rank(0))?.wait()?;
                team.split(None, 0)?;
            }
            team.free()
        });
    });
}

#[test]
fn calls_of_new_lengths_leak_nothing() {
    alone(LIMIT, || {
        keeps_its_size(4000, |world, number| {
            let mut data = vec![0_u16; number];
            world.in_place(&mut data).broadcast(Rank(0))?;
            drop(world.symmetric::<u8>(number)?);
            Ok(())
        });
    });
}

/// A team reuses a freed team's memory, and does not mistake the old messages for its own.
#[test]
fn new_team_sees_no_stale_messages() {
    alone(LIMIT, || {
        Job::threads(4)
            .without_wisdom()
            .run(|pe| {
                let world = pe.world();
                let me = world.rank().0;
                let mut stale = Vec::new();
                for round in 0..200_u32 {
                    let color = (me + round) % 2;
                    let team = world.split(Some(color), -i64::from(me))?.expect("a colour");
                    for value in 0..round % 7 {
                        assert_eq!(team.all_reduce(value, Sum)?, 2 * value);
                        assert_eq!(team.broadcast([me; 100], Rank(0))?[99] % 2, me % 2);
                    }
                    team.clone().free()?;
                    stale.push(team);
                    let freed = |result: Result<u32>| result.is_err();
                    assert!(stale.iter().all(|team| freed(team.all_reduce(1, Sum))));
                    assert!(stale.iter().all(|team| team.barrier().is_err()));
                }
                Ok(())
            })
            .expect("nothing fails");
    });
}

#[test]
fn memory_is_reused_after_all_pes_dropped_it() {
    alone(LIMIT, || {
        for _ in 0..50 {
            Job::threads(3)
                .without_wisdom()
                .heap_bytes(MB)
                .run(|pe| {
                    for round in 0..20 {
                        let memory: Symmetric<u8> = pe.world().symmetric(600 << 10)?;
                        assert_eq!(memory.load(round)?, 0, "it is clear again");
                        memory.store(round, 1)?;
                        pe.world().barrier()?;
                    }
                    Ok(())
                })
                .expect("there is room for one at a time");
        }
    });
}

/// Forgotten memory stays allocated, without other effects.
#[test]
fn forgotten_memory_stays_allocated() {
    alone(LIMIT, || {
        let job = Job::threads(2).without_wisdom().heap_bytes(MB).run(|pe| {
            let world = pe.world();
            let forgotten = world.symmetric::<u8>(MB - 1024)?;
            if world.rank() == Rank(0) {
                #[expect(clippy::mem_forget, reason = "a program may forget it")]
                std::mem::forget(forgotten);
            }
            assert!(world.symmetric::<u8>(2048).is_err());
            drop(world.symmetric::<u8>(1024)?);
            Ok(())
        });
        job.expect("nothing fails");
    });
}

/// Counts the address ranges of this process in memory files, which another process could share.
fn shared_mappings() -> usize {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    maps.lines().filter(|line| line.contains("rw-s") && line.contains("/memfd:consort")).count()
}

#[test]
fn memory_comes_from_the_given_origin() {
    alone(LIMIT, || {
        for origin in Origin::EVERY {
            let job = Job::threads(2).without_wisdom().memory(origin).run(|pe| {
                let memory = pe.world().symmetric::<u64>(10)?;
                memory.put(Rank(0), 5, &[7])?;
                pe.world().barrier()?;
                assert_eq!(pe.world().all_reduce(memory.load(5)?, Sum)? % 7, 0);
                Ok(shared_mappings())
            });
            let found = job.expect("nothing fails");
            // Jobs of other tests may also have some.
            let is_shared = cfg!(target_os = "linux") && origin == Origin::Shared;
            assert!(!is_shared || found.iter().all(|&count| count > 0));
        }
    });
}

mod night {
    use super::*;

    /// As many kinds of calls as are refined at a time, thirty times over.
    #[test]
    fn refined_calls_leak_nothing() {
        alone(LIMIT, || {
            let pes = Job::threads(3).online(0.5);
            keeps_its_size_on(pes, 7680, |world, number| {
                for round in 0..3 {
                    let mut data = vec![round; number];
                    // The plans of all-reduces, which are composed, take most of the time.
                    if number.is_multiple_of(2) {
                        world.in_place(&mut data).all_reduce(Sum)?;
                    } else {
                        world.in_place(&mut data).broadcast(Rank(0))?;
                    }
                }
                Ok(())
            });
        });
    }
}
