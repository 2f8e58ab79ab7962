//! A queue: the two-lock queue of Michael and Scott 1996, section 2, Figure 2.
//!
//! A list of nodes. The value of the first node has been taken. Putting changes the end of the
//! list, and taking changes its beginning, so each may have a separate scheme. The two schemes
//! share only the word `NEXT` of a node, so it is stored with release and loaded with acquire.

#![expect(unsafe_code, reason = "links nodes by addresses")]

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use consort_machine::{Line, Machine};

use super::{EMPTY, Object, ObjectPart, Sequential, object::Nodes};
use crate::delegation::Scheme;

/// Words of a node.
const VALUE: usize = 0;
const NEXT: usize = 1;

/// A queue under one scheme or two.
pub type Queue<S> = Object<S, SequentialQueue>;

/// Word 0 of each: the address of the first and of the last node.
#[derive(Debug)]
pub struct SequentialQueue {
    first: Line,
    last: Line,
}

/// Returns the node at an address that was read from a queue.
fn node(address: u64) -> &'static Line {
    // SAFETY: the words of `SequentialQueue` are addresses of nodes, and so is `NEXT` unless it is
    // 0, which the callers exclude.
    unsafe { Line::at(address) }
}

impl Sequential for SequentialQueue {
    #[inline]
    async fn serve<M: Machine>(&self, m: &M, operation: ObjectPart, argument: u64) -> u64 {
        if operation == ObjectPart::Put {
            let new = m.take_line();
            m.store(&new[VALUE], argument, Relaxed).await;
            m.store(&new[NEXT], 0, Relaxed).await;
            let last = node(m.load(&self.last[0], Relaxed).await);
            m.store(&last[NEXT], new.address(), Release).await; // pairs with the acquire below
            m.store(&self.last[0], new.address(), Relaxed).await;
            return 0;
        }
        let first = node(m.load(&self.first[0], Relaxed).await);
        let next = m.load(&first[NEXT], Acquire).await;
        if next == 0 {
            return EMPTY;
        }
        let value = m.load(&node(next)[VALUE], Relaxed).await;
        m.store(&self.first[0], next, Relaxed).await;
        // No thread appends to it, because it has a next node.
        m.give_line(first);
        value
    }

    fn retire<M: Machine>(&mut self, m: &M) {
        let mut next = self.first[0].atomic().load(Relaxed);
        while next != 0 {
            let line = node(next);
            next = line[NEXT].atomic().load(Relaxed);
            m.give_line(line);
        }
    }
}

// SAFETY: a node has one value. Threads that put and threads that take share one word, which is
// released after the value is there.
unsafe impl Nodes for SequentialQueue {}

impl<S: Scheme> Queue<S> {
    /// Creates an empty queue under one scheme.
    #[must_use]
    pub fn new<M: Machine>(m: &M, scheme: S) -> Self {
        Self::of(scheme, None, SequentialQueue::new(m))
    }

    /// Creates an empty queue with one scheme for threads that put and one for threads that take.
    ///
    /// # Panics
    /// When a scheme [streams](Scheme::streams) its answers: the nodes belong to both schemes
    /// (Petrović 2015, section 7.1.3).
    #[must_use]
    pub fn with_two<M: Machine>(m: &M, put: S, take: S) -> Self {
        let streams = put.streams() || take.streams();
        assert!(
            !streams,
            "two schemes share nodes, so answers must not be streamed: use schemes without \
             `with_streaming`"
        );
        Self::of(put, Some(take), SequentialQueue::new(m))
    }
}

impl SequentialQueue {
    fn new<M: Machine>(m: &M) -> Self {
        let first = m.take_line();
        first[NEXT].atomic().store(0, Relaxed);
        let list = Self { first: Line::default(), last: Line::default() };
        list.first[0].atomic().store(first.address(), Relaxed);
        list.last[0].atomic().store(first.address(), Relaxed);
        list
    }
}
