//! A forked child finds locks free and values obtainable, whatever other threads of the parent were
//! doing.

use std::{
    sync::{
        Barrier,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
};

use consort_machine::fork_safe::{Found, Mutex};
use consort_sandbox::children;

#[test]
fn child_finds_a_value_that_a_thread_of_the_parent_was_looking_for() {
    static VALUE: Found<u32> = Found::new();
    let (begun, forked) = (Barrier::new(2), Barrier::new(2));
    thread::scope(|threads| {
        let looks = threads.spawn(|| {
            *VALUE.get_or_find(|| {
                begun.wait();
                forked.wait();
                1
            })
        });
        begun.wait();
        let child = children::fork();
        if child == 0 {
            children::end(*VALUE.get_or_find(|| 2) == 2);
        }
        forked.wait();
        children::wait("a value", child);
        assert_eq!(looks.join().expect("no panic"), 1);
    });
    assert_eq!(*VALUE.get_or_find(|| 3), 1);
}

#[test]
fn child_finds_locks_free_that_threads_of_the_parent_take_all_the_time() {
    static COUNT: Mutex<u64> = Mutex::new(0);
    static ENDS: AtomicBool = AtomicBool::new(false);
    // Relaxed: it publishes no other data.
    let counts = || {
        while !ENDS.load(Relaxed) {
            *COUNT.lock() += 1
        }
    };
    let threads = [thread::spawn(counts), thread::spawn(counts)];
    for _ in 0..100 {
        children::run("a lock", || *COUNT.lock() += 1);
    }
    ENDS.store(true, Relaxed);
    for thread in threads {
        thread.join().expect("no panic");
    }
}
