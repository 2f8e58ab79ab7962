//! Semaphores: how many permits are out at the same time, attempts, time limits, leaked guards.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    thread,
    time::{Duration, Instant},
};

use consort_fabric::splitmix64;
use consort_sandbox::seeds::seeds;
use consort_sync::{Semaphore, SemaphoreGuard};

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(20);

/// Takes permits in a random way, mostly with a time limit.
fn take(semaphore: &Semaphore, count: usize, random: u64) -> Option<SemaphoreGuard<'_>> {
    let short = Duration::from_micros(random >> 32 & 0xff);
    match random % 5 {
        0 => Some(semaphore.acquire_many(count)),
        1 => semaphore.try_acquire_many(count),
        2 => semaphore.try_acquire_many_for(count, short),
        3 => semaphore.try_acquire_many_until(count, Instant::now() + short),
        _ => semaphore.try_acquire_many_for(count, Duration::MAX),
    }
}

/// A thread that is never served, or a permit that is lost, makes a thread wait forever.
#[test]
fn random_threads_have_the_permits_that_exist() {
    const PERMITS: usize = 5;
    for seed in seeds(20, 200, &[]) {
        let (semaphore, out) = (Semaphore::new(PERMITS), AtomicUsize::new(0));
        thread::scope(|scope| {
            for number in 0..2 + seed % 15 {
                let (semaphore, out, mut random) = (&semaphore, &out, seed ^ (number << 32));
                scope.spawn(move || {
                    for _ in 0..300 {
                        let drawn = splitmix64(&mut random);
                        let count = usize::from(drawn.to_le_bytes()[7]) % (PERMITS + 1);
                        let Some(permits) = take(semaphore, count, drawn) else { continue };
                        let before = out.fetch_add(count, SeqCst);
                        assert!(before + count <= PERMITS, "TEST_SEED={seed} repeats this");
                        if drawn & 0x100 == 0 {
                            thread::yield_now();
                        }
                        out.fetch_sub(count, SeqCst);
                        drop(permits);
                    }
                });
            }
        });
        assert_eq!(semaphore.available_permits(), PERMITS, "TEST_SEED={seed} repeats this");
        assert!(semaphore.try_acquire_many(PERMITS).is_some(), "TEST_SEED={seed} repeats this");
    }
}

#[test]
fn wait_with_a_time_limit_ends_neither_early_nor_with_a_permit() {
    let semaphore = Semaphore::new(1);
    let begun = Instant::now();
    assert!(semaphore.try_acquire_many_for(2, SHORT).is_none());
    assert!(begun.elapsed() >= SHORT);
    assert!(semaphore.try_acquire_many_until(2, begun).is_none());
    let permit = semaphore.try_acquire_until(begun).expect("there is one, although it is late");
    assert!(semaphore.try_acquire_for(Duration::ZERO).is_none());
    assert!(semaphore.try_acquire().is_none());
    drop(permit);
    assert!(semaphore.try_acquire_for(LONG).is_some());
    assert!(begun.elapsed() < LONG);
    assert_eq!(semaphore.available_permits(), 1);
}

/// Returns once a thread waits.
fn wait_for_waiting_thread(semaphore: &Semaphore) {
    while semaphore.try_acquire_many(0).is_some() {
        thread::yield_now();
    }
}

/// The second thread needs less than there is, but arrives later. When the first gives up, it is
/// served.
#[test]
fn thread_is_not_overtaken_while_it_waits_for_many_permits() {
    let semaphore = Semaphore::new(2);
    thread::scope(|scope| {
        let first = scope.spawn(|| semaphore.try_acquire_many_for(3, 5 * SHORT).is_none());
        wait_for_waiting_thread(&semaphore);
        let begun = Instant::now();
        assert!(semaphore.try_acquire().is_none(), "it would overtake");
        if semaphore.try_acquire_for(LONG).is_some() {
            assert!(begun.elapsed() >= SHORT, "it has waited for the first thread");
        }
        assert!(first.join().expect("no panic"), "there were never three permits");
    });
    thread::scope(|scope| {
        scope.spawn(|| semaphore.acquire_many(3).forget());
        wait_for_waiting_thread(&semaphore);
        semaphore.add_permits(2);
    });
    assert_eq!(semaphore.available_permits(), 1);
}

#[test]
fn another_thread_may_give_a_permit_back() {
    static SEMAPHORE: Semaphore = Semaphore::new(1);
    let permit = SEMAPHORE.acquire();
    thread::scope(|scope| {
        let waits = scope.spawn(|| drop(SEMAPHORE.acquire()));
        wait_for_waiting_thread(&SEMAPHORE);
        scope.spawn(|| drop(permit));
        waits.join().expect("no panic");
    });
    assert_eq!(SEMAPHORE.available_permits(), 1);
}

#[test]
fn too_many_permits_are_refused() {
    let most = Semaphore::MAX_PERMITS;
    assert!(catch_unwind(|| Semaphore::new(most + 1)).is_err());
    assert!(catch_unwind(|| Semaphore::new(1).try_acquire_many(most + 1).is_some()).is_err());
    assert!(catch_unwind(|| Semaphore::new(most).add_permits(1)).is_err());
    assert!(Semaphore::new(most).try_acquire_many(most).is_some());
    let full = Semaphore::new(most);
    for _ in 0..9 {
        assert!(catch_unwind(AssertUnwindSafe(|| full.add_permits(most))).is_err());
        assert_eq!(full.available_permits(), most);
    }
}
