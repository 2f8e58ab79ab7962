//! Tests of calls: the parts of a peer's memory that a call can access, the panics when it accesses
//! other parts, and pairwise exchanges.

#![expect(unsafe_code, reason = "makes a view")]

use std::{
    future::Future,
    panic::{AssertUnwindSafe, Location, catch_unwind},
    pin::pin,
    sync::{Arc, atomic::Ordering::Relaxed},
    task::{Context, Waker},
};

use consort_fabric::{Channel, Messages, PAIRWISE_BYTES, Rank, Rendezvous, Rma, Span};

use super::{
    operands::{Buffer, Operands},
    remote::Remote,
    view::CallView,
};
use crate::{
    endpoint::identity::Endpoint,
    heap::one_sided::OneSided,
    launch::{config::Config, job::Job},
};

const HEAP_BYTES: usize = 4096;

fn job() -> Arc<Job> {
    let config = Config { heap_bytes: HEAP_BYTES, ..Config::of_two() };
    Job::new(config).expect("a small heap")
}

/// Runs `does` on a call of PE 0 with these buffers.
fn on_buffers<R>(
    job: Arc<Job>,
    [source, target]: [Buffer<'_>; 2],
    does: impl FnOnce(&CallView<'_>) -> R,
) -> R {
    let endpoint = Endpoint::new(job, Rank(0)).expect("memory");
    let operands = Operands { source, target, ..Operands::NONE };
    // SAFETY: only `does` drives the call.
    let call = unsafe { endpoint.begin(1, 1, &operands, Location::caller()) };
    does(&call)
}

/// Runs `does` on a call of PE 0. The source and the target of the call are 64 bytes of the heap at
/// these offsets, or absent.
fn on_pe_0<R>(offsets: [Option<usize>; 2], does: impl FnOnce(&CallView<'_>) -> R) -> R {
    let job = job();
    let buffers = offsets.map(|at| match at {
        Some(at) => Buffer::symmetric(&job, Rank(0), at, 64),
        None => Buffer::ABSENT,
    });
    on_buffers(Arc::clone(&job), buffers, does)
}

/// Returns the offset of remote memory in PE 1's heap.
fn offset(call: &CallView<'_>, remote: &Remote) -> usize {
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
fn absent_buffer_is_not_reached() {
    on_pe_0([Some(128), None], |call| call.reach(Rank(1), Span::target(0, 8)));
}

#[test]
#[should_panic(expected = "scratch memory is private")]
fn scratch_memory_is_not_reached() {
    on_pe_0([None, None], |call| call.reach(Rank(1), Span::accumulator(8)));
}

/// Otherwise a message could overwrite what peers read as the address of an exposed buffer.
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

/// The error names the rank that the program uses, and not an index into internal memory.
#[test]
fn rank_outside_the_team_is_named() {
    type Use = fn(&CallView<'_>, Rank);
    let uses: [Use; 8] = [
        |call, pe| drop(call.send(pe, Channel::new(0), 0, Span::source(0, 8))),
        |call, pe| drop(call.send(pe, Channel::new(0), 0, Span::source(0, 56))),
        |call, pe| drop(call.signal(pe, Channel::new(0), 0)),
        |call, pe| drop(call.pairwise_exchange(pe, Channel::new(0), 0, None, None)),
        |call, pe| {
            let (own, target) = (Span::source(0, 8), Span::target(0, 8));
            drop(call.pairwise_combine(pe, Channel::new(0), 0, own, target));
        },
        |call, pe| drop(call.expose(pe, 0, Span::source(0, 8))),
        |call, pe| drop(call.attach(pe, 0)),
        |call, pe| {
            call.reach(pe, Span::source(0, 8));
        },
    ];
    for (index, uses) in uses.into_iter().enumerate() {
        for pe in [Rank(2), Rank(u32::MAX)] {
            let panic = catch_unwind(AssertUnwindSafe(|| {
                on_pe_0([Some(128), Some(256)], |call| uses(call, pe));
            }));
            let said = panic.expect_err("it panics");
            let said = said.downcast_ref::<String>().expect("a text");
            let expected = format!("PE {pe} is not in the team: its 2 PEs have ranks 0 to 1");
            assert_eq!(*said, expected, "use {index}");
        }
    }
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

/// A receive writes the target as private memory, and peers would access it at the same time.
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
    let _first = Endpoint::new(Arc::clone(&job), Rank(1)).expect("memory");
    let _second = Endpoint::new(job, Rank(1)).expect("memory");
}

#[test]
#[should_panic(expected = "a heap is that of a PE of the job")]
fn heap_beyond_the_last_pe_panics() {
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

/// Another poll would write past the target, or write as private memory what peers access by then.
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

/// The lengths in bytes of successive pairwise exchanges. Data longer than a word uses other slots.
const EXCHANGED: [usize; 12] = [24, 24, 8, 8, 24, 20, 1, 24, 16, 9, 3, 17];

/// Exchanges data of two PEs. In each exchange one of them is ahead: it ends the exchange and
/// begins the next before the other looks for the data.
fn exchange_with_one_ahead(is_nonblocking: bool) {
    const ALL: usize = EXCHANGED.len() * PAIRWISE_BYTES;
    let job = job();
    let sources = [(0..=255), (100..=255)].map(|bytes| {
        let mut bytes = bytes.cycle();
        [(); ALL].map(|()| bytes.next().unwrap_or(0))
    });
    let mut targets = [[0_u8; ALL]; 2];
    let [target_0, target_1] = targets.each_mut().map(|target| Buffer::target(&mut target[..]));
    let [source_0, source_1] = sources.each_ref().map(|source| Buffer::source(&source[..]));
    let operands = [(source_0, target_0), (source_1, target_1)].map(|(source, target)| Operands {
        source,
        target,
        ..Operands::NONE
    });
    let pes = [Rank(0), Rank(1)];
    let endpoints = pes.map(|pe| Endpoint::new(Arc::clone(&job), pe).expect("memory"));
    let calls = pes.map(|pe| {
        let (endpoint, operands) = (&endpoints[pe.index()], &operands[pe.index()]);
        // SAFETY: this is the PE's only call, and its futures are polled one at a time.
        let mut call = unsafe { endpoint.begin(1, 1, operands, Location::caller()) };
        if is_nonblocking {
            call.set_nonblocking();
        }
        call
    });
    let begin = |pe: Rank, index: u32| {
        let (at, bytes) = (index as usize * PAIRWISE_BYTES, EXCHANGED[index as usize]);
        let (own, target) = (Some(Span::source(at, bytes)), Some(Span::target(at, bytes)));
        let peer = pes[1 - pe.index()];
        calls[pe.index()].pairwise_exchange(peer, Channel::new(index), 0, own, target)
    };
    let mut exchanges = pes.map(|pe| Box::pin(begin(pe, 0)));
    let mut context = Context::from_waker(Waker::noop());
    for (index, next) in (1..).take(EXCHANGED.len()).enumerate() {
        let ahead = index / 3 % 2;
        for pe in [pes[ahead], pes[1 - ahead]] {
            let exchange = &mut exchanges[pe.index()];
            assert!(exchange.as_mut().poll(&mut context).is_ready(), "exchange {index} of PE {pe}");
            if (next as usize) < EXCHANGED.len() {
                *exchange = Box::pin(begin(pe, next));
            }
        }
    }
    drop(exchanges);
    drop(calls);
    for (target, source) in targets.iter().zip([&sources[1], &sources[0]]) {
        let parts = target.chunks(PAIRWISE_BYTES).zip(source.chunks(PAIRWISE_BYTES));
        for ((target, source), bytes) in parts.zip(EXCHANGED) {
            assert_eq!(target[..bytes], source[..bytes]);
            assert!(target[bytes..].iter().all(|&byte| byte == 0), "{bytes} bytes are exchanged");
        }
    }
}

#[test]
fn a_peer_may_be_one_pairwise_exchange_ahead() {
    exchange_with_one_ahead(false);
    exchange_with_one_ahead(true);
}

/// A longer exchange would write into the slot of another operation.
#[test]
#[should_panic(expected = "a pairwise exchange is of at most 24 bytes")]
fn pairwise_exchange_over_24_bytes_panics() {
    on_pe_0([Some(0), Some(256)], |call| {
        let own = Some(Span::source(0, 25));
        drop(call.pairwise_exchange(Rank(1), Channel::new(0), 0, own, None));
    });
}

/// Tests of private buffers of processes that share memory.
#[cfg(all(target_os = "linux", not(any(loom, miri, consort_portable))))]
mod staged {
    use std::{slice, task::Poll};

    use consort_fabric::{Nodes, Op};

    use super::*;
    use crate::{
        far::loopback::Loopback,
        launch::{
            failure::Failure,
            memory::{JobMemory, SharedFile},
        },
    };

    /// Returns the output of a future that is already ready.
    fn now<T>(future: impl Future<Output = Op<T>>) -> T {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => output.expect("no failure"),
            Poll::Pending => panic!("it waits"),
        }
    }

    /// Returns two processes with one PE each, which share memory.
    fn two_processes() -> [Arc<Job>; 2] {
        let forms = [Nodes::Blocks(1), Nodes::Blocks(2)];
        let config = Config { here: 2, nodes: forms[1], ..Config::of_two() };
        let file = SharedFile::new().expect("a file");
        let found = SharedFile::find(file.at()).expect("the file");
        let memories =
            [JobMemory::create(config.clone(), file, None), JobMemory::map(config, found, None)];
        let ends = Loopback::ends(2, 0).into_iter().zip(memories);
        let jobs = ends.map(|(end, memory)| {
            let memory = memory.expect("some memory");
            Job::linked(memory, Box::new(end), forms).expect("some memory")
        });
        jobs.collect::<Vec<_>>().try_into().expect("two processes")
    }

    /// A view of symmetric memory in another language is a slice of the heap.
    #[test]
    fn slices_of_the_heap_are_exposed_without_a_copy() {
        let [owner, peer] = &two_processes();
        let heap = owner.heap(Rank(0));
        let [given, received] = [0, 64].map(|at| {
            // SAFETY: nothing else uses these bytes of the heap now.
            unsafe { slice::from_raw_parts_mut(heap.wrapping_add(at), 64) }
        });
        given.fill(7);
        let target = Buffer::target(&mut *received);
        let operands = Operands { source: Buffer::source(given), target, ..Operands::NONE };
        let (source, mut target) = ([5_u8; 64], [0_u8; 64]);
        let target = Buffer::target(&mut target[..]);
        let others = Operands { source: Buffer::source(&source[..]), target, ..Operands::NONE };
        let ends = [(owner, 0), (peer, 1)]
            .map(|(job, pe)| Endpoint::new(Arc::clone(job), Rank(pe)).expect("memory"));
        // SAFETY: these are the only calls, and their futures are polled one at a time.
        let mine = unsafe { ends[0].begin(1, 1, &operands, Location::caller()) };
        // SAFETY: as above.
        let other = unsafe { ends[1].begin(1, 1, &others, Location::caller()) };
        now(mine.expose(Rank(1), 0, Span::source(8, 56)));
        now(mine.expose(Rank(1), 1, Span::target(0, 64)));
        let remotes = [0, 1].map(|number| now(other.attach(Rank(0), number)));
        let offset = |remote: &Remote| remote.at.addr() - peer.heap(Rank(0)).addr();
        assert_eq!(remotes.each_ref().map(offset), [8, 64]);
        now(other.get(&remotes[0], 0, Span::target(0, 56)));
        now(other.put(&remotes[1], 8, Span::source(0, 56)));
        remotes.into_iter().for_each(|remote| now(other.detach(remote)));
        now(mine.await_detached());
        drop((mine, other));
        assert_eq!((received[7], received[8], received[63]), (0, 5, 5));
    }

    /// If a call is over before the job fails, it returns without an error. Then its result must be
    /// there.
    #[test]
    fn staged_target_comes_back_if_the_job_fails_after_the_last_detach() {
        let [owner, peer] = &two_processes();
        let (source, mut target) = ([7_u8; 64], [0_u8; 64]);
        let operands = Operands { target: Buffer::target(&mut target[..]), ..Operands::NONE };
        let given = Operands { source: Buffer::source(&source[..]), ..Operands::NONE };
        let ends = [(owner, 0), (peer, 1)]
            .map(|(job, pe)| Endpoint::new(Arc::clone(job), Rank(pe)).expect("memory"));
        // SAFETY: these are the only calls, and their futures are polled one at a time.
        let mine = unsafe { ends[0].begin(1, 1, &operands, Location::caller()) };
        // SAFETY: as above.
        let other = unsafe { ends[1].begin(1, 1, &given, Location::caller()) };
        now(mine.expose(Rank(1), 0, Span::target(0, 64)));
        let remote = now(other.attach(Rank(0), 0));
        now(other.put(&remote, 0, Span::source(0, 64)));
        now(other.detach(remote));
        owner.poison(&Failure::Pe { rank: Rank(1), reason: "has failed".to_owned() });
        now(mine.await_detached());
        drop(mine);
        assert_eq!(target, source);
    }
}
