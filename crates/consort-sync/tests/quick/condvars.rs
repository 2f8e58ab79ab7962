//! Condition variables, with mutexes of every lock.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use consort_sync::{
    Condvar, Mutex, MutexGuard,
    locks::{Clh, Cna, Handoff, Hapax, HybLock, Mcs, RawLock, TestAndSet, Ticket},
};

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(20);

/// A queue with room for a few values.
struct Bounded<R: RawLock> {
    values: Mutex<VecDeque<u64>, R>,
    filled: Condvar<R>,
    emptied: Condvar<R>,
}

impl<R: RawLock> Bounded<R> {
    const ROOM: usize = 3;

    fn push(&self, value: u64) {
        let mut values = self.values.lock();
        self.emptied.wait_while(&mut values, |values| values.len() == Self::ROOM);
        values.push_back(value);
        self.filled.notify_one();
    }

    fn pop(&self, has_limit: bool) -> u64 {
        let mut values = self.values.lock();
        loop {
            if let Some(value) = values.pop_front() {
                self.emptied.notify_one();
                return value;
            }
            if has_limit {
                self.filled.wait_for(&mut values, Duration::from_micros(50)); // often too short
            } else {
                self.filled.wait(&mut values);
            }
        }
    }
}

fn values_pass_through_a_bounded_queue<R: RawLock + Sync>() {
    const EACH: u64 = 2_000;
    let queue = Bounded::<R> {
        values: Mutex::with(R::NEW, VecDeque::new()),
        filled: Condvar::new(),
        emptied: Condvar::new(),
    };
    let sum = AtomicU64::new(0);
    thread::scope(|scope| {
        for number in 0..3 {
            let (queue, sum) = (&queue, &sum);
            scope.spawn(|| (0..EACH).for_each(|value| queue.push(value)));
            scope.spawn(move || {
                for _ in 0..EACH {
                    sum.fetch_add(queue.pop(number == 0), Relaxed);
                }
            });
        }
    });
    assert_eq!(sum.into_inner(), 3 * (0..EACH).sum::<u64>());
}

#[test]
fn values_pass_through_bounded_queues_of_every_lock() {
    values_pass_through_a_bounded_queue::<Handoff>();
    values_pass_through_a_bounded_queue::<TestAndSet>();
    values_pass_through_a_bounded_queue::<Ticket>();
    values_pass_through_a_bounded_queue::<Mcs>();
    values_pass_through_a_bounded_queue::<Clh>();
    values_pass_through_a_bounded_queue::<Cna>();
    values_pass_through_a_bounded_queue::<Hapax>();
    values_pass_through_a_bounded_queue::<HybLock>();
}

/// Waits until this many threads have counted themselves and wait.
fn wait_for(count: &Mutex<Vec<u32>>, waiting: usize) -> MutexGuard<'_, Vec<u32>> {
    loop {
        let counted = count.lock();
        if counted.len() == waiting {
            return counted;
        }
        drop(counted);
        thread::yield_now();
    }
}

/// Also if some of them have a time limit, and one in the middle has given up.
#[test]
fn threads_are_notified_in_the_order_of_arrival() {
    let (arrived, notified) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let condition = Condvar::new();
    thread::scope(|scope| {
        for number in 0..6_u32 {
            let (arrived, notified, condition) = (&arrived, &notified, &condition);
            scope.spawn(move || {
                let mut arrived = arrived.lock();
                arrived.push(number);
                match number {
                    3 => return assert!(condition.wait_for(&mut arrived, SHORT).timed_out()),
                    4 => assert!(!condition.wait_for(&mut arrived, LONG).timed_out()),
                    _ => condition.wait(&mut arrived),
                }
                notified.lock().push(number);
            });
            drop(wait_for(arrived, number as usize + 1));
        }
        thread::sleep(2 * SHORT); // until one gives up
        for number in 1..=3 {
            assert!(condition.notify_one());
            while notified.lock().len() < number {
                thread::yield_now();
            }
        }
        assert_eq!(condition.notify_all(), 2);
        assert_eq!(condition.notify_all(), 0);
        assert!(!condition.notify_one());
    });
    let mut notified = notified.into_inner();
    notified[3..].sort_unstable();
    assert_eq!(notified, [0, 1, 2, 4, 5]);
}

#[test]
fn wait_with_a_time_limit_ends_neither_early_nor_without_the_mutex() {
    let (mutex, condition) = (Mutex::new(0), Condvar::new());
    let mut guard = mutex.lock();
    let begun = Instant::now();
    assert!(condition.wait_for(&mut guard, SHORT).timed_out());
    assert!(begun.elapsed() >= SHORT);
    assert!(condition.wait_until(&mut guard, begun).timed_out());
    assert!(condition.wait_while_for(&mut guard, |_| true, SHORT).timed_out());
    assert!(!condition.wait_while_for(&mut guard, |_| false, SHORT).timed_out());
    assert!(begun.elapsed() < LONG);
    assert!(mutex.is_locked() && mutex.try_lock().is_none());
    *guard += 1;
    drop(guard);
    assert!(!condition.notify_one(), "nobody is left in the queue");
    assert_eq!(mutex.into_inner(), 1);
}

/// The second thread that waits panics, with its mutex; the first is not disturbed.
#[test]
fn wait_with_a_second_mutex_panics() {
    let (first, second) = (Mutex::new(Vec::new()), Mutex::new(0));
    let condition = Condvar::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut guard = first.lock();
            guard.push(1);
            condition.wait(&mut guard);
        });
        drop(wait_for(&first, 1));
        let mut guard = second.lock();
        let waits = || condition.wait_for(&mut guard, LONG);
        let panic = catch_unwind(AssertUnwindSafe(waits)).expect_err("it must not wait");
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied()).expect("a text");
        assert!(text.contains("with another mutex"), "{text}");
        *guard += 1;
        drop(guard);
        assert_eq!(condition.notify_all(), 1);
    });
    // Now nobody waits, so another mutex is fine.
    let mut guard = second.try_lock().expect("it is free");
    assert!(condition.wait_for(&mut guard, Duration::ZERO).timed_out());
    assert_eq!(*guard, 1);
}

/// Each of 64 threads is notified once a round, and none misses a round.
#[test]
fn all_threads_are_notified_together() {
    const ROUNDS: u64 = 50;
    let (round, condition) = (Mutex::new(0), Condvar::new());
    let waiting = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| {
                let mut current = round.lock();
                for number in 0..ROUNDS {
                    waiting.fetch_add(1, Relaxed);
                    condition.wait_while(&mut current, |current| *current == number);
                }
            });
        }
        for number in 1..=ROUNDS {
            while waiting.load(Relaxed) < 64 * number {
                thread::yield_now();
            }
            *round.lock() = number;
            assert_eq!(condition.notify_all(), 64);
        }
    });
}

#[test]
fn panic_after_a_wait_releases_the_mutex() {
    let (mutex, condition) = (Mutex::new(Vec::new()), Condvar::new());
    thread::scope(|scope| {
        let panics = scope.spawn(|| {
            let mut guard = mutex.lock();
            guard.push(1);
            condition.wait(&mut guard);
            std::panic::resume_unwind(Box::new("on purpose"));
        });
        drop(wait_for(&mutex, 1));
        condition.notify_one();
        assert!(panics.join().is_err());
    });
    assert!(mutex.try_lock().is_some());
}
