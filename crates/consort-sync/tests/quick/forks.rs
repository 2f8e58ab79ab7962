//! Forked children have no server, and get no results from the server of the parent. In a child,
//! locks and delegates work if no other thread was using them, or waiting for them, at the fork.

use std::{
    cell::Cell,
    env,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    process::Command,
    sync::mpsc,
    thread,
    time::Duration,
};

use consort_sandbox::children;
use consort_sync::{
    Condvar, Continuations, Delegate, Mutex, RwLock, Semaphore, Server,
    delegation::CcSynch,
    locks::{Hapax, HybLock},
};

/// The environment variable that makes this process fork children.
const FORKS: &str = "TEST_FORKS";

/// Long enough for a thread to begin its sleep, and for a time limit that expires.
const SHORT: Duration = Duration::from_millis(20);

/// Asserts that a call panics because the process was forked.
fn is_refused<R>(call: impl FnOnce() -> R) {
    let panic = catch_unwind(AssertUnwindSafe(call)).err().expect("a panic");
    let text = panic.downcast_ref::<String>().expect("a message");
    assert!(text.contains("this process was forked"), "{text}");
}

fn fork_children() {
    let server = Server::start(5).expect("a thread");
    let (release, waits) = mpsc::channel::<()>();
    let (begins, begun) = mpsc::channel();
    let executed = server.submit(|value| *value);
    server.apply(|_| ()); // executes what was submitted before
    let waiting = server.submit(move |value| {
        begins.send(()).expect("the test waits for it");
        let _ = waits.recv();
        *value
    });
    begun.recv().expect("the server executes it");
    let mut batch = server.batch();
    batch.push(|value| *value += 1);
    children::run("a server", || {
        is_refused(|| server.apply(|value| *value));
        is_refused(|| server.detach(|value| *value += 1));
        is_refused(|| server.submit(|value| *value));
        is_refused(|| batch.deliver());
        let mut one = server.batch();
        one.push(|value| *value += 1);
        drop(one);
    });
    let mut pending = Some((executed, waiting));
    children::run("results", || {
        let (executed, waiting) = pending.take().expect("two results");
        assert_eq!(executed.wait(), 5);
        is_refused(|| waiting.wait());
    });
    drop(batch);
    let mut servers = Some(server);
    children::run("the end of a server", || drop(servers.take()));
    children::run("the data of a server", || {
        let server = servers.take().expect("a server");
        is_refused(|| server.into_inner());
    });
    release.send(()).expect("the server waits");
    let (executed, waiting) = pending.expect("two results");
    assert_eq!((executed.wait(), waiting.wait()), (5, 5));
    assert_eq!(servers.expect("a server").into_inner(), 6);

    let delegate = Delegate::with(CcSynch::new(), 1);
    let mutex: Mutex<u64, HybLock> = Mutex::with(HybLock::new(), 1);
    let hapax = Mutex::with(Hapax::new(), 1);
    let use_all = || {
        *mutex.lock() += 1;
        *hapax.lock() += 1;
        delegate.apply(|value| *value += 1);
    };
    use_all();
    children::run("locks", || {
        use_all();
        thread::scope(|scope| {
            scope.spawn(use_all);
            scope.spawn(use_all);
        });
        assert_eq!(delegate.submit(|value| *value).wait(), 5);
        assert_eq!((*mutex.lock(), *hapax.lock()), (5, 5));
        assert_eq!(Server::start(1).expect("a thread").apply(|value| *value), 1);
    });
    assert_eq!((delegate.into_inner(), *mutex.lock(), *hapax.lock()), (2, 2, 2));
    fork_while_a_mutex_is_held();
    fork_while_other_locks_are_in_use();
    fork_while_a_thread_waits();
    fork_while_calls_are_outstanding();
}

/// In the child the holder does not exist, so the mutex stays held.
fn fork_while_a_mutex_is_held() {
    let held = Mutex::new(1);
    let ((locks, locked), (release, waits)) = (mpsc::channel(), mpsc::channel::<()>());
    thread::scope(|scope| {
        let held = &held;
        scope.spawn(move || {
            let mut guard = held.lock();
            locks.send(()).expect("the test waits for it");
            let _ = waits.recv();
            *guard += 1;
        });
        locked.recv().expect("the thread locks it");
        children::run("a held mutex", || {
            assert!(held.is_locked());
            assert!(held.try_lock_for(Duration::from_millis(5)).is_none());
        });
        release.send(()).expect("the thread waits");
    });
    assert_eq!(*held.lock(), 2);
}

/// In the child, another thread's read guard and permit are never given back.
fn fork_while_other_locks_are_in_use() {
    let (lock, permits) = (RwLock::new(1), Semaphore::new(2));
    thread::scope(|scope| {
        // Dropped before the scope waits for the thread, also after a panic.
        let ((takes, taken), (release, waits)) = (mpsc::channel(), mpsc::channel::<()>());
        let (lock, permits) = (&lock, &permits);
        scope.spawn(move || {
            let _guards = (lock.read(), permits.acquire());
            takes.send(()).expect("the test waits for it");
            let _ = waits.recv();
        });
        taken.recv().expect("the thread takes both");
        children::run("a read guard and a permit", || {
            assert_eq!(*lock.read(), 1);
            assert!(lock.try_write_for(SHORT).is_none());
            assert!(permits.try_acquire_many_for(2, SHORT).is_none());
            assert_eq!(permits.available_permits(), 1);
            drop(permits.acquire());
        });
        release.send(()).expect("the thread waits");
    });
    assert!(lock.try_write().is_some() && permits.try_acquire_many(2).is_some());
}

/// In the child, a lock or a notification may go to a thread that does not exist.
fn fork_while_a_thread_waits() {
    let permits = Semaphore::new(1);
    let permit = permits.acquire();
    thread::scope(|scope| {
        scope.spawn(|| drop(permits.acquire()));
        while permits.try_acquire_many(0).is_some() {
            thread::yield_now();
        }
        thread::sleep(SHORT); // until it sleeps
        let mut copy = Some(permit);
        children::run("a thread that waits for a permit", || {
            drop(copy.take());
            assert_eq!(permits.available_permits(), 1);
            assert!(permits.try_acquire_for(SHORT).is_none());
        });
        drop(copy);
    });
    assert_eq!(permits.available_permits(), 1);

    let (waiting, condition) = (Mutex::new(false), Condvar::new());
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut waiting = waiting.lock();
            *waiting = true;
            condition.wait(&mut waiting);
        });
        while !*waiting.lock() {
            thread::yield_now();
        }
        children::run("a thread that waits for a notification", || {
            assert!(condition.notify_one(), "that thread gets it");
            assert!(!condition.notify_one());
        });
        assert!(condition.notify_one());
    });
}

/// In the child no thread executes the closures.
fn fork_while_calls_are_outstanding() {
    let server = Server::start(5).expect("a thread");
    let ((begins, begun), (release, waits)) = (mpsc::channel(), mpsc::channel::<()>());
    let (sum, mut child) = (Cell::new(0), 0);
    let add = |value| sum.set(sum.get() + value);
    let scope = || {
        Continuations::scope(|continuations| {
            let waiting = move |value: &mut u64| {
                begins.send(()).expect("the test waits for it");
                let _ = waits.recv();
                *value
            };
            server.apply_then(continuations, waiting, add);
            server.apply_then(continuations, |value| *value, add);
            begun.recv().expect("the server executes it");
            children::run("calls", || {
                is_refused(|| continuations.wait());
                is_refused(|| server.apply_then(continuations, |value| *value, add));
                assert_eq!(continuations.outstanding(), 2);
            });
            child = children::fork();
            if child != 0 {
                release.send(()).expect("the server waits");
            }
        });
    };
    let result = catch_unwind(AssertUnwindSafe(scope));
    if child == 0 {
        is_refused(|| result.unwrap_or_else(|payload| resume_unwind(payload)));
        children::end(sum.get() == 0);
    }
    children::wait("the end of a scope", child);
    assert_eq!((result.is_ok(), sum.get()), (true, 10));
}

#[test]
fn forked_child_has_no_server() {
    if env::var_os(FORKS).is_some() {
        return fork_children();
    }
    let mut program = Command::new(env::current_exe().expect("this program"));
    program.args(["forks::forked_child_has_no_server", "--exact"]);
    let output = program.env(FORKS, "1").output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
}
