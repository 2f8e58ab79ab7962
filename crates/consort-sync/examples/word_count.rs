//! Threads count words in one map: with a mutex, with closures that one thread at a time executes,
//! and with batches of such closures.

use std::{collections::BTreeMap, thread};

use consort_sync::{Delegate, Mutex};

const TEXT: &str = "the lock of the map is the lock of all";

type Counts = BTreeMap<&'static str, u64>;

/// Returns the words of a thread: the text, a thousand times.
fn words() -> impl Iterator<Item = &'static str> {
    (0..1000).flat_map(|_| TEXT.split(' '))
}

fn on_four_threads(count: impl Fn() + Sync) {
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(&count);
        }
    });
}

fn main() {
    let locked = Mutex::new(Counts::new());
    on_four_threads(|| words().for_each(|word| *locked.lock().entry(word).or_default() += 1));

    let delegated = Delegate::new(Counts::new());
    let count = |word| delegated.apply(|counts| *counts.entry(word).or_default() += 1);
    on_four_threads(|| words().for_each(count));

    let batched = Delegate::new(Counts::new());
    on_four_threads(|| {
        let mut batch = batched.batch(); // the thread waits for none of its closures
        words().for_each(|word| batch.push(move |counts| *counts.entry(word).or_default() += 1));
    });

    let counts = locked.into_inner();
    println!("{counts:?}");
    assert_eq!(delegated.into_inner(), counts);
    assert_eq!(batched.into_inner(), counts);
}
