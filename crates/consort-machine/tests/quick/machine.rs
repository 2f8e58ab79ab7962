//! Locks and messages on the native machine, for threads of any program.

#![expect(unsafe_code, reason = "the machine is shared by all tests")]

use std::{
    sync::{
        Barrier,
        atomic::Ordering::{AcqRel, Acquire, Relaxed, Release},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use consort_machine::{Line, Machine, NativeMachine, Queue, Thread, Until, block_on};

// SAFETY: each test uses its own queues, answers once, and returns each line once.
const M: NativeMachine = unsafe { NativeMachine::new() };

const THREADS: u64 = 6;
const QUEUE: Queue = Queue(64);

/// Runs `program` on each of several threads.
fn run<R: Send>(threads: u64, program: impl Fn(u64) -> R + Sync) -> Vec<R> {
    thread::scope(|scope| {
        let start = |number| {
            let program = &program;
            scope.spawn(move || program(number))
        };
        let handles: Vec<_> = (0..threads).map(start).collect();
        handles.into_iter().map(|handle| handle.join().expect("no panic")).collect()
    })
}

/// Starts threads that receive, and returns their numbers and handles.
fn receivers<'scope, R: Send + 'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    count: u64,
    program: impl Fn() -> R + Send + Copy + 'scope,
) -> Vec<(Thread, thread::ScopedJoinHandle<'scope, R>)> {
    let start = |_| {
        let (give, take) = mpsc::channel();
        let handle = scope.spawn(move || {
            give.send(M.thread()).expect("somebody takes it");
            program()
        });
        (take.recv().expect("a number"), handle)
    };
    (0..count).map(start).collect()
}

#[test]
fn a_ticket_lock_excludes() {
    static LOCK: Line = Line::new();
    static COUNTER: Line = Line::new();
    run(THREADS, |_| {
        for _ in 0..500 {
            block_on(async {
                let mine = M.fetch_add(&LOCK[0], 1, Relaxed).await;
                let Ok(_) = M.wait_until(&LOCK[1], Until::Equals(mine)).await;
                let before = M.load(&COUNTER[0], Relaxed).await;
                M.pause(100).await;
                M.store(&COUNTER[0], before + 1, Relaxed).await;
                M.store(&LOCK[1], mine + 1, Release).await;
                M.wake(&LOCK[1]);
            });
        }
    });
    assert_eq!(COUNTER[0].atomic().load(Relaxed), 500 * THREADS);
}

#[test]
fn word_operations_return_right_values() {
    let line = Line::new();
    block_on(async {
        M.stream(&line[2], 5).await;
        M.fence(Release).await;
        assert_eq!(M.compare_exchange(&line[2], 5, 6, AcqRel).await, Ok(5));
        assert_eq!(M.compare_exchange(&line[2], 5, 7, Release).await, Err(6));
        assert_eq!(M.swap(&line[2], 8, AcqRel).await, 6);
        assert_eq!(M.load(&line[2], Acquire).await, 8);
        let begun = M.now_ns();
        let Ok(none) = M.wait_until_time(&line[2], Until::Equals(9), begun + 3_000_000).await;
        assert_eq!(none, None);
        assert!(M.now_ns() >= begun + 3_000_000);
        let Ok(some) = M.wait_until_time(&line[2], Until::Equals(8), begun).await;
        assert_eq!(some, Some(8));
    });
}

#[test]
fn sleeper_is_woken_promptly() {
    let line = Line::new();
    let mut delays = [(); 25].map(|()| {
        thread::scope(|scope| {
            let sleeper = scope.spawn(|| {
                let Ok(_) = block_on(M.wait_until(&line[0], Until::Equals(1)));
                Instant::now()
            });
            // Long enough to be asleep: a wait polls and yields for less than a millisecond.
            thread::sleep(Duration::from_millis(30));
            block_on(M.store(&line[0], 1, Release));
            M.wake(&line[0]);
            let stored = Instant::now();
            let woken = sleeper.join().expect("no panic");
            block_on(M.store(&line[0], 0, Relaxed));
            woken.duration_since(stored)
        })
    });
    delays.sort_unstable();
    // A sleep that nothing ends lasts for up to 20 ms more. A third of such sleeps would be this
    // short once in a thousand runs. On a busy machine some woken threads wait for a processor.
    assert!(delays[7] < Duration::from_millis(2), "{delays:?}");
}

#[test]
fn messages_arrive_once_and_in_order_of_each_sender() {
    const MESSAGES: u64 = 300; // several times the capacity of a ring
    thread::scope(|scope| {
        let receive = || {
            let mut next = [0; 6];
            assert_eq!(next.len() as u64, THREADS);
            for _ in 0..MESSAGES * THREADS {
                let Ok([from, number]) = block_on(M.receive(QUEUE));
                let from = usize::try_from(from).expect("a thread");
                assert_eq!(number, next[from]);
                next[from] += 1;
            }
            assert!(block_on(M.is_empty(QUEUE)));
        };
        let (to, receiver) = receivers(scope, 1, receive).remove(0);
        run(THREADS, |from| {
            for number in 0..MESSAGES {
                let Ok(()) = block_on(M.send(to, QUEUE, &[from, number]));
            }
        });
        receiver.join().expect("no panic");
    });
}

#[test]
fn long_messages_stay_together() {
    thread::scope(|scope| {
        let receive = || {
            for _ in 0..THREADS * 40 {
                let Ok(message) =
                    block_on(M.receive::<{ NativeMachine::MESSAGE_WORDS / 3 }>(QUEUE));
                assert_eq!(message, [message[0]; NativeMachine::MESSAGE_WORDS / 3]);
            }
        };
        let (to, receiver) = receivers(scope, 1, receive).remove(0);
        run(THREADS, |from| {
            for _ in 0..40 {
                let Ok(()) = block_on(M.send(to, QUEUE, &[from; NativeMachine::MESSAGE_WORDS / 3]));
            }
        });
        receiver.join().expect("no panic");
    });
}

#[test]
#[should_panic(expected = "at most")]
fn a_message_longer_than_the_queue_panics() {
    let Ok(()) = block_on(M.send(M.thread(), QUEUE, &[0; NativeMachine::MESSAGE_WORDS + 1]));
}

#[test]
fn queues_of_a_thread_do_not_mix() {
    let (odd, even) = (Queue(1), Queue(2));
    let me = M.thread();
    block_on(async {
        for value in 0..10 {
            let Ok(()) = M.send(me, if value % 2 == 0 { even } else { odd }, &[value]).await;
        }
        for value in [1, 3, 5] {
            assert_eq!(M.receive(odd).await, Ok([value]));
        }
        assert!(!M.is_empty(even).await);
        for value in [0, 2, 4, 6, 8] {
            assert_eq!(M.receive(even).await, Ok([value]));
        }
        assert!(M.is_empty(even).await);
        assert_eq!((M.receive(odd).await, M.receive(odd).await), (Ok([7]), Ok([9])));
    });
}

#[test]
fn threads_that_fill_each_others_queues_go_on() {
    const MESSAGES: u64 = 500;
    let start = Barrier::new(2);
    thread::scope(|scope| {
        let (left, give_left) = mpsc::channel();
        let (right, give_right) = mpsc::channel();
        for (give, take) in [(give_left, right), (give_right, left)].map(|(a, b)| (b, a)) {
            let start = &start;
            scope.spawn(move || {
                give.send(M.thread()).expect("the other one takes it");
                let other = take.recv().expect("its number");
                start.wait();
                // Neither receives before it has sent everything: far more than a ring holds.
                for number in 0..MESSAGES {
                    let Ok(()) = block_on(M.send(other, QUEUE, &[number]));
                }
                for number in 0..MESSAGES {
                    assert_eq!(block_on(M.receive(QUEUE)), Ok([number]));
                }
            });
        }
    });
}

#[test]
fn answer_reaches_its_caller() {
    thread::scope(|scope| {
        let serve = || {
            for _ in 0..THREADS * 200 {
                let Ok([from, value]) = block_on(M.receive(QUEUE));
                let from = Thread(u32::try_from(from).expect("a thread"));
                block_on(M.answer(from, value + 1));
            }
        };
        let (server, handle) = receivers(scope, 1, serve).remove(0);
        run(THREADS, |_| {
            for value in 0..200 {
                let me = u64::from(M.thread().0);
                let Ok(()) = block_on(M.send(server, QUEUE, &[me, value]));
                assert_eq!(block_on(M.receive_answer()), Ok(value + 1));
            }
        });
        handle.join().expect("no panic");
    });
}

#[test]
fn numbers_and_lines_are_used_again() {
    let at_most = u32::try_from(THREADS).expect("few") * 8;
    for _ in 0..200 {
        let numbers = run(THREADS, |_| {
            let line = M.take_line();
            assert!(line.address().is_multiple_of(64));
            M.give_line(line);
            M.thread().0
        });
        assert!(numbers.iter().all(|&number| number < at_most), "{numbers:?}");
    }
}
