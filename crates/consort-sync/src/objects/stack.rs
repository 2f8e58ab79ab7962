//! A stack: a list of nodes.

#![expect(unsafe_code, reason = "nodes are linked by addresses")]

use std::sync::atomic::Ordering::Relaxed;

use consort_fabric::{Line, Machine};

use super::{EMPTY, check, value};
use crate::delegation::{Scheme, ServerScheme, Service};

/// Words of a node.
const VALUE: usize = 0;
const BELOW: usize = 1;

const PUSH: u64 = 0;
const POP: u64 = 1;

/// A stack under a scheme.
#[derive(Debug, Default)]
pub struct Stack<S> {
    scheme: S,
    nodes: Nodes,
}

/// Word 0: the address of the uppermost node; 0 if there is none.
#[derive(Debug, Default)]
struct Nodes(Line);

impl<M: Machine> Service<M> for Nodes {
    #[inline]
    async fn serve(&self, m: &M, operation: u64, argument: u64) -> u64 {
        let top = m.load(&self.0[0], Relaxed).await;
        if operation == PUSH {
            let node = m.take_line();
            m.store(&node[VALUE], argument, Relaxed).await;
            m.store(&node[BELOW], top, Relaxed).await;
            m.store(&self.0[0], node.address(), Relaxed).await;
            return 0;
        }
        if top == 0 {
            return EMPTY;
        }
        // SAFETY: words 0 and `BELOW` hold 0 or addresses of nodes.
        let node = unsafe { Line::at(top) };
        let value = m.load(&node[VALUE], Relaxed).await;
        m.store(&self.0[0], m.load(&node[BELOW], Relaxed).await, Relaxed).await;
        m.give_line(node);
        value
    }
}

impl<S: Scheme> Stack<S> {
    /// An empty stack.
    #[must_use]
    pub fn new(scheme: S) -> Self {
        Self { scheme, nodes: Nodes::default() }
    }

    /// Puts a value on top.
    ///
    /// # Errors
    /// When a wait ends early.
    ///
    /// # Panics
    /// When the value has more than 62 bits.
    pub async fn push<M: Machine>(
        &self,
        m: &M,
        local: &S::Local,
        value: u64,
    ) -> Result<(), M::Stop> {
        check(value);
        self.scheme.apply(m, local, &self.nodes, PUSH, value).await.map(|_| ())
    }

    /// Takes the value on top; `None` if the stack is empty.
    ///
    /// # Errors
    /// When a wait ends early.
    pub async fn pop<M: Machine>(&self, m: &M, local: &S::Local) -> Result<Option<u64>, M::Stop> {
        self.scheme.apply(m, local, &self.nodes, POP, 0).await.map(value)
    }

    /// Gives the nodes back to the machine, when nobody uses the stack any more.
    pub fn retire<M: Machine>(mut self, m: &M) {
        let mut top = self.nodes.0[0].atomic().load(Relaxed);
        while top != 0 {
            // SAFETY: words 0 and `BELOW` hold 0 or addresses of nodes.
            let node = unsafe { Line::at(top) };
            top = node[BELOW].atomic().load(Relaxed);
            m.give_line(node);
        }
        self.scheme.retire(m);
    }
}

impl<S: ServerScheme> Stack<S> {
    /// Serves all threads, until [`stop`](Self::stop) is called.
    ///
    /// # Errors
    /// When a wait ends early.
    pub async fn run<M: Machine>(&self, m: &M) -> Result<(), M::Stop> {
        self.scheme.run(m, &self.nodes).await
    }

    /// Lets the server end.
    ///
    /// # Errors
    /// When a wait ends early.
    pub async fn stop<M: Machine>(&self, m: &M) -> Result<(), M::Stop> {
        self.scheme.stop(m).await
    }
}
