//! Which parts of a peer's memory a call reaches, and its panics where it cannot.

#![expect(unsafe_code, reason = "makes a view")]

use std::sync::Arc;

use consort_fabric::{Rank, Rma, Span};

use super::{
    operands::{Buffer, Operands},
    remote::Remote,
    view::Call,
};
use crate::{
    endpoint::identity::Endpoint,
    launch::{config::Config, job::Job},
    progress::policy::Waiting,
    segment::origin::Origin,
};

const HEAP_BYTES: usize = 4096;

/// Runs `does` on a call of PE 0 of two. The source and the target of the call are 64 bytes of the
/// heap from these offsets on, or absent.
fn on_pe_0<R>([source, target]: [Option<usize>; 2], does: impl FnOnce(&Call<'_>) -> R) -> R {
    let waiting = Waiting::SpinYield;
    let config = Config {
        pes: 2,
        waiting,
        cores: 2,
        heap_bytes: HEAP_BYTES,
        memory: Origin::Private,
        first_step: 1,
    };
    let job = Job::new(config).expect("a small heap");
    let endpoint = Endpoint::new(Arc::clone(&job), Rank(0));
    let buffer = |at: Option<usize>| match at {
        Some(at) => Buffer::symmetric(&job, Rank(0), at, 64),
        None => Buffer::ABSENT,
    };
    let operands = Operands { source: buffer(source), target: buffer(target), ..Operands::NONE };
    // SAFETY: nothing but `does` drives the call.
    let call = unsafe { endpoint.view(&operands) };
    does(&call)
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
