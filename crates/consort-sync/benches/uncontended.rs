//! The cost of an empty critical section without contention, for locks and delegates.
//!
//! ```sh
//! cargo bench -p consort-sync
//! ```

use std::cell::Cell;

use consort_sync::{
    Continuations, Delegate, Mutex,
    locks::{Clh, Cna, Handoff, Hapax, HybLock, Mcs, RawLock, TestAndSet, Ticket},
};
use divan::{Bencher, black_box};

fn main() {
    divan::main();
}

#[divan::bench(types = [Clh, Cna, Handoff, Hapax, HybLock, Mcs, TestAndSet, Ticket])]
fn mutex<L: RawLock + Default>(bencher: Bencher<'_, '_>) {
    let mutex = Mutex::with(L::default(), 0_u64);
    bencher.bench_local(|| *black_box(&mutex).lock() += 1);
}

/// The baseline: the mutex of the standard library.
#[divan::bench]
fn std_mutex(bencher: Bencher<'_, '_>) {
    let mutex = std::sync::Mutex::new(0_u64);
    bencher.bench_local(|| *black_box(&mutex).lock().expect("no thread panics") += 1);
}

#[divan::bench]
fn delegate(bencher: Bencher<'_, '_>) {
    let delegate = Delegate::new(0_u64);
    bencher.bench_local(|| black_box(&delegate).apply(|count| *count += 1));
}

/// The result is passed to a continuation.
#[divan::bench]
fn delegate_apply_then(bencher: Bencher<'_, '_>) {
    let (delegate, sum) = (Delegate::new(0_u64), Cell::new(0));
    Continuations::scope(|continuations| {
        bencher.bench_local(|| {
            let closure = |count: &mut u64| {
                *count += 1;
                *count
            };
            black_box(&delegate).apply_then(continuations, closure, |count| sum.set(count));
        });
    });
}

/// The result is sent through a channel.
#[divan::bench]
fn delegate_submit(bencher: Bencher<'_, '_>) {
    let (delegate, sum) = (Delegate::new(0_u64), Cell::new(0));
    bencher.bench_local(|| {
        let closure = |count: &mut u64| {
            *count += 1;
            *count
        };
        sum.set(black_box(&delegate).submit(closure).wait());
    });
}
