//! A stack under a scheme: a list of nodes.

#![expect(unsafe_code, reason = "links nodes by addresses")]

use std::sync::atomic::Ordering::Relaxed;

use consort_machine::{Line, Machine};

use super::{EMPTY, Object, ObjectPart, Sequential, object::Nodes};
use crate::delegation::Scheme;

/// Words of a node.
const VALUE: usize = 0;
const BELOW: usize = 1;

/// A stack under a scheme.
pub type Stack<S> = Object<S, SequentialStack>;

/// Word 0: the address of the top node; 0 if there is none.
#[derive(Debug, Default)]
pub struct SequentialStack(Line);

/// Returns the node at an address that was read from a stack.
fn node(address: u64) -> &'static Line {
    // SAFETY: words 0 and `BELOW` hold addresses of nodes, or 0, which the callers exclude.
    unsafe { Line::at(address) }
}

impl Sequential for SequentialStack {
    #[inline]
    async fn serve<M: Machine>(&self, m: &M, operation: ObjectPart, argument: u64) -> u64 {
        let top = m.load(&self.0[0], Relaxed).await;
        if operation == ObjectPart::Put {
            let new = m.take_line();
            m.store(&new[VALUE], argument, Relaxed).await;
            m.store(&new[BELOW], top, Relaxed).await;
            m.store(&self.0[0], new.address(), Relaxed).await;
            return 0;
        }
        if top == 0 {
            return EMPTY;
        }
        let top = node(top);
        let value = m.load(&top[VALUE], Relaxed).await;
        m.store(&self.0[0], m.load(&top[BELOW], Relaxed).await, Relaxed).await;
        m.give_line(top);
        value
    }

    fn retire<M: Machine>(&mut self, m: &M) {
        let mut top = self.0[0].atomic().load(Relaxed);
        while top != 0 {
            let line = node(top);
            top = line[BELOW].atomic().load(Relaxed);
            m.give_line(line);
        }
    }
}

// SAFETY: a node has one value. Both parts have one scheme, so no other operation is executed at
// the same time.
unsafe impl Nodes for SequentialStack {}

impl<S: Scheme> Stack<S> {
    /// Creates an empty stack.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new(scheme: S) -> Self {
        Self::of(scheme, None, SequentialStack(Line::new()))
    }
}
