//! Objects of words under every scheme, compared with sequential objects.

#![expect(unsafe_code, reason = "the machine is shared by all tests")]

use std::{
    cell::Cell,
    collections::{BTreeSet, VecDeque},
    sync::{Arc, LazyLock},
    thread,
    time::{Duration, Instant},
};

use consort_machine::{Machine, NativeMachine, block_on};
use consort_sync::{
    BoxContainer,
    delegation::{
        CcSynch, FallbackServer, HSynch, HybComb, Locked, MpServer, MyNode, Scheme, ServerScheme,
        Serverless, ShmServer,
    },
    locks::{Clh, Cna, Hapax, HybLock, Mcs, TestAndSet, Ticket},
    objects::{
        Clusters, Container, CounterObject, Lcrq, MyRings, Object, ObjectPart, Queue, Sequential,
        Stack, Treiber, VALUES, WordContainer,
    },
};

use crate::schemes::{panic_of, within_limit};

// SAFETY: only schemes and objects use it, and each line taken here is returned once.
const M: NativeMachine = unsafe { NativeMachine::new() };

const THREADS: u64 = 4;
const EACH: u64 = 1_000;

/// Returns the result of a future that does not end early.
macro_rules! now {
    ($future:expr) => {{
        let Ok(result) = block_on($future);
        result
    }};
}

/// Runs `program` on several threads, each with its own `L`.
fn run<L: Default, R: Send>(program: impl Fn(u64, &L) -> R + Sync) -> Vec<R> {
    thread::scope(|scope| {
        let start = |number| {
            let program = &program;
            scope.spawn(move || program(number, &L::default()))
        };
        let threads: Vec<_> = (0..THREADS).map(start).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

/// Each value of `fetch_add` is returned once, and each thread sees ascending values.
fn counts<S: Scheme + Sync>(counter: &CounterObject<S>) {
    let seen = run::<[S::Local; 2], _>(|_, local| {
        (0..EACH).map(|_| now!(counter.fetch_add(&M, local, 1))).collect::<Vec<_>>()
    });
    assert!(seen.iter().all(|seen| seen.is_sorted()));
    let all: BTreeSet<u64> = seen.concat().into_iter().collect();
    assert!(all.into_iter().eq(0..THREADS * EACH));
}

/// Each value put is taken once. Returns the values that each thread took, and then the rest.
fn put_and_take<C: Container + Sync>(container: &C) -> Vec<Vec<u64>> {
    let mut taken = run::<C::Local, _>(|thread, local| {
        let mut taken = Vec::new();
        for number in 0..EACH {
            now!(container.put(&M, local, thread << 16 | number));
            if number % 3 != 0 {
                taken.extend(now!(container.take(&M, local)));
            }
        }
        taken
    });
    let local = C::Local::default();
    taken.push(std::iter::from_fn(|| now!(container.take(&M, &local))).collect());
    let mut values = taken.concat();
    values.sort_unstable();
    let all = (0..THREADS).flat_map(|thread| (0..EACH).map(move |number| thread << 16 | number));
    assert!(values.into_iter().eq(all));
    taken
}

/// Returns the values in `taken` that `thread` put.
fn of(taken: &[u64], thread: u64) -> impl DoubleEndedIterator<Item = u64> {
    taken.iter().copied().filter(move |value| value >> 16 == thread)
}

/// Of one thread's values, those pushed later are taken earlier.
fn stacks<C: Container + Sync>(stack: &C) {
    let taken = put_and_take(stack);
    let left = &taken[taken.len() - 1];
    assert!((0..THREADS).all(|thread| of(left, thread).rev().is_sorted()));
}

/// The values of each thread are taken in order.
fn queues<C: Container + Sync>(queue: &C) {
    for taken in put_and_take(queue) {
        assert!((0..THREADS).all(|thread| of(&taken, thread).is_sorted()));
    }
}

/// All objects under a scheme without a server.
fn without_server<S: Serverless + Sync>(scheme: impl Fn() -> S) {
    counts(&CounterObject::new(scheme()));
    let mut stack = Stack::new(scheme());
    stacks(&stack);
    stack.retire(&M);
    for mut queue in [Queue::new(&M, scheme()), Queue::with_two(&M, scheme(), scheme())] {
        queues(&queue);
        queue.retire(&M);
    }
}

/// Uses an object while its servers run.
fn served<S: ServerScheme + Sync, D: Sequential + Sync>(
    object: &Object<S, D>,
    use_it: impl Fn(&Object<S, D>),
) {
    thread::scope(|scope| {
        for &part in object.parts() {
            scope.spawn(move || now!(object.run(&M, part)));
        }
        use_it(object);
        object.parts().iter().for_each(|&part| now!(object.stop(&M, part)));
    });
}

/// All objects under a scheme with a server.
fn with_server<S: ServerScheme + Sync>(scheme: impl Fn() -> S) {
    served(&CounterObject::new(scheme()), counts);
    let mut stack = Stack::new(scheme());
    served(&stack, stacks);
    stack.retire(&M);
    for mut queue in [Queue::new(&M, scheme()), Queue::with_two(&M, scheme(), scheme())] {
        served(&queue, queues);
        queue.retire(&M);
    }
}

/// Streamed answers arrive, and in the order of the operations.
#[test]
fn streaming_server_answers_in_order() {
    let scheme = || ShmServer::new(64).with_streaming();
    served(&CounterObject::new(scheme()), counts);
    let mut stack = Stack::new(scheme());
    served(&stack, stacks);
    stack.retire(&M);
}

#[test]
#[should_panic(expected = "answers must not be streamed")]
fn servers_that_share_nodes_may_not_stream() {
    let _ = Queue::with_two(&M, ShmServer::new(1), ShmServer::new(1).with_streaming());
}

#[test]
fn treiber() {
    let mut stack = Treiber::new();
    stacks(&stack);
    stack.retire(&M);
}

/// With small rings, threads append new rings all the time and reuse old ones.
#[test]
fn lcrq() {
    let clusters = Clusters { of: |thread| thread.0 as usize % 2, wait_ns: 1_000 };
    for cells in [1, 8, Lcrq::RING_SIZE] {
        let plain = [Lcrq::new(&M, cells), Lcrq::packed(cells)];
        for mut queue in plain.into_iter().chain([Lcrq::new(&M, cells).with_clusters(clusters)]) {
            queues(&queue);
            queue.retire(&M);
        }
    }
}

#[test]
#[should_panic(expected = "a ring of 12 cells: not a power of two")]
fn ring_size_must_be_a_power_of_two() {
    let _ = Lcrq::packed(12);
}

#[test]
#[should_panic(expected = ": values are less than 0xffffffff")]
fn packed_values_have_32_bits() {
    now!(Lcrq::packed(8).put(&M, &MyRings::default(), u32::MAX.into()));
}

macro_rules! under {
    ($($name:ident: $test:ident, $scheme:expr;)*) => {
        $(#[test] fn $name() { $test(|| $scheme); })*
    };
}

under! {
    handoff: without_server, Locked::new();
    test_and_set: without_server, Locked::with(TestAndSet::new());
    ticket: without_server, Locked::with(Ticket::new());
    mcs: without_server, Locked::with(Mcs::new());
    clh: without_server, Locked::with(Clh::new());
    cna: without_server, Locked::with(Cna::new());
    hapax: without_server, Locked::with(Hapax::new());
    hyblock: without_server, Locked::with(HybLock::new());
    cc_synch: without_server, CcSynch::new();
    cc_synch_few: without_server, CcSynch::new().with_max_ops(1);
    h_synch: without_server, HSynch::new(2, 3, |thread| thread.0 as usize);
    hybcomb: without_server, HybComb::new();
    hybcomb_few: without_server, HybComb::new().with_max_ops(1);
    fallback_server: with_server, FallbackServer::new();
    mp_server: with_server, MpServer::new();
    shm_server: with_server, ShmServer::new(64);
}

/// On one thread, a queue and a stack behave like those of the standard library.
#[test]
fn queue_and_stack_match_std_on_one_thread() {
    let (queue, stack) = (Queue::new(&M, CcSynch::new()), Stack::new(HybComb::new()));
    let (locals, mine) = (<[MyNode; 2]>::default(), <[(); 2]>::default());
    let (mut expected, mut pile) = (VecDeque::new(), Vec::new());
    for step in 0..1_000_u64 {
        if step.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 62 < 2 {
            now!(queue.put(&M, &mine, step));
            now!(stack.put(&M, &locals, step));
            expected.push_back(step);
            pile.push(step);
        } else {
            assert_eq!(now!(queue.take(&M, &mine)), expected.pop_front());
            assert_eq!(now!(stack.take(&M, &locals)), pile.pop());
        }
    }
}

#[test]
#[should_panic(expected = ": values are less than 0x4000000000000000")]
fn too_large_value_panics() {
    now!(Stack::new(CcSynch::new()).put(&M, &Default::default(), VALUES));
}

/// The lines that one object returns are reused for the next one.
#[test]
fn nodes_are_reused() {
    fn lines_of(a_round: impl Fn()) -> usize {
        let round = |_| {
            a_round();
            let lines = [(); 8].map(|()| M.take_line());
            lines.iter().for_each(|line| M.give_line(line));
            lines.map(|line| line.address())
        };
        (0..1_000).flat_map(round).collect::<BTreeSet<_>>().len()
    }
    let mut used = Vec::new();
    thread::scope(|scope| {
        let stack = || {
            let mut stack = Stack::new(CcSynch::new());
            now!(stack.put(&M, &Default::default(), 1));
            stack.retire(&M);
        };
        let queue =
            || drop(BoxContainer::<u8, Queue<_>>::queue_of_two(CcSynch::new(), CcSynch::new()));
        let lcrq = || WordContainer::with_rings_of(4).put(1);
        let counter = || assert_eq!(consort_sync::Counter::with(HybComb::new()).fetch_add(1), 0);
        let treiber = || WordContainer::default().put(1);
        let count = scope.spawn(move || {
            let lists = [lines_of(stack), lines_of(queue), lines_of(lcrq)];
            [&lists[..], &[lines_of(treiber), lines_of(counter)]].concat()
        });
        used.extend(count.join().expect("no panic"));
    });
    assert!(used.iter().all(|&lines| lines < 32), "{used:?}");
}

/// A boxed value is dropped once, whether it was taken or not.
#[test]
fn boxes_drop_their_values() {
    fn drops<C: Container<Local: Send> + Sync>(boxes: BoxContainer<Arc<()>, C>) {
        let value = Arc::new(());
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    (0..100).for_each(|_| boxes.put(Arc::clone(&value)));
                    (0..50).for_each(|_| assert!(boxes.take().is_some()));
                });
            }
        });
        let left = usize::try_from(THREADS * 50).expect("few");
        assert_eq!(Arc::strong_count(&value), left + 1);
        drop(boxes);
        assert_eq!(Arc::strong_count(&value), 1);
    }
    drops(BoxContainer::stack(CcSynch::new()));
    drops(BoxContainer::queue_of_two(CcSynch::new(), CcSynch::new()));
    drops(BoxContainer::<_, Treiber>::default());
    let lcrq = BoxContainer::<_, Lcrq>::with_rings_of(16);
    assert_eq!(lcrq.is_some(), M.has_pairs());
    lcrq.into_iter().for_each(drops);
}

/// A second server would execute operations concurrently with the first.
#[test]
fn second_server_is_refused() {
    fn refuses_a_second<S: ServerScheme<Local: Send> + Send + Sync + 'static>(scheme: S) {
        let counter = Arc::new(CounterObject::new(scheme));
        let serve = || {
            let counter = Arc::clone(&counter);
            thread::spawn(move || now!(counter.run(&M, ObjectPart::Put)))
        };
        let first = serve();
        now!(counter.fetch_add(&M, &Default::default(), 1)); // most servers run now
        let second = serve();
        let end = Instant::now() + Duration::from_secs(20);
        let is_refused = || first.is_finished() || second.is_finished();
        while !is_refused() && Instant::now() < end {
            thread::yield_now();
        }
        assert!(is_refused(), "there are two servers");
        // Without a server, threads execute their own operations. So either thread may be late.
        let (refused, other) = if first.is_finished() { (first, second) } else { (second, first) };
        assert!(refused.join().is_err(), "the second server gets an error");
        now!(counter.stop(&M, ObjectPart::Put));
        other.join().expect("the first server ends well");
    }
    refuses_a_second(FallbackServer::new());
    refuses_a_second(MpServer::new());
    refuses_a_second(ShmServer::new(2));
}

/// The second stop sends nothing that a later server at the same address could receive.
#[test]
fn a_server_may_be_stopped_twice() {
    fn stops<S: ServerScheme<Local: Send> + Sync>(scheme: impl Fn() -> S) {
        for _ in 0..3 {
            let counter = consort_sync::Counter::with(scheme());
            thread::scope(|scope| {
                scope.spawn(|| {
                    counter.fetch_add(1);
                    counter.stop();
                    counter.stop();
                });
                counter.run();
            });
        }
    }
    within_limit(|| {
        stops(FallbackServer::new);
        stops(MpServer::new);
        stops(|| ShmServer::new(2));
    });
}

struct Panics(Arc<()>);

impl Drop for Panics {
    fn drop(&mut self) {
        assert_ne!(Arc::strong_count(&self.0), 4, "on purpose");
    }
}

#[test]
fn boxes_drop_their_values_even_if_one_panics() {
    let (boxes, count) = (BoxContainer::<_, Treiber>::default(), Arc::new(()));
    (0..5).for_each(|_| boxes.put(Panics(Arc::clone(&count))));
    assert!(panic_of(|| drop(boxes)).contains("on purpose"));
    assert_eq!(Arc::strong_count(&count), 1);
}

static NAMES_CLUSTERS: LazyLock<WordContainer<Lcrq>> = LazyLock::new(|| {
    thread_local! {
        static USED: Cell<bool> = const { Cell::new(false) };
    }
    let of = |_| {
        if !USED.replace(true) {
            (1..=2).for_each(|value| NAMES_CLUSTERS.put(value));
            assert_eq!([(); 2].map(|()| NAMES_CLUSTERS.take()), [Some(1), Some(2)]);
            (3..=4).for_each(|value| NAMES_CLUSTERS.put(value)); // puts 4 into an earlier ring
        }
        0
    };
    WordContainer::with_clusters(1, Clusters { of, wait_ns: 0 })
});

#[test]
fn cluster_callback_may_use_the_queue() {
    assert_eq!([(); 3].map(|()| NAMES_CLUSTERS.take()), [Some(3), Some(4), None]);
}
