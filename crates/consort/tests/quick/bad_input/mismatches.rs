//! Calls that differ between PEs.

use std::{
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use consort::{
    Error, Job, Rank, Result, Team,
    ops::{Max, Sum},
    sync_modes::{SyncMode, SyncModes},
    tune::{Candidate, Collective},
};
use consort_conformance::turns::alone;
use consort_native::Failure;
use half::bf16;

use super::on;
use crate::jobs::{SOON, pes_of};

/// PE 1 makes a different call than all others, before all enter a barrier.
fn mismatched(
    pes: usize,
    [one, other]: [&'static [&'static str]; 2],
    call: impl Fn(&Team, bool) -> Result<()> + Send + Sync + 'static,
) {
    let (outcome, errors) = alone(2 * SOON, move || {
        let (errors, since) = (Mutex::new(Vec::new()), Instant::now());
        let outcome = pes_of(pes).run(|pe| {
            let world = pe.world();
            let result = world
                .barrier()
                .and_then(|()| call(world, world.rank() == Rank(1)))
                .and_then(|()| world.barrier());
            if let Err(error) = &result {
                errors.lock().unwrap_or_else(PoisonError::into_inner).push(error.clone());
            }
            result
        });
        assert!(since.elapsed() < SOON, "failed after {:?}", since.elapsed());
        (outcome, errors.into_inner().unwrap_or_else(PoisonError::into_inner))
    });
    // A PE that did not get the error in the barrier gets it when it finishes.
    let first = outcome.map(|_| ()).expect_err("calls that do not match");
    assert!(errors.iter().all(|error| *error == first), "all get the same");
    let Error::Mismatched(Failure::Mismatched {
        one: (rank, name), other: (odd, odd_name), ..
    }) = &first
    else {
        panic!("{first}");
    };
    let pair = if *odd == Rank(1) { [name, odd_name] } else { [odd_name, name] };
    assert!((*rank == Rank(1)) != (*odd == Rank(1)), "{first}");
    for (name, parts) in pair.into_iter().zip([one, other]) {
        assert!(parts.iter().all(|part| name.contains(part)), "`{name}` without {parts:?}");
    }
    let text = first.to_string();
    assert!(text.contains(name.as_str()) && text.contains(odd_name.as_str()), "{text}");
    assert!(text.contains("PE 1 "), "{text}");
}

#[test]
fn mismatched_sizes_are_reported() {
    for pes in [2, 5] {
        mismatched(pes, [&["broadcast", "16 bytes"], &["24 bytes"]], |world, odd| {
            world.in_place(&mut vec![0_u64; if odd { 3 } else { 2 }]).broadcast(Rank(0))
        });
        mismatched(pes, [&["reduce", "16 bytes"], &["40000 bytes"]], |world, odd| {
            let len = if odd { 5000 } else { 2 };
            world.slices(&vec![0_u64; len], &mut vec![0; len]).reduce(Sum, Rank(0))
        });
        // The odd PE is the root, and sends.
        mismatched(pes, [&["broadcast", "100000 bytes"], &["8 bytes"]], |world, odd| {
            world.in_place(&mut vec![0_u64; if odd { 1 } else { 12_500 }]).broadcast(Rank(1))
        });
    }
}

/// Some calls combine long data by a call for each piece. The pieces of both PEs have the same
/// length. Short floats are sent as `f32`.
#[test]
fn mismatched_lengths_of_calls_in_pieces_are_reported() {
    const LEN: usize = 1 << 20;
    let len = |odd: bool| if odd { 2 * LEN } else { LEN };
    let parts: [&[&str]; 2] = [&["4194304 bytes", "in pieces"], &["8388608 bytes", "in pieces"]];
    mismatched(3, parts, move |world, odd| {
        let data = vec![bf16::ONE; len(odd)];
        world.slices(&data, &mut data.clone()).all_reduce(Sum)
    });
    mismatched(3, parts, move |world, odd| {
        world.in_place(&mut vec![bf16::ONE; len(odd)]).scan(Sum)
    });
    let parts: [&[&str]; 2] = [&["2097152 bytes", "in pieces"], &["4194304 bytes", "in pieces"]];
    mismatched(2, parts, move |world, odd| {
        let direct = Candidate::new("direct").with("block_bytes", 1 << 14);
        world.algorithms().force(Collective::AllReduce, Some(direct));
        world.in_place(&mut vec![1_u16; len(odd)]).all_reduce(Sum)
    });
    // The data of one PE is a single piece.
    mismatched(3, [&["in pieces"], &["4000 bytes of half::bf16"]], move |world, odd| {
        let data = vec![bf16::ONE; if odd { 1000 } else { LEN }];
        world.slices(&data, &mut data.clone()).reduce(Sum, Rank(2))
    });
}

#[test]
fn mismatched_roots_are_reported() {
    for pes in [2, 5] {
        mismatched(pes, [&["broadcast", "root 0"], &["root 1"]], |world, odd| {
            world.broadcast(7, Rank(odd.into())).map(|_| ())
        });
        mismatched(pes, [&["reduce", "root 0"], &["root 1"]], |world, odd| {
            world.reduce(7, Sum, Rank(odd.into())).map(|_| ())
        });
        // Each contributes to the other's, and does not wait.
        mismatched(pes, [&["reduce", "root 1"], &["root 0"]], |world, odd| {
            world.reduce(7, Sum, Rank((!odd).into())).map(|_| ())
        });
    }
}

#[test]
fn mismatched_collectives_are_reported() {
    for pes in [2, 5] {
        for root in [Rank(0), Rank(1)] {
            mismatched(pes, [&["broadcast"], &["reduce"]], move |world, odd| {
                if odd {
                    world.reduce(1, Sum, root).map(|_| ())
                } else {
                    world.broadcast(1, Rank(0)).map(|_| ())
                }
            });
        }
        mismatched(pes, [&["reduce"], &["barrier()"]], |world, odd| {
            if odd { world.barrier() } else { world.reduce(1, Sum, Rank(0)).map(|_| ()) }
        });
    }
}

#[test]
fn mismatched_types_and_operators_are_reported() {
    mismatched(3, [&["u64", "Sum"], &["i64", "Sum"]], |world, odd| {
        if odd {
            world.reduce(1_i64, Sum, Rank(0)).map(|_| ())
        } else {
            world.reduce(1_u64, Sum, Rank(0)).map(|_| ())
        }
    });
    mismatched(3, [&["u64", "Sum"], &["u64", "Max"]], |world, odd| {
        if odd {
            world.reduce(1_u64, Max, Rank(0)).map(|_| ())
        } else {
            world.reduce(1_u64, Sum, Rank(0)).map(|_| ())
        }
    });
    mismatched(3, [&["f64"], &["[u32; 2]"]], |world, odd| {
        if odd {
            world.broadcast([1_u32; 2], Rank(0)).map(|_| ())
        } else {
            world.broadcast(1.0, Rank(0)).map(|_| ())
        }
    });
}

#[test]
fn mismatched_modes_are_reported() {
    mismatched(3, [&["mine"], &["strict"]], |world, odd| {
        let sync = if odd { SyncModes::STRICT } else { SyncModes::MINE };
        world.with_sync(sync).broadcast(1, Rank(0)).map(|_| ())
    });
    mismatched(3, [&["loose"], &["mine/none"]], |world, odd| {
        let entry = if odd { SyncMode::Mine } else { SyncMode::None };
        world
            .with_sync(SyncModes { entry, exit: SyncMode::None })
            .reduce(1, Sum, Rank(0))
            .map(|_| ())
    });
}

/// Private on one PE, symmetric on another: they follow different protocols.
#[test]
fn mismatched_memory_is_reported() {
    for direct in [true, false] {
        mismatched(3, [&["broadcast"], &["broadcast", "symmetric"]], move |world, odd| {
            let memory = world.symmetric::<u64>(1)?;
            if direct {
                world.algorithms().force(Collective::Broadcast, Some(Candidate::new("direct")));
            }
            let team = world.with_sync(SyncModes::LOOSE);
            if odd {
                team.in_symmetric(&memory, &memory).broadcast(Rank(1))
            } else {
                team.broadcast(1_u64, Rank(1)).map(|_| ())
            }
        });
    }
}

#[test]
fn mismatched_algorithms_are_reported() {
    mismatched(3, [&["by flat"], &["by knomial(radix=2)"]], |world, odd| {
        let knomial = Candidate::new("knomial").with("radix", 2);
        let candidate = if odd { knomial } else { Candidate::new("flat") };
        world.algorithms().force(Collective::Broadcast, Some(candidate));
        world.broadcast(1, Rank(0)).map(|_| ())
    });
}

/// Calls in which nobody waited are compared nevertheless, by the calls after them.
#[test]
fn mismatches_without_waits_are_found() {
    mismatched(2, [&["broadcast", "root 0"], &["broadcast", "root 1"]], |world, odd| {
        world.algorithms().force(Collective::Broadcast, Some(Candidate::new("flat")));
        // Each is the root of its own call, with a different number of chunks.
        world
            .in_place(&mut vec![0_u8; if odd { 1 } else { 10_000 }])
            .broadcast(Rank(odd.into()))?;
        world.barrier()?;
        world.barrier()?;
        world.barrier()
    });
}

/// They are also found by the end of the job, if no call comes after.
#[test]
fn mismatches_are_found_at_the_end() {
    let flat = || Job::threads(2).force(Collective::Broadcast, Candidate::new("flat"));
    let outcome = alone(2 * SOON, move || {
        flat().run(|pe| {
            let world = pe.world();
            world.broadcast(world.rank().0, world.rank())
        })
    });
    assert!(matches!(outcome, Err(Error::Mismatched(_))), "{outcome:?}");
    let outcome = alone(2 * SOON, move || {
        flat().run(|pe| {
            let world = pe.world();
            if world.rank() == Rank(0) { world.broadcast(1, Rank(0)) } else { Ok(1) }
        })
    });
    let finished = matches!(outcome, Err(Error::Mismatched(Failure::Finished { .. })));
    assert!(finished, "{outcome:?}");
}

#[test]
fn mismatched_allocation_lengths_are_reported() {
    mismatched(3, [&["symmetric(8 of u64)"], &["symmetric(9 of u64)"]], |world, odd| {
        world.symmetric::<u64>(if odd { 9 } else { 8 }).map(drop)
    });
}

/// Both PEs make the same number of calls. If the calls matched, the put would be lost, because its
/// target would be cleared later.
#[test]
fn allocations_are_not_barriers() {
    mismatched(2, [&["barrier()"], &["symmetric(1 of u64)"]], |world, odd| {
        if !odd {
            world.barrier()?;
            return world.symmetric::<u64>(1).map(drop);
        }
        let memory = world.symmetric::<u64>(1)?;
        memory.put(Rank(0), 0, &[7])?;
        world.barrier()
    });
    mismatched(2, [&["barrier()"], &["completion_counter()"]], |world, odd| {
        if odd { world.completion_counter().map(drop) } else { world.barrier() }
    });
    mismatched(2, [&["symmetric(1 of u64)"], &["completion_counter()"]], |world, odd| {
        if odd { world.completion_counter().map(drop) } else { world.symmetric::<u64>(1).map(drop) }
    });
}

/// The last PE to enter a counting barrier does not wait, but gets the error nevertheless.
#[test]
fn a_barrier_that_counts_reports_calls_that_did_not_match() {
    let mut passed = 0;
    for _ in 0..20 {
        let results =
            on(Job::threads(3).force(Collective::Barrier, Candidate::new("central")), |world| {
                let memory = world.symmetric::<u64>(1)?;
                let me = world.rank();
                let root = if me == Rank(1) { Rank(1) } else { Rank(0) };
                // With Loose modes, a root does not wait.
                world.with_sync(SyncModes::LOOSE).in_symmetric(&memory, &memory).broadcast(root)?;
                if me == Rank(0) {
                    thread::sleep(Duration::from_millis(1));
                }
                world.barrier().map(|()| me)
            });
        passed += results.iter().flatten().count();
    }
    assert_eq!(passed, 0, "PEs that passed a barrier after calls that did not match");
}

/// The last call of a quarter of the window does not match. All PEs then start as many nonblocking
/// calls as the window has room for.
#[test]
fn mismatches_are_found_a_window_later() {
    for calls in [13, 29, 61] {
        mismatched(4, [&["scatter(2 bytes", "root 2"], &["scatter(2 bytes", "root 1"]], {
            move |world, odd| {
                for _ in 0..calls {
                    world.barrier()?;
                }
                let team =
                    world.with_sync(SyncModes { entry: SyncMode::None, exit: SyncMode::Mine });
                let root = Rank(if odd { 1 } else { 2 });
                team.slices(&[1_u16, 2, 3, 4], &mut [0]).scatter(root)?;
                let start = |call| world.start(vec![call]).all_reduce(Sum);
                let started: Vec<_> = (0..70).map(start).collect::<Result<_>>()?;
                started.into_iter().try_for_each(|one| one.wait().map(drop))
            }
        });
    }
}

#[test]
fn closing_async_broadcasts_is_not_a_barrier() {
    mismatched(2, [&["barrier()"], &["async_broadcasts.close()"]], |world, odd| {
        let mut broadcasts = world.async_broadcasts(|_, _| ())?;
        broadcasts.broadcast(b"before")?;
        if !odd {
            world.barrier()?;
        }
        broadcasts.close()
    });
}
