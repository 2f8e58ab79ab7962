//! Broadcasts that only the source calls: every message arrives everywhere, once and in order.

use std::{
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    time::Instant,
};

use consort::{Error, Job, Rank, Result, Team, Waiting, async_broadcasts::AsyncVariant};
use consort_conformance::turns::{LIMIT, alone, note};

use crate::jobs::{SOON, pes_of};

/// Lengths of messages: nothing, a few bytes, a chunk, several.
const LENGTHS: [usize; 6] = [0, 1, 8, 32 << 10, (32 << 10) + 1, 150_000];

/// Returns message `number` of `source`.
fn message(source: Rank, number: usize) -> Vec<u8> {
    let len = LENGTHS[(source.index() + number) % LENGTHS.len()];
    let first = source.index() * 7 + number * 31;
    (0..=250).cycle().skip(first % 251).step_by(3).take(len).collect()
}

/// Returns all messages of the first `sources` PEs, as PE `but` receives them.
fn all_of(sources: usize, messages: usize, but: Rank, pes: usize) -> Vec<Vec<Vec<u8>>> {
    let of = |source: Rank| {
        let sends = source.index() < sources && source != but;
        (0..if sends { messages } else { 0 }).map(|number| message(source, number)).collect()
    };
    (0..pes).map(Rank::new).map(of).collect()
}

/// The first `sources` PEs broadcast `messages` each, with other calls in between.
fn all_arrive(pes: usize, waiting: Waiting, k: usize, sources: usize, messages: usize) {
    // Both orders are correct. With the published one, sources starve and others store data.
    let is_published = pes <= 5 && k.is_multiple_of(2);
    let variant = if is_published { AsyncVariant::Published } else { AsyncVariant::Fair };
    note(format!("{pes} PEs that {waiting}, k = {k}, {variant:?}, {sources} sources"));
    let all = pes_of(pes).waiting(waiting).run(|pe| {
        let world = pe.world();
        let mut got = vec![Vec::new(); pes];
        let handler = |source: Rank, data: &[u8]| got[source.index()].push(data.to_vec());
        let mut broadcasts = world.async_broadcasts_by(k, variant, handler)?;
        for number in 0..messages {
            if world.rank().index() < sources {
                broadcasts.broadcast(&message(world.rank(), number))?;
            }
            match number % 3 {
                0 => broadcasts.poll()?,
                1 => world.barrier()?,
                _ => {}
            }
        }
        broadcasts.close()?;
        Ok(got)
    });
    for (rank, got) in all.expect("nobody fails").into_ranked() {
        assert!(got == all_of(sources, messages, rank, pes), "PE {rank} of {pes}, k = {k}");
    }
}

#[test]
fn every_message_arrives_once_and_in_order() {
    alone(LIMIT, || {
        for pes in [1, 2, 3, 5, 8] {
            for k in 1..pes.max(2) {
                for sources in [1, pes] {
                    all_arrive(pes, Waiting::SpinYield, k, sources, 7);
                    all_arrive(pes, Waiting::SpinYieldPark, k, sources, 7);
                }
            }
        }
        all_arrive(2, Waiting::Spin, 1, 2, 7);
    });
}

#[test]
fn every_message_arrives_once_among_many() {
    alone(LIMIT, || {
        for (k, sources) in [(1, 2), (2, 48), (7, 5), (7, 48), (47, 48), (99, 1)] {
            all_arrive(48, Waiting::SpinYieldPark, k, sources, 4);
        }
    });
}

/// A source waits for PEs that wait for it in a barrier.
#[test]
fn pe_that_waits_elsewhere_forwards_messages() {
    alone(LIMIT, || {
        for waiting in [Waiting::SpinYield, Waiting::SpinYieldPark] {
            let all = pes_of(5).waiting(waiting).run(|pe| {
                let (world, mut bytes) = (pe.world(), 0);
                let mut broadcasts =
                    world.async_broadcasts_by(1, AsyncVariant::Fair, |_, data| {
                        bytes += data.len()
                    })?;
                let flag = world.symmetric::<u64>(1)?;
                if world.rank() == Rank(2) {
                    broadcasts.broadcast(&vec![1; 500_000])?;
                    flag.fetch_add(Rank(0), 0, 1)?;
                }
                if world.rank() == Rank(0) {
                    flag.wait_until(0, consort::symmetric::Until::Equals(1))?;
                }
                world.barrier()?;
                broadcasts.close()?;
                Ok(bytes)
            });
            assert_eq!(all.expect("nobody fails"), [500_000, 500_000, 0, 500_000, 500_000]);
        }
    });
}

/// PEs answer a message with another message; a wait returns when all have closed.
#[test]
fn waiting_pe_gets_incoming_messages() {
    alone(LIMIT, || {
        let all = Job::threads(4).run(|pe| {
            let (world, received) = (pe.world(), AtomicUsize::new(0));
            let mut broadcasts = world.async_broadcasts(|_, data: &[u8]| {
                received.fetch_add(data.len(), SeqCst);
            })?;
            if world.rank() == Rank(0) {
                broadcasts.broadcast(b"ping")?;
                while received.load(SeqCst) < 3 * 5 {
                    assert!(broadcasts.wait()?, "answers are to come");
                }
            } else {
                while received.load(SeqCst) < 4 {
                    assert!(broadcasts.wait()?, "a message is to come");
                }
                broadcasts.broadcast(b"pong!")?;
            }
            broadcasts.close()?;
            Ok(received.into_inner())
        });
        assert_eq!(all.expect("nobody fails"), [15, 14, 14, 14]);
    });
}

#[test]
fn last_pe_learns_that_all_have_closed() {
    alone(LIMIT, || {
        let all = Job::threads(3).run(|pe| {
            let (world, mut messages) = (pe.world(), 0);
            let mut broadcasts = world.async_broadcasts(|_, _| messages += 1)?;
            if world.rank() == Rank(0) {
                while broadcasts.wait()? {}
            } else {
                broadcasts.broadcast(&[])?;
            }
            broadcasts.close()?;
            Ok(messages)
        });
        assert_eq!(all.expect("nobody fails"), [2, 1, 1]);
    });
}

#[test]
fn several_at_once_and_handlers_that_call_the_library() {
    alone(LIMIT, || {
        let all = Job::threads(3).run(|pe| {
            let world = pe.world();
            let counts = world.symmetric::<u64>(2)?;
            let count = |word: usize| {
                let counts = &counts;
                move |_: Rank, _: &[u8]| drop(counts.fetch_add(Rank(0), word, 1))
            };
            let mut one = world.async_broadcasts(count(0))?;
            let mut other = world.async_broadcasts_by(1, AsyncVariant::Fair, count(1))?;
            one.broadcast(b"one")?;
            other.broadcast(b"other")?;
            other.broadcast(b"another")?;
            one.close()?;
            other.close()?;
            world.barrier()?;
            Ok([counts.load(0)?, counts.load(1)?])
        });
        assert_eq!(all.expect("nobody fails")[0], [6, 12]);
    });
}

/// Runs a program that fails on PE 1, and returns the error, which all others must get soon.
fn fails(program: impl Fn(&Team, &dyn Fn()) -> Result<()> + Send + Sync + 'static) -> Error {
    alone(LIMIT, move || {
        let mut last = None;
        for waiting in [Waiting::SpinYield, Waiting::SpinYieldPark] {
            let began = std::sync::Mutex::new(Instant::now());
            let now = || *began.lock().expect("nobody panics here") = Instant::now();
            let error = pes_of(4).waiting(waiting).run(|pe| {
                let result = program(pe.world(), &now);
                let after = began.lock().expect("nobody panics here").elapsed();
                assert!(after < SOON, "PE {} got its error after {after:?}", pe.world().rank());
                result
            });
            last = Some(error.expect_err("a job whose PE fails, fails"));
        }
        last.expect("there are policies")
    })
}

#[test]
fn a_pe_that_dies_is_reported() {
    for victim in [Rank(0), Rank(1)] {
        let error = fails(move |world, now| {
            let mut broadcasts = world.async_broadcasts_by(2, AsyncVariant::Fair, |_, _| ())?;
            for number in 0.. {
                if world.rank() == victim && number == 3 {
                    now();
                    panic!("as planned");
                }
                broadcasts.broadcast(&vec![0; 100_000])?;
            }
            broadcasts.close()
        });
        let Error::PeFailed { rank, reason } = error else { panic!("{error}") };
        assert_eq!((rank, reason.as_str()), (victim, "it panicked: as planned"));
    }
}

#[test]
fn pe_that_dies_before_closing_is_reported() {
    let error = fails(|world, now| {
        let broadcasts = world.async_broadcasts(|_, _| ())?;
        if world.rank() == Rank(1) {
            now();
            panic!("as planned");
        }
        broadcasts.close()
    });
    assert_eq!(error.to_string(), "PE 1 failed: it panicked: as planned");
}

#[test]
fn pe_that_does_not_close_is_reported() {
    let error = fails(|world, now| {
        let mut broadcasts = world.async_broadcasts(|_, _| ())?;
        if world.rank() == Rank(1) {
            now();
            return Ok(());
        }
        while broadcasts.wait()? {}
        broadcasts.close()
    });
    let expected = "PE 1 failed: it dropped its asynchronous broadcasts without closing them";
    assert_eq!(error.to_string(), expected);
}

/// Holds even if no PE makes another call.
#[test]
fn unclosed_broadcasts_are_reported() {
    for pes in [1, 3] {
        let outcome = alone(LIMIT, move || {
            Job::threads(pes).run(|pe| {
                drop(pe.world().async_broadcasts(|_, _| ())?);
                Ok(())
            })
        });
        let error = outcome.expect_err("none was closed").to_string();
        assert!(
            error.ends_with("it dropped its asynchronous broadcasts without closing them"),
            "{error}"
        );
    }
}

#[test]
fn pes_must_agree_on_k() {
    let error = fails(|world, _| {
        world
            .async_broadcasts_by(
                if world.rank() == Rank(1) { 3 } else { 2 },
                AsyncVariant::Fair,
                |_, _| (),
            )?
            .close()
    });
    let error = error.to_string();
    // PE 1, and one of the two others.
    let named =
        [" called async_broadcasts with k = 2 ", "PE 1 called async_broadcasts with k = 3 "];
    assert!(named.iter().all(|named| error.contains(named)), "{error}");
}

#[test]
fn a_heap_that_is_too_small_is_reported() {
    let error = alone(LIMIT, || {
        let small = Job::threads(2).heap_bytes(4096);
        small.run(|pe| pe.world().async_broadcasts(|_, _| ())?.close())
    });
    assert!(matches!(error, Err(Error::Memory(_))), "{error:?}");
}
