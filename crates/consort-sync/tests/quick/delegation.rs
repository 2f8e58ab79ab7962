//! Delegation: one closure runs at a time, and each runs once; results, panics, nesting.

use std::{
    cell::Cell,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread,
};

use consort_sync::{
    Delegate, Mutex, Server,
    delegation::{CcSynch, HSynch, HybComb, Locked, Serverless, ShmServer},
};

use crate::schemes::{Applies, for_each_scheme, panic_of, within_limit};

for_each_scheme! {
    each_closure_is_executed_once_and_alone,
    sixty_four_threads_all_finish,
    results_and_borrows_are_returned,
    panic_reaches_only_its_caller,
    a_closure_may_use_other_data,
    a_closure_that_uses_its_own_data_is_refused,
    circular_delegation_is_refused,
    threads_come_and_go,
}

fn count(both: &impl Applies<(u64, u64)>, threads: u64, each: u64) {
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut last = 0;
                for _ in 0..each {
                    let now = both.apply(|(one, two)| {
                        *one += 1;
                        if *one % 64 == 0 {
                            thread::yield_now();
                        }
                        *two += 1;
                        assert_eq!(one, two);
                        *one
                    });
                    assert!(now > last, "{now} after {last}");
                    last = now;
                }
            });
        }
    });
}

fn each_closure_is_executed_once_and_alone<D: Applies<(u64, u64)>, U>(
    make: impl Fn((u64, u64)) -> D,
    _: impl Fn(u64) -> U,
) {
    for (threads, each) in [(1, 1_000), (2, 5_000), (6, 500)] {
        let both = make((0, 0));
        count(&both, threads, each);
        assert_eq!(both.into_inner(), (threads * each, threads * each));
    }
}

fn sixty_four_threads_all_finish<D: Applies<(u64, u64)>, U>(
    make: impl Fn((u64, u64)) -> D,
    _: impl Fn(u64) -> U,
) {
    let both = make((0, 0));
    count(&both, 64, 40);
    assert_eq!(both.into_inner(), (64 * 40, 64 * 40));
}

fn results_and_borrows_are_returned<D: Applies<Vec<String>>, U>(
    make: impl Fn(Vec<String>) -> D,
    _: impl Fn(u64) -> U,
) {
    let words = make(Vec::new());
    let lengths: Vec<usize> = thread::scope(|scope| {
        let start = |word: &'static str| {
            let words = &words;
            scope.spawn(move || {
                let mine = String::from(word);
                words.apply(|words| {
                    words.push(mine.clone());
                    mine.len()
                })
            })
        };
        let started = ["a", "bc", "def"].map(start);
        started.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    assert_eq!(lengths, [1, 2, 3]);
    let mut words = words.into_inner();
    words.sort();
    assert_eq!(words, ["a", "bc", "def"]);
}

fn panic_reaches_only_its_caller<D: Applies<u64>, U>(
    make: impl Fn(u64) -> D,
    _: impl Fn(u64) -> U,
) {
    let data = make(0);
    let panicked = AtomicUsize::new(0);
    thread::scope(|scope| {
        for thread in 0..4 {
            let (data, panicked) = (&data, &panicked);
            scope.spawn(move || {
                for round in 0..100 {
                    let mine = thread * 1_000 + round;
                    let apply = || {
                        data.apply(|count| {
                            *count += 1;
                            if mine % 3 == 0 {
                                std::panic::resume_unwind(Box::new(mine));
                            }
                        });
                    };
                    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(apply)) {
                        Ok(()) => assert_ne!(mine % 3, 0),
                        Err(payload) => {
                            assert_eq!(payload.downcast_ref(), Some(&mine));
                            panicked.fetch_add(1, Relaxed);
                        }
                    }
                }
            });
        }
    });
    assert_eq!(data.into_inner(), 400);
    assert_eq!(panicked.into_inner(), (0..4_000).filter(|m| m % 1_000 < 100 && m % 3 == 0).count());
}

fn a_closure_may_use_other_data<D: Applies<u64>, E: Applies<u64>>(
    make: impl Fn(u64) -> D,
    make_other: impl Fn(u64) -> E,
) {
    let (outer, inner) = (make(0), make_other(0));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for round in 0..200 {
                    if round % 2 == 0 {
                        inner.apply(|inner| *inner += 1);
                    }
                    outer.apply(|outer| *outer = inner.apply(|inner| *inner + 1) - 1);
                    inner.apply(|inner| *inner += 1);
                }
            });
        }
    });
    assert_eq!(inner.into_inner(), 4 * 300);
    assert!(outer.into_inner() < 4 * 300);
}

fn a_closure_that_uses_its_own_data_is_refused<D: Applies<u64>, U>(
    make: impl Fn(u64) -> D,
    _: impl Fn(u64) -> U,
) {
    let data = make(7);
    let within = panic_of(|| data.apply(|_| data.apply(|_| {})));
    assert!(within.contains("wait for itself"), "{within}");
    assert_eq!(data.into_inner(), 7);
}

fn circular_delegation_is_refused<D: Applies<u64>, E: Applies<u64>>(
    make: impl Fn(u64) -> D,
    make_other: impl Fn(u64) -> E,
) {
    let (a, b) = (make(1), make_other(2));
    let within = panic_of(|| a.apply(|_| b.apply(|_| a.apply(|_| {}))));
    assert!(within.contains("wait for itself"), "{within}");
    assert_eq!((a.into_inner(), b.into_inner()), (1, 2));
}

fn threads_come_and_go<D: Applies<u64>, U>(make: impl Fn(u64) -> D, _: impl Fn(u64) -> U) {
    let data = make(0);
    for _ in 0..30 {
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..5).for_each(|_| data.apply(|count| *count += 1)));
            }
        });
    }
    assert_eq!(data.into_inner(), 600);
}

#[test]
fn delegates_and_mutexes_have_defaults() {
    #[derive(Default)]
    struct Both {
        text: Delegate<String>,
        count: Mutex<u64>,
    }
    let both = Both::default();
    both.text.apply(|text| text.push('a'));
    *both.count.lock() += 1;
    assert_eq!((both.text.into_inner(), both.count.into_inner()), ("a".to_owned(), 1));
}

#[test]
fn poisoned_data_is_refused_until_cleared() {
    let data = Delegate::with(CcSynch::new(), Cell::new(1)).poisoning();
    let boom = panic_of(|| data.apply(|_| panic!("boom")));
    assert_eq!(boom, "boom");
    assert!(data.is_poisoned());
    let refused = panic_of(|| data.apply(|_| {}));
    assert!(refused.contains("poisoned") && refused.contains("`clear_poison`"), "{refused}");
    data.clear_poison();
    assert_eq!(data.apply(|cell| cell.get()), 1);
}

#[test]
fn a_server_that_is_dropped_ends() {
    for _ in 0..20 {
        let server = Server::start(String::new()).expect("a thread");
        server.apply(|text| text.push('a'));
        drop(server);
        drop(Server::with(ShmServer::new(1), ()).expect("a thread"));
    }
}

#[test]
#[should_panic(expected = "the order must name each slot once")]
fn scan_order_must_name_all_slots() {
    let _ = ShmServer::new(3).with_order(&[0, 1, 1]);
}

/// Data as strictly aligned as its delegate, so both may have the same address.
#[derive(Default)]
#[repr(align(128))]
struct Aligned(u64);

#[test]
fn a_delegate_may_be_the_data_of_another() {
    let outer = Delegate::new(Delegate::new(Aligned::default()));
    outer.apply(|inner| inner.apply(|data| data.0 += 1));
    assert_eq!(outer.into_inner().into_inner().0, 1);
}

/// Uses data when it is dropped, even if the data refuses closures.
struct UsesIt<'d, S: Serverless>(&'d Delegate<u64, S>);

impl<S: Serverless> Drop for UsesIt<'_, S> {
    fn drop(&mut self) {
        self.0.apply(|_| {});
    }
}

fn a_refused_closure_is_dropped_by_its_caller<S>(scheme: S)
where
    S: Serverless<Local: Send> + Send + Sync + 'static,
{
    within_limit(move || {
        let data = Delegate::with(scheme, 0).poisoning();
        assert_eq!(panic_of(|| data.apply(|_| panic!("boom"))), "boom");
        for _ in 0..2 {
            let held = UsesIt(&data);
            let refused = panic_of(|| data.apply(move |_| drop(held)));
            assert!(refused.contains("poisoned"), "{refused}");
        }
        data.clear_poison();
        assert_eq!(data.apply(|count| *count), 0);
    });
}

#[test]
fn refused_closures_are_dropped_by_their_callers() {
    a_refused_closure_is_dropped_by_its_caller(Locked::new());
    a_refused_closure_is_dropped_by_its_caller(CcSynch::new());
    a_refused_closure_is_dropped_by_its_caller(HSynch::new(1, 20, |_| 0));
    a_refused_closure_is_dropped_by_its_caller(HybComb::new());
}

#[test]
fn a_thread_that_unwinds_executes_closures() {
    struct UsesItToo<'d>(&'d Delegate<u64, CcSynch>);
    impl Drop for UsesItToo<'_> {
        fn drop(&mut self) {
            let boom = panic_of(|| self.0.apply(|_| panic!("boom")));
            assert_eq!(boom, "boom");
            self.0.apply(|count| *count += 1);
        }
    }
    let data = Delegate::with(CcSynch::new(), 0);
    let outer = panic_of(|| {
        let _data = UsesItToo(&data);
        panic!("outer");
    });
    assert_eq!((outer.as_str(), data.into_inner()), ("outer", 1));
}

#[test]
#[should_panic(expected = "answers must not be streamed")]
fn server_refuses_streamed_answers() {
    let _ = Server::with(ShmServer::new(1).with_streaming(), 0);
}
