//! The barrier that replaces std's.

use std::{
    sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    thread,
    time::Duration,
};

use consort::{
    Barrier, Error,
    error::{Failure, LaunchError},
};

/// Runs `body` on `threads` threads.
fn on_threads(threads: usize, body: impl Fn(usize) + Sync) {
    thread::scope(|scope| {
        for thread in 0..threads {
            let body = &body;
            scope.spawn(move || body(thread));
        }
    });
}

#[test]
fn no_thread_passes_before_all_arrive() {
    for threads in [2, 3, 8] {
        let (waits, members) = (Barrier::new(threads), Barrier::new(threads));
        for is_member in [false, true] {
            let rounds: Vec<AtomicU64> = (0..threads).map(|_| AtomicU64::new(0)).collect();
            let leaders = AtomicUsize::new(0);
            on_threads(threads, |me| {
                let member = is_member.then(|| members.join().expect("room for all"));
                for round in 1..200 {
                    rounds[me].store(round, Relaxed);
                    let result = match &member {
                        Some(member) => member.wait().expect("no failure"),
                        None => waits.wait(),
                    };
                    leaders.fetch_add(usize::from(result.is_leader()), Relaxed);
                    assert!(
                        rounds.iter().all(|one| (round..=round + 1).contains(&one.load(Relaxed)))
                    );
                }
            });
            assert_eq!(leaders.into_inner(), 199);
        }
    }
}

#[test]
fn any_number_of_threads_may_wait() {
    static NONE: Barrier = Barrier::new(0);
    assert!(NONE.wait().is_leader() && Barrier::new(1).wait().is_leader());
    // Six threads at a barrier for three: each phase takes any three.
    let (barrier, leaders, waits) = (Barrier::new(3), AtomicUsize::new(0), AtomicUsize::new(0));
    on_threads(6, |_| {
        while waits.fetch_add(1, Relaxed) < 600 {
            leaders.fetch_add(usize::from(barrier.wait().is_leader()), Relaxed);
        }
    });
    assert_eq!(leaders.into_inner(), 200);
}

#[test]
fn dropped_thread_is_not_awaited() {
    const ROUNDS: usize = 60;
    let (waits, members) = (Barrier::new(4), Barrier::new(4));
    for is_member in [false, true] {
        let arrived: Vec<AtomicUsize> = (0..ROUNDS).map(|_| AtomicUsize::new(0)).collect();
        on_threads(4, |me| {
            let mut member = is_member.then(|| members.join().expect("room for all"));
            let last = 15 * (me + 1) - 1;
            for (round, arrived) in arrived.iter().enumerate().take(last + 1) {
                arrived.fetch_add(1, Relaxed);
                match (member.take(), round == last) {
                    (Some(member), true) => member.arrive_and_drop().expect("no failure"),
                    (None, true) => waits.arrive_and_drop(),
                    (one, false) => {
                        if let Some(one) = &one {
                            one.wait().expect("no failure");
                        } else {
                            waits.wait();
                        }
                        member = one;
                        assert_eq!(arrived.load(Relaxed), 4 - round / 15);
                    }
                }
            }
        });
    }
}

#[test]
fn a_members_panic_reaches_the_others() {
    let barrier = Barrier::new(2);
    thread::scope(|scope| {
        let panics = scope.spawn(|| {
            let _member = barrier.join().expect("room");
            panic!("on purpose");
        });
        let error = barrier.join().and_then(|member| member.wait()).expect_err("it panicked");
        assert!(matches!(error, Error::PeFailed { .. }), "{error:?}");
        assert!(panics.join().is_err());
    });
}

#[test]
fn barrier_limits_its_members() {
    let barrier = Barrier::new(1);
    let member = barrier.join().expect("room");
    assert!(matches!(barrier.join(), Err(Error::Launch(LaunchError::JoinedAlready { .. }))));
    let other = thread::scope(|scope| scope.spawn(|| barrier.join().map(drop)).join());
    assert_eq!(other.expect("no panic"), Err(Error::Launch(LaunchError::JobFull { pes: 1 })));
    assert_eq!(member.arrive_and_drop(), Ok(()));
    assert_eq!(Barrier::new(0).join().map(drop), Err(Error::Launch(LaunchError::NoPes)));
    assert!(matches!(
        Barrier::new(1_000_000).join(),
        Err(Error::Launch(LaunchError::TooManyPes { .. }))
    ));
}

#[test]
fn place_of_a_dropped_member_stays_taken() {
    let barrier = Barrier::new(2);
    barrier.arrive_and_drop(); // only affects waiting threads, which are counted separately
    let has_tried = std::sync::Barrier::new(2);
    thread::scope(|scope| {
        let stays = scope.spawn(|| {
            let member = barrier.join().expect("room");
            let waits = (0..100).try_for_each(|_| member.wait().map(drop));
            has_tried.wait(); // and keeps its rank until then
            waits
        });
        assert_eq!(barrier.join().expect("room").arrive_and_drop(), Ok(()));
        let member = barrier.join().map(drop);
        has_tried.wait();
        assert_eq!(member, Err(Error::Launch(LaunchError::JobFull { pes: 2 })));
        assert_eq!(stays.join().expect("no panic"), Ok(()));
    });
}

/// A member leaves, and another joins in its place. Once one has dropped out, no thread can join.
#[test]
fn members_are_replaced_until_one_drops_out() {
    let barrier = Barrier::new(2);
    let alone = |then: fn(consort::BarrierMember) -> consort::Result<()>| {
        thread::scope(|scope| scope.spawn(|| then(barrier.join()?)).join().expect("no panic"))
    };
    thread::scope(|scope| {
        let stays = scope.spawn(|| {
            let member = barrier.join().expect("room");
            (0..4).map(|_| member.wait().map(drop)).collect::<Vec<_>>()
        });
        for _ in 0..2 {
            assert_eq!(alone(|member| member.wait().map(drop)), Ok(()));
        }
        assert_eq!(alone(consort::BarrierMember::arrive_and_drop), Ok(()));
        assert_eq!(stays.join().expect("no panic"), vec![Ok(()); 4]);
    });
    assert_eq!(alone(|_| Ok(())), Err(Error::Launch(LaunchError::JobFull { pes: 2 })));
}

#[test]
fn members_wait_until_their_time_limit() {
    let limit = Duration::from_millis(100);
    let barrier = Barrier::new(2).join_timeout(limit);
    let member = barrier.join().expect("room");
    assert!(
        matches!(member.wait(), Err(Error::TimedOut(Failure::Missing { .. }))),
        "nobody else joins"
    );
    let barrier = Barrier::new(2);
    let ended = thread::scope(|scope| {
        let late = scope.spawn(|| {
            let member = barrier.join().expect("room");
            thread::sleep(5 * limit);
            member.wait().map(drop)
        });
        let member = barrier.join().expect("room");
        [member.wait_timeout(limit).map(drop), late.join().expect("no panic")]
    });
    assert!(ended.iter().all(|one| matches!(one, Err(Error::TimedOut(_)))), "{ended:?}");
}

/// Some threads time out, and come again: they are counted once in each phase.
#[test]
fn thread_that_gives_up_is_not_counted() {
    const PHASES: u64 = 100;
    let (barrier, phases) = (Barrier::new(3), AtomicU64::new(0));
    assert!(barrier.wait_timeout(Duration::from_millis(1)).is_none());
    on_threads(3, |me| {
        for phase in 0..PHASES {
            let limit = Duration::from_micros(50 * (phase % 3));
            let result = match me {
                0 => barrier.wait(),
                _ => loop {
                    if let Some(result) = barrier.wait_timeout(limit) {
                        break result;
                    }
                },
            };
            if result.is_leader() {
                assert_eq!(phases.fetch_add(1, Relaxed), phase);
            }
        }
    });
    assert_eq!(phases.into_inner(), PHASES);
}
