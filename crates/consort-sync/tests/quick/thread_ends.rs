//! Locks in the destructors of thread-local variables. These destructors may run before or after
//! that of the machine's state for the thread.

use std::{
    cell::RefCell,
    sync::{
        atomic::{AtomicU32, Ordering::SeqCst},
        mpsc,
    },
    thread,
    time::Duration,
};

use consort_sync::{
    Mutex, MutexGuard,
    locks::{Hapax, HybLock, Mcs},
};

const LIMIT: Duration = Duration::from_secs(20);

static HELD: Mutex<u32, HybLock> = Mutex::with(HybLock::new(), 0);
static OTHER: Mutex<u32, HybLock> = Mutex::with(HybLock::new(), 0);
static NODES: Mutex<u32, Mcs> = Mutex::with(Mcs::new(), 0);
static UNIQUE: Mutex<u32, Hapax> = Mutex::with(Hapax::new(), 0);

/// 0; 1 when the other thread may begin; 2 when it uses messages.
static STEP: AtomicU32 = AtomicU32::new(0);

fn reach(step: u32) {
    while STEP.load(SeqCst) != step {
        thread::yield_now();
    }
}

/// Lets the other thread take a number, if this thread has returned its own.
struct Between;

impl Drop for Between {
    fn drop(&mut self) {
        STEP.store(1, SeqCst);
        reach(2);
    }
}

thread_local! {
    static GUARD: RefCell<Option<MutexGuard<'static, u32, HybLock>>> =
        const { RefCell::new(None) };
    static BETWEEN: Between = const { Between };
}

#[test]
fn a_guard_in_a_thread_local_variable_is_released() {
    let (done, end) = mpsc::channel();
    thread::spawn(move || {
        let other = thread::spawn(|| {
            reach(1);
            *OTHER.lock() += 1; // takes a number
            STEP.store(2, SeqCst);
            *HELD.lock() += 1; // waits for the guard's thread
        });
        let holder = thread::spawn(|| {
            GUARD.with(|guard| {
                // Dropped before the guard, and after what the first lock registers.
                BETWEEN.with(|_| ());
                *guard.borrow_mut() = Some(HELD.lock());
            });
        });
        holder.join().expect("it ends well");
        other.join().expect("it ends well");
        let _ = done.send(());
    });
    end.recv_timeout(LIMIT).expect("the guard is released, and the lock passed on");
    assert_eq!(*HELD.lock(), 1);
}

/// Locks at the end of its thread.
struct AtTheEnd;

impl Drop for AtTheEnd {
    fn drop(&mut self) {
        *OTHER.lock() += 1;
        *NODES.lock() += 1;
        *UNIQUE.lock() += 1;
    }
}

thread_local! {
    static AT_THE_END: AtTheEnd = const { AtTheEnd };
}

/// More threads than may use messages at the same time.
#[test]
fn thread_numbers_taken_in_destructors_are_returned() {
    const THREADS: u32 = 17_000;
    for _ in 0..THREADS {
        let thread = thread::spawn(|| AT_THE_END.with(|_| *OTHER.lock() += 1));
        thread.join().expect("it gets a number");
    }
    assert_eq!((*NODES.lock(), *UNIQUE.lock()), (THREADS, THREADS));
}
