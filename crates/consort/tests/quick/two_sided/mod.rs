//! Messages between two PEs. Both make a call.

mod reports;
mod started;

use consort::{
    EAGER_BYTES, Error, Job, Rank, Result, Team,
    bindings::JobBuilderExt as _,
    error::{CallError, TeamError},
    tune::Collective,
};
use consort_conformance::turns::{LIMIT, alone};
use consort_fabric::Nodes;

/// The most elements of a message that is sent without waiting for its receiver.
const EAGER: usize = EAGER_BYTES / size_of::<u64>();
/// The lengths of messages: none, one, some lines, more than an inbox holds, and more than is sent
/// eagerly.
const LENGTHS: [usize; 6] = [0, 1, 100, EAGER, EAGER + 1, 300_000];
/// The documented limit on eagerly sent messages from one PE to another.
const AHEAD: u64 = 48;

fn message(from: Rank, len: usize) -> Vec<u64> {
    (0..len as u64).map(|at| at * 7 + u64::from(from.0) + 1).collect()
}

/// Sends around a ring: even PEs send first.
fn around(team: &Team, len: usize) -> Result<()> {
    let (me, mut data) = (team.rank(), vec![0; len]);
    for sends in [me.0.is_multiple_of(2), !me.0.is_multiple_of(2)] {
        if sends {
            team.send(team.right(), &message(me, len))?;
        } else {
            team.receive(team.left(), &mut data)?;
        }
    }
    assert_eq!(data, message(team.left(), len));
    Ok(())
}

#[test]
fn messages_of_any_length_go_around_rings() {
    for pes in [2_usize, 3, 4] {
        let results = Job::threads(pes).run(|pe| {
            let world = pe.world();
            LENGTHS.into_iter().try_for_each(|len| around(world, len))?;
            // In another order of ranks, and with only some PEs.
            let color = (world.rank().0 > 0).then_some(0);
            let some = world.split(color, -i64::from(world.rank().0))?;
            some.filter(|team| team.size() > 1).map_or(Ok(()), |team| around(&team, 5))
        });
        assert_eq!(results.map(|results| results.len()), Ok(pes));
    }
}

#[test]
fn messages_keep_order_without_other_pes() {
    let results = Job::threads(4).run(|pe| {
        let (world, mut last) = (pe.world(), [0]);
        for number in 0..1000 {
            match world.rank() {
                Rank(3) => world.send(Rank(1), &[number])?,
                Rank(1) => {
                    world.receive(Rank(3), &mut last)?;
                    assert_eq!(last, [number]);
                }
                _ => {}
            }
        }
        Ok(world.algorithms().served_by(Collective::Broadcast))
    });
    assert!(results.unwrap().iter().all(Option::is_none));
}

#[test]
fn a_pool_has_messages_in_each_region() {
    let pool = Job::threads(2).pool().unwrap();
    for _ in 0..3 {
        let done = pool.run(|pe| around(pe.world(), 10));
        assert!(done.is_ok(), "{:?}", done.err());
    }
}

/// The exchange of ghost cells as in MPI textbooks: all send to both neighbours, then all receive.
fn halo(team: &Team, len: usize) -> Result<()> {
    let (own, mut ghost) = (message(team.rank(), len), vec![0; len]);
    team.send(team.left(), &own)?;
    team.send(team.right(), &own)?;
    for from in [team.right(), team.left()] {
        team.receive(from, &mut ghost)?;
        assert_eq!(ghost, message(from, len));
    }
    Ok(())
}

#[test]
fn pes_that_all_send_first_get_messages_up_to_the_eager_size() {
    for nodes in [None, Some(Nodes::Blocks(1)), Some(Nodes::Blocks(2))] {
        let outcome = alone(LIMIT, move || {
            let pes = Job::threads(4);
            let pes = nodes.map_or(pes.clone(), |nodes| pes.loopback([nodes; 2], 5));
            pes.run(|pe| {
                let lens = [0, 1, 7, 1000, 1536, 1537, EAGER - 1, EAGER];
                lens.into_iter().try_for_each(|len| halo(pe.world(), len))
            })
        });
        assert!(outcome.is_ok(), "{nodes:?}: {:?}", outcome.err());
    }
}

#[test]
fn many_messages_are_sent_ahead_between_collectives() {
    let outcome = alone(LIMIT, || {
        Job::threads(2).run(|pe| {
            let (world, mut last) = (pe.world(), [0]);
            for round in 0..20 {
                for number in 0..AHEAD {
                    world.send(world.right(), &[round * AHEAD + number])?;
                }
                world.barrier()?;
                for number in 0..AHEAD {
                    world.receive(world.left(), &mut last)?;
                    assert_eq!(last, [round * AHEAD + number]);
                }
            }
            Ok(())
        })
    });
    assert!(outcome.is_ok(), "{:?}", outcome.err());
}

#[test]
fn a_peer_is_another_pe_of_the_team() {
    let done = Job::threads(2).run(|pe| {
        let world = pe.world();
        let (own, mut data) = (Err(Error::Call(CallError::OwnMessage { rank: world.rank() })), [1]);
        assert_eq!(world.send(world.rank(), &[1]), own);
        assert_eq!(world.receive(world.rank(), &mut data), own);
        assert_eq!(world.send_receive(world.rank(), &[1], world.right(), &mut data), own);
        let outside = world.receive(Rank(2), &mut [1]);
        assert_eq!(outside, Err(Error::Call(CallError::RankOutOfRange { rank: Rank(2), pes: 2 })));
        Ok(())
    });
    assert!(done.is_ok(), "{:?}", done.err());
}

/// PEs of two nodes, with and without memory that both can access.
#[test]
fn messages_go_between_nodes() {
    let done = Job::threads(4)
        .loopback([Nodes::Blocks(2); 2], 1)
        .run(|pe| LENGTHS.into_iter().try_for_each(|len| around(pe.world(), len)));
    assert!(done.is_ok(), "{:?}", done.err());
}

/// Without memory for a team of the two, a message is refused, however often it is tried; with
/// memory it is sent.
#[test]
fn message_refused_for_memory_is_sent_later() {
    let results = Job::threads(2).heap_bytes(1 << 20).run(|pe| {
        let world = pe.world();
        let message = |data: &mut [u64]| match world.rank() {
            Rank(0) => world.send(Rank(1), data),
            _ => world.receive(Rank(0), data),
        };
        let is_full = |error: &Error| {
            matches!(error, Error::Call(CallError::Team(TeamError::Memory { pes: 2, .. })))
        };
        let mut others = Vec::new();
        loop {
            match world.strided(Rank(0), 1, 2) {
                Ok(team) => others.extend(team),
                Err(error) => break assert!(is_full(&error), "{error}"),
            }
        }
        let mut data = [u64::from(world.rank().0) + 3; 5];
        for _ in 0..3 {
            assert!(message(&mut data).is_err_and(|error| is_full(&error)));
        }
        world.barrier()?;
        others.pop().expect("a team").free()?;
        world.barrier()?; // both have left its memory
        message(&mut data)?;
        Ok(data)
    });
    assert_eq!(results.expect("all is well"), [[3; 5]; 2]);
}
