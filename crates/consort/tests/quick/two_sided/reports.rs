//! Reports of messages that do not match.

use consort::{EAGER_BYTES, Error, Job, Rank, Result, Team};
use consort_conformance::turns::{LIMIT, alone};

/// Returns the error of a job of `pes` PEs that run `program`.
fn report(
    pes: usize,
    program: impl Fn(&Team) -> Result<()> + Copy + Send + Sync + 'static,
) -> String {
    let outcome = alone(LIMIT, move || Job::threads(pes).run(|pe| program(pe.world())));
    match outcome {
        Err(Error::Mismatched(why)) => why.to_string(),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn assert_says(report: &str, parts: &[&str]) {
    assert!(parts.iter().all(|part| report.contains(part)), "{report}");
    for other in ["broadcast", "two_sided_", "direct", "flat", "in the team", "in the list"] {
        assert!(!report.contains(other), "{report}");
    }
}

const LONG: usize = EAGER_BYTES + 1;
const THIS_FILE: &str = "reports.rs:";

#[test]
fn two_lengths_of_a_message_are_reported_as_each_pe_gave_it() {
    for (sent, received) in [(2, 1), (1, 2), (0, 1), (5000, 5001), (LONG, 3), (7, LONG)] {
        let why = report(2, move |world| match world.rank() {
            Rank(0) => world.send(Rank(1), &vec![1_u8; sent]),
            _ => world.receive(Rank(0), &mut vec![0_u8; received]),
        });
        let bytes = |count| if count == 1 { "1 byte".to_owned() } else { format!("{count} bytes") };
        let (sent, received) = (bytes(sent), bytes(received));
        let sent = format!("PE 0 called send of {sent} of u8 to PE 1 at ");
        let received = format!("PE 1 called receive of {received} of u8 from PE 0 at ");
        assert_says(&why, &[&sent, &received, "same length and type", THIS_FILE]);
    }
}

/// The messages have no bytes that could differ.
#[test]
fn two_lengths_of_a_message_of_zero_sized_elements_are_reported() {
    let why = report(2, |world| match world.rank() {
        Rank(0) => world.send(Rank(1), &[(); 3]),
        _ => world.receive(Rank(0), &mut [(); 5]),
    });
    let (sent, received) = ("send of 3 elements of () to PE 1", "receive of 5 elements of () from");
    assert_says(&why, &[sent, received, "same length and type"]);
    let done = alone(LIMIT, || {
        Job::threads(2).run(|pe| match pe.world().rank() {
            Rank(0) => {
                [3, 5, 3].into_iter().try_for_each(|len| pe.world().send(Rank(1), &vec![(); len]))
            }
            _ => [3, 5, 3]
                .into_iter()
                .try_for_each(|len| pe.world().receive(Rank(0), &mut vec![(); len])),
        })
    });
    assert!(done.is_ok(), "{:?}", done.err());
}

#[test]
fn two_types_of_a_message_are_reported() {
    let why = report(3, |world| match world.rank() {
        Rank(2) => world.send(Rank(1), &[1_u32, 2]),
        Rank(1) => world.receive(Rank(2), &mut [0_f32, 0.0]),
        _ => Ok(()),
    });
    assert_says(&why, &["send of 8 bytes of u32 to PE 1", "receive of 8 bytes of f32 from PE 2"]);
}

#[test]
fn lengths_are_compared_message_by_message() {
    let why = report(2, |world| {
        for len in [1, 2, 3] {
            match world.rank() {
                Rank(0) => drop(world.start_send(Rank(1), vec![1_u64; len])?),
                _ => world.receive(Rank(0), &mut vec![0_u64; len.min(2)])?,
            }
        }
        Ok(())
    });
    assert_says(&why, &["disagree about message 2: ", "send of 24 bytes", "receive of 16 bytes"]);
}

#[test]
fn long_messages_that_all_send_first_are_a_deadlock() {
    for pes in [2, 3] {
        let why = report(pes, |world| {
            world.send(world.right(), &[1_u8; LONG])?;
            world.receive(world.left(), &mut [0_u8; LONG])
        });
        assert_says(&why, &["a deadlock: PE ", "send of 65537 bytes of u8 to PE ", "send_receive"]);
    }
}

/// Short messages: a sender gets at most 48 ahead of its receiver.
#[test]
fn too_many_messages_that_all_send_first_are_a_deadlock_with_its_reason() {
    let why = report(2, |world| {
        (0..200).try_for_each(|number| world.send(world.right(), &[number]))?;
        (0..200).try_for_each(|_| world.receive(world.left(), &mut [0]))
    });
    assert_says(&why, &["a deadlock: PE ", "send of 4 bytes of i32 to PE ", "48 messages"]);
}

#[test]
fn pes_that_all_receive_first_are_a_deadlock() {
    let why = report(2, |world| {
        world.receive(world.left(), &mut [0])?;
        world.send(world.right(), &[1])
    });
    assert_says(&why, &["a deadlock: PE ", "receive of 4 bytes of i32 from PE 1", THIS_FILE]);
}

/// The receiver has ended, or waits for the sender.
#[test]
fn unreceived_message_is_reported() {
    for len in [1, 20_000, LONG] {
        let bytes = if len == 1 { "1 byte".to_owned() } else { format!("{len} bytes") };
        for comes_to_the_barrier in [false, true] {
            let why = report(3, move |world| match world.rank() {
                Rank(0) => world.send(Rank(1), &vec![1_u8; len]),
                _ if comes_to_the_barrier => world.barrier(),
                _ => Ok(()),
            });
            let call = format!("send of {bytes} of u8 to PE 1");
            let what = if comes_to_the_barrier { "barrier()" } else { "PE 1 finished without" };
            assert!(why.contains(&call) && why.contains(what), "{why}");
        }
    }
}

#[test]
fn unreceived_last_message_is_reported() {
    let why = report(2, |world| match world.rank() {
        Rank(0) => (1..3).try_for_each(|number| world.send(Rank(1), &[number])),
        _ => world.receive(Rank(0), &mut [0]),
    });
    assert_says(&why, &["PE 1 finished without receiving a message: PE 0 called send of 4 bytes"]);
}

#[test]
fn unsent_message_is_reported() {
    for is_started in [false, true] {
        let why = report(2, move |world| match world.rank() {
            Rank(0) => Ok(()),
            _ if is_started => world.start_receive(Rank(0), vec![0_u16; 3])?.wait().map(drop),
            _ => world.receive(Rank(0), &mut [0_u16; 3]),
        });
        assert_says(
            &why,
            &["PE 0 finished without sending", "receive of 6 bytes of u16 from PE 0"],
        );
    }
}
