//! HYBCOMB: Petrović 2015, section 6.1.3, Algorithm 4. The numbers in comments are its lines.
//!
//! Combiners form a queue of nodes. A thread registers its request with the last combiner by an
//! addition to the node's `n_ops`, and sends it the request. If that combiner accepts no more
//! requests, the thread tries to become the next combiner. A combiner waits until its predecessor
//! has departed, executes its own operation and then the requests that it receives, and closes its
//! node by a swap of `n_ops`, which returns how many requests it must execute.
//!
//! | line of a node | contents |
//! | --- | --- |
//! | the first | the thread, and the addresses of the other two |
//! | `OPS` | `n_ops` |
//! | `DONE` | `combining_done` |
//!
//! A thread whose compare-exchange has failed several times becomes the combiner by a swap, so no
//! thread starves (the fix of section 6.1.3). Address 0 stands for the dummy node of lines 6 to 8.
//! A thread creates its node when it first wants to be the combiner. A node belongs to one
//! `HybComb` until this is retired, because a thread may add to the `n_ops` of a node that it read
//! long ago. Such an addition registers no request, so `n_ops` may exceed `MAX_OPS` by any number.

#![expect(unsafe_code, reason = "links nodes by addresses, and relies on a scheme")]

use std::{
    cell::Cell,
    sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release},
};

use consort_machine::{Line, Machine, Queue, Thread, Until, Word};

use super::{MAX_OPS, Scheme, Serverless, Service};

/// Words of a node's first line.
const THREAD: usize = 0;
const OPS: usize = 1;
const DONE: usize = 2;

/// After this many failed attempts to become the combiner, a thread uses a swap. Loom models use a
/// small number.
const ATTEMPTS: u32 = if cfg!(loom) { 1 } else { 4 };

/// The upper limit of `MAX_OPS`, so that `n_ops` does not wrap.
const MOST_OPS: u64 = 1 << 62;

/// HYBCOMB: a waiting thread executes the operations that it receives.
#[derive(Debug)]
pub struct HybComb {
    /// The node of the last combiner; 0 before the first operation.
    last_registered: Line,
    /// The node of the last combiner to depart; 0 if there is none yet. Only the combiner uses it.
    departed: Line,
    max_ops: u64,
}

/// A node.
#[derive(Clone, Copy, Debug)]
struct Node(&'static Line);

/// The node of a thread, once the thread has tried to become the combiner.
#[derive(Debug, Default)]
pub struct MyNode(Cell<Option<Node>>);

impl Node {
    fn at(address: u64) -> Self {
        // SAFETY: `last_registered` and `departed` hold 0, which the callers exclude, or addresses
        // of nodes' first lines.
        Self(unsafe { Line::at(address) })
    }

    /// 4: creates a node that accepts no requests.
    async fn new<M: Machine>(m: &M, max_ops: u64) -> Self {
        let node = Self(m.take_line());
        let (ops, done) = (m.take_line(), m.take_line());
        m.store(&node.0[OPS], ops.address(), Relaxed).await;
        m.store(&node.0[DONE], done.address(), Relaxed).await;
        m.store(&node.0[THREAD], u64::from(m.thread().0), Relaxed).await;
        m.store(&ops[0], max_ops, Relaxed).await;
        m.store(&done[0], 0, Relaxed).await;
        node
    }

    async fn word<M: Machine>(self, m: &M, line: usize) -> &'static Word {
        let address = m.load(&self.0[line], Relaxed).await;
        // SAFETY: these words have held addresses of lines since `new`.
        let line = unsafe { Line::at(address) };
        &line[0]
    }

    fn give<M: Machine>(self, m: &M) {
        for line in [OPS, DONE] {
            // SAFETY: these words have held addresses of lines since `new`.
            m.give_line(unsafe { Line::at(self.0[line].atomic().load(Relaxed)) });
        }
        m.give_line(self.0);
    }
}

impl Default for HybComb {
    fn default() -> Self {
        Self { last_registered: Line::default(), departed: Line::default(), max_ops: MAX_OPS }
    }
}

impl HybComb {
    /// Creates a queue whose combiners execute at most [`MAX_OPS`] operations of other threads.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self { last_registered: Line::new(), departed: Line::new(), max_ops: MAX_OPS }
    }

    /// Limits a combiner to `max_ops` operations of other threads; 0 means none. A number above
    /// 2^62 counts as 2^62.
    #[must_use]
    pub const fn with_max_ops(mut self, max_ops: u64) -> Self {
        self.max_ops = if max_ops < MOST_OPS { max_ops } else { MOST_OPS };
        self
    }

    /// Returns the queue of the requests. It is empty while nobody applies an operation.
    fn queue(&self) -> Queue {
        Queue(std::ptr::from_ref(self).addr() as u64)
    }

    /// 14 to 16: sends a request to a combiner, if the combiner accepts one more.
    async fn register<M: Machine>(
        &self,
        m: &M,
        combiner: Node,
        request: [u64; 2],
    ) -> Result<bool, M::Stop> {
        // Acquire: pairs with the release of 21. The thread is read afterwards, because a node that
        // was read at 12 may have belonged to another thread until then.
        let ops = combiner.word(m, OPS).await;
        if m.fetch_add(ops, 1, Acquire).await >= self.max_ops {
            return Ok(false);
        }
        let [operation, argument] = request;
        let to = m.load(&combiner.0[THREAD], Relaxed).await;
        let message = [u64::from(m.thread().0), operation, argument];
        m.send(thread(to), self.queue(), &message).await?;
        Ok(true)
    }

    /// 29 and 30: executes a request that was received.
    async fn execute<M: Machine, S: Service<M>>(&self, m: &M, service: &S) -> Result<(), M::Stop> {
        let [sender, operation, argument] = m.receive(self.queue()).await?;
        let result = service.serve(m, operation, argument).await;
        m.answer(thread(sender), result).await;
        Ok(())
    }

    /// 26 to 46: runs as the combiner.
    async fn combine<M: Machine, S: Service<M>>(
        &self,
        m: &M,
        local: &MyNode,
        mine: Node,
        service: &S,
        [operation, argument]: [u64; 2],
    ) -> Result<u64, M::Stop> {
        let result = service.serve(m, operation, argument).await;
        let mut completed = 0;
        while !m.is_empty(self.queue()).await {
            self.execute(m, service).await?;
            completed += 1;
        }
        // 33 to 35: closes the node. Additions beyond the limit are not requests. No other code
        // relies on this release: it is the fence of section 6.2.2 for a change of combiners. It is
        // here, while requests still arrive, so that more of them are combined.
        let ops = mine.word(m, OPS).await;
        let total = m.swap(ops, self.max_ops, Release).await.min(self.max_ops);
        while completed < total {
            self.execute(m, service).await?;
            completed += 1;
        }
        // 42 to 44: takes over the node that departed before. Only this thread waited for it.
        let other = m.load(&self.departed[0], Relaxed).await;
        m.store(&self.departed[0], mine.0.address(), Relaxed).await;
        local.0.set(match other {
            0 => None,
            other => {
                let other = Node::at(other);
                m.store(other.word(m, DONE).await, 0, Relaxed).await;
                m.store(&other.0[THREAD], u64::from(m.thread().0), Relaxed).await;
                Some(other)
            }
        });
        // 45. Pairs with the acquire of 22.
        let done = mine.word(m, DONE).await;
        m.store(done, 1, Release).await;
        m.wake(done);
        Ok(result)
    }
}

/// Returns the thread that a word holds.
fn thread(word: u64) -> Thread {
    Thread(u32::try_from(word).expect("the word holds the number of a thread"))
}

// SAFETY: nodes have one order, that of the exchanges of `last_registered`. A thread executes
// requests between the wait for the node before its own (22) and the release of its own (45), so
// one thread at a time does. Messages carry requests to it, and answers to their senders.
unsafe impl Scheme for HybComb {
    const NAME: &'static str = "HYBCOMB";
    type Local = MyNode;

    async fn apply<M: Machine, S: Service<M>>(
        &self,
        m: &M,
        local: &MyNode,
        service: &S,
        operation: u64,
        argument: u64,
    ) -> Result<u64, M::Stop> {
        let request = [operation, argument];
        let mut attempts = 0;
        loop {
            let last = m.load(&self.last_registered[0], Acquire).await; // 12
            if last != 0 && self.register(m, Node::at(last), request).await? {
                return m.receive_answer().await; // 17
            }
            let mine = match local.0.get() {
                Some(mine) => mine,
                None => Node::new(m, self.max_ops).await,
            };
            local.0.set(Some(mine));
            // 20: becomes the combiner after `before`.
            let (place, address) = (&self.last_registered[0], mine.0.address());
            let before = if attempts < ATTEMPTS {
                m.compare_exchange(place, last, address, AcqRel).await
            } else {
                Ok(m.swap(place, address, AcqRel).await)
            };
            let Ok(before) = before else {
                attempts += 1;
                continue;
            };
            // 21: only now, since otherwise a thread that read this node earlier could register
            // with a thread that is not a combiner. Pairs with the acquire of 14.
            m.store(mine.word(m, OPS).await, 0, Release).await;
            if before != 0 {
                let done = Node::at(before).word(m, DONE).await;
                m.wait_until(done, Until::Equals(1)).await?; // 22
            }
            return self.combine(m, local, mine, service, request).await;
        }
    }

    fn retire_local<M: Machine>(m: &M, local: &mut MyNode) {
        if let Some(node) = local.0.take() {
            node.give(m);
        }
    }

    fn retire<M: Machine>(&mut self, m: &M) {
        let departed = self.departed[0].atomic().load(Relaxed);
        if departed != 0 {
            Node::at(departed).give(m);
        }
    }
}

impl Serverless for HybComb {}
