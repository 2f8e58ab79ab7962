//! Waits for words of symmetric memory.

use std::{thread, time::Duration};

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
