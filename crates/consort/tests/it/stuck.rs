//! Who waits for long is not stuck: PEs that compute inside their calls while others wait in calls
//! of other teams.

use std::{
    cell::Cell,
    sync::atomic::{
        AtomicBool,
        Ordering::{Acquire, Relaxed, Release},
    },
    thread,
    time::{Duration, Instant},
};

use consort::{Candidate, Collective, Error, Pes, PlanError, Rank, Sync, Team};

use crate::{
    registry::one_each,
    turns::{LIMIT, alone, note},
};

/// As long as a PE computes: several times longer than a deadlock takes to be told.
const LONG: Duration = Duration::from_millis(400);

thread_local! {
    static APPLIED: Cell<u64> = const { Cell::new(0) };
}

/// Sums, and now and then takes as long as a thousand would, without using a core.
fn slow(every: u64, nap: Duration) -> impl Fn(u64, u64) -> u64 + std::marker::Sync + Copy {
    move |a, b| {
        let applied = APPLIED.replace(APPLIED.get() + 1);
        if applied.is_multiple_of(every) {
            thread::sleep(nap);
        }
        a.wrapping_add(b)
    }
}

/// Whoever combines slowly in a team's all-reduce is waited for in the world's barrier.
#[test]
fn a_team_that_computes_in_a_call_is_not_stuck() {
    const WORDS: usize = 3 * (96 << 10);
    alone(2 * LIMIT, || {
        for candidate in one_each(Collective::AllReduce) {
            note(format!("{candidate}"));
            let since = Instant::now();
            let outcome = Pes::threads(4).heap_bytes(1 << 20).run(|pe| {
                let world = pe.world();
                if let Some(team) = world.strided(Rank(1), 1, 3)? {
                    team.force(Collective::AllReduce, Some(candidate.clone()));
                    let (source, mut target) = (vec![1; WORDS], vec![0; WORDS]);
                    let slowly = slow(8 << 10, Duration::from_millis(15));
                    match team.all_reduce_slice(&source, &mut target, slowly) {
                        Err(Error::Plan(PlanError::Incapable { .. })) => {}
                        reduced => {
                            reduced?;
                            assert!(target.iter().all(|&sum| sum == 3));
                        }
                    }
                }
                world.barrier()
            });
            outcome.unwrap_or_else(|error| panic!("{candidate}: {error}"));
            assert!(since.elapsed() < LIMIT / 4, "{candidate}: {:?}", since.elapsed());
        }
    });
}

/// Waits outside of the library.
fn until(flag: &AtomicBool) {
    let since = Instant::now();
    while !flag.load(Acquire) {
        assert!(since.elapsed() < LIMIT / 2, "nobody raises the flag");
        thread::sleep(Duration::from_millis(1));
    }
}

fn pair(world: Team<'_>, one: u32, other: u32) -> consort::Result<Option<Team<'_>>> {
    world.of(&[Rank(one), Rank(other)])
}

/// PE 0 waits for a nonblocking call that PE 1 has to pass on, who computes inside another call. PE
/// 3 waits for PE 0, and makes the first call after that.
#[test]
fn who_waits_for_a_call_that_a_computing_pe_passes_on_is_not_stuck() {
    static WAITS: AtomicBool = AtomicBool::new(false);
    alone(LIMIT, || {
        WAITS.store(false, Relaxed);
        let chain = Candidate::new("knomial").with("radix", 1);
        Pes::threads(4).heap_bytes(1 << 20).force(Collective::Broadcast, chain).run(|pe| {
            let world = pe.world();
            let line = world.of(&[2, 1, 0, 3].map(Rank))?.expect("all are in it");
            let computes = pair(world, 1, 2)?;
            let waits = pair(world, 0, 3)?;
            let start = || line.start_broadcast(vec![u64::from(line.rank().0) + 7], Rank(0));
            let slowly = slow(1, if world.rank() == Rank(1) { LONG } else { Duration::ZERO });
            let data = match world.rank().0 {
                0 => {
                    let data = start()?.wait()?;
                    waits.expect("in it").barrier()?;
                    data
                }
                1 => {
                    let pending = start()?;
                    WAITS.store(true, Release);
                    computes.expect("in it").start_all_reduce(vec![1], slowly)?.wait()?;
                    pending.wait()?
                }
                2 => {
                    until(&WAITS);
                    // PE 1 is marked as waiting by then.
                    thread::sleep(Duration::from_millis(50));
                    let data = start()?.wait()?;
                    drop(computes.expect("in it").start_all_reduce(vec![1], slowly)?);
                    data
                }
                _ => {
                    waits.expect("in it").barrier()?;
                    start()?.wait()?
                }
            };
            assert_eq!(data, [7]);
            world.barrier()
        })
    })
    .unwrap();
}

/// PE 0 waits for credits of PE 1, who has left the call that they are for, and waits in another
/// team for one that computes. PE 3 waits for PE 0.
#[test]
fn who_waits_for_credits_of_a_pe_that_waits_is_not_stuck() {
    const QUARTER: usize = 16;
    alone(LIMIT, || {
        Pes::threads(4).heap_bytes(1 << 20).run(|pe| {
            let world = pe.world();
            let lower = pair(world, 0, 1)?;
            let middle = pair(world, 1, 2)?;
            let outer = pair(world, 0, 3)?;
            let run = |team: Team<'_>, calls: std::ops::Range<usize>| {
                for call in calls {
                    let value = team.with(Sync::LOOSE).broadcast(call, Rank(0))?;
                    assert_eq!(value, call);
                }
                Ok::<(), Error>(())
            };
            match world.rank().0 {
                0 => {
                    lower.expect("in it").barrier()?;
                    run(lower.expect("in it"), 1..5 * QUARTER)?;
                    outer.expect("in it").barrier()?;
                }
                1 => {
                    lower.expect("in it").barrier()?;
                    run(lower.expect("in it"), 1..2 * QUARTER)?;
                    middle.expect("in it").barrier()?;
                    run(lower.expect("in it"), 2 * QUARTER..5 * QUARTER)?;
                }
                2 => {
                    thread::sleep(LONG);
                    middle.expect("in it").barrier()?;
                }
                _ => outer.expect("in it").barrier()?,
            }
            world.barrier()
        })
    })
    .unwrap();
}
