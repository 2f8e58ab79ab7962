//! Waits for words of symmetric memory.

use std::{
    thread,
    time::{Duration, Instant},
};

use consort::{
    Job, Rank,
    symmetric::{Atomic, Until},
};

use crate::jobs::on;

#[test]
fn each_wait_ends_when_its_condition_holds() {
    for waiting in consort::Waiting::EVERY {
        on(Job::threads(2).waiting(waiting), |world| {
            let word = world.symmetric::<u64>(1)?;
            let answer = world.symmetric::<u64>(1)?;
            word.store(0, 10)?;
            world.barrier()?;
            let steps = [
                (11, Until::Equals(11)),
                (5, Until::Differs(11)),
                (u64::MAX, Until::AtLeast(6)),
                (3, Until::AtMost(3)),
            ];
            for (number, (value, until)) in (1..).zip(steps) {
                if world.rank() == Rank(0) {
                    thread::sleep(Duration::from_millis(2));
                    word.atomic(Rank(1), 0, Atomic::Swap(value))?;
                    answer.wait_until(0, Until::Equals(number))?;
                } else {
                    assert_eq!(word.wait_until(0, until)?, value);
                    answer.fetch_add(Rank(0), 0, 1)?;
                }
            }
            world.barrier()
        });
    }
}

/// A plain put also wakes a sleeping PE.
#[test]
fn a_put_ends_a_wait() {
    let parks = Job::threads(3).waiting(consort::Waiting::SpinYieldPark);
    on(parks, |world| {
        let word = world.symmetric::<u64>(1)?;
        if world.rank() == Rank(0) {
            thread::sleep(Duration::from_millis(50));
            for peer in [Rank(1), Rank(2)] {
                word.put(peer, 0, &[4])?;
            }
        } else {
            word.wait_until(0, Until::AtLeast(1))?;
        }
        world.barrier()
    });
}

/// A wait with a limit returns when it has passed, and continues when called again: on the PE and
/// on a thread with a handle.
#[test]
fn a_wait_ends_when_its_time_is_over() {
    const LIMIT: Duration = Duration::from_millis(20);
    on(Job::threads(2), |world| {
        let word = world.symmetric::<u64>(1)?;
        let counter = world.completion_counter()?;
        if world.rank() == Rank(1) {
            thread::sleep(10 * LIMIT);
            word.put_counted(Rank(0), 0, &[7], &counter)?;
            return world.barrier();
        }
        let shared = word.share()?;
        let other = thread::spawn(move || {
            let begun = Instant::now();
            let mut waits = 0;
            while shared.wait_until_timeout(0, Until::Equals(7), LIMIT)?.is_none() {
                waits += 1;
                assert!(begun.elapsed() >= waits * LIMIT);
            }
            Ok::<_, consort::Error>(waits)
        });
        let (begun, mut waits) = (Instant::now(), 0);
        while counter.wait_timeout(1, LIMIT)?.is_none() {
            waits += 1;
            assert!(begun.elapsed() >= waits * LIMIT);
        }
        assert_eq!(word.wait_until_timeout(0, Until::Equals(7), LIMIT)?, Some(7));
        assert!(waits > 2 && other.join().expect("no panic")? > 2);
        world.barrier()
    });
}

/// All others have finished: a thread with a handle still ends the wait, and so does the limit.
#[test]
fn a_wait_without_peers_ends_by_a_handle_or_the_clock() {
    const LATE: Duration = Duration::from_millis(100);
    let ended = Job::threads(3).run(|pe| {
        let world = pe.world();
        let word = world.symmetric::<u64>(2)?;
        let counter = world.completion_counter()?;
        if world.rank() != Rank(0) {
            return Ok(());
        }
        assert_eq!(word.wait_until_timeout(0, Until::Equals(1), LATE)?, None);
        assert_eq!(counter.wait_timeout(1, LATE)?, None);
        let shared = word.share()?;
        thread::scope(|scope| {
            scope.spawn(move || {
                thread::sleep(LATE);
                shared.fetch_add(Rank(0), 1, 1)
            });
            word.wait_until(1, Until::Equals(1)).map(drop)
        })
    });
    assert_eq!(ended.map(drop), Ok(()));
}

/// A PE that polls a word gets the error of a peer's panic.
#[test]
fn operations_notice_that_the_job_has_failed() {
    let ended = Job::threads(2).run(|pe| {
        let world = pe.world();
        let word = world.symmetric::<u64>(1)?;
        assert!(world.rank() == Rank(0), "on purpose");
        while word.load(0)? == 0 {
            thread::yield_now();
        }
        Ok(())
    });
    assert!(matches!(ended, Err(consort::Error::PeFailed { rank: Rank(1), .. })), "{ended:?}");
}

/// The smaller of two limits applies: one fails the job, and the other ends the wait.
#[test]
fn a_longer_limit_does_not_replace_a_shorter_one() {
    let ended = Job::threads(2).run(|pe| {
        let world = pe.world();
        let word = world.symmetric::<u64>(1)?;
        if world.rank() == Rank(1) {
            thread::sleep(Duration::from_millis(600));
            return Ok(());
        }
        let [short, long] = [Duration::from_millis(100), Duration::from_secs(100)];
        let none = pe.with_timeout(long, || word.wait_until_timeout(0, Until::Equals(1), short))?;
        assert_eq!(none, None);
        pe.with_timeout(short, || word.wait_until_timeout(0, Until::Equals(1), long)).map(drop)
    });
    assert!(matches!(ended, Err(consort::Error::TimedOut(_))), "{ended:?}");
}

/// The helper of PE 0 is in an operator for a long time.
#[test]
fn a_limit_counts_while_a_helper_computes() {
    const LONG: Duration = Duration::from_millis(1500);
    let ended = Job::threads(2).helper_threads().run(|pe| {
        let world = pe.world();
        let counter = world.completion_counter()?;
        let slow = |a: u64, b: u64| {
            thread::sleep(LONG);
            a + b
        };
        let sum = world.start(vec![1_u64]).all_reduce(slow)?;
        thread::sleep(LONG / 5);
        let begun = Instant::now();
        assert_eq!(counter.wait_timeout(1, LONG / 30)?, None);
        let took = begun.elapsed();
        assert_eq!(sum.wait()?, [2]);
        Ok(took)
    });
    let took = ended.expect("no failure");
    assert!(took.iter().all(|&took| took < LONG / 2), "{took:?}");
}
