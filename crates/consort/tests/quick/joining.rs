//! Existing threads join a job as its PEs.

use std::{
    cell::RefCell,
    io, mem,
    sync::{Arc, Barrier, mpsc},
    thread,
    time::{Duration, Instant},
};

use consort::{
    Error, Job, JoinedPe, Rank,
    error::{CallError, Failure, LaunchError},
    ops::Sum,
    symmetric::Until,
};
use consort_conformance::turns::alone;

use crate::jobs::SOON;

fn job(pes: usize) -> Job {
    Job::threads(pes).heap_bytes(1 << 16).build().expect("a job")
}

/// Returns a job that does not wait for long.
fn impatient(pes: usize) -> Job {
    let pes = Job::threads(pes).join_timeout(Duration::from_millis(200)).named("solver");
    pes.heap_bytes(1 << 16).build().expect("a job")
}

#[test]
fn a_joined_thread_is_a_whole_pe() {
    let job = job(3);
    let pe = || {
        let pe = job.join()?;
        let world = pe.world();
        let me = world.rank();
        let shared = world.symmetric::<u64>(3)?;
        shared.put(world.right(), me.index(), &[u64::from(me.0) + 1])?;
        world.barrier()?;
        assert_eq!(shared.load(world.left().index())?, u64::from(world.left().0) + 1);
        let request = world.start(vec![1_u64]).all_reduce(Sum)?;
        let half = world.split(Some(me.0 % 2), 0)?.expect("a team");
        assert_eq!(half.all_reduce(1, Sum)?, half.size());
        assert_eq!(request.wait()?, [3]);
        drop(shared);
        pe.leave()
    };
    thread::scope(|scope| {
        let threads = [(); 3].map(|()| scope.spawn(pe));
        for thread in threads {
            assert_eq!(thread.join().expect("no panic"), Ok(()));
        }
    });
}

/// Each round runs on new threads, which join as ranks that others have left.
#[test]
fn left_rank_is_joined_again() {
    let job = job(3);
    for round in 0..20_u64 {
        thread::scope(|scope| {
            for rank in (0..3).map(Rank) {
                let job = &job;
                scope.spawn(move || {
                    let pe = job.join_as(rank).expect("a free rank");
                    let world = pe.world();
                    assert_eq!(world.rank(), rank);
                    for call in 0..round * 7 {
                        assert_eq!(world.all_reduce(call, Sum), Ok(3 * call));
                    }
                    let odd = world.split(Some(rank.0 % 2), 0).expect("a split").expect("a team");
                    assert!(odd.barrier().is_ok());
                    drop(world.start(vec![round]).all_reduce(Sum)); // is complete when it leaves
                });
            }
        });
    }
}

/// One rank changes its thread while the others stay.
#[test]
fn others_stay_while_a_rank_changes_its_thread() {
    const ROUNDS: u64 = 50;
    let job = job(2);
    thread::scope(|scope| {
        scope.spawn(|| {
            let pe = job.join_as(Rank(0)).expect("a free rank");
            let sums = (0..ROUNDS).map(|round| pe.world().all_reduce(round, Sum));
            assert!(sums.enumerate().all(|(round, sum)| sum == Ok(2 * round as u64)));
        });
        scope.spawn(|| {
            for round in 0..ROUNDS {
                thread::scope(|inner| {
                    inner.spawn(|| {
                        let pe = job.join_as(Rank(1)).expect("a free rank");
                        assert_eq!(pe.world().all_reduce(round, Sum), Ok(2 * round));
                    });
                });
            }
        });
    });
}

#[test]
fn pe_that_never_joins_is_named() {
    let job = impatient(3);
    let met = Barrier::new(2);
    let begun = Instant::now();
    let errors = thread::scope(|scope| {
        let threads = [Rank(0), Rank(2)].map(|rank| {
            scope.spawn({
                let (job, met) = (&job, &met);
                move || {
                    let pe = job.join_as(rank).expect("a free rank");
                    met.wait();
                    pe.world().barrier()
                }
            })
        });
        threads.map(|thread| thread.join().expect("no panic"))
    });
    assert!(begun.elapsed() < SOON);
    for error in errors {
        let error = error.expect_err("PE 1 is missing");
        assert!(matches!(error, Error::TimedOut(Failure::Missing { .. })), "{error:?}");
        let text = error.to_string();
        assert!(text.contains("no thread has run PE 1 for 200ms"), "{text}");
        assert!(text.contains("barrier()") && text.contains("of job `solver`"), "{text}");
    }
    assert!(
        matches!(job.join(), Err(Error::TimedOut(Failure::Missing { .. }))),
        "the job has failed for good"
    );
}

#[test]
fn pe_that_leaves_waiting_peers_is_named() {
    let job = impatient(2);
    let met = Barrier::new(2);
    thread::scope(|scope| {
        let waits = scope.spawn(|| {
            let pe = job.join_as(Rank(0)).expect("a free rank");
            met.wait();
            pe.world().barrier().and_then(|()| pe.world().barrier())
        });
        let pe = job.join_as(Rank(1)).expect("a free rank");
        met.wait();
        assert_eq!(pe.world().barrier(), Ok(()));
        assert_eq!(pe.leave(), Ok(()));
        let error = waits.join().expect("no panic").expect_err("PE 1 has left");
        assert!(error.to_string().contains("no thread has run PE 1"), "{error}");
    });
}

/// PE 0 waits for PE 2, for longer than PE 1 has been away.
#[test]
fn pe_that_did_its_part_is_not_missed() {
    let job = impatient(3);
    let late = Duration::from_millis(700);
    let sums = thread::scope(|scope| {
        let threads = [0, 1, 2].map(|rank| {
            let job = &job;
            scope.spawn(move || {
                let pe = job.join_as(Rank(rank)).expect("a free rank");
                pe.world().barrier()?;
                thread::sleep(if rank == 2 { late } else { Duration::ZERO });
                pe.world().reduce(1, Sum, Rank(0))
            })
        });
        threads.map(|thread| thread.join().expect("no panic"))
    });
    assert_eq!(sums, [Ok(Some(3)), Ok(None), Ok(None)]);
}

/// A program returns an error or panics; the others, which wait, get an error too.
#[test]
fn failing_program_of_a_thread_fails_the_job() {
    for panics in [false, true] {
        let job = job(2);
        let begun = Instant::now();
        let ended = thread::scope(|scope| {
            let threads = [false, true].map(|fails| {
                scope.spawn({
                    let job = &job;
                    move || {
                        job.try_run(|pe| {
                            pe.world().barrier()?;
                            assert!(!(fails && panics), "the panic");
                            if fails { Err(io::Error::other("the error")) } else { Ok(()) }?;
                            Ok::<_, io::Error>(pe.world().barrier()?)
                        })
                    }
                })
            });
            threads.map(|thread| thread.join().expect("it is caught").map_err(|it| it.to_string()))
        });
        let why = if panics { "the panic" } else { "the error" };
        assert!(
            ended.iter().all(|one| matches!(one, Err(text) if text.contains(why))),
            "{ended:?}"
        );
        assert_eq!(ended.contains(&Err(why.to_owned())), !panics, "its own error as it was");
        assert!(begun.elapsed() < SOON);
    }
    let job = job(1);
    assert_eq!(job.run(|pe| pe.world().all_reduce(7, Sum)), Ok(7));
    assert_eq!(job.run(|pe| pe.world().all_reduce(8, Sum)), Ok(8), "it has left");
}

/// The operator belongs to a call that is still pending when the program has returned.
#[test]
fn panic_while_leaving_is_an_error_of_run() {
    let job = job(2);
    let ended = thread::scope(|scope| {
        let program = || {
            job.run(|pe| {
                let panics = |_: u64, _: u64| -> u64 { panic!("the operator") };
                pe.world().start(vec![1_u64]).all_reduce(panics).map(drop)
            })
        };
        [(); 2].map(|()| scope.spawn(program)).map(|thread| thread.join().expect("it is caught"))
    });
    let why = |one: &consort::Result<()>| format!("{one:?}").contains("the operator");
    assert!(ended.iter().any(why), "{ended:?}");
}

/// All others have left, for longer than the job waits for them.
#[test]
fn timeout_ends_a_wait_that_no_pe_can_end() {
    let (job, met) = (impatient(2), Barrier::new(2));
    let memory = |pe: &consort::Pe| {
        met.wait();
        let word = pe.world().symmetric::<u64>(1)?;
        if pe.world().rank() == Rank(1) {
            return Ok(None);
        }
        word.wait_until_timeout(0, Until::Equals(1), Duration::from_millis(700))
    };
    let ended = thread::scope(|scope| {
        let threads = [Rank(0), Rank(1)].map(|rank| {
            let (job, memory) = (&job, &memory);
            scope.spawn(move || job.join_as(rank)?.run(memory))
        });
        threads.map(|thread| thread.join().expect("no panic"))
    });
    assert_eq!(ended, [Ok(None), Ok(None)]);
}

#[test]
fn leaving_a_job_that_has_failed_is_an_error() {
    let job = job(2);
    let pe = job.join().expect("a free rank");
    let failed = thread::scope(|scope| {
        scope.spawn(|| job.run(|_| Err::<(), _>(Error::Call(CallError::Taken)))).join()
    });
    assert_eq!(failed.expect("no panic"), Err(Error::Call(CallError::Taken)));
    assert!(matches!(pe.leave(), Err(Error::PeFailed { rank: Rank(1), .. })));
}

#[test]
fn wrong_join_error_says_how() {
    let job = job(2);
    let pe = job.join().expect("a free rank");
    assert_eq!(
        job.join().map(drop),
        Err(Error::Launch(LaunchError::JoinedAlready { rank: Rank(0) }))
    );
    thread::scope(|scope| {
        let (joined, has_joined) = mpsc::channel();
        let (leave, may_leave) = mpsc::channel::<()>();
        let job = &job;
        scope.spawn(move || {
            let pe = job.join();
            joined.send(()).expect("it listens");
            may_leave.recv().expect("it is notified");
            drop(pe);
        });
        has_joined.recv().expect("it joins");
        let third = scope.spawn(|| {
            let outside = job.join_as(Rank(2)).map(drop);
            assert_eq!(
                outside,
                Err(Error::Call(CallError::RankOutOfRange { rank: Rank(2), pes: 2 }))
            );
            assert_eq!(
                job.join_as(Rank(1)).map(drop),
                Err(Error::Launch(LaunchError::RankTaken { rank: Rank(1) }))
            );
            job.join().map(drop)
        });
        assert_eq!(
            third.join().expect("no panic"),
            Err(Error::Launch(LaunchError::JobFull { pes: 2 }))
        );
        leave.send(()).expect("it listens");
    });
    drop(pe);
    let again = thread::scope(|scope| scope.spawn(|| job.join().map(drop)).join());
    assert_eq!(again.expect("no panic"), Ok(()));
    assert_eq!(Job::threads(0).build().map(drop), Err(Error::Launch(LaunchError::NoPes)));
    assert!(matches!(
        Job::threads(1_000_000).build(),
        Err(Error::Launch(LaunchError::TooManyPes { .. }))
    ));
}

#[test]
fn a_panic_reaches_the_others() {
    let job = job(2);
    thread::scope(|scope| {
        let panics = scope.spawn(|| {
            let _pe = job.join().expect("a free rank");
            panic!("on purpose");
        });
        let error = job.join().and_then(|pe| pe.world().barrier()).expect_err("it panicked");
        assert!(matches!(error, Error::PeFailed { .. }), "{error:?}");
        assert!(panics.join().is_err());
    });
}

#[test]
#[expect(clippy::mem_forget, reason = "a program may forget it")]
fn a_thread_that_ends_without_leaving_fails_the_job() {
    let job = job(2);
    let met = Barrier::new(2);
    thread::scope(|scope| {
        let forgets = || {
            let pe = job.join_as(Rank(1)).expect("a free rank");
            met.wait();
            std::mem::forget(pe);
        };
        scope.spawn(forgets);
        let pe = job.join_as(Rank(0)).expect("a free rank");
        met.wait();
        let error = pe.world().barrier().expect_err("PE 1 is gone");
        assert!(error.to_string().contains("PE 1 failed: its thread ended"), "{error}");
    });
}

/// A function that runs when the thread-local values of a thread are dropped.
struct AtEnd(RefCell<Option<Box<dyn FnOnce()>>>);

impl Drop for AtEnd {
    fn drop(&mut self) {
        if let Some(body) = self.0.take() {
            body();
        }
    }
}

/// Runs `body` in a destructor on a thread that has joined a job before; the destructor runs before
/// or after the library's.
fn at_thread_exit(is_late: bool, body: impl FnOnce() + Send + 'static) {
    thread_local! {
        static AT_END: AtEnd = const { AtEnd(RefCell::new(None)) };
    }
    let set = |body: Option<Box<dyn FnOnce()>>| AT_END.with(|end| *end.0.borrow_mut() = body);
    let thread = thread::spawn(move || {
        // Thread-local values are dropped in the reverse order of their first use.
        if is_late {
            set(None);
        }
        drop(job(1).join().expect("a free rank"));
        Job::threads(1).pool().and_then(|pool| pool.run(|_| Ok(()))).expect("a region");
        set(Some(Box::new(body)));
    });
    thread.join().expect("no panic");
}

/// Nothing would notice whether the thread leaves the job.
#[test]
fn joining_is_refused_when_the_thread_has_ended_its_memberships() {
    let job = job(2);
    let (sender, receiver) = mpsc::channel();
    let joins = job.clone();
    at_thread_exit(true, move || {
        let joined = joins.join().map(mem::forget);
        let again = joins.join().map(mem::forget);
        let ran = joins.run(|_| Ok(()));
        sender.send([joined, again, ran]).expect("the test waits");
    });
    assert_eq!(
        receiver.recv().expect("results"),
        [(); 3].map(|()| Err(Error::Launch(LaunchError::ThreadEnds)))
    );
    for rank in [Rank(0), Rank(1)] {
        drop(job.join_as(rank).expect("no thread has it"));
    }
}

#[test]
fn joining_early_at_the_end_of_a_thread_is_noticed() {
    let job = job(2);
    let (sender, receiver) = mpsc::channel();
    let joins = job.clone();
    at_thread_exit(false, move || {
        let joined = joins.join().map(mem::forget);
        let again = joins.join().map(mem::forget);
        sender.send([joined, again]).expect("the test waits");
    });
    let results = receiver.recv().expect("results");
    assert_eq!(results, [Ok(()), Err(Error::Launch(LaunchError::JoinedAlready { rank: Rank(0) }))]);
    let failed = job.join().expect_err("the thread has not left");
    assert!(failed.to_string().contains("its thread ended"), "{failed}");
}

/// A nested region is detected even there.
#[test]
fn nested_region_is_refused_at_the_end_of_a_thread() {
    let pool = Arc::new(Job::threads(2).pool().expect("a pool"));
    let (sender, receiver) = mpsc::channel();
    let runs = Arc::clone(&pool);
    pool.run(|_| Ok(())).expect("a region");
    at_thread_exit(true, move || {
        let outer = runs.run(|pe| {
            if pe.world().rank() == Rank(0) { runs.run(|_| Ok(())).map(drop) } else { Ok(()) }
        });
        sender.send(outer).expect("the test waits");
    });
    let outer = receiver.recv().expect("a result").expect_err("it is refused");
    assert!(outer.to_string().contains("a region of a pool inside"), "{outer}");
    pool.run(|_| Ok(())).expect("a region");
}

#[test]
fn a_pe_outlives_the_job_it_joined() {
    let job = job(1);
    let pe = job.join().expect("a free rank");
    drop(job);
    assert_eq!(pe.world().all_reduce(7, Sum), Ok(7));
    assert_eq!(pe.leave(), Ok(()));
}

#[test]
fn helpers_drive_the_calls_of_joined_threads() {
    let job = Job::threads(2).helper_threads().build().expect("a job");
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let pe = job.join().expect("a free rank");
                let request = pe.world().start(vec![1_u64; 1000]).all_reduce(Sum);
                assert_eq!(
                    request.and_then(consort::nonblocking::Request::wait),
                    Ok(vec![2; 1000])
                );
            });
        }
    });
}

thread_local! {
    /// The PE that the thread runs, where its operators find it.
    static OWN: RefCell<Option<JoinedPe>> = const { RefCell::new(None) };
}

/// The operator runs inside a call, so it cannot leave, and the job fails.
#[test]
fn an_operator_that_drops_its_own_pe_fails_the_job() {
    for is_started in [false, true] {
        alone(SOON, move || {
            let job = job(2);
            let program = || {
                let pe = job.join().expect("a PE is free");
                let world = pe.world().clone();
                OWN.set(Some(pe));
                let add = |a: u64, b: u64| {
                    drop(OWN.take());
                    a + b
                };
                // Another operation, which is dropped with the job.
                let pending = is_started.then(|| world.start_barrier());
                let sum = match is_started {
                    false => world.all_reduce(1, add).map(drop),
                    true => {
                        world.start(vec![1]).all_reduce(add).and_then(|sum| sum.wait()).map(drop)
                    }
                };
                drop((pending, OWN.take()));
                sum
            };
            thread::scope(|scope| {
                let threads = [(); 2].map(|()| scope.spawn(program));
                // A call that was complete before the failure succeeds.
                let _sums = threads.map(|thread| thread.join().expect("no panic"));
            });
            let failed = job.join().map(drop).expect_err("a PE has left within its call");
            assert!(failed.to_string().contains("an operator may not call"), "{failed}");
        });
    }
}

/// The last PE's operator also ends the job, and waits for the helpers.
#[test]
fn an_operator_may_end_its_job_and_the_helpers() {
    alone(SOON, || {
        for _ in 0..50 {
            let job = Job::threads(2).heap_bytes(1 << 16).helper_threads().build().expect("a job");
            let program = |job: Job| {
                let pe = job.join().expect("a PE is free");
                drop(job);
                let world = pe.world().clone();
                OWN.set(Some(pe));
                let add = |a: u64, b: u64| {
                    drop(OWN.take()); // `None` on a helper
                    a + b
                };
                let sum = world.start(vec![1]).all_reduce(add).and_then(|sum| sum.wait());
                drop((sum, OWN.take()));
            };
            let jobs = [job.clone(), job];
            let threads = jobs.map(|job| thread::spawn(move || program(job)));
            threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        }
    });
}
