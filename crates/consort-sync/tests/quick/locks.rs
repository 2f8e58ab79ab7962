//! Locks: exclusion, order, attempts, nesting.

#![expect(unsafe_code, reason = "names the machine of all threads, and releases raw locks")]

use std::{
    fs,
    future::Future as _,
    path::Path,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
        mpsc::{self, RecvTimeoutError},
    },
    task::{Context, Waker},
    thread,
    time::{Duration, Instant},
};

use consort_machine::{NativeMachine, at_once, block_on};
use consort_sync::{
    Condvar, Mutex, RwLock, Semaphore,
    locks::{Clh, Cna, Handoff, Hapax, HybLock, Mcs, RawLock, TestAndSet, Ticket},
};

#[cfg(debug_assertions)]
use crate::schemes::panic_of;

// SAFETY: each future on this machine is driven to its end on the thread that created it.
const M: NativeMachine = unsafe { NativeMachine::new() };

/// A test for each lock.
macro_rules! for_each_lock {
    ($($test:ident),* $(,)?) => {
        for_each_lock! { @modules [$($test),*]
            handoff: Handoff, test_and_set: TestAndSet, ticket: Ticket, mcs: Mcs, clh: Clh,
            cna: Cna, hapax: Hapax, hyblock: HybLock
        }
    };
    (@modules $tests:tt $($module:ident: $lock:ident),*) => {
        $(mod $module { for_each_lock! { @tests $tests $lock } })*
    };
    (@tests [$($test:ident),*] $lock:ident) => {
        $(#[test] fn $test() { super::$test::<super::$lock>(); })*
    };
}

for_each_lock! {
    one_thread_at_a_time,
    sixty_four_threads_all_finish,
    first_come_first_served,
    attempts_succeed_only_on_a_free_lock,
    timed_attempts_wait_until_the_deadline_or_until_they_succeed,
    attempts_and_waits_mix,
    locks_nest_and_are_released_in_any_order,
    lock_with_a_forgotten_guard_may_be_dropped,
    a_thread_does_not_get_a_lock_twice,
    a_thread_may_hold_a_hundred_thousand_locks,
    panic_releases_the_lock,
    no_thread_starves_under_fair_locks,
}

trait Lock: RawLock + Send + Sync + 'static {}
impl<R: RawLock + Send + Sync + 'static> Lock for R {}

/// Two numbers that are equal unless a thread is between the two additions.
type Twins = (u64, u64);

fn add_one<R: Lock>(mutex: &Mutex<Twins, R>, within: impl Fn()) {
    let mut twins = mutex.lock();
    twins.0 += 1;
    within();
    twins.1 += 1;
    assert_eq!(twins.0, twins.1);
}

fn count<R: Lock>(threads: u64, each: u64, within: impl Fn() + Sync) {
    let mutex = Mutex::with(R::NEW, (0, 0));
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| (0..each).for_each(|_| add_one(&mutex, &within)));
        }
    });
    assert_eq!(mutex.into_inner(), (threads * each, threads * each));
}

fn one_thread_at_a_time<R: Lock>() {
    count::<R>(2, 20_000, || {});
    count::<R>(6, 1_000, thread::yield_now);
}

fn sixty_four_threads_all_finish<R: Lock>() {
    count::<R>(64, 50, || {});
}

/// Returns whether a thread sleeps, by its folder in `/proc`.
fn is_asleep(thread: &Path) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(thread).join("stat"));
    let stat = stat.expect("the thread is there");
    let (_, state) = stat.rsplit_once(") ").expect("a name in parentheses");
    state.starts_with('S')
}

fn first_come_first_served<R: Lock>() {
    // A new thread, or one on the NUMA node of the holder, may overtake a waiting one.
    if [Handoff::NAME, TestAndSet::NAME, Cna::NAME].contains(&R::NAME) {
        return;
    }
    let mutex = Mutex::with(R::NEW, Vec::<u32>::new());
    thread::scope(|scope| {
        let mut guard = mutex.lock();
        for number in 0..6 {
            let mutex = &mutex;
            let (sender, receiver) = mpsc::channel();
            scope.spawn(move || {
                sender.send(fs::read_link("/proc/thread-self").expect("its number")).expect("sent");
                drop(sender);
                mutex.lock().push(number);
            });
            // Waiting threads eventually sleep.
            let folder = receiver.iter().last().expect("its number");
            while !is_asleep(&folder) {
                thread::sleep(Duration::from_millis(1));
            }
        }
        guard.push(100);
    });
    assert_eq!(mutex.into_inner(), [100, 0, 1, 2, 3, 4, 5]);
}

fn attempts_succeed_only_on_a_free_lock<R: Lock>() {
    let mutex = Mutex::with(R::NEW, 0);
    for _ in 0..100 {
        assert!(!mutex.is_locked());
        let guard = mutex.try_lock().expect("nobody holds it");
        assert!(mutex.is_locked());
        assert!(mutex.try_lock().is_none());
        thread::scope(|scope| {
            scope.spawn(|| assert!(mutex.try_lock().is_none()));
        });
        drop(guard);
        drop(mutex.lock());
    }
}

fn timed_attempts_wait_until_the_deadline_or_until_they_succeed<R: Lock>() {
    let (mutex, short) = (Mutex::with(R::NEW, 0), Duration::from_millis(10));
    let guard = mutex.lock();
    let begun = Instant::now();
    assert!(mutex.try_lock_for(short).is_none());
    assert!(begun.elapsed() >= short);
    assert!(mutex.try_lock_until(begun).is_none());
    thread::scope(|scope| {
        let waits = || *mutex.try_lock_for(Duration::MAX).expect("it is released") += 1;
        let thread = scope.spawn(waits);
        thread::sleep(short);
        assert!(!thread.is_finished());
        drop(guard);
    });
    assert_eq!(*mutex.try_lock_until(begun).expect("it is free"), 1);
}

fn attempts_and_waits_mix<R: Lock>() {
    let mutex = Mutex::with(R::NEW, (0, 0));
    let taken = AtomicU32::new(0);
    thread::scope(|scope| {
        for thread in 0..6 {
            let (mutex, taken) = (&mutex, &taken);
            scope.spawn(move || {
                for round in 0..2_000 {
                    if (round + thread) % 3 == 0 {
                        add_one(mutex, || {});
                        taken.fetch_add(1, Relaxed);
                    } else if let Some(mut twins) = mutex.try_lock() {
                        twins.0 += 1;
                        twins.1 += 1;
                        taken.fetch_add(1, Relaxed);
                    }
                }
            });
        }
    });
    assert_eq!(mutex.lock().0, u64::from(taken.load(Relaxed)));
}

fn locks_nest_and_are_released_in_any_order<R: Lock>() {
    let locks: Vec<_> = (0..12).map(|_| Mutex::with(R::NEW, (0, 0))).collect();
    thread::scope(|scope| {
        for thread in 0..4 {
            let locks = &locks;
            scope.spawn(move || {
                for round in 0..100 {
                    // In one order, so that no threads wait in a circle.
                    let mut guards: Vec<_> = locks.iter().map(Mutex::lock).collect();
                    guards.iter_mut().for_each(|twins| twins.0 += 1);
                    guards.iter_mut().for_each(|twins| twins.1 += 1);
                    guards.rotate_left((round + thread) % 12);
                }
            });
        }
    });
    assert!(locks.iter().all(|lock| *lock.lock() == (400, 400)));
}

fn lock_with_a_forgotten_guard_may_be_dropped<R: Lock>() {
    for _ in 0..10 {
        let mutex = Mutex::with(R::NEW, Arc::new(()));
        let inner = Arc::clone(&mutex.lock());
        #[expect(clippy::mem_forget, reason = "this test forgets a guard on purpose")]
        std::mem::forget(mutex.lock());
        assert!(mutex.is_locked());
        let moved = Box::new(mutex);
        assert!(moved.is_locked());
        drop(moved);
        assert_eq!(Arc::strong_count(&inner), 1);
    }
}

/// Even if another thread wants it at the same time.
fn a_thread_does_not_get_a_lock_twice<R: Lock>() {
    let mutex: &Mutex<(), R> = Box::leak(Box::new(Mutex::with(R::NEW, ())));
    let (second, end) = mpsc::channel();
    thread::spawn(move || {
        let _first = mutex.lock();
        thread::spawn(|| {
            thread::sleep(Duration::from_millis(50)); // until the outer thread waits
            drop(mutex.lock());
        });
        let _second = mutex.lock();
        let _ = second.send(());
    });
    let (limit, expected) = if cfg!(debug_assertions) {
        (Duration::from_secs(10), RecvTimeoutError::Disconnected) // it panics
    } else {
        (Duration::from_millis(200), RecvTimeoutError::Timeout) // it waits
    };
    assert_eq!(end.recv_timeout(limit), Err(expected));
}

/// In debug builds.
#[cfg(debug_assertions)]
#[test]
fn second_lock_of_a_thread_names_the_place_of_the_first() {
    let (mutex, other) = (Mutex::new(1), Mutex::new(2));
    drop(mutex.lock());
    let line = line!() + 2;
    let refused = panic_of(|| {
        let _first = mutex.lock();
        let _other = other.lock();
        drop(mutex.lock());
    });
    let place = format!("{}:{line}:", file!());
    assert!(refused.contains("already holds") && refused.contains(&place), "{refused}");
    assert_eq!((*mutex.lock(), *other.lock()), (1, 2), "both guards were dropped");
    let tried = mutex.try_lock();
    assert!(panic_of(|| drop(mutex.lock())).contains("already holds"));
    drop(tried);
    assert_eq!(*mutex.lock(), 1);
}

/// However it was locked, and in the whole time in which it is held.
#[cfg(debug_assertions)]
#[test]
fn refused_lock_names_the_place_of_each_kind_of_lock() {
    let (mutex, condvar) = (Arc::new(Mutex::new(())), Condvar::new());
    let refusal = || panic_of(|| drop(mutex.lock()));
    let names = |refused: &str, line: u32| {
        let place = format!("{}:{line}:", file!());
        assert!(refused.contains("already holds") && refused.contains(&place), "{refused}");
    };
    let limit = Duration::from_millis(1);

    let (mut guard, line) = (mutex.try_lock(), line!());
    names(&refusal(), line);
    assert!(mutex.try_lock().is_none() && mutex.try_lock_for(limit).is_none());
    names(&refusal(), line);
    if let Some(guard) = &mut guard {
        assert!(condvar.wait_for(guard, limit).timed_out());
    }
    names(&refusal(), line);
    drop(guard);
    let (guard, line) = (mutex.try_lock_for(limit), line!());
    names(&refusal(), line);
    drop(guard);
    let (guard, line) = (mutex.try_lock_until(Instant::now() + limit), line!());
    names(&refusal(), line);
    drop(guard);
    let (guard, line) = (mutex.lock_arc(), line!());
    names(&refusal(), line);
    drop(guard);
    let (guard, line) = (mutex.try_lock_arc(), line!());
    names(&refusal(), line);
    drop(guard);
    let (guard, line) = (mutex.try_lock_arc_for(limit), line!());
    names(&refusal(), line);
    drop(guard);
    let (guard, line) = (mutex.try_lock_arc_until(Instant::now() + limit), line!());
    names(&refusal(), line);
    drop(guard);
}

/// A thread that has leaked a guard does not hold the next mutex at the same address.
#[test]
fn thread_that_leaked_a_guard_waits_for_another_thread() {
    let mut mutex = Mutex::new(1);
    #[expect(clippy::mem_forget, reason = "this test forgets a guard on purpose")]
    std::mem::forget(mutex.lock());
    let address = &raw const mutex;
    mutex = Mutex::new(2);
    assert_eq!(address, &raw const mutex);
    let (locks, locked) = mpsc::channel();
    thread::scope(|scope| {
        let mutex = &mutex;
        scope.spawn(move || {
            let mut guard = mutex.lock();
            locks.send(()).expect("the test waits for it");
            thread::sleep(Duration::from_millis(20)); // until the test waits
            *guard += 1;
        });
        locked.recv().expect("the thread locks it");
        assert_eq!(*mutex.lock(), 3);
    });
}

/// The record has no limit.
#[cfg(debug_assertions)]
#[test]
fn refused_lock_is_one_of_many() {
    let locks: Vec<_> = (0..100).map(Mutex::new).collect();
    let _guards: Vec<_> = locks.iter().map(Mutex::lock).collect();
    for lock in &locks {
        assert!(panic_of(|| drop(lock.lock())).contains("already holds"));
    }
}

fn a_thread_may_hold_a_hundred_thousand_locks<R: Lock>() {
    let locks: Vec<_> = (0..100_000).map(|number| Mutex::with(R::NEW, number)).collect();
    let guards: Vec<_> = locks.iter().map(Mutex::lock).collect();
    thread::scope(|scope| {
        scope.spawn(|| assert!(locks.iter().all(|lock| lock.try_lock().is_none())));
    });
    drop(guards);
    assert!(locks.iter().zip(0..).all(|(lock, number)| *lock.lock() == number));
}

fn panic_releases_the_lock<R: Lock>() {
    let mutex = Mutex::with(R::NEW, 0);
    let result = thread::scope(|scope| {
        let panics = || {
            *mutex.lock() += 1;
            let _guard = mutex.lock();
            std::panic::resume_unwind(Box::new("on purpose"));
        };
        scope.spawn(panics).join()
    });
    assert!(result.is_err());
    assert_eq!(*mutex.try_lock().expect("it is free"), 1);
}

fn no_thread_starves_under_fair_locks<R: Lock>() {
    if R::NAME == TestAndSet::NAME {
        return;
    }
    let mutex = Mutex::with(R::NEW, 0);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Relaxed) {
                *mutex.lock() += 1; // held nearly all the time
            }
        });
        let begun = Instant::now();
        for _ in 0..200 {
            *mutex.lock() += 1;
        }
        stop.store(true, Relaxed);
        assert!(begun.elapsed() < Duration::from_secs(10));
    });
}

/// The second wait is not polled once it is in the queue, like a thread that waits for a processor.
#[test]
fn holder_hands_over_to_a_thread_that_cannot_ask() {
    let lock = Handoff::new();
    let mut context = Context::from_waker(Waker::noop());
    assert_eq!(at_once(lock.enter(&M)), Ok(()));
    let (mut first, mut second) = (pin!(lock.wait(&M, ())), pin!(lock.wait(&M, ())));
    assert!(first.as_mut().poll(&mut context).is_pending());
    assert!(second.as_mut().poll(&mut context).is_pending());
    // SAFETY: the thread holds the lock.
    let release = || block_on(unsafe { lock.release(&M, ()) });
    let Ok(()) = release();
    assert!(first.poll(&mut context).is_ready());
    let begun = Instant::now();
    loop {
        let Ok(()) = release();
        if at_once(lock.enter(&M)).is_err() {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(10), "the second thread starves");
    }
    assert!(second.poll(&mut context).is_ready());
    let Ok(()) = release();
}

/// In debug builds, a mutex also contains its holder.
#[test]
fn locks_have_the_documented_sizes() {
    let of_holder = if cfg!(debug_assertions) { 16 } else { 0 };
    assert_eq!(size_of::<Mutex<(), TestAndSet>>(), 8 + of_holder);
    assert_eq!(size_of::<Mutex<(), Mcs>>(), 8 + of_holder);
    assert_eq!(size_of::<Mutex<(), Clh>>(), 8 + of_holder);
    assert_eq!(size_of::<Mutex<(), Cna>>(), 8 + of_holder);
    assert_eq!(size_of::<Mutex<(), Ticket>>(), 16 + of_holder);
    assert_eq!(size_of::<Mutex<(), Hapax>>(), 16 + of_holder);
    assert_eq!(size_of::<Mutex<()>>(), 56 + of_holder);
    assert_eq!(size_of::<RwLock<()>>(), 16);
    assert_eq!(size_of::<Condvar>(), 32);
    assert_eq!(size_of::<Semaphore>(), 48);
}
