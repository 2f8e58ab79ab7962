//! A queue: the one with two locks of Michael and Scott 1996, section 2, Figure 2.
//!
//! A list of nodes, of which the first has no value any more. Who appends changes its end, and who
//! takes its beginning. So there may be a scheme for each; then they meet in the word `NEXT` of a
//! node alone, which is therefore released and acquired.

#![expect(unsafe_code, reason = "nodes are linked by addresses")]

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use consort_fabric::{Line, Machine};

use super::{EMPTY, check, value};
use crate::delegation::{Scheme, ServerScheme, Service};

/// Words of a node.
const VALUE: usize = 0;
const NEXT: usize = 1;

/// What a scheme of a queue executes, and its operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Appending, and taking too if the queue has one scheme.
    Append,
    /// Taking.
    Take,
}

/// A queue under one scheme or two.
#[derive(Debug)]
pub struct Queue<S> {
    append: S,
    /// `None` if the other scheme serves both.
    take: Option<S>,
    nodes: Nodes,
}

/// Words 0: the addresses of the first and the last node.
#[derive(Debug)]
struct Nodes {
    first: Line,
    last: Line,
}

/// The node at an address that was read from a queue.
fn node(address: u64) -> &'static Line {
    // SAFETY: the words of `Nodes` are addresses of nodes, and `NEXT`, unless it is 0, which the
    // callers exclude.
    unsafe { Line::at(address) }
}

impl<M: Machine> Service<M> for Nodes {
    #[inline]
    async fn serve(&self, m: &M, operation: u64, argument: u64) -> u64 {
        if operation == Part::Append as u64 {
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
        // Nobody appends to it: it has a next one.
        m.give_line(first);
        value
    }
}

impl<S: Scheme> Queue<S> {
    /// An empty queue under one scheme.
    #[must_use]
    pub fn new<M: Machine>(m: &M, scheme: S) -> Self {
        let first = m.take_line();
        first[NEXT].atomic().store(0, Relaxed);
        let nodes = Nodes { first: Line::default(), last: Line::default() };
        nodes.first[0].atomic().store(first.address(), Relaxed);
        nodes.last[0].atomic().store(first.address(), Relaxed);
        Self { append: scheme, take: None, nodes }
    }

    /// An empty queue with a scheme for those who append and one for those who take. Neither may
    /// write its answers past the caches, since both use the nodes.
    #[must_use]
    pub fn with_two<M: Machine>(m: &M, append: S, take: S) -> Self {
        Self { take: Some(take), ..Self::new(m, append) }
    }

    /// Appends a value. `local` is what the thread keeps of the scheme for [`Part::Append`].
    ///
    /// # Errors
    /// When a wait ends early.
    ///
    /// # Panics
    /// When the value has more than 62 bits.
    pub async fn append<M: Machine>(
        &self,
        m: &M,
        local: &S::Local,
        value: u64,
    ) -> Result<(), M::Stop> {
        check(value);
        let operation = Part::Append as u64;
        self.append.apply(m, local, &self.nodes, operation, value).await.map(|_| ())
    }

    /// Takes the first value; `None` if the queue is empty. `local` is what the thread keeps of the
    /// scheme for [`Part::Take`], or of the only one.
    ///
    /// # Errors
    /// When a wait ends early.
    pub async fn take<M: Machine>(&self, m: &M, local: &S::Local) -> Result<Option<u64>, M::Stop> {
        let (scheme, operation) = (self.scheme(Part::Take), Part::Take as u64);
        scheme.apply(m, local, &self.nodes, operation, 0).await.map(value)
    }

    fn scheme(&self, part: Part) -> &S {
        self.take.as_ref().filter(|_| part == Part::Take).unwrap_or(&self.append)
    }

    /// Gives the nodes back to the machine, when nobody uses the queue any more.
    pub fn retire<M: Machine>(mut self, m: &M) {
        let mut next = self.nodes.first[0].atomic().load(Relaxed);
        while next != 0 {
            let line = node(next);
            next = line[NEXT].atomic().load(Relaxed);
            m.give_line(line);
        }
        self.append.retire(m);
        self.take.iter_mut().for_each(|scheme| scheme.retire(m));
    }
}

impl<S: ServerScheme> Queue<S> {
    /// Serves all threads with a part, until [`stop`](Self::stop) is called. A queue with one
    /// scheme has one server, for [`Part::Append`].
    ///
    /// # Errors
    /// When a wait ends early.
    pub async fn run<M: Machine>(&self, m: &M, part: Part) -> Result<(), M::Stop> {
        self.scheme(part).run(m, &self.nodes).await
    }

    /// Lets the server of a part end.
    ///
    /// # Errors
    /// When a wait ends early.
    pub async fn stop<M: Machine>(&self, m: &M, part: Part) -> Result<(), M::Stop> {
        self.scheme(part).stop(m).await
    }
}
