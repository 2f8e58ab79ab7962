//! CC-SYNCH: Fatourou and Kallimanis 2012, section 3, Algorithm 1.
//!
//! A queue of nodes. A thread appends an empty node and puts its request into the node that was
//! last before. It waits there until the request is executed, or until it becomes the combiner. The
//! combiner executes the requests starting at its own node, then hands its role to the next thread.
//!
//! `node.rs` has the words of a node. `STATE` is `WAITS`, then `DONE`; or `COMBINES` if the node's
//! thread becomes the combiner. In the paper `STATE` is two flags, and the limit on a combiner's
//! operations also counts its own operation. Cost: two line transfers per request on the combiner.

#![expect(unsafe_code, reason = "relies on a scheme for exclusive access, and on a lock")]

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use consort_machine::{Line, Machine, Until, Word};

use super::{
    MAX_OPS, Scheme, Serverless, Service,
    node::{ARGUMENT, DONE, NEXT, OPERATION, OTHER, RESULT, STATE, WAITS, node},
};
use crate::locks::{RawLock, TestAndSet};

const COMBINES: u64 = OTHER;

/// CC-SYNCH: a waiting thread executes the operations of those behind it.
#[derive(Debug)]
pub struct CcSynch {
    /// The last node; 0 before the first operation. 0 acts like a node that `COMBINES`.
    last: Word,
    max_ops: u64,
}

impl Default for CcSynch {
    fn default() -> Self {
        Self { last: Word::default(), max_ops: MAX_OPS }
    }
}

impl CcSynch {
    /// Creates a queue whose combiners execute at most [`MAX_OPS`] operations of other threads.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self { last: Word::new(0), max_ops: MAX_OPS }
    }

    /// Limits a combiner to `max_ops` operations of other threads; 0 means none.
    #[must_use]
    pub const fn with_max_ops(mut self, max_ops: u64) -> Self {
        self.max_ops = max_ops;
        self
    }

    /// Applies an operation. The combiner holds `lock` meanwhile, if there is one.
    pub(super) async fn apply_under<M: Machine, S: Service<M>, R: RawLock>(
        &self,
        m: &M,
        lock: Option<&R>,
        service: &S,
        operation: u64,
        argument: u64,
    ) -> Result<u64, M::Stop> {
        let empty = m.take_line();
        m.store(&empty[NEXT], 0, Relaxed).await;
        m.store(&empty[STATE], WAITS, Relaxed).await;
        let mine = m.swap(&self.last, empty.address(), AcqRel).await;
        if mine != 0 {
            let mine = node(mine);
            m.store(&mine[OPERATION], operation, Relaxed).await;
            m.store(&mine[ARGUMENT], argument, Relaxed).await;
            // Pairs with the acquire of `NEXT` in `combine`: a node that has a next one has a
            // request.
            m.store(&mine[NEXT], empty.address(), Release).await;
            let state = m.wait_until(&mine[STATE], Until::Differs(WAITS)).await?;
            if state == DONE {
                let result = m.load(&mine[RESULT], Relaxed).await;
                m.give_line(mine);
                return Ok(result);
            }
            m.give_line(mine);
        }
        let token = match lock {
            Some(lock) => Some((lock, lock.acquire(m).await?)),
            None => None,
        };
        let result = service.serve(m, operation, argument).await;
        let next = self.combine(m, service, empty).await;
        if let Some((lock, token)) = token {
            // SAFETY: the lock was acquired with this token.
            unsafe { lock.release(m, token) }.await?;
        }
        // Pairs with the acquire of the wait: the next combiner sees what the operations wrote.
        m.store(&next[STATE], COMBINES, Release).await;
        m.wake(&next[STATE]);
        Ok(result)
    }

    /// Executes requests starting at a node. Returns the node whose thread is the next combiner.
    async fn combine<M: Machine, S: Service<M>>(
        &self,
        m: &M,
        service: &S,
        first: &'static Line,
    ) -> &'static Line {
        let mut request = first;
        for _ in 0..self.max_ops {
            // Read it before the node's thread continues, because that thread reuses the node.
            let next = m.load(&request[NEXT], Acquire).await;
            if next == 0 {
                break;
            }
            let operation = m.load(&request[OPERATION], Relaxed).await;
            let argument = m.load(&request[ARGUMENT], Relaxed).await;
            let result = service.serve(m, operation, argument).await;
            m.store(&request[RESULT], result, Relaxed).await;
            m.store(&request[STATE], DONE, Release).await; // pairs with the acquire of the wait
            m.wake(&request[STATE]);
            request = node(next);
        }
        request
    }
}

// SAFETY: one node at a time `COMBINES`, and only its thread executes requests. It got that role
// from the last combiner, whose release pairs with the acquire of the wait. The thread that finds
// no node is the first combiner.
unsafe impl Scheme for CcSynch {
    const NAME: &'static str = "CC-SYNCH";
    type Local = ();

    #[inline]
    async fn apply<M: Machine, S: Service<M>>(
        &self,
        m: &M,
        (): &(),
        service: &S,
        operation: u64,
        argument: u64,
    ) -> Result<u64, M::Stop> {
        self.apply_under(m, None::<&TestAndSet>, service, operation, argument).await
    }

    fn retire<M: Machine>(&mut self, m: &M) {
        let last = std::mem::take(self).last.atomic().load(Relaxed);
        if last != 0 {
            m.give_line(node(last));
        }
    }
}

impl Serverless for CcSynch {}
