//! More threads than may use messages at the same time.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use consort_sync::{Delegate, delegation::HybComb};

/// More threads than may use messages at the same time.
const THREADS: u32 = 17_000;
const STACK: usize = 64 << 10;
const LIMIT: Duration = Duration::from_secs(60);

static COUNTER: Delegate<u32, HybComb> = Delegate::with(HybComb::new(), 0);

/// The first thread over the limit panics, and the others go on. Where the system lets a process
/// start fewer threads, the test shows nothing.
#[test]
fn thread_beyond_the_limit_panics() {
    let (sender, receiver) = mpsc::channel();
    let mut threads = Vec::new();
    let mut ends = Vec::new();
    let panic = (0..THREADS).find_map(|_| {
        let (end, ended) = mpsc::channel::<()>();
        let sender = sender.clone();
        let body = move || {
            let applied = catch_unwind(AssertUnwindSafe(|| COUNTER.apply(|count| *count += 1)));
            let text = applied.map_err(|panic| panic.downcast_ref::<String>().cloned());
            sender.send(text.err()).expect("the test is waiting");
            let _ = ended.recv(); // until all have begun
        };
        threads.push(thread::Builder::new().stack_size(STACK).spawn(body).ok()?);
        ends.push(end);
        match receiver.recv_timeout(LIMIT) {
            Ok(panic) => panic,
            Err(RecvTimeoutError::Timeout) => panic!("a thread waits"),
            Err(RecvTimeoutError::Disconnected) => unreachable!("this thread may send"),
        }
    });
    let begun = threads.len();
    drop(ends);
    threads.into_iter().for_each(|thread| thread.join().expect("no other panic"));
    if let Some(text) = panic {
        let text = text.expect("a text");
        assert!(text.contains("threads use messages or delegation at the same time"), "{text}");
        assert_eq!(COUNTER.apply(|count| *count) as usize, begun - 1);
    } else {
        assert!(begun < THREADS as usize, "{THREADS} threads use messages");
    }
}
