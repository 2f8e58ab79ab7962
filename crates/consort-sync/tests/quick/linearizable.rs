//! Histories of every object under every scheme, natively and in random simulated schedules. Each
//! must be linearizable: a sequential object has the same history in some order of the operations.
//! If an operation ended before another began, this order keeps it before the other (Herlihy and
//! Wing 1990).

#![expect(unsafe_code, reason = "the machine is shared by all tests")]

mod specifications;

use std::{
    cell::{Cell, OnceCell},
    sync::{
        Barrier,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    thread,
};

use consort_fabric::splitmix64;
use consort_machine::{Machine, NativeMachine, block_on};
use consort_sandbox::seeds::seeds;
use consort_sim::{SimulatedThread, ThreadSimulation, machines};
use consort_sync::{
    delegation::{
        CcSynch, FallbackServer, HSynch, HybComb, Locked, MpServer, Scheme, ServerScheme,
        Serverless, ShmServer,
    },
    locks::{Clh, Cna, Hapax, HybLock, Mcs, TestAndSet, Ticket},
    objects::{
        Clusters, Container, CounterObject, FetchAdd, Lcrq, Object, ObjectPart, Queue, Sequential,
        Stack, Treiber,
    },
};
use todc_utils::{
    History, WGLChecker,
    linearizability::history::Action::{self, Call, Response},
    specifications::Specification,
};

use self::specifications::{
    Counts, Fifo, Lifo,
    Operation::{self, Increment, Put, Take},
};

// SAFETY: only schemes and objects use it.
const M: NativeMachine = unsafe { NativeMachine::new() };

const MACHINES: [&str; 3] = ["tile-gx36", "xeon-e7-8867l-x8", "opteron-6176-x4"];
/// Threads of a history and operations of each, natively and simulated; histories per object.
const NATIVE: [u64; 2] = [3, 10];
const SIMULATED: [u64; 2] = [4, 5];
const HISTORIES: u64 = 100;
/// The largest number of servers of an object.
const PARTS: u32 = 2;

/// An object as its users see it.
trait Used {
    type Local: Default;

    /// Executes an operation, the `number`-th of all.
    async fn operate<M: Machine>(&self, m: &M, local: &Self::Local, number: u64) -> Operation;

    fn end(&mut self);
}

struct Contained<C>(C);

impl<C: Container> Used for Contained<C> {
    type Local = C::Local;

    async fn operate<M: Machine>(&self, m: &M, local: &C::Local, number: u64) -> Operation {
        // Half of the operations put; the choice is the same for all objects.
        if splitmix64(&mut number.wrapping_mul(7)) % 8 < 4 {
            self.0.put(m, local, number).await.expect("nothing ends it");
            Put(number)
        } else {
            Take(self.0.take(m, local).await.expect("nothing ends it"))
        }
    }

    fn end(&mut self) {
        self.0.retire(&M);
    }
}

impl<S: Scheme> Used for CounterObject<S> {
    type Local = [S::Local; 2];

    async fn operate<M: Machine>(&self, m: &M, local: &Self::Local, _: u64) -> Operation {
        Increment(self.fetch_add(m, local, 1).await.expect("nothing ends it"))
    }

    fn end(&mut self) {}
}

impl Used for FetchAdd {
    type Local = ();

    async fn operate<M: Machine>(&self, m: &M, (): &(), _: u64) -> Operation {
        Increment(FetchAdd::fetch_add(self, m, 1).await)
    }

    fn end(&mut self) {}
}

/// The servers of an object, if it has any.
trait Served {
    fn parts(&self) -> &'static [ObjectPart] {
        &[]
    }
    async fn run<M: Machine>(&self, _: &M, _: ObjectPart) {}
    async fn stop<M: Machine>(&self, _: &M, _: ObjectPart) {}
}

/// An object without servers.
struct Alone<U>(U);

impl<U> Served for Alone<U> {}

impl<U: Used> Used for Alone<U> {
    type Local = U::Local;

    async fn operate<M: Machine>(&self, m: &M, local: &U::Local, number: u64) -> Operation {
        self.0.operate(m, local, number).await
    }

    fn end(&mut self) {
        self.0.end();
    }
}

impl<S: ServerScheme, D: Sequential> Served for Object<S, D> {
    fn parts(&self) -> &'static [ObjectPart] {
        Object::parts(self)
    }

    async fn run<M: Machine>(&self, m: &M, part: ObjectPart) {
        Object::run(self, m, part).await.expect("nothing ends it");
    }

    async fn stop<M: Machine>(&self, m: &M, part: ObjectPart) {
        Object::stop(self, m, part).await.expect("nothing ends it");
    }
}

impl<S: ServerScheme, D: Sequential> Served for Contained<Object<S, D>> {
    fn parts(&self) -> &'static [ObjectPart] {
        self.0.parts()
    }

    async fn run<M: Machine>(&self, m: &M, part: ObjectPart) {
        Served::run(&self.0, m, part).await;
    }

    async fn stop<M: Machine>(&self, m: &M, part: ObjectPart) {
        Served::stop(&self.0, m, part).await;
    }
}

/// The calls and returns of a thread, ordered by a clock that all threads share.
type Events = Vec<(u64, usize, Action<Operation>)>;

/// # Panics
/// When no sequential object has such a history.
fn check<S: Specification<Operation = Operation>>(mut events: Events, what: &str) {
    events.sort_by_key(|(at, ..)| *at);
    let actions: Vec<_> = events.into_iter().map(|(_, thread, it)| (thread, it)).collect();
    let history = History::from_actions(actions.clone());
    assert!(WGLChecker::<S>::is_linearizable(history), "{what}: {actions:#?}");
}

/// Returns the events of thread number `thread`; each thread has `each` operations.
async fn use_it<U: Used, M: Machine>(
    object: &U,
    m: &M,
    [thread, each]: [u64; 2],
    clock: impl Fn() -> u64,
    between: impl AsyncFn(),
) -> Events {
    let (local, mut events) = (U::Local::default(), Vec::new());
    for number in 0..each {
        let called = clock();
        let operation = object.operate(m, &local, thread * each + number).await;
        let process = usize::try_from(thread).expect("few threads");
        events.push((called, process, Call(operation)));
        events.push((clock(), process, Response(operation)));
        between().await;
    }
    events
}

fn natively<S: Specification<Operation = Operation>, U: Used + Served + Sync>(
    name: &str,
    make: impl Fn(&NativeMachine) -> U,
) {
    for history in 0..HISTORIES {
        let mut object = make(&M);
        let [threads, each] = NATIVE;
        let (clock, left) = (AtomicU64::new(0), AtomicU64::new(threads));
        let barrier = Barrier::new(usize::try_from(threads).expect("few threads"));
        let events = thread::scope(|scope| {
            let (object, clock, left, barrier) = (&object, &clock, &left, &barrier);
            for &part in object.parts() {
                scope.spawn(move || block_on(object.run(&M, part)));
            }
            let start = |thread| {
                scope.spawn(move || {
                    barrier.wait();
                    let now = || clock.fetch_add(1, SeqCst);
                    let first = history % 2 * threads + thread;
                    let used = use_it(object, &M, [first, each], now, async || ());
                    let events = block_on(used);
                    if left.fetch_sub(1, SeqCst) == 1 {
                        object.parts().iter().for_each(|&part| block_on(object.stop(&M, part)));
                    }
                    events
                })
            };
            let threads: Vec<_> = (0..threads).map(start).collect();
            threads.into_iter().flat_map(|it| it.join().expect("no panic")).collect()
        });
        check::<S>(events, &format!("{name}, natively"));
        object.end();
    }
}

/// The object is not retired, because its lines belong to the simulation.
fn simulated<S: Specification<Operation = Operation>, U: Used + Served>(
    name: &str,
    make: impl Fn(&SimulatedThread) -> U,
) {
    let [threads, each] = SIMULATED;
    let seeds: Vec<u64> = seeds(20, 200, &[]).collect();
    for (machine, seed) in MACHINES.into_iter().flat_map(|it| seeds.iter().map(move |n| (it, *n))) {
        let what = format!("{name}, {machine}, seed {seed}");
        let (object, left, clock) = (OnceCell::new(), Cell::new(threads), Cell::new(0));
        let program = async |m: SimulatedThread| {
            let object = object.get_or_init(|| make(&m));
            let parts = object.parts();
            let number = m.thread().0;
            if number < PARTS {
                if let Some(&part) = parts.get(number as usize) {
                    object.run(&m, part).await;
                }
                return Vec::new();
            }
            let now = || {
                clock.set(clock.get() + 1);
                clock.get()
            };
            // The history has room for every number up to the largest, so numbers stay small.
            let setting = [u64::from(number - PARTS) + seed % 20, each];
            let events =
                use_it(object, &m, setting, now, async || m.rest(m.random(100)).await).await;
            left.set(left.get() - 1);
            if left.get() == 0 {
                for &part in parts {
                    object.stop(&m, part).await;
                }
            }
            events
        };
        let all = u32::try_from(threads).expect("few threads") + PARTS;
        // Some threads share a core where cores have two hardware threads.
        let placement = (0..all).map(|thread| thread * 5 % 36).collect();
        let machine = machines::Machine::find(machine).expect("a machine that is shipped");
        let simulation = ThreadSimulation::on(machine, 0).placed(placement).seed(seed).explored();
        let outcome = simulation.run(program).unwrap_or_else(|error| panic!("{what}: {error}"));
        check::<S>(outcome.results.into_iter().flatten().flatten().collect(), &what);
    }
}

/// All objects under a scheme without a server.
macro_rules! without_server {
    ($run:ident: $($name:ident, $scheme:expr;)*) => {
        $(#[test] fn $name() {
            fn is_serverless<S: Serverless>(scheme: S) -> S { scheme }
            let scheme = || is_serverless($scheme);
            let of = |object: &str| format!("{object}, {}", stringify!($name));
            $run::<Counts, _>(&of("counter"), |_| Alone(CounterObject::new(scheme())));
            $run::<Lifo, _>(&of("stack"), |_| Alone(Contained(Stack::new(scheme()))));
            $run::<Fifo, _>(&of("queue"), |m| Alone(Contained(Queue::new(m, scheme()))));
            $run::<Fifo, _>(&of("queue of two"), |m| {
                Alone(Contained(Queue::with_two(m, scheme(), scheme())))
            });
        })*
    };
}

macro_rules! with_server {
    ($run:ident: $($name:ident, $scheme:expr;)*) => {
        $(#[test] fn $name() {
            let of = |object: &str| format!("{object}, {}", stringify!($name));
            $run::<Counts, _>(&of("counter"), |_| CounterObject::new($scheme));
            $run::<Lifo, _>(&of("stack"), |_| Contained(Stack::new($scheme)));
            $run::<Fifo, _>(&of("queue"), |m| Contained(Queue::new(m, $scheme)));
            $run::<Fifo, _>(&of("queue of two"), |m| {
                Contained(Queue::with_two(m, $scheme, $scheme))
            });
        })*
    };
}

macro_rules! all_objects {
    ($module:ident, $run:ident) => {
        mod $module {
            use super::*;

            without_server! { $run:
                handoff, Locked::new();
                test_and_set, Locked::with(TestAndSet::new());
                ticket, Locked::with(Ticket::new());
                mcs, Locked::with(Mcs::new());
                clh, Locked::with(Clh::new());
                cna, Locked::with(Cna::new());
                hapax, Locked::with(Hapax::new());
                hyblock, Locked::with(HybLock::new());
                cc_synch, CcSynch::new();
                cc_synch_few, CcSynch::new().with_max_ops(1);
                h_synch, HSynch::new(2, 3, |thread| thread.0 as usize);
                hybcomb, HybComb::new();
                hybcomb_few, HybComb::new().with_max_ops(1);
            }

            with_server! { $run:
                fallback_server, FallbackServer::new();
                mp_server, MpServer::new();
                shm_server, ShmServer::new(64);
            }

            #[test]
            fn fetch_add() {
                $run::<Counts, _>("fetch-and-add", |_| Alone(FetchAdd::default()));
            }

            #[test]
            fn treiber() {
                $run::<Lifo, _>("Treiber", |_| Alone(Contained(Treiber::new())));
            }

            /// Rings of one cell close all the time.
            #[test]
            fn lcrq() {
                for cells in [1, 2, 4, 64] {
                    let name = format!("LCRQ, {cells} cells");
                    $run::<Fifo, _>(&name, |m| Alone(Contained(Lcrq::new(m, cells))));
                    let name = format!("LCRQ, packed, {cells} cells");
                    $run::<Fifo, _>(&name, |_| Alone(Contained(Lcrq::packed(cells))));
                }
            }

            #[test]
            fn lcrq_h() {
                let clusters = Clusters { of: |thread| thread.0 as usize % 2, wait_ns: 2_000 };
                $run::<Fifo, _>("LCRQ+H", |m| {
                    Alone(Contained(Lcrq::new(m, 4).with_clusters(clusters)))
                });
            }
        }
    };
}

all_objects!(on_threads, natively);
all_objects!(in_schedules, simulated);

/// Histories that the checker refuses.
#[test]
fn checker_refuses_impossible_histories() {
    let is = |operations: &[(usize, Action<Operation>)]| {
        let history = || History::from_actions(operations.to_vec());
        [
            WGLChecker::<Fifo>::is_linearizable(history()),
            WGLChecker::<Lifo>::is_linearizable(history()),
        ]
    };
    let each = |operations: &[Operation]| {
        let both = |&it: &Operation| [(0, Call(it)), (0, Response(it))];
        operations.iter().flat_map(both).collect::<Vec<_>>()
    };
    assert_eq!(is(&each(&[Put(1), Put(2), Take(Some(1))])), [true, false]);
    assert_eq!(is(&each(&[Put(1), Put(2), Take(Some(2))])), [false, true]);
    assert_eq!(is(&each(&[Put(1), Take(None)])), [false, false]);
    assert_eq!(is(&each(&[Put(1), Take(Some(1)), Take(Some(1))])), [false, false]);
    let put = [(0, Call(Put(1)))];
    let rest = [(1, Call(Take(None))), (1, Response(Take(None))), (0, Response(Put(1)))];
    assert_eq!(is(&[&put[..], &rest].concat()), [true, true]);
}
