//! Objects of words under every scheme, against sequential ones.

#![expect(unsafe_code, reason = "the machine is shared by all tests")]

use std::{
    collections::{BTreeSet, VecDeque},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use consort_fabric::Machine;
use consort_native::{NativeMachine, block_on};
use consort_sync::{
    delegation::{
        CcSynch, HSynch, HybComb, Locked, MpServer, Scheme, ServerScheme, Serverless, ShmServer,
    },
    locks::{Clh, Handoff, HybLock, Mcs, TestAndSet, Ticket},
    objects::{Counter, Part, Queue, Stack, VALUES},
};

// SAFETY: only schemes and objects use it, and each line that is taken here is given back once.
const M: NativeMachine = unsafe { NativeMachine::new() };

const THREADS: u64 = 4;
const EACH: u64 = 1_000;

/// The result of a future that does not end early.
macro_rules! now {
    ($future:expr) => {{
        let Ok(result) = block_on($future);
        result
    }};
}

/// Runs `program` on several threads, each with what it keeps of two schemes.
fn run<L: Default, R: Send>(program: impl Fn(u64, &[L; 2]) -> R + Sync) -> Vec<R> {
    thread::scope(|scope| {
        let start = |number| {
            let program = &program;
            scope.spawn(move || program(number, &<[L; 2]>::default()))
        };
        let threads: Vec<_> = (0..THREADS).map(start).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

/// Each value of `fetch_add` is returned once, and in order to each thread.
fn counts<S: Scheme + Sync>(counter: &Counter<S>) {
    let seen = run::<S::Local, _>(|_, [local, _]| {
        (0..EACH).map(|_| now!(counter.fetch_add(&M, local, 1))).collect::<Vec<_>>()
    });
    assert!(seen.iter().all(|seen| seen.is_sorted()));
    let all: BTreeSet<u64> = seen.concat().into_iter().collect();
    assert!(all.into_iter().eq(0..THREADS * EACH));
}

/// What is pushed is popped once; a value that a thread pushes below its others comes after them.
fn stacks<S: Scheme + Sync>(stack: &Stack<S>) {
    let popped = run::<S::Local, _>(|thread, [local, _]| {
        let mut popped = Vec::new();
        for number in 0..EACH {
            now!(stack.push(&M, local, thread << 32 | number));
            if number % 3 != 0 {
                popped.extend(now!(stack.pop(&M, local)));
            }
        }
        popped
    });
    let left = std::iter::from_fn(|| now!(stack.pop(&M, &S::Local::default()))).collect::<Vec<_>>();
    assert!(below_are_older(&left), "what is left of a thread's values is in the order of pushes");
    all_once(popped.concat().into_iter().chain(left));
}

/// Whether of each thread's values the later pushed ones come first.
fn below_are_older(values: &[u64]) -> bool {
    (0..THREADS).all(|thread| {
        let mine = values.iter().filter(|&&value| value >> 32 == thread);
        mine.rev().is_sorted()
    })
}

/// What is appended is taken once, and in the order of each appending thread.
fn queues<S: Scheme + Sync>(queue: &Queue<S>) {
    let taken = run::<S::Local, _>(|thread, [append, take]| {
        let mut taken = Vec::new();
        for number in 0..EACH {
            now!(queue.append(&M, append, thread << 32 | number));
            if number % 3 != 0 {
                taken.extend(now!(queue.take(&M, take)));
            }
        }
        taken
    });
    let left = std::iter::from_fn(|| now!(queue.take(&M, &S::Local::default()))).collect();
    for taken in taken.iter().chain([&left]) {
        for from in 0..THREADS {
            assert!(taken.iter().filter(|&&value| value >> 32 == from).is_sorted());
        }
    }
    all_once(taken.concat().into_iter().chain(left));
}

fn all_once(values: impl Iterator<Item = u64>) {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    let all = (0..THREADS).flat_map(|thread| (0..EACH).map(move |number| thread << 32 | number));
    assert!(values.into_iter().eq(all));
}

/// All objects under a scheme whose threads serve themselves.
fn without_server<S: Serverless + Sync>(scheme: impl Fn() -> S) {
    counts(&Counter::new(scheme()));
    let stack = Stack::new(scheme());
    stacks(&stack);
    stack.retire(&M);
    for queue in [Queue::new(&M, scheme()), Queue::with_two(&M, scheme(), scheme())] {
        queues(&queue);
        queue.retire(&M);
    }
}

/// All objects under a scheme with a server.
fn with_server<S: ServerScheme + Sync>(scheme: impl Fn() -> S) {
    let counter = Counter::new(scheme());
    thread::scope(|scope| {
        scope.spawn(|| now!(counter.run(&M)));
        counts(&counter);
        now!(counter.stop(&M));
    });
    let stack = Stack::new(scheme());
    thread::scope(|scope| {
        scope.spawn(|| now!(stack.run(&M)));
        stacks(&stack);
        now!(stack.stop(&M));
    });
    stack.retire(&M);
    let one = (Queue::new(&M, scheme()), vec![Part::Append]);
    let two = (Queue::with_two(&M, scheme(), scheme()), vec![Part::Append, Part::Take]);
    for (queue, parts) in [one, two] {
        thread::scope(|scope| {
            for &part in &parts {
                let queue = &queue;
                scope.spawn(move || now!(queue.run(&M, part)));
            }
            queues(&queue);
            parts.iter().for_each(|&part| now!(queue.stop(&M, part)));
        });
        queue.retire(&M);
    }
}

macro_rules! under {
    ($($name:ident: $test:ident, $scheme:expr;)*) => {
        $(#[test] fn $name() { $test(|| $scheme); })*
    };
}

under! {
    handoff: without_server, Locked::<Handoff>::new();
    test_and_set: without_server, Locked::<TestAndSet>::new();
    ticket: without_server, Locked::<Ticket>::new();
    mcs: without_server, Locked::<Mcs>::new();
    clh: without_server, Locked::<Clh>::new();
    hyblock: without_server, Locked::<HybLock>::new();
    cc_synch: without_server, CcSynch::new();
    cc_synch_few: without_server, CcSynch::with_max_ops(1);
    h_synch: without_server, HSynch::new(2, 3, |thread| thread.0 as usize);
    hybcomb: without_server, HybComb::new();
    hybcomb_few: without_server, HybComb::with_max_ops(1);
    mp_server: with_server, MpServer::new();
    shm_server: with_server, ShmServer::new(64);
}

/// The same operations on a queue and a stack as on the standard library's, on one thread.
#[test]
fn one_thread_has_what_it_expects() {
    let (queue, stack) = (Queue::new(&M, CcSynch::new()), Stack::new(HybComb::new()));
    let local = <HybComb as Scheme>::Local::default();
    let (mut expected, mut pile) = (VecDeque::new(), Vec::new());
    for step in 0..1_000_u64 {
        if step.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 62 < 2 {
            now!(queue.append(&M, &(), step));
            now!(stack.push(&M, &local, step));
            expected.push_back(step);
            pile.push(step);
        } else {
            assert_eq!(now!(queue.take(&M, &())), expected.pop_front());
            assert_eq!(now!(stack.pop(&M, &local)), pile.pop());
        }
    }
}

#[test]
#[should_panic(expected = "a value has 62 bits")]
fn larger_numbers_are_no_values() {
    now!(Stack::new(CcSynch::new()).push(&M, &(), VALUES));
}

/// A line that an object gives back is used for the next one, not another.
#[test]
fn nodes_are_used_again() {
    let used = Mutex::new(BTreeSet::new());
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..1_000 {
                let stack = Stack::new(CcSynch::new());
                now!(stack.push(&M, &(), 1));
                stack.retire(&M);
                let line = M.take_line();
                used.lock().expect("no panic").insert(line.address());
                M.give_line(line);
            }
        });
    });
    assert!(used.into_inner().expect("no panic").len() < 8);
}

/// A second one would execute operations beside the first one.
#[test]
fn there_is_one_server() {
    fn refuses_a_second<S: ServerScheme<Local: Send> + Send + Sync + 'static>(scheme: S) {
        let counter = Arc::new(Counter::new(scheme));
        let serve = || {
            let counter = Arc::clone(&counter);
            thread::spawn(move || now!(counter.run(&M)))
        };
        let first = serve();
        now!(counter.fetch_add(&M, &S::Local::default(), 1)); // it runs
        let second = serve();
        let end = Instant::now() + Duration::from_secs(20);
        while !second.is_finished() && Instant::now() < end {
            thread::yield_now();
        }
        assert!(second.is_finished(), "there are two servers");
        assert!(second.join().is_err(), "the second server is told");
        now!(counter.stop(&M));
        first.join().expect("the first server ends well");
    }
    refuses_a_second(MpServer::new());
    refuses_a_second(ShmServer::new(2));
}
