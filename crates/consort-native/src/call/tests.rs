//! Which parts of a peer's memory a call reaches, and its panics where it cannot.

#![expect(unsafe_code, reason = "makes a view")]

use std::{
    future::Future,
    panic::{AssertUnwindSafe, Location, catch_unwind},
    pin::pin,
    sync::{Arc, atomic::Ordering::Relaxed},
    task::{Context, Waker},
};

use consort_fabric::{Channel, Messages, Rank, Rendezvous, Rma, Span};

use super::{
    operands::{Buffer, Operands},
    remote::Remote,
    view::Call,
};
use crate::{
    endpoint::identity::Endpoint,
    heap::one_sided::OneSided,
    launch::{config::Config, job::Job},
    progress::policy::Waiting,
    segment::origin::Origin,
};

const HEAP_BYTES: usize = 4096;

/// A job of two PEs.
fn job() -> Arc<Job> {
    let config = Config {
        pes: 2,
        waiting: Waiting::SpinYield,
        cores: 2,
        heap_bytes: HEAP_BYTES,
        memory: Origin::Private,
        first_step: 1,
        helpers: false,
        joining: None,
        name: String::new(),
    };
    Job::new(config).expect("a small heap")
}

/// Runs `does` on a call of PE 0 with these buffers.
fn on_buffers<R>(
    job: Arc<Job>,
    [source, target]: [Buffer<'_>; 2],
    does: impl FnOnce(&Call<'_>) -> R,
) -> R {
    let endpoint = Endpoint::new(job, Rank(0));
    let operands = Operands { source, target, ..Operands::NONE };
    // SAFETY: nothing but `does` drives the call.
    let call = unsafe { endpoint.begin(1, 1, &operands, Location::caller()) };
    does(&call)
}

/// Runs `does` on a call of PE 0. The source and the target of the call are 64 bytes of the heap
/// from these offsets on, or absent.
fn on_pe_0<R>(offsets: [Option<usize>; 2], does: impl FnOnce(&Call<'_>) -> R) -> R {
    let job = job();
    let buffers = offsets.map(|at| match at {
        Some(at) => Buffer::symmetric(&job, Rank(0), at, 64),
        None => Buffer::ABSENT,
    });
    on_buffers(Arc::clone(&job), buffers, does)
}

/// The offset of a remote in PE 1's heap.
fn offset(call: &Call<'_>, remote: &Remote) -> usize {
    remote.at.addr() - call.heap(Rank(1)).addr()
}

#[test]
fn symmetric_memory_is_reached_at_the_same_offset() {
    on_pe_0([Some(128), Some(256)], |call| {
        let at = |span| offset(call, &call.reach(Rank(1), span));
        assert_eq!(at(Span::source(8, 16)), 136);
        assert_eq!(at(Span::target(0, 64)), 256);
        assert_eq!(at(Span::heap(640, 8)), 640);
    });
}

#[test]
#[should_panic(
    expected = "PE 0 cannot reach bytes 0..8 of the Target of PE 1: this call's buffer is not in \
                symmetric memory"
)]
fn a_buffer_that_is_not_there_is_not_reached() {
    on_pe_0([Some(128), None], |call| call.reach(Rank(1), Span::target(0, 8)));
}

#[test]
#[should_panic(expected = "scratch memory is private")]
fn scratch_memory_is_not_reached() {
    on_pe_0([None, None], |call| call.reach(Rank(1), Span::accumulator(8)));
}

/// Otherwise a message could write what peers take for an exposed buffer's address.
#[test]
fn no_message_reaches_past_the_inboxes() {
    on_pe_0([Some(0), None], |call| {
        let words = call.words.len();
        assert_eq!(words, call.group.memory.geometry.first_member);
        let lines = u32::try_from(words / 8).expect("few");
        for (to, channel) in [(0, lines), (1, lines), (2, 0), (u32::MAX, 0), (1, (1 << 31) - 1)] {
            for bytes in [8, 56] {
                let send = AssertUnwindSafe(|| {
                    drop(call.send(Rank(to), Channel::new(channel), 0, Span::source(0, bytes)));
                });
                assert!(catch_unwind(send).is_err(), "{bytes} B to {to}, channel {channel}");
            }
        }
    });
}

#[test]
#[should_panic(expected = "a PE exposes one buffer to a peer under each number in a call")]
fn a_number_is_exposed_once() {
    on_pe_0([Some(128), Some(256)], |call| {
        drop(call.expose(Rank(1), 1, Span::source(0, 8)));
        drop(call.expose(Rank(1), 0, Span::source(0, 8)));
        drop(call.expose(Rank(1), 0, Span::target(0, 64)));
    });
}

/// It writes the target as private memory, which peers would access at the same time.
#[test]
#[should_panic(expected = "a target is not exposed during a receive")]
fn no_target_is_exposed_during_a_receive() {
    let mut private = [0_u8; 64];
    let target = Buffer::target(&mut private[..]);
    on_buffers(job(), [Buffer::ABSENT, target], |call| {
        let _pending = call.receive(Channel::new(0), 0, Span::target(8, 8));
        drop(call.expose(Rank(1), 0, Span::target(0, 64)));
    });
}

#[test]
#[should_panic(expected = "a PE has one endpoint")]
fn a_pe_has_one_endpoint() {
    let job = job();
    let _first = Endpoint::new(Arc::clone(&job), Rank(1));
    let _second = Endpoint::new(job, Rank(1));
}

#[test]
#[should_panic(expected = "a heap is that of a PE of the job")]
fn no_heap_is_beyond_the_last_pe() {
    OneSided::new(&job(), Rank(0)).put(Rank(2), 0, &[1_u64]);
}

#[test]
#[should_panic(expected = "a remote buffer is used in its own job")]
fn a_remote_of_another_job_is_refused() {
    on_pe_0([Some(0), Some(64)], |call| {
        let remote = call.reach(Rank(1), Span::source(0, 8));
        on_pe_0([Some(0), Some(64)], |other| drop(other.get(&remote, 0, Span::target(0, 8))));
    });
}

/// It would write past its target, or as private memory what peers access by then.
#[test]
fn no_receive_goes_on_after_its_end() {
    let received = [8, 56, 64].map(|bytes| {
        on_pe_0([Some(0), Some(256)], |call| {
            drop(call.send(Rank(0), Channel::new(0), 0, Span::source(0, bytes)));
            let mut receive = pin!(call.receive(Channel::new(0), 0, Span::target(0, bytes)));
            let mut context = Context::from_waker(Waker::noop());
            assert!(receive.as_mut().poll(&mut context).is_ready());
            assert_eq!(call.receiving.load(Relaxed), 0);
            catch_unwind(AssertUnwindSafe(|| receive.as_mut().poll(&mut context).is_ready()))
        })
    });
    assert!(received.iter().all(Result::is_err), "{received:?}");
}
