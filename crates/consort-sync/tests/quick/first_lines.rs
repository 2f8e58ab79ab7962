//! For each public type, the first line that a user writes compiles: a local variable without type
//! annotations.

#![expect(unsafe_code, reason = "names the machine of all threads")]

use std::time::Duration;

use consort_machine::{NativeMachine, Thread, at_once};
use consort_sync::{
    BoxContainer, Condvar, Continuations, Counter, Delegate, MappedMutexGuard,
    MappedReentrantMutexGuard, MappedRwLockReadGuard, MappedRwLockWriteGuard, Mutex, MutexGuard,
    Queue, Raw, RawCondvar, RawRwLock, RawThreadId, ReentrantMutex, ReentrantMutexGuard, RwLock,
    RwLockReadGuard, RwLockUpgradableReadGuard, RwLockWriteGuard, Semaphore, SemaphoreGuard,
    Server, Stack, Trust, WaitTimeoutResult,
    delegation::{
        Backlog, Backoff, CcSynch, FallbackServer, HSynch, HybComb, Locked, MpServer, MyGroup,
        MyNode, Scheme as _, ShmServer,
    },
    lock_api,
    locks::{
        Access, Clh, Cna, Handoff, Hapax, HybLock, Mcs, QueuedRwLock, QueuedSemaphore,
        RawLock as _, TestAndSet, Ticket, WaitQueue,
    },
    objects::{
        self, Clusters, FetchAdd, Lcrq, MyRings, ObjectPart, SequentialCounter, SequentialStack,
        Treiber, WordContainer,
    },
};

#[test]
fn mutexes() {
    let mutex = Mutex::new(0);
    *mutex.lock() += 1;
    assert_eq!(mutex.into_inner(), 1);
    let mutex = Mutex::default();
    *mutex.lock() = "a";
    assert_eq!(mutex.into_inner(), "a");
    let mutex = Mutex::from(7);
    let guard: MappedMutexGuard<'_, i32> = MutexGuard::map(mutex.lock(), |data| data);
    assert_eq!(*guard, 7);
    drop(guard);
    assert!(mutex.try_lock_for(Duration::ZERO).is_some()); // by its `Deref` to `lock_api`'s mutex
    let mutex = Mutex::with(Clh::new(), [1, 2]);
    let slice: &Mutex<[i32], _> = &mutex;
    assert_eq!(slice.try_lock().map(|slice| slice.len()), Some(2));
    assert_eq!(format!("{mutex:?}"), "Mutex { data: [1, 2] }");
    let mutex = lock_api::Mutex::<Raw<Mcs>, _>::new(3);
    let held = std::mem::size_of_val(&mutex); // `Held` is what the guard keeps of a `Raw`
    assert!(held > 0 && *mutex.lock() == 3);
}

#[test]
fn reentrant_mutexes() {
    let mutex = ReentrantMutex::new([1, 2]);
    let guard: ReentrantMutexGuard<'_, _> = mutex.lock();
    let second: MappedReentrantMutexGuard<'_, i32> =
        ReentrantMutexGuard::map(mutex.lock(), |data| &data[1]);
    assert_eq!(guard[0] + *second, 3);
    let mutex = lock_api::ReentrantMutex::<Raw<Clh>, RawThreadId, _>::new("a");
    assert_eq!(*mutex.lock(), "a");
    let mutex = ReentrantMutex::from(());
    assert!(format!("{mutex:?} {RawThreadId:?}").contains("()"));
}

#[test]
fn rw_locks() {
    let lock = RwLock::new([1, 2]);
    let upgradable: RwLockUpgradableReadGuard<'_, _> = lock.upgradable_read();
    let first: MappedRwLockReadGuard<'_, i32> = RwLockReadGuard::map(lock.read(), |data| &data[0]);
    assert_eq!(*first + upgradable[1], 3);
    drop((first, upgradable));
    let mut second: MappedRwLockWriteGuard<'_, i32> =
        RwLockWriteGuard::map(lock.write(), |data| &mut data[1]);
    *second += 1;
    drop(second);
    assert_eq!(lock.into_inner(), [1, 3]);
    let lock = RwLock::from("a");
    assert_eq!(format!("{lock:?}"), "RwLock { data: \"a\" }");
    let lock = lock_api::RwLock::<RawRwLock, _>::new(3);
    assert_eq!(*lock.read(), 3);
    // SAFETY: only the lock below uses it.
    let machine = unsafe { NativeMachine::new() };
    let lock = QueuedRwLock::new();
    assert!(at_once(lock.try_enter(&machine, Access::Write)));
}

#[test]
fn condition_variables() {
    let (mutex, condition) = (Mutex::new(0), Condvar::new());
    let result: WaitTimeoutResult = condition.wait_for(&mut mutex.lock(), Duration::ZERO);
    assert!(result.timed_out() && !condition.notify_one());
    let (mutex, condition) = (Mutex::with(Clh::new(), 0), Condvar::<Clh>::new());
    assert!(condition.wait_for(&mut mutex.lock(), Duration::ZERO).timed_out());
    let condition = lock_api::Condvar::<RawCondvar<Mcs>>::new();
    assert!(!format!("{condition:?}").is_empty());
    // SAFETY: only the queue below uses it.
    let machine = unsafe { NativeMachine::new() };
    let queue = WaitQueue::new(); // a thread in it has a `Place`
    assert_eq!(at_once(queue.notify(&machine, 1)), Ok(0));
}

#[test]
fn semaphores() {
    let semaphore = Semaphore::new(3);
    let guard: SemaphoreGuard<'_> = semaphore.acquire();
    assert!(semaphore.try_acquire_many(3).is_none());
    drop((guard, semaphore.acquire_many(2)));
    assert_eq!(semaphore.available_permits(), 3);
    // SAFETY: only the semaphore below uses it.
    let machine = unsafe { NativeMachine::new() };
    assert_eq!(at_once(QueuedSemaphore::new(1).release(&machine, 1)), 2);
}

#[test]
fn locks() {
    let (clh, handoff, hyblock) = (Clh::new(), Handoff::new(), HybLock::new());
    let (mcs, test_and_set, ticket) = (Mcs::new(), TestAndSet::new(), Ticket::new());
    let (mutex, delegate) = (Mutex::with(mcs, 1), Delegate::with(Locked::with(ticket), 2));
    assert_eq!((*mutex.lock(), delegate.into_inner()), (1, 2));
    let (one, two) = (Mutex::with(clh, 1), Mutex::with(handoff, 2));
    let (three, four) = (Mutex::with(hyblock, 3), Mutex::with(test_and_set, 4));
    let (five, six) = (Mutex::with(Cna::new(), 5), Mutex::with(Hapax::new(), 6));
    let others = *three.lock() + *four.lock() + *five.lock() + *six.lock();
    assert_eq!(*one.lock() + *two.lock() + others, 21);
    let (one, two) = (Mutex::with(Clh::default(), 1), Mutex::with(Ticket::NEW, 2));
    assert_eq!(*one.lock() + *two.lock(), 3);
}

#[test]
fn delegates() {
    let delegate = Delegate::new(0);
    delegate.apply(|count| *count += 1);
    let pending = delegate.submit(|count| *count); // `Pending`; awaited, a `PendingFuture`
    let mut batch = delegate.batch(); // `Batch`
    batch.push(|count| *count += 1);
    drop(batch);
    Continuations::scope(|continuations| {
        delegate.apply_then(continuations, |count| *count += 1, |()| ());
    });
    assert_eq!((pending.wait(), delegate.into_inner()), (1, 3));
    let delegate = Delegate::default();
    assert_eq!(delegate.apply(|text: &mut String| text.len()), 0);
    let delegate = Delegate::with(CcSynch::new(), 3);
    assert_eq!(delegate.into_inner(), 3);
    let delegate = Delegate::with(Locked::new(), 4);
    assert_eq!(delegate.into_inner(), 4);
    let server = Server::start(5).expect("a thread");
    let value: Trust<'_, u8, i32> = server.entrust(7);
    assert_eq!(value.into_inner(), Some(7));
    assert_eq!(server.into_inner(), 5);
    let server = Server::with(ShmServer::new(1), 6).expect("a thread");
    assert_eq!(server.into_inner(), 6);
}

#[test]
fn schemes() {
    let locked = Locked::new();
    let default = Locked::default();
    assert_eq!(locked.streams(), default.streams());
    let combining = (CcSynch::new(), CcSynch::default().with_max_ops(7), HybComb::new());
    let grouped = HSynch::new(1, 200, |_| 0);
    let served = (MpServer::new(), ShmServer::new(2).with_backoff(Backoff::Every(100)));
    assert!(!FallbackServer::new().streams() && !FallbackServer::with(Mcs::new()).streams());
    assert!(!combining.0.streams() && !combining.2.streams() && !grouped.streams());
    assert!(!served.0.streams() && !served.1.streams());
    let (group, node, backlog) = (MyGroup::default(), MyNode::default(), Backlog::new());
    assert!(!format!("{group:?} {node:?} {backlog:?}").is_empty());
}

#[test]
fn containers() {
    let counter = Counter::new();
    assert_eq!(counter.fetch_add(1), 0);
    let (counter, with) = (Counter::default(), Counter::with(HybComb::default()));
    assert_eq!(counter.fetch_add(1) + with.fetch_add(1), 0);
    let stack = Stack::new();
    stack.push(1);
    assert_eq!(stack.pop(), Some(1));
    let queue = Queue::default();
    queue.push("a");
    assert_eq!(queue.pop(), Some("a"));
    let queue = Queue::with(Locked::with(TestAndSet::new()));
    queue.push(1);
    assert_eq!(queue.len(), 1);
    let boxes = BoxContainer::default();
    boxes.put(1);
    assert_eq!(boxes.take(), Some(1));
    let (stack, queue) = (BoxContainer::stack(Locked::new()), BoxContainer::queue(CcSynch::new()));
    stack.put(1);
    queue.put("b");
    let boxes = BoxContainer::queue_of_two(Locked::new(), Locked::new());
    boxes.put(2.5);
    if let Some(boxes) = BoxContainer::with_rings_of(8) {
        boxes.put('c');
    }
}

#[test]
fn objects_of_words() {
    let words = WordContainer::default();
    words.put(1);
    assert_eq!(words.take(), Some(1));
    let (stack, queue) =
        (WordContainer::stack(Locked::new()), WordContainer::queue(MpServer::new()));
    stack.put(2);
    assert_eq!((stack.take(), queue.parts()), (Some(2), &[ObjectPart::Put][..]));
    let (two, rings) = (
        WordContainer::queue_of_two(Locked::new(), Locked::new()),
        WordContainer::with_rings_of(8),
    );
    two.put(3);
    rings.put(4);
    assert_eq!((two.take(), rings.take()), (Some(3), Some(4)));
    let clusters = Clusters { of: |Thread(number)| number as usize % 2, wait_ns: 0 };
    let words = WordContainer::with_clusters(8, clusters);
    words.put(5);
    assert_eq!(words.take(), Some(5));
    // SAFETY: only the objects below use it.
    let machine = unsafe { NativeMachine::new() };
    // Each `Object` is one of these; it is made of a `SequentialQueue`, `SequentialStack` or
    // `SequentialCounter`.
    let (counter, stack) =
        (objects::CounterObject::new(Locked::new()), objects::Stack::new(Locked::new()));
    let queue = objects::Queue::new(&machine, Locked::new());
    assert!(!format!("{counter:?} {stack:?} {queue:?}").is_empty());
    let (treiber, lcrq) = (Treiber::new(), Lcrq::new(&machine, 8));
    let parts = (
        FetchAdd::default(),
        SequentialCounter::default(),
        SequentialStack::default(),
        MyRings::default(),
    );
    assert!(!format!("{treiber:?} {lcrq:?} {parts:?} {:?}", Treiber::default()).is_empty());
}
