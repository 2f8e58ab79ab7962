//! Closures whose threads do not wait: each is executed once, in its thread's order; results,
//! panics, capacity.

use std::{
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
};

use consort_sync::{Delegate, Pending, Server, delegation::CcSynch};

use crate::schemes::{Applies, for_each_scheme, panic_of, within_limit};

for_each_scheme! {
    closures_are_executed_in_the_order_of_their_thread,
    detached_panic_reaches_no_thread,
    panic_reaches_the_waiting_thread,
    refused_closures_are_dropped_once,
    panic_payload_may_not_use_the_data,
    a_closure_may_not_detach_with_its_own_data,
    closures_may_detach_with_other_data,
    results_are_awaited,
    backlog_is_bounded,
}

/// The executed closures: each one's thread, and its number in that thread.
type Log = Vec<(u64, u64)>;

fn closures_are_executed_in_the_order_of_their_thread<D: Applies<Log>, U>(
    make: impl Fn(Log) -> D,
    _: impl Fn(u64) -> U,
) {
    const THREADS: u64 = 6;
    const EACH: u64 = 600;
    let log = make(Vec::new());
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let log = &log;
            scope.spawn(move || {
                let mut pending = Vec::new();
                let mut number = 0;
                let mut next = || {
                    number += 1;
                    (thread, number - 1)
                };
                for round in 0..EACH / 6 {
                    let entry = next();
                    log.detach(move |log| log.push(entry));
                    let entry = next();
                    pending.push(log.submit(move |log| {
                        log.push(entry);
                        entry
                    }));
                    let entry = next();
                    if round % 7 == 0 {
                        log.apply(|log| log.push(entry));
                    } else {
                        log.detach(move |log| log.push(entry));
                    }
                    let mut batch = log.batch();
                    for _ in 0..3 {
                        let entry = next();
                        batch.push(move |log: &mut Log| log.push(entry));
                    }
                }
                let results: Vec<_> = pending.into_iter().map(Pending::wait).collect();
                assert!(results.is_sorted());
                assert_eq!(results.len() as u64, EACH / 6);
                let mine = log.apply(|log| log.iter().filter(|(by, _)| *by == thread).count());
                assert_eq!(
                    mine as u64, EACH,
                    "closures that the thread detached earlier are executed first"
                );
            });
        }
    });
    let log = log.into_inner();
    for thread in 0..THREADS {
        let mine = log.iter().filter(|(by, _)| *by == thread);
        assert!(mine.map(|(_, number)| *number).eq(0..EACH), "thread {thread}");
    }
}

fn detached_panic_reaches_no_thread<D: Applies<u64>, U>(
    make: impl Fn(u64) -> D,
    _: impl Fn(u64) -> U,
) {
    let data = make(0);
    let mut batch = data.batch();
    for round in 0..100 {
        let panics = move |count: &mut u64| {
            *count += 1;
            if round % 3 == 0 {
                std::panic::resume_unwind(Box::new(round));
            }
        };
        data.detach(panics);
        batch.push(panics);
    }
    drop(batch);
    assert!(!data.is_poisoned());
    assert_eq!(data.into_inner(), 200);
}

fn panic_reaches_the_waiting_thread<D: Applies<u64>, U>(
    make: impl Fn(u64) -> D,
    _: impl Fn(u64) -> U,
) {
    let data = make(0).poisoning();
    let pending = data.submit(|_| -> u64 { std::panic::resume_unwind(Box::new("boom")) });
    let refused = data.submit(|count| *count);
    assert_eq!(panic_of(|| _ = pending.wait()), "boom");
    assert!(data.is_poisoned());
    assert!(panic_of(|| _ = refused.wait()).contains("the data is poisoned"));
}

/// Counts its drops, and panics.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Relaxed);
        std::panic::resume_unwind(Box::new("a destructor"));
    }
}

fn refused_closures_are_dropped_once<D: Applies<u64>, U>(
    make: impl Fn(u64) -> D,
    _: impl Fn(u64) -> U,
) {
    let data = make(0).poisoning();
    let dropped = Arc::new(AtomicUsize::new(0));
    data.detach(|_| std::panic::resume_unwind(Box::new("boom")));
    let mut batch = data.batch();
    for _ in 0..10 {
        let [one, other] = [(); 2].map(|()| Counted(Arc::clone(&dropped)));
        let uses = |counted: Counted| {
            move |count: &mut u64| {
                *count += 1;
                drop(counted);
            }
        };
        data.detach(uses(one));
        batch.push(uses(other));
    }
    drop(batch);
    assert!(panic_of(|| data.apply(|_| ())).contains("the data is poisoned"));
    assert_eq!(dropped.load(Relaxed), 20);
    assert_eq!(data.into_inner(), 0);
}

/// Uses data when it is dropped, and records the panic message.
struct Uses<D: Applies<u64> + 'static>(&'static D, Arc<Mutex<Vec<String>>>);

impl<D: Applies<u64> + 'static> Drop for Uses<D> {
    fn drop(&mut self) {
        let text = panic_of(|| self.0.apply(|count| *count += 1));
        self.1.lock().expect("nobody panics with it").push(text);
    }
}

/// The payload of a panic is dropped where the closure was executed.
fn panic_payload_may_not_use_the_data<D, U>(make: impl Fn(u64) -> D, _: impl Fn(u64) -> U)
where
    D: Applies<u64> + 'static,
{
    let data: &D = Box::leak(Box::new(make(0)));
    within_limit(|| {
        let texts = Arc::default();
        let uses = || Uses(data, Arc::clone(&texts));
        let [one, other] = [uses(), uses()];
        data.detach(|_| std::panic::resume_unwind(Box::new(one)));
        data.batch().push(|_| std::panic::resume_unwind(Box::new(other)));
        assert_eq!(data.apply(|count| *count), 0);
        let texts = texts.lock().expect("nobody panics with it");
        assert_eq!(texts.len(), 2);
        assert!(texts.iter().all(|text| text.contains("wait for itself")), "{texts:?}");
    });
}

fn a_closure_may_not_detach_with_its_own_data<D: Applies<u64>, U>(
    make: impl Fn(u64) -> D,
    _: impl Fn(u64) -> U,
) {
    let data = make(7);
    let refused = panic_of(|| data.apply(|_| data.detach(|count| *count += 1)));
    assert!(refused.contains("wait for itself"), "{refused}");
    let in_batch = || {
        data.apply(|_| {
            let mut batch = data.batch();
            batch.push(|count: &mut u64| *count += 1);
        });
    };
    let refused = panic_of(in_batch);
    assert!(refused.contains("wait for itself"), "{refused}");
    assert_eq!(data.into_inner(), 7);
}

fn closures_may_detach_with_other_data<D: Applies<u64>, E: Applies<u64>>(
    make: impl Fn(u64) -> D,
    make_other: impl Fn(u64) -> E,
) {
    let (outer, inner) = (make(0), make_other(0));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200 {
                    outer.apply(|outer| {
                        *outer += 1;
                        inner.detach(|inner| *inner += 1);
                    });
                }
            });
        }
    });
    assert_eq!((outer.into_inner(), inner.into_inner()), (800, 800));
}

/// Wakes a thread that waits for a future.
struct Unparks(Thread);

impl Wake for Unparks {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn wait_for<R>(future: impl IntoFuture<Output = R>) -> R {
    let waker = Waker::from(Arc::new(Unparks(thread::current())));
    let mut future = pin!(future.into_future());
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(result) => return result,
            Poll::Pending => thread::park(),
        }
    }
}

fn results_are_awaited<D: Applies<u64>, U>(make: impl Fn(u64) -> D, _: impl Fn(u64) -> U) {
    let data = make(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut last = 0;
                for _ in 0..200 {
                    let now = wait_for(data.submit(|count| {
                        *count += 1;
                        *count
                    }));
                    assert!(now > last);
                    last = now;
                }
            });
        }
    });
    assert_eq!(data.into_inner(), 800);
}

/// While one closure takes its time, threads detach others. At some point they must wait.
fn backlog_is_bounded<D: Applies<u64>, U>(make: impl Fn(u64) -> D, _: impl Fn(u64) -> U) {
    const THREADS: u64 = 2;
    const EACH: u64 = 20_000;
    let (data, most) = (make(0), AtomicU64::new(0));
    let (detached, executed) = (AtomicU64::new(0), Arc::new(AtomicU64::new(0)));
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for number in 0..EACH {
                    let executed = Arc::clone(&executed);
                    detached.fetch_add(1, Relaxed);
                    data.detach(move |_| {
                        if number % 1024 == 0 {
                            thread::yield_now();
                        }
                        executed.fetch_add(1, Relaxed);
                    });
                }
            });
        }
        while detached.load(Relaxed) < THREADS * EACH {
            // In this order, so that what happens in between makes the difference smaller.
            let (detached, executed) = (detached.load(Relaxed), executed.load(Relaxed));
            most.fetch_max(detached.saturating_sub(executed), Relaxed);
            thread::yield_now();
        }
    });
    assert!(
        most.into_inner() <= 2 * 4096 + THREADS,
        "the backlog, and the closures being executed"
    );
    drop(data);
    assert_eq!(executed.load(Relaxed), THREADS * EACH);
}

#[test]
fn server_runs_detached_closures_before_it_ends() {
    within_limit(|| {
        for _ in 0..200 {
            let server = Server::start(0).expect("a thread");
            thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| (0..100).for_each(|_| server.detach(|count| *count += 1)));
                }
            });
            assert_eq!(server.into_inner(), 200);
        }
    });
}

/// A closure that another thread executes must not use data that the executing thread holds.
#[test]
fn a_detached_closure_that_would_wait_for_its_executor_is_refused() {
    within_limit(|| {
        let (outer, inner): (&Delegate<u64, CcSynch>, &Delegate<u64, CcSynch>) = (
            Box::leak(Box::new(Delegate::with(CcSynch::new(), 0))),
            Box::leak(Box::new(Delegate::with(CcSynch::new(), 0))),
        );
        let refused = outer.apply(|_| {
            let pending = inner.submit(|_| outer.apply(|_| ()));
            panic_of(|| pending.wait())
        });
        assert!(refused.contains("wait for itself"), "{refused}");
    });
}

#[test]
fn a_batch_is_delivered_when_it_is_full() {
    let data = Delegate::new(0);
    let mut batch = data.batch();
    for _ in 0..100 {
        batch.push(|count| *count += 1);
    }
    assert_eq!(data.apply(|count| *count), 0);
    for _ in 0..100 {
        batch.push(|count| *count += 1);
    }
    assert_ne!(data.apply(|count| *count), 0);
    batch.deliver();
    assert_eq!(data.apply(|count| *count), 200);
}

#[repr(align(64))]
struct Aligned(u64);

#[test]
fn closures_of_all_sizes_fit_in_a_batch() {
    let data = Delegate::new(Vec::new());
    let mut batch = data.batch();
    for number in 0..200_u64 {
        let (text, bytes) = (number.to_string(), [number.to_le_bytes()[0]; 3]);
        let (large, aligned) = ([number; 40], Aligned(number));
        batch.push(move |all: &mut Vec<u64>| all.push(number));
        batch.push(move |all| all.push(text.parse().expect("a number")));
        batch.push(move |all| all.push(bytes[2].into()));
        batch.push(move |all| all.push(large[39]));
        batch.push(move |all| {
            let aligned = aligned;
            all.push(aligned.0);
        });
    }
    drop(batch);
    assert!(data.into_inner().into_iter().eq((0..200).flat_map(|number| [number; 5])));
}

#[test]
fn closures_of_a_batch_that_is_refused_are_dropped() {
    let (data, dropped) = (Delegate::new(0), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&dropped);
    let refused = panic_of(|| {
        data.apply(|_| {
            let mut batch = data.batch();
            for _ in 0..10 {
                let counted = Counted(Arc::clone(&counted));
                batch.push(move |_| drop(counted));
            }
            panic!("boom");
        });
    });
    assert_eq!((refused.as_str(), dropped.load(Relaxed)), ("boom", 10));
}
