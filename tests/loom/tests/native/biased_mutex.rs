//! A lock that is biased to one thread, while another ends the bias.

#![expect(unsafe_code, reason = "assigns tokens to threads, and changes data under a lock")]

use consort_machine::{BiasedMutex, ThreadToken};
use loom::{
    cell::UnsafeCell,
    sync::Arc,
    thread::{spawn, yield_now},
};

/// Data that the threads change: loom fails if two access it at the same time.
struct Count(UnsafeCell<u32>);

// SAFETY: loom checks that one thread at a time accesses it.
unsafe impl Send for Count {}

fn add(lock: &BiasedMutex<Count>, own: ThreadToken) {
    let count = lock.lock(own).expect("it is not locked here");
    // SAFETY: the lock is held.
    count.0.with_mut(|count| unsafe { *count += 1 });
}

fn play(threads: u64, both_own: bool) {
    loom::model(move || {
        let lock = Arc::new(BiasedMutex::new(Count(UnsafeCell::new(0))));
        // SAFETY: one for each thread, unless the test breaks that.
        let token = move |number| unsafe { ThreadToken::new(if both_own { 1 } else { number }) };
        lock.bias_to(token(1));
        let others: Vec<_> = (2..=threads)
            .map(|number| {
                let lock = Arc::clone(&lock);
                spawn(move || add(&lock, token(number)))
            })
            .collect();
        add(&lock, token(1));
        add(&lock, token(1));
        others.into_iter().for_each(|other| other.join().unwrap());
        yield_now();
        let count = lock.lock(token(1)).unwrap();
        // SAFETY: the lock is held.
        assert_eq!(count.0.with(|count| unsafe { *count }), u32::try_from(threads).unwrap() + 1);
    });
}

#[test]
fn two_threads_take_turns() {
    play(2, false);
}

#[test]
fn three_threads_take_turns() {
    play(3, false);
}

/// Two threads both take the lock as biased to them.
#[test]
#[should_panic]
fn bias_to_two_threads_is_caught() {
    play(2, true);
}
