//! Reentrant mutexes: one thread at a time holds the mutex and may lock it again; the last guard
//! releases it.

use std::{cell::Cell, thread, time::Duration};

use consort_sync::ReentrantMutex;

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(10);

/// Returns whether another thread could lock the mutex now.
fn is_free<T: Send>(mutex: &ReentrantMutex<T>) -> bool {
    thread::scope(|scope| {
        let attempt = scope.spawn(|| mutex.try_lock().is_some());
        attempt.join().expect("no panic")
    })
}

#[test]
fn holder_may_lock_again_and_the_last_guard_releases() {
    let mutex = ReentrantMutex::new(());
    assert!(!mutex.is_locked() && !mutex.is_owned_by_current_thread());
    let first = mutex.lock();
    let second = mutex.try_lock().expect("this thread holds it");
    let third = mutex.try_lock_for(SHORT).expect("this thread holds it");
    assert!(mutex.is_owned_by_current_thread() && !is_free(&mutex));
    drop(first);
    drop(third);
    assert!(mutex.is_locked() && !is_free(&mutex), "one guard is left");
    drop(second);
    assert!(!mutex.is_locked() && is_free(&mutex));
}

#[test]
fn other_threads_wait_until_all_guards_are_dropped() {
    let mutex = ReentrantMutex::new(Cell::new(0));
    thread::scope(|scope| {
        let outer = mutex.lock();
        let waits = scope.spawn(|| {
            assert!(!mutex.is_owned_by_current_thread());
            assert!(mutex.try_lock_for(SHORT).is_none());
            mutex.try_lock_for(LONG).expect("it is released").get()
        });
        for _ in 0..100 {
            let inner = mutex.lock();
            inner.set(inner.get() + 1);
        }
        thread::sleep(2 * SHORT);
        outer.set(outer.get() + 1);
        drop(outer);
        assert_eq!(waits.join().expect("no panic"), 101);
    });
}

#[test]
fn nested_sections_of_many_threads_exclude() {
    let mutex = ReentrantMutex::new(Cell::new(0));
    let add_one = || {
        let count = mutex.lock();
        count.set(count.get() + 1);
    };
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                for _ in 0..1000 {
                    let count = mutex.lock();
                    let before = count.get();
                    add_one();
                    add_one();
                    assert_eq!(count.get(), before + 2);
                }
            });
        }
    });
    assert_eq!(mutex.into_inner().get(), 12_000);
}
