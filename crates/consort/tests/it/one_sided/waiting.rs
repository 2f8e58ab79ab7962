//! Waits for words of symmetric memory.

use std::{
    thread,
    time::{Duration, Instant},
};

use consort::{Atomic, Pes, Rank, Until};

use crate::jobs::on;

#[test]
fn each_wait_ends_when_its_condition_holds() {
    for waiting in consort::Waiting::EVERY {
        on(Pes::threads(2).waiting(waiting), |world| {
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

/// A sleeping PE is woken by a plain put as well.
#[test]
fn a_put_ends_a_wait() {
    let parks = Pes::threads(3).waiting(consort::Waiting::SpinYieldPark);
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

/// A wait with a limit returns when that has passed, and goes on where it is called again: on the
/// PE and on a thread with a handle.
#[test]
fn a_wait_ends_when_its_time_is_over() {
    const LIMIT: Duration = Duration::from_millis(20);
    on(Pes::threads(2), |world| {
        let word = world.symmetric::<u64>(1)?;
        let counter = world.counter()?;
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
