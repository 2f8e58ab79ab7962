//! Nonblocking calls: their results, in any order, and their failures.

mod at_random;
mod every_algorithm;
mod failures;
mod requests;
mod scopes;
mod symmetric;
mod windows;

use std::{
    future::Future,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{
            AtomicBool,
            Ordering::{Acquire, Release},
        },
    },
    task::{Context, Poll, Wake, Waker},
    thread,
    time::Instant,
};

use consort::{Rank, Result, Team, nonblocking::Request, tune::Collective};
use consort_conformance::{data::affine, turns::LIMIT};

use crate::{data::Call, typed::blocks};

/// The result of a call, if any.
type Data = Option<Vec<u64>>;

/// A request for any collective.
struct AnyRequest(Pin<Box<dyn Future<Output = Result<Data>>>>);

impl AnyRequest {
    fn of<B: 'static>(
        request: Result<Request<B>>,
        result: impl Fn(B) -> Data + 'static,
    ) -> Result<Self> {
        let request = request?;
        Ok(Self(Box::pin(async move { request.await.map(result) })))
    }

    fn wait(self) -> Result<Data> {
        block_on(self.0)
    }
}

/// Starts any collective by the method of its name.
fn start(team: &Team, call: &Call) -> Result<AnyRequest> {
    let me = team.rank();
    let Call { collective, root, len, .. } = *call;
    let source = call.source::<u64>(me);
    let some = Some::<Vec<u64>>;
    match collective {
        Collective::Barrier => AnyRequest::of(team.start_barrier(), |()| None),
        Collective::Broadcast => {
            let data = if me == root { source } else { vec![1; len] };
            AnyRequest::of(team.start(data).broadcast(root), some)
        }
        Collective::Scatter => AnyRequest::of(team.start(source).with_len(len).scatter(root), some),
        Collective::Gather => AnyRequest::of(team.start(source).gather(root), |all| all),
        Collective::AllGather => AnyRequest::of(team.start(source).all_gather(), some),
        Collective::AllToAll => AnyRequest::of(team.start(source).all_to_all(), some),
        Collective::Reduce => AnyRequest::of(team.start(source).reduce(affine, root), |all| all),
        Collective::AllReduce => AnyRequest::of(team.start(source).all_reduce(affine), some),
        Collective::ReduceScatter => {
            AnyRequest::of(team.start(source).reduce_scatter(affine), some)
        }
        Collective::Scan => AnyRequest::of(team.start(source).scan(affine), some),
        Collective::ExclusiveScan => {
            AnyRequest::of(team.start(source).exclusive_scan(affine), |all| all)
        }
        Collective::ScatterVector => {
            let given = blocks(team, source.len());
            AnyRequest::of(team.start(source).with_len(len).with_counts(&given).scatter(root), some)
        }
        Collective::GatherVector => {
            let received = blocks(team, len * team.size());
            AnyRequest::of(team.start(source).with_counts(&received).gather(root), |all| all)
        }
        Collective::AllGatherVector => {
            let received = blocks(team, len * team.size());
            AnyRequest::of(team.start(source).with_counts(&received).all_gather(), some)
        }
        Collective::AllToAllVector => {
            let [given, received] = [(); 2].map(|()| blocks(team, source.len()));
            AnyRequest::of(team.start(source).with_counts((&given, &received)).all_to_all(), some)
        }
    }
}

/// Returns the expected result of a request.
fn expected(call: &Call, me: Rank) -> Data {
    if call.collective == Collective::Broadcast && me == call.root {
        return Some(call.source(me));
    }
    call.result(me, &affine)
}

fn check(call: &Call, me: Rank, result: Data) {
    let Call { collective, pes, root, len, .. } = *call;
    assert!(
        result == expected(call, me),
        "{collective} of {len}, root {root}, on PE {me} of {pes}"
    );
}

/// An executor of one task: it only polls when it is woken.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Flag(AtomicBool);
    impl Wake for Flag {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Release);
        }
    }
    let mut future = pin!(future);
    let flag = Arc::new(Flag(AtomicBool::new(true)));
    let waker = Waker::from(Arc::clone(&flag));
    let mut context = Context::from_waker(&waker);
    let since = Instant::now();
    loop {
        if flag.0.swap(false, Acquire)
            && let Poll::Ready(output) = future.as_mut().poll(&mut context)
        {
            return output;
        }
        assert!(since.elapsed() < LIMIT, "a task that nobody wakes");
        thread::yield_now();
    }
}
