//! Deadlocks of PEs on several nodes: the PEs wait for each other in calls of different teams, for
//! a PE that skips a call, or for a word. PEs that wait for a computing PE are not reported.

use std::{thread, time::Duration};

use consort::{
    EAGER_BYTES, Error, Job, JobBuilder, Rank, Result, Team, bindings::JobBuilderExt as _,
    error::Failure, ops::Sum, symmetric::Until,
};
use consort_conformance::turns::{LIMIT, alone};
use consort_fabric::Nodes;

/// The time limit of a job in which PEs wait in vain.
const SOON: Duration = Duration::from_secs(3);

/// Returns six PEs: each on its own node, two per node in blocks, and in turn on two nodes.
fn six() -> [JobBuilder; 3] {
    let forms = [Nodes::Blocks(1), Nodes::Blocks(2), Nodes::InTurn(2)];
    forms.map(|form| Job::threads(6).loopback([form; 2], 5))
}

/// Returns the error of a program in which PEs on nodes wait for each other.
fn deadlock(
    pes: JobBuilder,
    program: impl Fn(&Team) -> Result<()> + Send + Sync + 'static,
) -> Error {
    let ended = alone(SOON, move || pes.run(|pe| program(pe.world())));
    ended.expect_err("PEs wait for each other")
}

#[test]
fn teams_on_nodes_that_wait_for_each_other_are_found() {
    for pes in six() {
        let error = deadlock(pes, |world| {
            let low = world.strided(Rank(0), 1, 4)?;
            let all = world.strided(Rank(0), 1, 6)?.expect("all are in it");
            if world.rank() == Rank(0) {
                low.expect("0 is in it").barrier()?;
            }
            all.all_reduce(1, Sum).map(drop)
        });
        let Error::Mismatched(Failure::Deadlock { one, other }) = &error else { panic!("{error}") };
        let [zero, some] = if one.0 == Rank(0) { [one, other] } else { [other, one] };
        assert!(zero.0 == Rank(0) && zero.1.contains("in the team of PEs 0, 1, 2, 3"), "{error}");
        assert!(zero.1.contains("barrier()") && some.1.contains("all_reduce"), "{error}");
        assert!(
            [&zero.1, &some.1].iter().all(|call| call.contains("far_deadlocks.rs:")),
            "{error}"
        );
    }
}

/// Each PE forms a pair with the next one, and all call the pair with the left one first.
#[test]
fn ring_of_teams_on_nodes_is_found() {
    for pes in six() {
        let error = deadlock(pes, |world| {
            let mut pairs = Vec::new();
            for first in (0..6).map(Rank) {
                pairs.push(world.subset(&[first, first.plus(1, 6)])?);
            }
            let pair = |first: Rank| pairs[first.index()].clone().expect("in both");
            pair(world.left()).start_barrier()?.wait()?;
            pair(world.rank()).barrier()
        });
        assert!(matches!(error, Error::Mismatched(Failure::Deadlock { .. })), "{error}");
    }
}

/// The other PEs continue with calls of their own team.
#[test]
fn deadlock_is_found_while_other_pes_communicate() {
    for pes in six() {
        let error = deadlock(pes, |world| {
            let busy = world.strided(Rank(0), 1, 2)?;
            let two = world.strided(Rank(2), 1, 2)?;
            let four = world.strided(Rank(2), 1, 4)?;
            if let Some(busy) = busy {
                loop {
                    busy.all_reduce(1, Sum)?;
                }
            }
            if world.rank() == Rank(3) {
                two.expect("3 is in it").barrier()?;
            }
            four.expect("the others are in it").barrier()
        });
        assert!(matches!(error, Error::Mismatched(Failure::Deadlock { .. })), "{error}");
    }
}

/// A member that has ended after its last call in a team does not hide that others wait in it.
#[test]
fn deadlock_is_found_after_a_member_has_ended() {
    for form in [Nodes::Blocks(1), Nodes::InTurn(2)] {
        let error = deadlock(Job::threads(3).loopback([form; 2], 5), |world| {
            let all = world.strided(Rank(0), 1, 3)?.expect("all are in it");
            let two = world.strided(Rank(1), 1, 2)?;
            if world.rank() == Rank(2) {
                two.expect("2 is in it").barrier()?;
            }
            all.reduce(1, Sum, Rank(1)).map(drop)
        });
        let Error::Mismatched(Failure::Deadlock { one, other }) = &error else { panic!("{error}") };
        assert!([one.0, other.0].iter().all(|pe| *pe != Rank(0)), "{error}");
    }
}

/// Long data that moves between two PEs does not hide that others wait for each other.
#[test]
fn deadlock_is_found_while_other_pes_move_long_data() {
    const WORDS: usize = (1 << 20) / size_of::<u64>();
    for form in [Nodes::Blocks(1), Nodes::Blocks(2)] {
        let error = deadlock(Job::threads(8).loopback([form; 2], 5), |world| {
            let data = world.symmetric::<u64>(WORDS)?;
            let two = world.strided(Rank(4), 1, 2)?;
            let four = world.strided(Rank(4), 1, 4)?;
            let mut got = vec![0; WORDS];
            match world.rank() {
                Rank(0) => loop {
                    data.get(Rank(2), 0, &mut got)?;
                },
                Rank(2) => loop {
                    data.get(Rank(0), 0, &mut got)?;
                },
                Rank(1 | 3) => return Ok(()),
                Rank(5) => two.expect("5 is in it").barrier()?,
                _ => {}
            }
            four.expect("the others are in it").barrier()
        });
        assert!(matches!(error, Error::Mismatched(Failure::Deadlock { .. })), "{error}");
    }
}

/// The send of a message of more than [`EAGER_BYTES`] completes when it has been received.
#[test]
fn far_pes_that_both_send_a_long_message_first_are_found() {
    let error = deadlock(Job::threads(2).loopback([Nodes::Blocks(1); 2], 5), |world| {
        let mut message = vec![0_u8; EAGER_BYTES + 1];
        world.send(world.right(), &message)?;
        world.receive(world.left(), &mut message)
    });
    assert!(matches!(error, Error::Mismatched(Failure::Deadlock { .. })), "{error}");
}

/// PE 5 skips a call of its team; the error reaches the others when it has finished, or waits.
#[test]
fn pe_that_skips_a_call_of_its_team_is_found() {
    for (pes, waits) in six().into_iter().zip([true, false, true]) {
        let error = deadlock(pes, move |world| {
            let pair = world.strided(Rank(1), 4, 2)?;
            if let Some(pair) = pair.filter(|_| world.rank() != Rank(5)) {
                pair.barrier()?;
            }
            if waits || world.rank() != Rank(5) { world.barrier() } else { Ok(()) }
        });
        assert!(error.to_string().contains("PE 5"), "{error}");
    }
}

#[test]
fn word_that_no_far_pe_can_change_is_reported() {
    for pes in six() {
        let error = deadlock(pes, |world| {
            let word = world.symmetric::<u64>(1)?;
            if world.rank() == Rank(3) {
                word.wait_until(0, Until::Equals(1))?;
            }
            world.barrier()
        });
        let text = error.to_string();
        assert!(text.contains("PE 3 waits for a word that no PE is left to change"), "{text}");
    }
}

/// A chain of teams across nodes waits for a PE that computes, in a call or outside, and another PE
/// waits for a word that it changes.
#[test]
fn computing_far_pe_is_not_reported_as_deadlock() {
    const COMPUTES: Duration = Duration::from_millis(600);
    for pes in six() {
        let ended = alone(LIMIT, move || {
            pes.run(|pe| {
                let world = pe.world();
                let word = world.symmetric::<u64>(1)?;
                let mut pairs = Vec::new();
                for first in 0..5 {
                    pairs.push(world.strided(Rank(first), 1, 2)?);
                }
                let me = world.rank().0 as usize;
                if me == 5 {
                    thread::sleep(COMPUTES);
                    word.fetch_add(Rank(0), 0, 1)?;
                } else {
                    let sum = pairs[me].as_ref().expect("in it").all_reduce(1, |a, b| {
                        if me == 2 {
                            thread::sleep(COMPUTES);
                        }
                        a + b
                    })?;
                    assert_eq!(sum, 2);
                }
                if me > 0 {
                    let sum = pairs[me - 1].as_ref().expect("in it").all_reduce(1, |a, b| a + b)?;
                    assert_eq!(sum, 2);
                } else {
                    word.wait_until(0, Until::Equals(1))?;
                }
                world.barrier()
            })
        });
        ended.expect("no PE waits in vain");
    }
}

/// The sender has finished by the time that its peer waits for more data than was sent.
#[test]
fn mismatched_send_and_receive_are_found_on_nodes() {
    for pes in [Job::threads(2), Job::threads(2).loopback([Nodes::Blocks(1); 2], 7)] {
        let error = deadlock(pes, |world| match world.rank() {
            Rank(0) => world.send(Rank(1), &[1_u8; 100]),
            _ => world.receive(Rank(0), &mut [0_u16; 10_000]),
        });
        assert!(error.to_string().contains("give the same length and type"), "{error}");
    }
}
