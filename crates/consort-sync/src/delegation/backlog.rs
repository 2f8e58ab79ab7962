//! Detached operations, whose threads do not wait: Klaftenegger, Sagonas and Winblad 2014.
//!
//! A thread pushes its operation on a list (Treiber 1986). Before a thread executes an operation,
//! it takes the whole list and executes its operations in the order of arrival. The thread that
//! finds the list empty makes sure that an operation follows. The other threads rely on it.

#![expect(unsafe_code, reason = "links nodes by addresses")]

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use consort_machine::{Line, Machine, Word};

use super::Service;

/// Words of a node.
const NEXT: usize = 0;
const BEFORE: usize = 1;
const OPERATION: usize = 2;
const ARGUMENT: usize = 3;

/// Operations that no thread waits for and that have not been executed yet.
#[derive(Debug, Default)]
pub struct Backlog {
    /// The address of the newest node; 0 if there is none.
    newest: Word,
}

/// Returns the node at an address that is not 0.
fn node(address: u64) -> &'static Line {
    // SAFETY: `newest` and `NEXT` hold 0, which the callers exclude, or addresses of nodes.
    unsafe { Line::at(address) }
}

#[cfg(not(loom))]
impl Backlog {
    /// Creates an empty backlog.
    #[must_use]
    pub const fn new() -> Self {
        Self { newest: Word::new(0) }
    }
}

impl Backlog {
    /// Adds an operation. Returns the number of earlier operations: exactly 0 if there were none,
    /// otherwise an approximate number. If it is 0, the caller must ensure that an operation
    /// follows.
    pub async fn push<M: Machine>(&self, m: &M, operation: u64, argument: u64) -> u64 {
        let mine = m.take_line();
        m.store(&mine[OPERATION], operation, Relaxed).await;
        m.store(&mine[ARGUMENT], argument, Relaxed).await;
        // Acquire, here and in the exchange: pairs with its release, so the node is initialized.
        let mut newest = m.load(&self.newest, Acquire).await;
        loop {
            let before = match newest {
                0 => 0,
                // If the node was taken in the meantime, the number may be anything. Then the
                // exchange fails, or the node is the newest again.
                other => m.load(&node(other)[BEFORE], Relaxed).await.saturating_add(1),
            };
            m.store(&mine[NEXT], newest, Relaxed).await;
            m.store(&mine[BEFORE], before, Relaxed).await;
            // Release: also pairs with the acquire in `execute`.
            match m.compare_exchange(&self.newest, newest, mine.address(), AcqRel).await {
                Ok(_) => return before,
                Err(now) => newest = now,
            }
        }
    }

    /// Returns whether there is no operation. The answer takes into account every push that happens
    /// before this call.
    #[inline(always)]
    pub async fn is_empty<M: Machine>(&self, m: &M) -> bool {
        m.load(&self.newest, Relaxed).await == 0
    }

    /// Executes all pending operations, and drops their results. No thread may execute another
    /// operation meanwhile.
    pub async fn execute<M: Machine, S: Service<M>>(&self, m: &M, service: &S) {
        let (mut newest, mut oldest) = (m.swap(&self.newest, 0, Acquire).await, 0);
        while newest != 0 {
            let next = m.load(&node(newest)[NEXT], Relaxed).await;
            m.store(&node(newest)[NEXT], oldest, Relaxed).await;
            (oldest, newest) = (newest, next);
        }
        while oldest != 0 {
            let node = node(oldest);
            oldest = m.load(&node[NEXT], Relaxed).await;
            let operation = m.load(&node[OPERATION], Relaxed).await;
            let argument = m.load(&node[ARGUMENT], Relaxed).await;
            m.give_line(node);
            service.serve(m, operation, argument).await;
        }
    }
}
