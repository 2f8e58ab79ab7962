//! A server that does not run for a while: its future is not polled.

#![expect(unsafe_code, reason = "names the machine of all threads")]

use std::{
    cell::RefCell,
    future::Future,
    pin::{Pin, pin},
    sync::Mutex,
    task::{Context, Poll, Waker},
    thread::{self, ThreadId},
    time::Duration,
};

use consort_machine::{Machine, NativeMachine, block_on};
use consort_sync::delegation::{FallbackServer, MAX_OPS, Scheme, ServerScheme, Service};

use crate::schemes::within_limit;

// SAFETY: only schemes use it, whose futures are driven to their ends.
const M: NativeMachine = unsafe { NativeMachine::new() };

/// The executed operations, and the thread that executed each.
#[derive(Default)]
struct Executed(Mutex<Vec<(u64, ThreadId)>>);

impl<N: Machine> Service<N> for Executed {
    async fn serve(&self, _: &N, operation: u64, argument: u64) -> u64 {
        self.0.lock().expect("no panic").push((operation, thread::current().id()));
        operation + argument
    }
}

impl Executed {
    fn operations(&self) -> Vec<u64> {
        self.0.lock().expect("no panic").iter().map(|(operation, _)| *operation).collect()
    }

    fn executor(&self, operation: u64) -> ThreadId {
        let executed = self.0.lock().expect("no panic");
        executed.iter().find(|(of, _)| *of == operation).expect("it was executed").1
    }
}

fn poll<T>(future: &mut Pin<&mut (impl Future<Output = T> + ?Sized)>) -> Option<T> {
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// Longer than a thread waits for a server before it looks whether the server is late.
const LATE: Duration = Duration::from_millis(1);

/// A server that runs when the test polls it.
struct PolledServer<'s> {
    scheme: &'s FallbackServer,
    executed: &'s Executed,
    run: RefCell<Pin<&'s mut dyn Future<Output = Result<(), Stop>>>>,
}

type Stop = <NativeMachine as Machine>::Stop;

impl PolledServer<'_> {
    fn apply(&self, operation: u64, argument: u64) -> impl Future<Output = Result<u64, Stop>> {
        self.scheme.apply(&M, &(), self.executed, operation, argument)
    }

    fn post(&self, operation: u64) {
        let Ok(is_posted) = block_on(self.scheme.post(&M, operation, 0));
        assert!(is_posted);
    }

    /// Lets the server run until it waits.
    fn poll(&self) {
        let mut run = self.run.borrow_mut();
        assert!(poll(&mut run.as_mut()).is_none(), "the server has not ended");
    }

    fn end(&self) {
        let Ok(()) = block_on(self.scheme.stop(&M));
        let Ok(()) = block_on(self.run.borrow_mut().as_mut());
    }
}

/// Runs a test with a server that serves.
fn with_server(test: fn(&PolledServer<'_>)) {
    within_limit(move || {
        let (scheme, executed) = (FallbackServer::new(), Executed::default());
        let run = pin!(scheme.run(&M, &executed));
        let server = PolledServer { scheme: &scheme, executed: &executed, run: RefCell::new(run) };
        server.poll();
        test(&server);
    });
}

#[test]
fn waiting_thread_takes_the_place_of_a_late_server() {
    with_server(|server| {
        let PolledServer { scheme, executed, .. } = *server;
        let client = thread::scope(|scope| {
            let client = scope.spawn(|| {
                let Ok(posted) = block_on(scheme.post(&M, 1, 0));
                let Ok(result) = block_on(scheme.apply(&M, &(), executed, 2, 10));
                let Ok(next) = block_on(scheme.apply(&M, &(), executed, 3, 10));
                assert_eq!((posted, result, next), (true, 12, 13));
                thread::current().id()
            });
            client.join().expect("no panic")
        });
        assert_eq!(executed.operations(), [1, 2, 3]);
        assert!([1, 2, 3].iter().all(|&it| executed.executor(it) == client));
        server.post(4);
        assert_eq!(executed.operations().len(), 3);
        server.end();
        assert_eq!(executed.executor(4), thread::current().id(), "the server");
    });
}

/// A later request may wait for something that this thread holds.
#[test]
fn waiting_thread_executes_no_later_request() {
    with_server(|server| {
        let mut requests = [1, 2, 3].map(|operation| Box::pin(server.apply(operation, 0)));
        for request in &mut requests {
            assert!(poll(&mut request.as_mut()).is_none(), "the server is not late yet");
        }
        thread::sleep(LATE);
        let [first, second, third] = &mut requests;
        assert_eq!(poll(&mut second.as_mut()), Some(Ok(2)));
        assert_eq!(server.executed.operations(), [1, 2]);
        assert_eq!(poll(&mut first.as_mut()), Some(Ok(1)));
        assert_eq!(poll(&mut third.as_mut()), Some(Ok(3)));
        let mut fourth = pin!(server.apply(4, 0));
        assert_eq!(poll(&mut fourth), Some(Ok(4)), "the server's turn has ended");
        server.end();
        assert_eq!(server.executed.operations(), [1, 2, 3, 4]);
    });
}

#[test]
fn server_executes_requests_unless_it_is_late() {
    with_server(|server| {
        let mut request = pin!(server.apply(1, 10));
        assert!(poll(&mut request).is_none(), "it waits for the server");
        server.poll();
        assert_eq!(server.executed.operations(), [1]);
        assert_eq!(poll(&mut request), Some(Ok(11)));
        server.end();
    });
}

/// The server reads the clock after each round.
#[test]
fn turn_ends_in_time_if_sections_are_long() {
    with_server(|server| {
        let mut request = pin!(server.apply(1, 10));
        assert!(poll(&mut request).is_none(), "it waits for the server");
        thread::sleep(2 * LATE);
        server.poll(); // it rests
        assert_eq!(poll(&mut request), Some(Ok(11)));
        let mut next = pin!(server.apply(2, 10));
        assert_eq!(poll(&mut next), Some(Ok(12)), "the server's turn has ended");
        server.end();
    });
}

/// Otherwise their threads would wait until they look whether the server is late.
#[test]
fn requests_are_executed_at_the_end_of_a_turn() {
    with_server(|server| {
        let operations: Vec<u64> = (0..MAX_OPS + 50).collect(); // more than in a round
        let apply = |&operation: &u64| Box::pin(server.apply(operation, 0));
        let mut requests: Vec<_> = operations.iter().map(apply).collect();
        for request in &mut requests {
            assert!(poll(&mut request.as_mut()).is_none(), "it waits for the server");
        }
        thread::sleep(2 * LATE);
        server.poll(); // it rests
        assert_eq!(server.executed.operations(), operations);
        for (request, operation) in requests.iter_mut().zip(operations) {
            assert_eq!(poll(&mut request.as_mut()), Some(Ok(operation)));
        }
        server.end();
    });
}
