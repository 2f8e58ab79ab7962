//! H-SYNCH: Fatourou and Kallimanis 2012, section 5. CC-SYNCH in two levels.
//!
//! Threads that are near each other, such as those of a socket, share a queue. Before the combiner
//! of a queue executes requests, it takes a lock that all queues share. So the data moves between
//! groups only once for many operations.

#![expect(unsafe_code, reason = "relies on a scheme for exclusive access")]

use std::cell::Cell;

use consort_machine::{Machine, Thread};

use super::{CcSynch, Scheme, Serverless, Service};
use crate::locks::{Clh, RawLock};

/// H-SYNCH: a queue for each group of threads, and a lock for their combiners.
#[derive(Debug)]
pub struct HSynch {
    groups: Box<[CcSynch]>,
    lock: Clh,
    group_of: fn(Thread) -> usize,
}

/// The group of a thread, once the thread has applied an operation.
#[derive(Debug, Default)]
pub struct MyGroup(Cell<Option<usize>>);

impl HSynch {
    /// Creates a scheme with `groups` groups whose combiners execute at most `max_ops` operations
    /// of other threads. When a thread first applies an operation, it calls `group_of` once to
    /// obtain its group, modulo their number.
    ///
    /// # Panics
    /// When there is no group.
    #[must_use]
    #[track_caller]
    pub fn new(groups: usize, max_ops: u64, group_of: fn(Thread) -> usize) -> Self {
        assert!(groups > 0, "H-SYNCH with no group of threads: use 1 or more");
        let groups = (0..groups).map(|_| CcSynch::default().with_max_ops(max_ops)).collect();
        Self { groups, lock: Clh::default(), group_of }
    }
}

// SAFETY: the lock excludes combiners of different groups; a queue has one combiner at a time.
unsafe impl Scheme for HSynch {
    const NAME: &'static str = "H-SYNCH";
    type Local = MyGroup;

    async fn apply<M: Machine, S: Service<M>>(
        &self,
        m: &M,
        group: &MyGroup,
        service: &S,
        operation: u64,
        argument: u64,
    ) -> Result<u64, M::Stop> {
        let mine = || (self.group_of)(m.thread()) % self.groups.len();
        let mine = group.0.get().unwrap_or_else(mine);
        group.0.set(Some(mine));
        let queue = &self.groups[mine];
        queue.apply_under(m, Some(&self.lock), service, operation, argument).await
    }

    fn retire<M: Machine>(&mut self, m: &M) {
        self.groups.iter_mut().for_each(|queue| queue.retire(m));
        self.lock.retire(m);
    }
}

impl Serverless for HSynch {}
