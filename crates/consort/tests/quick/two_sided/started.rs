//! Messages in both directions at once, and nonblocking messages.

use consort::{
    EAGER_BYTES, Error, Job, Rank, Result, Team, bindings::JobBuilderExt as _, error::CallError,
    ops::Sum,
};
use consort_conformance::turns::{LIMIT, alone};
use consort_fabric::Nodes;

use super::{LENGTHS, message};

/// Runs a program on threads that share memory, with helpers, and on nodes.
fn everywhere(pes: usize, program: impl Fn(&Team) -> Result<()> + Copy + Send + Sync + 'static) {
    for kind in ["threads", "helpers", "nodes"] {
        let outcome = alone(LIMIT, move || {
            let all = match kind {
                "threads" => Job::threads(pes),
                "helpers" => Job::threads(pes).helper_threads(),
                _ => Job::threads(pes).loopback([Nodes::Blocks(1); 2], 9),
            };
            all.run(|pe| program(pe.world()))
        });
        assert!(outcome.is_ok(), "{kind}: {:?}", outcome.err());
    }
}

#[test]
fn send_receive_exchanges_messages_of_any_length() {
    for pes in [1, 2, 3] {
        everywhere(pes, |world| {
            for (number, len) in LENGTHS.into_iter().enumerate() {
                let mut ghost = vec![0; len];
                let (to, from) = (world.right(), world.left());
                world.send_receive(to, &message(world.rank(), len), from, &mut ghost)?;
                assert_eq!(ghost, message(from, len));
                // Different lengths in the other direction; the peers' calls differ in kind.
                let next = LENGTHS[(number + 1) % LENGTHS.len()];
                if world.size() == 2 && world.rank() == Rank(0) {
                    let mut back = vec![0; next];
                    world.send_receive(Rank(1), &ghost, Rank(1), &mut back)?;
                    assert_eq!(back, message(Rank(1), next));
                } else if world.size() == 2 {
                    let sent = world.start_send(Rank(0), message(Rank(1), next))?;
                    world.receive(Rank(0), &mut ghost)?;
                    assert_eq!(sent.wait()?, message(Rank(1), next));
                }
            }
            Ok(())
        });
    }
}

#[test]
fn send_receive_to_itself_copies() {
    let done = Job::threads(2).run(|pe| {
        let (world, mut data) = (pe.world(), [0; 2]);
        let own = world.rank();
        world.send_receive(own, &[3, 4], own, &mut data)?;
        assert_eq!(data, [3, 4]);
        let lengths = Error::Call(CallError::Lengths { source_len: 1, target_len: 2 });
        assert_eq!(world.send_receive(own, &[3], own, &mut data), Err(lengths));
        Ok(())
    });
    assert!(done.is_ok(), "{:?}", done.err());
}

/// Messages of all kinds and lengths to all others, received in the order in which they are sent
/// and completed in another order, with a collective in between.
#[test]
fn started_messages_meet_calls_of_any_kind_in_order() {
    everywhere(3, |world| {
        let others = || world.ranks().filter(|&peer| peer != world.rank());
        let mut sent = Vec::new();
        let mut received = Vec::new();
        for round in 0..4 {
            for len in LENGTHS {
                for peer in others() {
                    let from = |peer: Rank| Rank(10 * round + peer.0);
                    sent.push(world.start_send(peer, message(from(world.rank()), len))?);
                    received.push((from(peer), len, world.start_receive(peer, vec![0; len])?));
                }
            }
            assert_eq!(world.all_reduce(1, Sum)?, world.size());
        }
        for (from, len, request) in received.into_iter().rev() {
            assert_eq!(request.wait()?, message(from, len));
        }
        sent.into_iter().try_for_each(|request| request.wait().map(drop))
    });
}

#[test]
fn scope_lends_its_slices_to_messages() {
    everywhere(2, |world| {
        for len in LENGTHS {
            let (mut own, mut first, mut second) =
                (message(world.rank(), len), vec![0; len], vec![0; len]);
            let team = world.clone();
            team.overlap(|scope| {
                let sent = scope.start_send(team.right(), &mut own)?;
                let got = scope.start_receive(team.left(), &mut first)?.wait()?;
                assert_eq!(got, message(team.left(), len));
                let own = sent.wait()?;
                own.fill(7);
                scope.start_send(team.right(), own)?;
                scope.start_receive(team.left(), &mut second)?;
                Ok(()) // the scope waits
            })?;
            assert_eq!(second, vec![7_u64; len]);
        }
        Ok(())
    });
}

/// A scope ends with messages whose peers are late, while no call of its own team is pending.
#[test]
fn scope_waits_for_messages_of_a_late_peer() {
    let outcome = alone(LIMIT, || {
        Job::threads(3).run(|pe| {
            let (world, mut data) = (pe.world(), vec![0_u8; 2 * EAGER_BYTES]);
            match world.rank() {
                Rank(0) => world.overlap(|scope| {
                    scope.start_receive(Rank(2), &mut data)?;
                    Ok(())
                })?,
                Rank(1) => world.receive(Rank(2), &mut data)?,
                _ => {
                    std::thread::sleep(std::time::Duration::from_millis(100));
                    world.send(Rank(1), &data)?;
                    world.send(Rank(0), &data)?;
                }
            }
            world.barrier()
        })
    });
    assert!(outcome.is_ok(), "{:?}", outcome.err());
}

#[test]
fn messages_of_teams_and_their_parents_are_in_one_order() {
    everywhere(3, |world| {
        let reversed = world.split(Some(0), -i64::from(world.rank().0))?.expect("a team of all");
        let mut data = [0];
        match world.rank() {
            Rank(0) => {
                world.send(Rank(2), &[1])?;
                reversed.send(Rank(0), &[2])?;
            }
            Rank(2) => {
                reversed.receive(Rank(2), &mut data)?;
                assert_eq!(data, [1]);
                world.receive(Rank(0), &mut data)?;
                assert_eq!(data, [2]);
            }
            _ => {}
        }
        reversed.clone().free()?;
        let freed = reversed.send(reversed.left(), &[1]);
        assert_eq!(freed, Err(Error::Call(CallError::Freed)));
        Ok(())
    });
}
