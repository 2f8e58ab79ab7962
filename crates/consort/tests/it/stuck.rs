//! Long waits are not reported as deadlocks: PEs compute inside their calls while others wait in
//! calls of other teams.

use std::{
    sync::atomic::{
        AtomicBool, AtomicU64,
        Ordering::{Acquire, Relaxed, Release},
    },
    thread,
    time::{Duration, Instant},
};

use consort::{
    Error, Rank, Team,
    error::{CallError, PlanError},
    symmetric::Until,
    sync_modes::SyncModes,
    tune::{Candidate, Collective},
};
use consort_conformance::{
    registry::one_each,
    turns::{LIMIT, alone, note},
};

use crate::jobs::{on, pes_of};

/// The time for which a PE computes: several times longer than the detection of a deadlock takes.
const LONG: Duration = Duration::from_millis(400);

/// Returns an operator that adds, and sleeps once, after `at` calls: that takes long, but no core.
fn slow(at: u64, nap: Duration) -> impl Fn(u64, u64) -> u64 + Sync {
    let applied = AtomicU64::new(0);
    move |a, b| {
        if applied.fetch_add(1, Relaxed) == at {
            thread::sleep(nap);
        }
        a.wrapping_add(b)
    }
}

/// A PE that combines slowly in a team's all-reduce, and moves much data, is waited for in the
/// world's barrier. The PEs compute for different times between their waits.
fn computes_in_a_call(candidate: &Candidate, rounds: u32) {
    const WORDS: usize = 3 << 21;
    for round in 0..rounds {
        note(format!("{candidate}, round {round}"));
        let outcome = pes_of(4).run(|pe| {
            let world = pe.world();
            if let Some(team) = world.strided(Rank(1), 1, 3)? {
                team.algorithms().force(Collective::AllReduce, Some(candidate.clone()));
                let (source, mut target) = (vec![1_u64; WORDS], vec![0; WORDS]);
                if team.rank() == Rank(round % 3) {
                    thread::sleep(LONG / 8);
                }
                let nap = LONG / 8 * (1 + (team.rank().0 + round) % 3);
                match team.slices(&source, &mut target).all_reduce(slow(1, nap)) {
                    Err(Error::Call(CallError::Plan(PlanError::Incapable { .. }))) => {}
                    reduced => {
                        reduced?;
                        assert!(target.iter().all(|&sum| sum == 3));
                    }
                }
            }
            world.barrier()
        });
        outcome.unwrap_or_else(|error| panic!("{candidate}: round {round}: {error}"));
    }
}

#[test]
fn a_team_that_computes_in_a_call_is_not_stuck() {
    alone(2 * LIMIT, || {
        for candidate in one_each(Collective::AllReduce) {
            computes_in_a_call(&candidate, 1);
        }
        let direct = Candidate::new("direct");
        let parts = [direct.clone().with("block_bytes", 1 << 20), direct];
        let name = Candidate::new("reduce_scatter_all_gather");
        computes_in_a_call(&parts.into_iter().fold(name, Candidate::of), 6);
    });
}

/// Waits outside the library.
fn until(flag: &AtomicBool) {
    let since = Instant::now();
    while !flag.load(Acquire) {
        assert!(since.elapsed() < LIMIT / 2, "nobody raises the flag");
        thread::sleep(Duration::from_millis(1));
    }
}

fn pair(world: &Team, one: u32, other: u32) -> consort::Result<Option<Team>> {
    world.subset(&[Rank(one), Rank(other)])
}

/// PE 0 waits for a nonblocking call that PE 1 must forward. PE 1 computes inside another call,
/// with PE 2 and PE 4, which has not arrived yet. PE 3 waits for PE 0, and makes the first call
/// after that.
#[test]
fn waiter_on_a_computing_forwarder_is_not_stuck() {
    static WAITS: AtomicBool = AtomicBool::new(false);
    const SHORT: Duration = Duration::from_millis(50);
    alone(LIMIT, || {
        WAITS.store(false, Relaxed);
        let chain = Candidate::new("knomial").with("radix", 1);
        let pes = pes_of(5).force(Collective::Broadcast, chain);
        pes.force(Collective::Reduce, Candidate::new("flat")).run(|pe| {
            let world = pe.world();
            let line = world.subset(&[2, 1, 0, 3].map(Rank))?;
            let three = world.subset(&[1, 2, 4].map(Rank))?;
            let pair = pair(world, 0, 3)?;
            let start = || {
                let line = line.expect("in it");
                line.start(vec![u64::from(line.rank().0) + 7]).broadcast(Rank(0))
            };
            let reduce = || three.expect("in it").reduce(1, slow(0, LONG), Rank(0));
            match world.rank().0 {
                0 => {
                    assert_eq!(start()?.wait()?, [7]);
                    pair.as_ref().expect("in it").barrier()?;
                }
                1 => {
                    let request = start()?;
                    WAITS.store(true, Release);
                    assert_eq!(reduce()?, Some(3));
                    assert_eq!(request.wait()?, [7]);
                }
                2 => {
                    until(&WAITS);
                    // PE 1 is known to wait by then. It starts to compute once it has this message,
                    // and has not seen it yet.
                    thread::sleep(SHORT);
                    reduce()?;
                    thread::sleep(SHORT);
                    assert_eq!(start()?.wait()?, [7]);
                }
                3 => {
                    pair.as_ref().expect("in it").barrier()?;
                    assert_eq!(start()?.wait()?, [7]);
                }
                _ => {
                    thread::sleep(2 * LONG);
                    reduce()?;
                }
            }
            world.barrier()
        })
    })
    .unwrap();
}

/// PE 0 waits for credits of PE 1, which has left the call of these credits, and waits in another
/// team for a PE that computes. PE 3 waits for PE 0.
#[test]
fn waiter_on_credits_of_a_waiter_is_not_stuck() {
    const QUARTER: usize = 16;
    on(pes_of(4), |world| {
        let lower = pair(world, 0, 1)?;
        let middle = pair(world, 1, 2)?;
        let outer = pair(world, 0, 3)?;
        let run = |team: &Team, calls: std::ops::Range<usize>| {
            for call in calls {
                let value = team.with_sync(SyncModes::LOOSE).broadcast(call, Rank(0))?;
                assert_eq!(value, call);
            }
            Ok::<(), Error>(())
        };
        match world.rank().0 {
            0 => {
                lower.as_ref().expect("in it").barrier()?;
                run(lower.as_ref().expect("in it"), 1..5 * QUARTER)?;
                outer.as_ref().expect("in it").barrier()?;
            }
            1 => {
                lower.as_ref().expect("in it").barrier()?;
                run(lower.as_ref().expect("in it"), 1..2 * QUARTER)?;
                middle.as_ref().expect("in it").barrier()?;
                run(lower.as_ref().expect("in it"), 2 * QUARTER..5 * QUARTER)?;
            }
            2 => {
                thread::sleep(LONG);
                middle.as_ref().expect("in it").barrier()?;
            }
            _ => outer.as_ref().expect("in it").barrier()?,
        }
        world.barrier()
    });
}

/// The same in a large team, whose credits are sent in steps: PE 0 waits for those of PE 69, which
/// waits in another team for a PE that computes.
#[test]
fn waiter_on_credits_in_steps_is_not_stuck() {
    const CALLS: usize = 40;
    on(pes_of(70), |world| {
        let (first, last) = (Rank(0), Rank(69));
        let ends = pair(world, 68, 69)?;
        let run = |calls: std::ops::Range<usize>| {
            for call in calls {
                assert_eq!(world.with_sync(SyncModes::LOOSE).broadcast(call, first)?, call);
            }
            Ok::<(), Error>(())
        };
        if world.rank() == last {
            run(0..7)?;
            ends.expect("in it").barrier()?;
            run(7..CALLS)?;
        } else if world.rank() == Rank(68) {
            run(0..6)?;
            thread::sleep(LONG);
            ends.expect("in it").barrier()?;
            run(6..CALLS)?;
        } else {
            run(0..CALLS)?;
        }
        world.barrier()
    });
}

/// PE 0 waits at the end of a scope for the second of two calls. PE 1, the peer in both, waits in
/// another team for a PE that computes, and makes the second call after that.
#[test]
fn pe_that_waits_for_the_later_call_of_a_scope_is_not_stuck() {
    on(pes_of(3), |world| {
        let [lower, upper] = [pair(world, 0, 1)?, pair(world, 1, 2)?];
        let (mut one, mut other) = ([world.rank().0; 9], [world.rank().0; 9]);
        let from = Rank(1);
        match world.rank().0 {
            0 => lower.as_ref().expect("in it").overlap(|scope| {
                scope.start_in_place(&mut one).broadcast(from)?;
                scope.start_in_place(&mut other).broadcast(from).map(drop)
            })?,
            1 => {
                let lower = lower.as_ref().expect("in it");
                thread::sleep(LONG / 8); // by then, PE 0 waits for the first call
                lower.overlap(|scope| scope.start_in_place(&mut one).broadcast(from).map(drop))?;
                upper.expect("in it").barrier()?;
                lower
                    .overlap(|scope| scope.start_in_place(&mut other).broadcast(from).map(drop))?;
            }
            _ => {
                thread::sleep(LONG);
                upper.expect("in it").barrier()?;
            }
        }
        world.barrier()
    });
}

/// Returns the error of a program in which a PE waits for a word that no PE can change any more.
fn waits_in_vain(pes: usize, program: impl Fn(&Team) -> consort::Result<()> + Sync) -> String {
    let error = pes_of(pes).run(|pe| program(pe.world())).expect_err("somebody waits in vain");
    assert!(matches!(error, Error::Mismatched(_)), "{error:?}");
    error.to_string()
}

#[test]
fn word_that_no_pe_can_change_is_reported() {
    // The others wait in a call or for their own words, or have finished.
    let text = waits_in_vain(3, |world| {
        let word = world.symmetric::<u64>(1)?;
        if world.rank() == Rank(1) {
            word.wait_until(0, Until::Equals(1))?;
        }
        world.barrier()
    });
    assert!(text.contains("PE 1 waits for a word") && text.contains("barrier"), "{text}");
    let text = waits_in_vain(3, |world| {
        let word = world.completion_counter()?;
        if world.rank() == Rank(2) { Ok(()) } else { word.wait(1).map(drop) }
    });
    assert!(text.contains("no PE is left to change"), "{text}");
}

/// PE 0 has waited with a handle, which is dropped before it finishes.
#[test]
fn a_handle_that_was_dropped_changes_no_word() {
    let text = waits_in_vain(3, |world| {
        let word = world.symmetric::<u64>(1)?;
        if world.rank() == Rank(0) {
            let shared = word.share()?;
            thread::scope(|scope| {
                scope.spawn(move || {
                    thread::sleep(LONG);
                    shared.fetch_add(Rank(0), 0, 1)
                });
                word.wait_until(0, Until::Equals(1)).map(drop)
            })
        } else {
            word.wait_until(0, Until::Equals(1)).map(drop)
        }
    });
    assert!(text.contains("no PE is left to change"), "{text}");
}

#[test]
fn pe_that_may_change_a_word_is_awaited() {
    // A PE that computes, a thread with a handle, and a PE whose wait has a limit.
    on(pes_of(3), |world| {
        let word = world.symmetric::<u64>(1)?;
        match world.rank() {
            Rank(0) => word.wait_until(0, Until::Equals(2)).map(drop)?,
            Rank(1) => {
                thread::sleep(LONG);
                word.fetch_add(Rank(0), 0, 1).map(drop)?;
            }
            _ => {
                let shared = word.share()?;
                let adds = thread::spawn(move || {
                    thread::sleep(2 * LONG);
                    shared.fetch_add(Rank(0), 0, 1).map(drop)
                });
                world.barrier()?;
                return adds.join().expect("no panic");
            }
        }
        world.barrier()
    });
    on(pes_of(2), |world| {
        let word = world.symmetric::<u64>(1)?;
        if world.rank() == Rank(0) {
            word.wait_until(0, Until::Equals(1)).map(drop)?;
        } else {
            let mut request = world.start_barrier()?;
            for _ in 0..8 {
                request = match request.wait_timeout(LONG / 4)? {
                    Ok(()) => unreachable!("PE 0 has not started its barrier"),
                    Err(later) => later,
                };
            }
            word.put(Rank(0), 0, &[1])?;
            return request.wait();
        }
        world.start_barrier()?.wait()
    });
}
