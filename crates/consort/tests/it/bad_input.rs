//! What callers get wrong: always a clear error, on every PE, soon; never silence or a hang.

#![expect(unsafe_code, reason = "smuggles a team into an operator, as only unsafe code can")]

use std::{
    fmt::Debug,
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use consort::{
    Candidate, Collective, Error, MOST_PES, Max, Pes, Rank, Result, Sum, SyncMode, SyncModes, Team,
};
use consort_collectives::{PlanError, names};
use consort_native::{Failure, HeapError};

use crate::{registry::one_each, turns::alone, typed};

const SOON: Duration = Duration::from_secs(1);

/// Runs a program and returns what each PE got; it may take a second.
fn on<R: Debug + Send + 'static>(
    pes: Pes,
    program: impl Fn(Team<'_>) -> R + Send + std::marker::Sync + 'static,
) -> Vec<R> {
    alone(2 * SOON, move || {
        let since = Instant::now();
        let all = pes.run(|pe| Ok(program(pe.world()))).expect("errors are results here");
        assert!(since.elapsed() < SOON, "heard after {:?}", since.elapsed());
        all.into_iter().map(|(_, result)| result).collect()
    })
}

/// PE 1 makes another call than all others, before all meet in a barrier.
fn mismatched(
    pes: u32,
    [one, other]: [&'static [&'static str]; 2],
    call: impl Fn(Team<'_>, bool) -> Result<()> + Send + std::marker::Sync + 'static,
) {
    let (outcome, errors) = alone(2 * SOON, move || {
        let (errors, since) = (Mutex::new(Vec::new()), Instant::now());
        let outcome = Pes::threads(pes).heap_bytes(1 << 20).run(|pe| {
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
        assert!(since.elapsed() < SOON, "heard after {:?}", since.elapsed());
        (outcome, errors.into_inner().unwrap_or_else(PoisonError::into_inner))
    });
    // Who did not hear of it in the barrier hears when it finishes.
    let first = outcome.map(|_| ()).expect_err("calls that do not match");
    assert!(errors.iter().all(|error| *error == first), "all hear the same");
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
fn mismatched_sizes() {
    for pes in [2, 5] {
        mismatched(pes, [&["broadcast", "16 bytes"], &["24 bytes"]], |world, odd| {
            world.broadcast_slice(&mut vec![0_u64; if odd { 3 } else { 2 }], Rank(0))
        });
        mismatched(pes, [&["reduce", "16 bytes"], &["40000 bytes"]], |world, odd| {
            let len = if odd { 5000 } else { 2 };
            world.reduce_slice(&vec![0_u64; len], &mut vec![0; len], Sum, Rank(0))
        });
        // The odd one is the root, and sends.
        mismatched(pes, [&["broadcast", "100000 bytes"], &["8 bytes"]], |world, odd| {
            world.broadcast_slice(&mut vec![0_u64; if odd { 1 } else { 12_500 }], Rank(1))
        });
    }
}

#[test]
fn mismatched_roots() {
    for pes in [2, 5] {
        mismatched(pes, [&["broadcast", "root 0"], &["root 1"]], |world, odd| {
            world.broadcast(7, Rank(odd.into())).map(|_| ())
        });
        mismatched(pes, [&["reduce", "root 0"], &["root 1"]], |world, odd| {
            world.reduce(7, Sum, Rank(odd.into())).map(|_| ())
        });
        // Each contributes to the other's, and waits for nobody.
        mismatched(pes, [&["reduce", "root 1"], &["root 0"]], |world, odd| {
            world.reduce(7, Sum, Rank((!odd).into())).map(|_| ())
        });
    }
}

#[test]
fn mismatched_collectives() {
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
fn mismatched_types_and_operators() {
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
fn mismatched_modes() {
    mismatched(3, [&["mine"], &["strict"]], |world, odd| {
        let sync = if odd { SyncModes::STRICT } else { SyncModes::MINE };
        world.with(sync).broadcast(1, Rank(0)).map(|_| ())
    });
    mismatched(3, [&["loose"], &["mine/none"]], |world, odd| {
        let entry = if odd { SyncMode::Mine } else { SyncMode::None };
        world.with(SyncModes { entry, exit: SyncMode::None }).reduce(1, Sum, Rank(0)).map(|_| ())
    });
}

/// Borrowed on one PE, symmetric on another: they follow different protocols.
#[test]
fn mismatched_memory() {
    for direct in [true, false] {
        mismatched(3, [&["broadcast"], &["broadcast", "symmetric"]], move |world, odd| {
            let memory = world.symmetric::<u64>(1)?;
            if direct {
                world.force(Collective::Broadcast, Some(Candidate::new("direct")));
            }
            let team = world.with(SyncModes::LOOSE);
            if odd {
                team.broadcast_symmetric(&memory, Rank(1))
            } else {
                team.broadcast(1_u64, Rank(1)).map(|_| ())
            }
        });
    }
}

#[test]
fn mismatched_algorithms() {
    mismatched(3, [&["by flat"], &["by knomial(radix=2)"]], |world, odd| {
        let knomial = Candidate::new("knomial").with("radix", 2);
        let candidate = if odd { knomial } else { Candidate::new("flat") };
        world.force(Collective::Broadcast, Some(candidate));
        world.broadcast(1, Rank(0)).map(|_| ())
    });
}

/// Calls that nobody waited in are compared nevertheless, by the calls after them.
#[test]
fn mismatches_are_found_though_nobody_waited() {
    mismatched(2, [&["broadcast", "root 0"], &["broadcast", "root 1"]], |world, odd| {
        world.force(Collective::Broadcast, Some(Candidate::new("flat")));
        // Each is the root of its own, and of different numbers of chunks.
        world.broadcast_slice(&mut vec![0_u8; if odd { 1 } else { 10_000 }], Rank(odd.into()))?;
        world.barrier()?;
        world.barrier()?;
        world.barrier()
    });
}

/// And by the end of the job, if no call comes after.
#[test]
fn mismatches_are_found_at_the_end() {
    let flat = || Pes::threads(2).force(Collective::Broadcast, Candidate::new("flat"));
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
fn mismatched_lengths_of_an_allocation() {
    mismatched(3, [&["symmetric(8 of u64)"], &["symmetric(9 of u64)"]], |world, odd| {
        world.symmetric::<u64>(if odd { 9 } else { 8 }).map(drop)
    });
}

/// They meet as often: the put would be lost in memory that the other has yet to clear.
#[test]
fn allocations_are_no_barriers() {
    mismatched(2, [&["barrier()"], &["symmetric(1 of u64)"]], |world, odd| {
        if !odd {
            world.barrier()?;
            return world.symmetric::<u64>(1).map(drop);
        }
        let memory = world.symmetric::<u64>(1)?;
        memory.put(Rank(0), 0, &[7])?;
        world.barrier()
    });
    mismatched(2, [&["barrier()"], &["counter()"]], |world, odd| {
        if odd { world.counter().map(drop) } else { world.barrier() }
    });
    mismatched(2, [&["symmetric(1 of u64)"], &["counter()"]], |world, odd| {
        if odd { world.counter().map(drop) } else { world.symmetric::<u64>(1).map(drop) }
    });
}

/// Who comes last to a barrier that counts waits for nobody, and is told all the same.
#[test]
fn a_barrier_that_counts_tells_calls_that_did_not_match() {
    let mut passed = 0;
    for _ in 0..20 {
        let results =
            on(Pes::threads(3).force(Collective::Barrier, Candidate::new("central")), |world| {
                let memory = world.symmetric::<u64>(1)?;
                let me = world.rank();
                let root = if me == Rank(1) { Rank(1) } else { Rank(0) };
                // With so loose modes a root waits for nobody.
                world.with(SyncModes::LOOSE).broadcast_symmetric(&memory, root)?;
                if me == Rank(0) {
                    thread::sleep(Duration::from_millis(1));
                }
                world.barrier().map(|()| me)
            });
        passed += results.iter().flatten().count();
    }
    assert_eq!(passed, 0, "PEs that passed a barrier after calls that did not match");
}

/// The last call of a quarter of the window does not match, and all start as many nonblocking calls
/// after it as the window has room for.
#[test]
fn mismatches_are_found_a_window_later() {
    for calls in [13, 29, 61] {
        mismatched(4, [&["scatter(2 bytes", "root 2"], &["scatter(2 bytes", "root 1"]], {
            move |world, odd| {
                for _ in 0..calls {
                    world.barrier()?;
                }
                let team = world.with(SyncModes { entry: SyncMode::None, exit: SyncMode::Mine });
                let root = Rank(if odd { 1 } else { 2 });
                team.scatter_slice(&[1_u16, 2, 3, 4], &mut [0], root)?;
                let start = |call| world.start_all_reduce(vec![call], Sum);
                let started: Vec<_> = (0..70).map(start).collect::<Result<_>>()?;
                started.into_iter().try_for_each(|one| one.wait().map(drop))
            }
        });
    }
}

#[test]
fn closing_async_broadcasts_is_no_barrier() {
    mismatched(2, [&["barrier()"], &["async_broadcasts.close()"]], |world, odd| {
        let mut broadcasts = world.async_broadcasts(|_, _| ())?;
        broadcasts.broadcast(b"before")?;
        if !odd {
            world.barrier()?;
        }
        broadcasts.close()
    });
}

#[test]
fn roots_out_of_range() {
    let errors = on(Pes::threads(3), |world| {
        let root = Rank(3);
        let memory = world.symmetric::<u64>(1).expect("8 bytes");
        let other = world.symmetric::<u64>(1).expect("8 bytes");
        let errors = [
            world.broadcast(1, root).err(),
            world.broadcast_slice(&mut [1], root).err(),
            world.broadcast_symmetric(&memory, root).err(),
            world.reduce(1, Sum, root).err(),
            world.reduce_slice(&[1], &mut [], Sum, Rank(u32::MAX)).err(),
            world.reduce_symmetric(&memory, &other, Sum, root).err(),
        ];
        // The job goes on.
        assert_eq!(world.broadcast(5, Rank(2)).ok(), Some(5));
        errors
    });
    for errors in errors {
        for error in errors.into_iter().flatten() {
            let Error::RootOutOfRange { root, pes: 3 } = error else { panic!("{error}") };
            let text = format!("root {root} is not in the team: its 3 PEs have ranks 0 to 2");
            assert_eq!(error.to_string(), text);
        }
    }
}

#[test]
fn no_pes_and_too_many() {
    let none = Pes::threads(0).run(|_| Ok(())).expect_err("no PEs");
    assert_eq!(none, Error::NoPes);
    assert!(none.to_string().contains("1 to 1024"), "{none}");
    for asked in [MOST_PES + 1, u32::MAX] {
        let many = Pes::threads(asked).run(|_| Ok(())).expect_err("too many PEs");
        assert_eq!(many, Error::TooManyPes { asked, most: MOST_PES });
    }
    let heap = Pes::threads(2).heap_bytes(usize::MAX).run(|_| Ok(())).expect_err("no such heap");
    assert!(matches!(heap, Error::Memory(HeapError::System { pes: 2, .. })), "{heap}");
}

#[test]
fn borrowed_slices_are_not_left_behind() {
    let errors = on(Pes::threads(2), |world| {
        let mut errors = Vec::new();
        for entry in SyncMode::EVERY {
            let team = world.with(SyncModes { entry, exit: SyncMode::None });
            errors.push(team.broadcast_slice(&mut [1], Rank(0)).err());
            errors.push(team.reduce_slice(&[1], &mut [1], Sum, Rank(0)).err());
        }
        assert_eq!(world.with(SyncModes::LOOSE).broadcast(5, Rank(1)).ok(), Some(5));
        errors
    });
    for error in errors.into_iter().flatten() {
        let error = error.expect("an error");
        assert!(matches!(error, Error::BorrowedSlice(sync) if sync.exit == SyncMode::None));
        assert!(error.to_string().contains("use symmetric memory"), "{error}");
    }
}

#[test]
fn targets_of_another_length() {
    let errors = on(Pes::threads(2), |world| {
        let (three, two) = (world.symmetric::<u64>(3)?, world.symmetric::<u64>(2)?);
        let error = Error::Lengths { source_len: 3, target_len: 2 };
        assert_eq!(world.reduce_symmetric(&three, &two, Sum, Rank(0)).err(), Some(error.clone()));
        // Elsewhere than on the root the target does not matter.
        world.reduce_slice(
            &[1; 3],
            &mut [0; 3][..if world.rank().0 == 0 { 3 } else { 1 }],
            Sum,
            Rank(0),
        )?;
        let result = world.reduce_slice(&[1; 3], &mut [0; 2], Sum, Rank(0));
        if world.rank() == Rank(0) {
            assert_eq!(result.err(), Some(error));
        }
        // PE 1 may have left; but it misses PE 0 in the next call, or PE 0 misses it.
        world.broadcast(1, Rank(0)).map(|_| ()).and_then(|()| world.barrier())
    });
    assert!(errors.iter().all(|error| matches!(error, Err(Error::Mismatched(_)))), "{errors:?}");
}

/// The source of a reduction is read while its target is written.
#[test]
fn a_source_that_is_the_target() {
    let errors = on(Pes::threads(3), |world| {
        let memory = world.symmetric::<u64>(10)?;
        let error = world.reduce_symmetric(&memory, &memory, Sum, Rank(2)).err();
        assert_eq!(error, Some(Error::InPlace));
        // There is nothing to read or write.
        let none = world.symmetric::<u64>(0)?;
        world.reduce_symmetric(&none, &none, Sum, Rank(2))?;
        world.barrier()
    });
    assert!(errors.iter().all(Result::is_ok), "{errors:?}");
    assert!(Error::InPlace.to_string().contains("two allocations"));
}

/// Moves a team to where it does not belong.
struct Smuggled<'p>(Team<'p>);

// SAFETY: the operator that is given it runs on the thread that the team belongs to.
unsafe impl std::marker::Sync for Smuggled<'_> {}

impl Smuggled<'_> {
    fn broadcast(&self, bytes: usize) -> Result<()> {
        self.0.broadcast_slice(&mut vec![0_u8; bytes], Rank(0))
    }

    fn call_everything(&self) -> Vec<Option<Error>> {
        let world = self.0;
        vec![
            world.barrier().err(),
            world.broadcast(1, Rank(0)).err(),
            world.reduce(1, Sum, Rank(0)).err(),
            world.symmetric::<u64>(1).err(),
            world.counter().err(),
            world.split(Some(1), 0).err(),
            world.start_barrier().err(),
            world.start_broadcast(vec![1], Rank(0)).err(),
            world.progress().err(),
        ]
    }
}

#[test]
fn operators_may_not_call_the_library() {
    let results = on(Pes::threads(2), |world| {
        let smuggled = Smuggled(world);
        let memory = world.symmetric::<u64>(1)?;
        let add = |a: u64, b: u64| {
            for error in smuggled.call_everything() {
                assert_eq!(error, Some(Error::Reentrant));
            }
            a + b
        };
        let sum = world.reduce(1, add, Rank(0))?;
        assert_eq!(sum, (world.rank() == Rank(0)).then_some(2));
        // In an operation, too, which is moved on by any call.
        let mut all = [0];
        world.overlap(|scope| {
            let request = scope.start_all_reduce(&[1], &mut all, add)?;
            world.barrier()?;
            request.wait()
        })?;
        assert_eq!(all, [2]);
        // The number of allocations still agrees.
        let again = world.symmetric::<u64>(1)?;
        again.put(world.right(), 0, &[3])?;
        world.barrier()?;
        assert_eq!((again.load(0)?, memory.load(0)?), (3, 0));
        world.barrier()
    });
    assert!(results.iter().all(Result::is_ok), "{results:?}");
}

/// Also while the plan of the call that it serves is in use, and for a call without a plan.
#[test]
fn operators_may_not_plan_calls_either() {
    let results = on(Pes::threads(2), |world| {
        let smuggled = Smuggled(world);
        for round in 1..4 {
            let add = |a: u64, b: u64| {
                assert_eq!(smuggled.broadcast(round), Err(Error::Reentrant));
                a + b
            };
            assert_eq!(world.all_reduce(1, add)?, 2);
        }
        world.barrier()
    });
    assert!(results.iter().all(Result::is_ok), "{results:?}");
}

#[test]
fn forcing_what_there_is_not() {
    for collective in Collective::EVERY {
        let errors = on(Pes::threads(2), move |world| {
            let source = [1; 2];
            let call = || typed::values(world, collective, &source, Sum, Rank(0)).map(|_| ());
            let force = |candidate| {
                world.force(collective, Some(candidate));
                call().expect_err("no such candidate")
            };
            let unknown = force(Candidate::new("fastest"));
            let wrong = one_each(collective).into_iter().flat_map(|one| {
                let other = (force(one.clone().with("colour", 8)), "no parameter `colour`".into());
                let name = &one.algorithm;
                let of_parameter = |parameter: &String| {
                    let mut without = one.clone();
                    without.parameters.remove(parameter);
                    let expected = format!("{name} needs {parameter} from ");
                    [without, one.clone().with(parameter, u64::MAX)]
                        .map(|wrong| (force(wrong), expected.clone()))
                };
                let wrong: Vec<_> = one.parameters.keys().flat_map(of_parameter).collect();
                wrong.into_iter().chain([other])
            });
            let wrong: Vec<_> = wrong.collect();
            // The job goes on.
            world.force(collective, None);
            call().expect("the library's choice");
            (unknown, wrong)
        });
        for (unknown, wrong) in errors {
            let text = unknown.to_string();
            assert!(matches!(unknown, Error::Plan(PlanError::UnknownAlgorithm { .. })));
            assert!(text.contains("`fastest`"), "{text}");
            assert!(names(collective).iter().all(|name| text.contains(name)), "{text}");
            for (error, expected) in wrong {
                assert!(error.to_string().contains(&expected), "{error}, not {expected}");
            }
        }
    }
}

/// A barrier that is forced, but unknown, is also the entry and exit barrier of Strict calls.
#[test]
fn forcing_an_unknown_barrier_of_strict_calls() {
    let errors = on(Pes::threads(3), |world| {
        world.force(Collective::Barrier, Some(Candidate::new("tournament")));
        let error =
            world.with(SyncModes::STRICT).broadcast(1, Rank(0)).expect_err("no such barrier");
        assert_eq!(world.broadcast(4, Rank(0)).ok(), Some(4), "not bracketed");
        error.to_string()
    });
    for error in errors {
        assert!(error.contains("tournament") && error.contains("dissemination"), "{error}");
    }
}

#[test]
fn a_launch_that_forces_what_cannot_serve() {
    let large = Candidate::new("shared").with("chunk_bytes", 1 << 30);
    let error = alone(2 * SOON, || {
        Pes::threads(2)
            .force(Collective::Broadcast, large)
            .run(|pe| pe.world().broadcast(1, Rank(0)))
    });
    let error = error.expect_err("there is only one chunk").to_string();
    assert!(error.contains("shared cannot serve this call: there is only one chunk"), "{error}");
}
