//! Closures whose results come back to their threads: the order and the threads of continuations,
//! panics, nested calls.

use std::{
    cell::{Cell, RefCell},
    panic::resume_unwind,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
        mpsc,
    },
    thread,
};

use consort_sync::{Continuations, Delegate, Server};

use crate::schemes::{Applies, for_each_scheme, panic_of, within_limit};

for_each_scheme! {
    continuations_run_on_their_thread_in_the_order_of_its_calls,
    panics_reach_the_calling_thread_in_order,
    panic_out_of_the_scope_drops_the_later_continuations,
    refused_closures_and_their_continuations_are_dropped_once,
    continuations_use_the_same_data,
    thousands_of_calls_are_outstanding,
    a_closure_may_not_call_with_its_own_data,
}

/// The executed closures: each one's thread, and its number in that thread.
type Log = Vec<(u64, u64)>;

fn continuations_run_on_their_thread_in_the_order_of_its_calls<D: Applies<Log>, U>(
    make: impl Fn(Log) -> D,
    _: impl Fn(u64) -> U,
) {
    const THREADS: u64 = 5;
    const EACH: u64 = 600;
    let log = make(Vec::new());
    let use_it = |thread: u64| {
        let caller = thread::current().id();
        let (texts, seen) = (Rc::new(["a", "b"]), RefCell::new(Vec::new()));
        let numbers: Vec<u64> = (0..EACH).collect();
        Continuations::scope(|continuations| {
            for number in &numbers {
                if number % 5 == 0 {
                    log.detach(move |log| log.push((thread, EACH)));
                }
                let (texts, seen) = (Rc::clone(&texts), &seen);
                log.apply_then(
                    continuations,
                    move |log| {
                        log.push((thread, *number));
                        if number % 64 == 0 {
                            thread::yield_now();
                        }
                        number // borrowed
                    },
                    move |number| {
                        assert_eq!(thread::current().id(), caller);
                        assert_eq!(texts.len(), 2);
                        seen.borrow_mut().push(*number);
                    },
                );
                match number % 100 {
                    50 => continuations.run_ready(),
                    70 => continuations.wait(),
                    90 => log.apply(|_| ()), // executes the closures
                    _ => {}
                }
                if number % 100 == 70 {
                    assert_eq!(continuations.outstanding(), 0);
                    assert_eq!(seen.borrow().len() as u64, number + 1);
                }
            }
        });
        assert_eq!((seen.into_inner(), Rc::strong_count(&texts)), (numbers, 1));
    };
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let use_it = &use_it;
            scope.spawn(move || use_it(thread));
        }
    });
    let log = log.into_inner();
    for thread in 0..THREADS {
        let mine = log.iter().filter(|(by, number)| *by == thread && *number < EACH);
        assert!(mine.map(|(_, number)| *number).eq(0..EACH), "thread {thread}");
    }
}

/// Makes calls within a continuation, in which no other continuation runs. Then runs theirs.
fn call_in_a_continuation<'scope, D: Applies<u64>>(
    data: &'scope D,
    continuations: &'scope Continuations<'scope, '_>,
    calls: impl FnOnce() + 'scope,
) {
    data.apply_then(continuations, |_| (), |()| calls());
    continuations.wait();
}

fn panics_reach_the_calling_thread_in_order<D: Applies<u64>, U>(
    make: impl Fn(u64) -> D,
    _: impl Fn(u64) -> U,
) {
    let (data, seen) = (make(0), RefCell::new(Vec::new()));
    Continuations::scope(|continuations| {
        let (data, seen) = (&data, &seen);
        let calls = move || {
            for number in 0..6 {
                let closure = move |count: &mut u64| {
                    *count += 1;
                    if number == 2 {
                        resume_unwind(Box::new("a closure"));
                    }
                    number
                };
                data.apply_then(continuations, closure, move |number| {
                    seen.borrow_mut().push(number);
                    if number == 4 {
                        resume_unwind(Box::new("a continuation"));
                    }
                });
            }
        };
        assert_eq!(panic_of(|| call_in_a_continuation(data, continuations, calls)), "a closure");
        assert_eq!(*seen.borrow(), [0, 1]);
        assert_eq!(panic_of(|| continuations.wait()), "a continuation");
        assert_eq!(*seen.borrow(), [0, 1, 3, 4]);
    });
    assert_eq!(seen.into_inner(), [0, 1, 3, 4, 5]);
    assert!(!data.is_poisoned());
    assert_eq!(data.into_inner(), 6);
}

/// Calls a function when it is dropped.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        self.0();
    }
}

fn panic_out_of_the_scope_drops_the_later_continuations<D: Applies<u64>, U>(
    make: impl Fn(u64) -> D,
    _: impl Fn(u64) -> U,
) {
    let (data, run, dropped) = (make(0), Cell::new(0), Cell::new(0));
    let program = || {
        Continuations::scope(|continuations| {
            let (data, run, dropped) = (&data, &run, &dropped);
            let calls = move || {
                for number in 0..100 {
                    let on_drop = OnDrop(move || {
                        dropped.set(dropped.get() + 1);
                        if number > 20 {
                            let runs = |()| run.set(run.get() + 1);
                            data.apply_then(continuations, |count| *count += 1, runs);
                            resume_unwind(Box::new("a destructor"));
                        }
                    });
                    let then = move |()| {
                        run.set(run.get() + 1);
                        drop(on_drop);
                        assert!(number < 20, "boom");
                    };
                    data.apply_then(continuations, |count| *count += 1, then);
                }
            };
            call_in_a_continuation(data, continuations, calls);
        });
    };
    assert_eq!(panic_of(program), "boom");
    assert_eq!((run.get(), dropped.get()), (21, 100));
    assert_eq!(data.into_inner(), 100 + 79, "those of the destructors, too");
}

fn refused_closures_and_their_continuations_are_dropped_once<D: Applies<u64>, U>(
    make: impl Fn(u64) -> D,
    _: impl Fn(u64) -> U,
) {
    let (data, dropped) = (make(0).poisoning(), AtomicUsize::new(0));
    Continuations::scope(|continuations| {
        let (data, dropped) = (&data, &dropped);
        let calls = move || {
            data.apply_then(continuations, |_| resume_unwind(Box::new("boom")), |()| ());
            for _ in 0..10 {
                let [one, other] =
                    [(); 2].map(|()| OnDrop(move || _ = dropped.fetch_add(1, Relaxed)));
                let closure = move |count: &mut u64| {
                    *count += 1;
                    drop(one);
                };
                data.apply_then(continuations, closure, move |()| drop(other));
            }
        };
        assert_eq!(panic_of(|| call_in_a_continuation(data, continuations, calls)), "boom");
        for number in 1..=10 {
            let text = panic_of(|| continuations.wait());
            assert!(text.contains("the data is poisoned"), "{text}");
            assert_eq!(dropped.load(Relaxed), 2 * number);
        }
        assert_eq!(continuations.outstanding(), 0);
    });
    assert_eq!(data.into_inner(), 0);
}

/// A call whose continuation makes the next one, and so on.
fn chain<'scope, D: Applies<u64>>(
    data: &'scope D,
    continuations: &'scope Continuations<'scope, '_>,
    left: u64,
) {
    let next = move |count: u64| {
        if left > 0 {
            assert_eq!(count % 2, 1);
            data.apply(|count| *count += 1);
            chain(data, continuations, left - 1);
        }
    };
    let closure = |count: &mut u64| {
        *count += 1;
        *count
    };
    data.apply_then(continuations, closure, next);
}

fn continuations_use_the_same_data<D: Applies<u64>, U>(
    make: impl Fn(u64) -> D,
    _: impl Fn(u64) -> U,
) {
    const LENGTH: u64 = 10_000; // nested, 10 000 calls would overflow the stack
    let (data, order) = (make(0), RefCell::new(Vec::new()));
    Continuations::scope(|continuations| {
        chain(&data, continuations, LENGTH);
        continuations.wait();
        let (data, order) = (&data, &order);
        let note = move |text| order.borrow_mut().push(text);
        let waits = move |()| {
            note("begin");
            continuations.wait();
            note("end");
        };
        let calls = move || {
            data.apply_then(continuations, |_| (), waits);
            data.apply_then(continuations, |_| (), move |()| note("second"));
        };
        call_in_a_continuation(data, continuations, calls);
    });
    assert_eq!(order.into_inner(), ["begin", "second", "end"]);
    assert_eq!(data.into_inner(), 2 * LENGTH + 1);
}

fn thousands_of_calls_are_outstanding<D: Applies<u64>, U>(
    make: impl Fn(u64) -> D,
    _: impl Fn(u64) -> U,
) {
    const CALLS: u64 = 10_000;
    let (data, sum) = (make(0), Cell::new(0));
    Continuations::scope(|continuations| {
        let (data, sum) = (&data, &sum);
        let calls = move || {
            for number in 0..CALLS {
                let closure = move |count: &mut u64| {
                    *count += 1;
                    *count
                };
                let then = move |count| {
                    assert_eq!(count, number + 1);
                    sum.set(sum.get() + 1);
                };
                data.apply_then(continuations, closure, then);
            }
            assert_eq!((continuations.outstanding() as u64, sum.get()), (CALLS, 0));
        };
        data.apply_then(continuations, |_| (), move |()| calls());
    });
    assert_eq!((data.into_inner(), sum.get()), (CALLS, CALLS));
}

fn a_closure_may_not_call_with_its_own_data<D: Applies<u64>, U>(
    make: impl Fn(u64) -> D,
    _: impl Fn(u64) -> U,
) {
    let data = make(7);
    let calls = || {
        data.apply(|_| {
            Continuations::scope(|continuations| {
                data.apply_then(continuations, |count| *count += 1, |()| ());
            });
        });
    };
    let refused = panic_of(calls);
    assert!(refused.contains("wait for itself"), "{refused}");
    assert_eq!(data.into_inner(), 7);
}

#[test]
fn the_caller_does_not_wait_for_a_server() {
    within_limit(|| {
        let [slow, fast] = [0, 0].map(|count| Server::start(count).expect("a thread"));
        let (release, waits) = mpsc::channel::<()>();
        let order = RefCell::new(Vec::new());
        Continuations::scope(|continuations| {
            let note = |name| {
                let order = &order;
                move |count: u64| order.borrow_mut().push((name, count))
            };
            let slowly = move |count: &mut u64| {
                waits.recv().expect("the test releases it");
                *count
            };
            slow.apply_then(continuations, slowly, note("slow"));
            for _ in 0..2 {
                fast.apply_then(
                    continuations,
                    |count| {
                        *count += 1;
                        *count
                    },
                    note("fast"),
                );
            }
            fast.apply(|_| ());
            continuations.run_ready();
            assert_eq!(continuations.outstanding(), 3, "the first result has not arrived");
            Continuations::scope(|inner| fast.apply_then(inner, |count| *count, note("inner")));
            release.send(()).expect("the server waits");
        });
        assert_eq!(order.into_inner(), [("inner", 2), ("slow", 0), ("fast", 1), ("fast", 2)]);
    });
}

#[test]
fn continuation_of_a_free_lock_runs_at_once() {
    let (data, last) = (Delegate::new(0), Cell::new(0));
    Continuations::scope(|continuations| {
        for number in 1..=100 {
            let closure = |count: &mut u64| {
                *count += 1;
                *count
            };
            data.apply_then(continuations, closure, |count| last.set(count));
            assert_eq!((last.get(), continuations.outstanding()), (number, 0));
        }
    });
}

/// The body, not a call, panics.
#[test]
fn closures_are_executed_before_a_scope_ends_by_a_panic() {
    within_limit(|| {
        let server = Server::start(()).expect("a thread");
        let (release, waits) = mpsc::channel::<()>();
        let (executed, token) = (AtomicUsize::new(0), Arc::new(()));
        let (begin, begins) = mpsc::channel::<()>();
        let releases = thread::spawn(move || {
            begins.recv().expect("the body panics");
            thread::sleep(std::time::Duration::from_millis(20));
            release.send(()).expect("the server waits");
        });
        let program = || {
            Continuations::scope(|continuations| {
                server.apply_then(continuations, move |()| waits.recv(), |_| unreachable!());
                for _ in 0..10 {
                    let (executed, token) = (&executed, Arc::clone(&token));
                    let closure = move |(): &mut ()| _ = executed.fetch_add(1, Relaxed);
                    server.apply_then(continuations, closure, move |()| drop(token));
                }
                begin.send(()).expect("the other thread waits");
                panic!("boom");
            });
        };
        assert_eq!(panic_of(program), "boom");
        assert_eq!((executed.load(Relaxed), Arc::strong_count(&token)), (10, 1));
        releases.join().expect("no panic");
    });
}
