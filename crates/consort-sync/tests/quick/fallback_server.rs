//! A server that does not run for a while: its future is not polled.

#![expect(unsafe_code, reason = "names the machine of all threads")]

use std::{
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

fn poll<T>(future: &mut Pin<&mut impl Future<Output = T>>) -> Option<T> {
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// Longer than a thread waits for a server before it looks whether the server is late.
const LATE: Duration = Duration::from_millis(1);

#[test]
fn waiting_thread_takes_the_place_of_a_late_server() {
    within_limit(|| {
        let (scheme, executed) = (FallbackServer::new(), Executed::default());
        let mut server = pin!(scheme.run(&M, &executed));
        assert!(poll(&mut server).is_none(), "it serves");
        let client = thread::scope(|scope| {
            let client = scope.spawn(|| {
                let Ok(posted) = block_on(scheme.post(&M, 1, 0));
                let Ok(result) = block_on(scheme.apply(&M, &(), &executed, 2, 10));
                let Ok(next) = block_on(scheme.apply(&M, &(), &executed, 3, 10));
                assert_eq!((posted, result, next), (true, 12, 13));
                thread::current().id()
            });
            client.join().expect("no panic")
        });
        assert_eq!(executed.operations(), [1, 2, 3]);
        assert!([1, 2, 3].iter().all(|&it| executed.executor(it) == client));
        let Ok(true) = block_on(scheme.post(&M, 4, 0)) else { panic!("it has a server") };
        assert_eq!(executed.operations().len(), 3);
        let Ok(()) = block_on(scheme.stop(&M));
        let Ok(()) = block_on(server);
        assert_eq!(executed.executor(4), thread::current().id(), "the server");
    });
}

/// A later request may wait for something that this thread holds.
#[test]
fn waiting_thread_executes_no_later_request() {
    within_limit(|| {
        let (scheme, executed) = (FallbackServer::new(), Executed::default());
        let mut server = pin!(scheme.run(&M, &executed));
        assert!(poll(&mut server).is_none(), "it serves");
        let mut requests =
            [1, 2, 3].map(|operation| Box::pin(scheme.apply(&M, &(), &executed, operation, 0)));
        for request in &mut requests {
            assert!(poll(&mut request.as_mut()).is_none(), "the server is not late yet");
        }
        thread::sleep(LATE);
        let [first, second, third] = &mut requests;
        assert_eq!(poll(&mut second.as_mut()), Some(Ok(2)));
        assert_eq!(executed.operations(), [1, 2]);
        assert_eq!(poll(&mut first.as_mut()), Some(Ok(1)));
        assert_eq!(poll(&mut third.as_mut()), Some(Ok(3)));
        let mut fourth = pin!(scheme.apply(&M, &(), &executed, 4, 0));
        assert_eq!(poll(&mut fourth), Some(Ok(4)), "the server's turn has ended");
        let Ok(()) = block_on(scheme.stop(&M));
        let Ok(()) = block_on(server);
        assert_eq!(executed.operations(), [1, 2, 3, 4]);
    });
}

#[test]
fn server_executes_requests_unless_it_is_late() {
    within_limit(|| {
        let (scheme, executed) = (FallbackServer::new(), Executed::default());
        let mut server = pin!(scheme.run(&M, &executed));
        assert!(poll(&mut server).is_none(), "it serves");
        let mut request = pin!(scheme.apply(&M, &(), &executed, 1, 10));
        assert!(poll(&mut request).is_none(), "it waits for the server");
        assert!(poll(&mut server).is_none(), "it serves");
        assert_eq!(executed.operations(), [1]);
        assert_eq!(poll(&mut request), Some(Ok(11)));
        let Ok(()) = block_on(scheme.stop(&M));
        let Ok(()) = block_on(server);
    });
}

/// The server reads the clock after each round.
#[test]
fn turn_ends_in_time_if_sections_are_long() {
    within_limit(|| {
        let (scheme, executed) = (FallbackServer::new(), Executed::default());
        let mut server = pin!(scheme.run(&M, &executed));
        assert!(poll(&mut server).is_none(), "it serves");
        let mut request = pin!(scheme.apply(&M, &(), &executed, 1, 10));
        assert!(poll(&mut request).is_none(), "it waits for the server");
        thread::sleep(2 * LATE);
        assert!(poll(&mut server).is_none(), "it rests");
        assert_eq!(poll(&mut request), Some(Ok(11)));
        let mut next = pin!(scheme.apply(&M, &(), &executed, 2, 10));
        assert_eq!(poll(&mut next), Some(Ok(12)), "the server's turn has ended");
        let Ok(()) = block_on(scheme.stop(&M));
        let Ok(()) = block_on(server);
    });
}

/// Otherwise their threads would wait until they look whether the server is late.
#[test]
fn requests_are_executed_at_the_end_of_a_turn() {
    within_limit(|| {
        let (scheme, executed) = (FallbackServer::new(), Executed::default());
        let mut server = pin!(scheme.run(&M, &executed));
        assert!(poll(&mut server).is_none(), "it serves");
        let operations: Vec<u64> = (0..MAX_OPS + 50).collect(); // more than in a round
        let apply = |&operation: &u64| Box::pin(scheme.apply(&M, &(), &executed, operation, 0));
        let mut requests: Vec<_> = operations.iter().map(apply).collect();
        for request in &mut requests {
            assert!(poll(&mut request.as_mut()).is_none(), "it waits for the server");
        }
        thread::sleep(2 * LATE);
        assert!(poll(&mut server).is_none(), "it rests");
        assert_eq!(executed.operations(), operations);
        for (request, operation) in requests.iter_mut().zip(operations) {
            assert_eq!(poll(&mut request.as_mut()), Some(Ok(operation)));
        }
        let Ok(()) = block_on(scheme.stop(&M));
        let Ok(()) = block_on(server);
    });
}
