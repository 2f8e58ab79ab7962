//! Reader-writer locks: which threads are inside at the same time, attempts, time limits,
//! starvation, leaked guards.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering::SeqCst},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use consort_fabric::splitmix64;
use consort_sandbox::seeds::seeds;
use consort_sync::{
    RwLock, RwLockReadGuard, RwLockUpgradableReadGuard as UpgradableGuard, RwLockWriteGuard,
};

const LONG: Duration = Duration::from_secs(60);

/// The data of a lock, which detects threads that must not be inside together.
#[derive(Default)]
struct Room {
    writers: AtomicU32,
    upgradable: AtomicU32,
    readers: AtomicU32,
    /// Written by each writer, to different values for a moment.
    twins: (u64, u64),
}

impl Room {
    fn read(&self) {
        self.readers.fetch_add(1, SeqCst);
        assert_eq!(self.writers.load(SeqCst), 0, "a reader next to a writer");
        assert_eq!(self.twins.0, self.twins.1);
        self.readers.fetch_sub(1, SeqCst);
    }

    fn read_upgradable(&self) {
        assert_eq!(self.upgradable.fetch_add(1, SeqCst), 0, "two upgradable readers");
        self.read();
        self.upgradable.fetch_sub(1, SeqCst);
    }

    fn write(&mut self) {
        assert_eq!(self.writers.fetch_add(1, SeqCst), 0, "two writers");
        assert_eq!(self.readers.load(SeqCst), 0, "a writer next to a reader");
        assert_eq!(self.upgradable.load(SeqCst), 0, "a writer next to an upgradable reader");
        self.twins.0 += 1;
        thread::yield_now();
        self.twins.1 += 1;
        self.writers.fetch_sub(1, SeqCst);
    }
}

/// Uses a lock in a random way. Returns how often the thread wrote.
fn use_once(lock: &RwLock<Room>, random: u64) -> u64 {
    let short = Duration::from_micros(random >> 32 & 0xff);
    let write = |guard: Option<RwLockWriteGuard<'_, Room>>| {
        guard.map_or(0, |mut room| {
            room.write();
            1
        })
    };
    match random % 12 {
        0..4 => lock.read().read(),
        4 => return write(Some(lock.write())),
        5 => return write(lock.try_write()),
        6 => return write(lock.try_write_for(short)),
        7 => drop(lock.try_read_for(short).map(|room| room.read())),
        8 => {
            let room = lock.upgradable_read();
            room.read_upgradable();
            let mut room = UpgradableGuard::upgrade(room);
            room.write();
            RwLockWriteGuard::downgrade(room).read();
            return 1;
        }
        9 => match UpgradableGuard::try_upgrade(lock.upgradable_read()) {
            Ok(room) => return write(Some(room)),
            Err(room) => UpgradableGuard::downgrade(room).read(),
        },
        10 => {
            let mut room = lock.write();
            room.write();
            RwLockWriteGuard::downgrade_to_upgradable(room).read_upgradable();
            return 1;
        }
        _ => drop(lock.try_upgradable_read().map(|room| room.read_upgradable())),
    }
    0
}

#[test]
fn random_threads_exclude_each_other_as_their_access_requires() {
    for seed in seeds(20, 200, &[]) {
        let lock = RwLock::new(Room::default());
        let written = thread::scope(|scope| {
            let threads: Vec<_> = (0..2 + seed % 7)
                .map(|number| {
                    let (lock, mut random) = (&lock, seed ^ (number << 32));
                    let mut once = move || use_once(lock, splitmix64(&mut random));
                    scope.spawn(move || (0..300).map(|_| once()).sum::<u64>())
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).sum::<u64>()
        });
        assert!(!lock.is_locked(), "TEST_SEED={seed} repeats this");
        assert_eq!(lock.into_inner().twins, (written, written), "TEST_SEED={seed} repeats this");
    }
}

/// A guard of any kind.
enum Guard<'l> {
    Read(RwLockReadGuard<'l, ()>),
    Upgradable(UpgradableGuard<'l, ()>),
    Write(RwLockWriteGuard<'l, ()>),
}

/// One thread tries everything; which attempts succeed depends only on the guards that it has.
#[test]
fn attempts_succeed_exactly_if_the_guards_allow_them() {
    for seed in seeds(50, 500, &[]) {
        let (lock, mut random) = (RwLock::new(()), seed);
        let mut guards: Vec<Guard<'_>> = Vec::new();
        for _ in 0..500 {
            let writers = guards.iter().filter(|guard| matches!(guard, Guard::Write(_))).count();
            let upgradable =
                guards.iter().filter(|guard| matches!(guard, Guard::Upgradable(_))).count();
            assert_eq!(lock.is_locked(), !guards.is_empty());
            assert_eq!(lock.is_locked_exclusive(), writers > 0);
            let drawn = splitmix64(&mut random);
            match drawn % 4 {
                0 => {
                    let guard = lock.try_read();
                    assert_eq!(guard.is_some(), writers == 0, "TEST_SEED={seed}");
                    guards.extend(guard.map(Guard::Read));
                }
                1 => {
                    let guard = lock.try_upgradable_read();
                    assert_eq!(guard.is_some(), writers + upgradable == 0, "TEST_SEED={seed}");
                    guards.extend(guard.map(Guard::Upgradable));
                }
                2 => {
                    let guard = lock.try_write();
                    assert_eq!(guard.is_some(), guards.is_empty(), "TEST_SEED={seed}");
                    guards.extend(guard.map(Guard::Write));
                }
                _ => {
                    let (others, place) = (guards.len().saturating_sub(1), drawn >> 8);
                    if guards.is_empty() {
                        continue;
                    }
                    match guards.swap_remove(usize::try_from(place).unwrap_or(0) % (others + 1)) {
                        Guard::Read(guard) => drop(guard),
                        Guard::Upgradable(guard) => match UpgradableGuard::try_upgrade(guard) {
                            Ok(guard) => {
                                assert_eq!(others, 0, "TEST_SEED={seed}");
                                guards.push(Guard::Write(guard));
                            }
                            Err(guard) => {
                                assert!(others > 0, "TEST_SEED={seed}");
                                guards.push(Guard::Read(UpgradableGuard::downgrade(guard)));
                            }
                        },
                        Guard::Write(guard) if drawn >> 40 & 1 == 0 => {
                            let guard = RwLockWriteGuard::downgrade_to_upgradable(guard);
                            guards.push(Guard::Upgradable(guard));
                        }
                        Guard::Write(guard) => drop(guard),
                    }
                }
            }
        }
        drop(guards);
        assert!(!lock.is_locked(), "TEST_SEED={seed}");
    }
}

/// At any time at least one of the readers is inside.
#[test]
fn writer_does_not_starve_among_overlapping_readers() {
    let (lock, stop) = (RwLock::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(SeqCst) {
                    let _guard = lock.read();
                    thread::sleep(Duration::from_millis(2));
                }
            });
        }
        let begun = Instant::now();
        (0..20).for_each(|_| *lock.write() += 1);
        stop.store(true, SeqCst);
        assert!(begun.elapsed() < Duration::from_secs(10));
    });
    assert_eq!(lock.into_inner(), 20);
}

#[test]
fn readers_do_not_starve_among_busy_writers() {
    let (lock, stop) = (RwLock::new(0_u64), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(SeqCst) {
                    *lock.write() += 1;
                }
            });
        }
        let begun = Instant::now();
        (0..100).for_each(|_| drop(lock.read()));
        drop(lock.upgradable_read());
        stop.store(true, SeqCst);
        assert!(begun.elapsed() < Duration::from_secs(10));
    });
}

/// The second reader has to wait for the writer, which waits for the first reader.
#[test]
fn newcomers_wait_for_a_thread_that_has_waited_long() {
    let lock = RwLock::new(0);
    thread::scope(|scope| {
        let guard = lock.read();
        let writer = scope.spawn(|| *lock.write() += 1);
        while lock.try_read().is_some() {
            thread::yield_now();
        }
        let reader = scope.spawn(|| *lock.read());
        thread::sleep(Duration::from_millis(20));
        assert!(!writer.is_finished() && !reader.is_finished());
        drop(guard);
        assert_eq!(reader.join().expect("no panic"), 1);
    });
}

#[test]
fn timed_attempts_wait_until_the_deadline_or_until_they_succeed() {
    let (lock, short) = (RwLock::new(0), Duration::from_millis(20));
    let guard = lock.read();
    let begun = Instant::now();
    assert!(lock.try_write_for(short).is_none());
    assert!(begun.elapsed() >= short);
    assert!(lock.try_write_until(begun).is_none());
    assert!(lock.try_read_for(LONG).is_some());
    let upgradable = lock.try_upgradable_read_for(LONG).expect("there is only a reader");
    assert!(lock.try_upgradable_read_for(short).is_none());
    let upgradable = UpgradableGuard::try_upgrade_for(upgradable, short).expect_err("a reader");
    thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        let lock = &lock;
        scope.spawn(move || {
            let read = lock.try_read_for(LONG).expect("before the time is over");
            receiver.recv().expect("the test waits");
            drop(read);
        });
        drop(guard);
        sender.send(()).expect("the thread waits");
        *UpgradableGuard::try_upgrade_for(upgradable, LONG).expect("the reader leaves") += 1;
    });
    assert!(begun.elapsed() < LONG);
    assert_eq!(*lock.try_read_for(Duration::MAX).expect("it is free"), 1);
}

#[test]
fn panic_releases_the_lock() {
    let lock = RwLock::new(0);
    let panics = || std::panic::resume_unwind(Box::new("on purpose"));
    thread::scope(|scope| {
        let reads = scope.spawn(|| {
            let _guard = lock.read();
            panics();
        });
        let writes = scope.spawn(|| {
            *lock.write() += 1;
            let _guard = lock.upgradable_read();
            panics();
        });
        assert!(reads.join().is_err() && writes.join().is_err());
    });
    assert_eq!(*lock.try_write().expect("it is free"), 1);
}

#[test]
fn a_lock_with_forgotten_guards_may_be_moved_and_dropped() {
    let lock = RwLock::new(Arc::new(()));
    let inner = Arc::clone(&lock.read());
    #[expect(clippy::mem_forget, reason = "this test forgets guards on purpose")]
    std::mem::forget((lock.read(), lock.upgradable_read()));
    let moved = Box::new(lock);
    assert!(moved.try_write().is_none() && moved.try_upgradable_read().is_none());
    assert!(moved.try_read().is_some());
    drop(moved);
    assert_eq!(Arc::strong_count(&inner), 1);
}

#[test]
fn a_thread_may_hold_a_hundred_thousand_locks() {
    let locks: Vec<_> = (0..100_000).map(RwLock::new).collect();
    let guards: Vec<_> = locks.iter().map(RwLock::write).collect();
    thread::scope(|scope| {
        scope.spawn(|| assert!(locks.iter().all(|lock| lock.try_read().is_none())));
    });
    drop(guards);
    assert!(locks.iter().zip(0..).all(|(lock, number)| *lock.read() == number));
}
