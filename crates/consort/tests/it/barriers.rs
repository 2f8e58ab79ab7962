//! The barrier in place of std's.

use std::{
    sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    thread,
};

use consort::{Barrier, Error};

/// Runs `body` on so many threads.
fn on_threads(threads: usize, body: impl Fn(usize) + Sync) {
    thread::scope(|scope| {
        for thread in 0..threads {
            let body = &body;
            scope.spawn(move || body(thread));
        }
    });
}

#[test]
fn nobody_passes_before_all_have_come() {
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
fn who_drops_out_is_not_waited_for() {
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
fn members_have_room_for_so_many() {
    let barrier = Barrier::new(1);
    let member = barrier.join().expect("room");
    assert!(matches!(barrier.join(), Err(Error::JoinedAlready { .. })));
    let other = thread::scope(|scope| scope.spawn(|| barrier.join().map(drop)).join());
    assert_eq!(other.expect("no panic"), Err(Error::Full { pes: 1 }));
    assert_eq!(member.arrive_and_drop(), Ok(()));
    assert_eq!(Barrier::new(0).join().map(drop), Err(Error::NoPes));
    assert!(matches!(Barrier::new(1_000_000).join(), Err(Error::TooManyPes { .. })));
}

#[test]
fn nobody_joins_in_the_place_of_who_dropped_out() {
    let barrier = Barrier::new(2);
    barrier.arrive_and_drop(); // of the threads that wait, which count apart
    let has_tried = std::sync::Barrier::new(2);
    thread::scope(|scope| {
        let stays = scope.spawn(|| {
            let member = barrier.join().expect("room");
            let waits = (0..100).try_for_each(|_| member.wait().map(drop));
            has_tried.wait(); // and keeps its place until then
            waits
        });
        assert_eq!(barrier.join().expect("room").arrive_and_drop(), Ok(()));
        let member = barrier.join().map(drop);
        has_tried.wait();
        assert_eq!(member, Err(Error::Full { pes: 2 }));
        assert_eq!(stays.join().expect("no panic"), Ok(()));
    });
}
