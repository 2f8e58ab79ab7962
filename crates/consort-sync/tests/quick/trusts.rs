//! Values of a server that has many.

use std::{sync::Arc, thread};

use consort_sync::{
    Continuations, Server,
    delegation::{FallbackServer, MpServer, ServerScheme, ShmServer},
};

use crate::schemes::panic_of;

const THREADS: u64 = 4;
const EACH: u64 = 500;

/// Counts with closures of all kinds on `count` values of a server with this scheme.
fn closures_on_all_values_are_executed_once<S>(scheme: S, count: usize)
where
    S: ServerScheme<Local: Send> + Send + Sync + 'static,
{
    let server = Server::with(scheme, 0).expect("a thread");
    let values: Vec<_> = (0..count).map(|_| server.entrust((0, 0))).collect();
    thread::scope(|scope| {
        for _ in 0..THREADS {
            let values = values.clone();
            let server = &server;
            scope.spawn(move || {
                let both = |(one, two): &mut (u64, u64)| {
                    *one += 1;
                    if *one % 64 == 0 {
                        thread::yield_now();
                    }
                    *two += 1;
                    assert_eq!(one, two, "another closure uses the value");
                    *one
                };
                Continuations::scope(|continuations| {
                    for number in 0..EACH {
                        server.apply(|own| *own += 1);
                        for value in &values {
                            match number % 4 {
                                0 => assert!(value.apply(both) > 0),
                                1 => value.detach(move |value| assert!(both(value) > 0)),
                                2 => value.apply_then(continuations, both, |one| assert!(one > 0)),
                                _ => assert!(value.submit(both).wait() > 0),
                            }
                        }
                    }
                });
                values.iter().for_each(|value| value.apply(|_| {})); // after what was detached
            });
        }
    });
    let all = THREADS * EACH;
    let values = values.into_iter().map(|value| value.into_inner().expect("the last handle"));
    assert!(values.eq(vec![(all, all); count]));
    assert_eq!(server.into_inner(), all);
}

#[test]
fn closures_on_all_values_of_a_server_are_executed_once() {
    closures_on_all_values_are_executed_once(FallbackServer::new(), 5);
    closures_on_all_values_are_executed_once(MpServer::new(), 5);
    closures_on_all_values_are_executed_once(ShmServer::new(8), 5);
}

#[test]
fn value_lives_until_its_last_closure_has_ended() {
    let server = Server::start(()).expect("a thread");
    let token = Arc::new(());
    let value = server.entrust(Arc::clone(&token));
    for _ in 0..100 {
        value.detach(|token| assert!(Arc::strong_count(token) >= 2));
    }
    let copy = value.clone();
    assert!(value.into_inner().is_none(), "there is a copy");
    drop(copy);
    server.apply(|()| {}); // after what was detached
    assert_eq!(Arc::strong_count(&token), 1);
}

#[test]
fn values_may_borrow() {
    let server = Server::start(()).expect("a thread");
    let word = String::from("a");
    let words = server.entrust(vec![word.as_str()]);
    words.apply(|words| words.push(&word));
    assert_eq!(words.into_inner(), Some(vec!["a", "a"]));
}

#[test]
fn closure_that_uses_another_value_of_its_server_is_refused() {
    let server = Server::start(0).expect("a thread");
    let [one, two] = [1, 2].map(|value| server.entrust(value));
    for refused in [
        panic_of(|| one.apply(|_| two.apply(|two| *two += 1))),
        panic_of(|| one.apply(|_| two.detach(|two| *two += 1))),
        panic_of(|| one.apply(|_| drop(one.submit(|one| *one += 1)))),
        panic_of(|| {
            let then = |value| assert!(value > 0);
            one.apply(|_| Continuations::scope(|scope| two.apply_then(scope, |two| *two, then)));
        }),
        panic_of(|| one.apply(|_| server.apply(|own| *own += 1))),
        panic_of(|| server.apply(|_| one.apply(|one| *one += 1))),
    ] {
        assert!(refused.contains("would wait for itself"), "{refused}");
    }
    assert_eq!([one, two].map(|value| value.into_inner()), [Some(1), Some(2)]);
}

#[test]
fn panic_reaches_only_its_caller_and_poisons_all_values_of_a_poisoning_server() {
    let server = Server::start(()).expect("a thread").poisoning();
    let [one, two] = [1, 2].map(|value| server.entrust(value));
    assert_eq!(panic_of(|| one.apply(|_| panic!("boom"))), "boom");
    assert!(panic_of(|| two.apply(|_| {})).contains("poisoned"));
    server.clear_poison();
    assert_eq!(two.apply(|two| *two), 2);
}
