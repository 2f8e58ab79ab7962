//! Small locks and delegation schemes over [`Machine`], with a node or a slot for each thread.

use std::{
    convert::Infallible,
    sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release},
};

use consort_fabric::{Line, Machine, Queue, Thread, Until, Word};

pub trait Infallibly: Machine<Stop = Infallible> {}
impl<M: Machine<Stop = Infallible>> Infallibly for M {}

/// A wait that cannot fail.
async fn wait<M: Infallibly>(m: &M, word: &Word, value: u64) {
    let Ok(_) = m.wait_until(word, Until::Equals(value)).await;
}

fn lines<const N: usize>(count: usize) -> Vec<[Line; N]> {
    (0..count).map(|_| std::array::from_fn(|_| Line::new())).collect()
}

fn index(of: u64) -> usize {
    usize::try_from(of).unwrap()
}

pub trait Exclusion<M> {
    /// Runs the critical section once for this thread.
    async fn apply(&self, m: &M, section: &impl AsyncFn(&M) -> u64) -> u64;
    /// Serves others, if that is how it works and the thread is the server.
    async fn serve(&self, _: &M, _: &impl AsyncFn(&M) -> u64) {}
}

#[derive(Default)]
pub struct TestAndSet(Line);

impl<M: Infallibly> Exclusion<M> for TestAndSet {
    async fn apply(&self, m: &M, section: &impl AsyncFn(&M) -> u64) -> u64 {
        while m.swap(&self.0[0], 1, Acquire).await != 0 {}
        let result = section(m).await;
        m.store(&self.0[0], 0, Release).await;
        result
    }
}

#[derive(Default)]
pub struct Ticket([Line; 2]);

impl<M: Infallibly> Exclusion<M> for Ticket {
    async fn apply(&self, m: &M, section: &impl AsyncFn(&M) -> u64) -> u64 {
        let mine = m.fetch_add(&self.0[0][0], 1, Relaxed).await;
        wait(m, &self.0[1][0], mine).await;
        let result = section(m).await;
        m.store(&self.0[1][0], mine + 1, Release).await;
        result
    }
}

pub struct Mcs {
    tail: Line,
    /// Word 0: the next thread and 1. Word 1: whether the thread has to wait.
    nodes: Vec<[Line; 2]>,
}

impl Mcs {
    pub fn new(threads: usize) -> Self {
        Self { tail: Line::new(), nodes: lines(threads) }
    }
}

impl<M: Infallibly> Exclusion<M> for Mcs {
    async fn apply(&self, m: &M, section: &impl AsyncFn(&M) -> u64) -> u64 {
        let me = u64::from(m.thread().0) + 1;
        let node = &self.nodes[index(me - 1)][0];
        m.store(&node[0], 0, Relaxed).await;
        let before = m.swap(&self.tail[0], me, AcqRel).await;
        if before != 0 {
            m.store(&node[1], 1, Relaxed).await;
            m.store(&self.nodes[index(before - 1)][0][0], me, Release).await;
            wait(m, &node[1], 0).await;
        }
        let result = section(m).await;
        let mut next = m.load(&node[0], Acquire).await;
        if next == 0 {
            if m.compare_exchange(&self.tail[0], me, 0, Release).await.is_ok() {
                return result;
            }
            let Ok(found) = m.wait_until(&node[0], Until::Differs(0)).await;
            next = found;
        }
        m.store(&self.nodes[index(next - 1)][0][1], 0, Release).await;
        result
    }
}

pub struct Clh {
    tail: Line,
    /// Word 0: whether its owner has or wants the lock. The last one is free at first.
    nodes: Vec<[Line; 2]>,
    mine: Vec<std::cell::Cell<u64>>,
}

impl Clh {
    pub fn new(threads: usize) -> Self {
        let tail = Line::new();
        tail[0].atomic().store(threads as u64, Relaxed);
        let mine = (0..threads as u64).map(std::cell::Cell::new).collect();
        Self { tail, nodes: lines(threads + 1), mine }
    }
}

impl<M: Infallibly> Exclusion<M> for Clh {
    async fn apply(&self, m: &M, section: &impl AsyncFn(&M) -> u64) -> u64 {
        let mine = &self.mine[m.thread().0 as usize];
        let node = &self.nodes[index(mine.get())][0];
        m.store(&node[0], 1, Relaxed).await;
        let before = m.swap(&self.tail[0], mine.get(), AcqRel).await;
        wait(m, &self.nodes[index(before)][0][0], 0).await;
        let result = section(m).await;
        m.store(&node[0], 0, Release).await;
        mine.set(before);
        result
    }
}

const ALLOW: u64 = u64::MAX;
const QUEUE: Queue = Queue(1);

pub struct Hyblock {
    lock: Line,
    next: Vec<std::cell::Cell<u64>>,
}

impl Hyblock {
    pub fn new(threads: usize) -> Self {
        Self { lock: Line::new(), next: vec![std::cell::Cell::new(0); threads] }
    }
}

impl<M: Infallibly> Exclusion<M> for Hyblock {
    async fn apply(&self, m: &M, section: &impl AsyncFn(&M) -> u64) -> u64 {
        let me = u64::from(m.thread().0) + 1;
        let next = &self.next[index(me - 1)];
        let thread = |id: u64| Thread(u32::try_from(id - 1).unwrap());
        let before = m.swap(&self.lock[0], me, Acquire).await;
        if before != 0 {
            let Ok(()) = m.send(thread(before), QUEUE, &[me]).await;
            let Ok([first]) = m.receive(QUEUE).await;
            if first != ALLOW {
                next.set(first);
                let Ok([_]) = m.receive::<1>(QUEUE).await;
            }
        }
        let result = section(m).await;
        let mut to = next.replace(0);
        if to == 0 {
            if m.is_empty(QUEUE).await
                && m.compare_exchange(&self.lock[0], me, 0, Release).await.is_ok()
            {
                return result;
            }
            let Ok([late]) = m.receive(QUEUE).await;
            to = late;
        }
        let Ok(()) = m.send(thread(to), QUEUE, &[ALLOW]).await;
        result
    }
}

#[derive(Default)]
pub struct MpServer;

impl<M: Infallibly> Exclusion<M> for MpServer {
    async fn apply(&self, m: &M, _: &impl AsyncFn(&M) -> u64) -> u64 {
        let Ok(()) = m.send(Thread(0), QUEUE, &[u64::from(m.thread().0), 0, 0]).await;
        let Ok(answer) = m.receive_answer().await;
        answer
    }

    async fn serve(&self, m: &M, section: &impl AsyncFn(&M) -> u64) {
        loop {
            let Ok([client, _, _]) = m.receive(QUEUE).await;
            let result = section(m).await;
            m.answer(Thread(u32::try_from(client).unwrap()), result).await;
        }
    }
}

/// Slots, one a client: word 0 is 1 for a request, word 1 the argument or the result.
pub struct ShmServer {
    pub slots: Vec<Line>,
    /// The slot of each thread, and the slots in the order in which they are served.
    pub order: Vec<usize>,
    pub stride: usize,
    /// Cycles between two looks of a client; 0: it spins.
    pub backoff: u64,
    pub streams: bool,
}

impl ShmServer {
    pub fn new(threads: usize, stride: usize) -> Self {
        let slots = (0..threads * stride).map(|_| Line::new()).collect();
        Self { slots, order: (1..threads).collect(), stride, backoff: 0, streams: false }
    }
}

impl<M: Infallibly> Exclusion<M> for ShmServer {
    async fn apply(&self, m: &M, _: &impl AsyncFn(&M) -> u64) -> u64 {
        let slot = &self.slots[m.thread().0 as usize * self.stride];
        m.store(&slot[1], 0, Relaxed).await;
        m.store(&slot[0], 1, Release).await;
        if self.backoff == 0 {
            let Ok(answer) = m.wait_until(&slot[0], Until::Differs(1)).await;
            return answer;
        }
        loop {
            m.pause(self.backoff).await;
            let answer = m.load(&slot[0], Acquire).await;
            if answer != 1 {
                return answer;
            }
        }
    }

    async fn serve(&self, m: &M, section: &impl AsyncFn(&M) -> u64) {
        loop {
            for &client in &self.order {
                let slot = &self.slots[client * self.stride];
                if m.load(&slot[0], Acquire).await == 1 {
                    m.load(&slot[1], Relaxed).await;
                    let result = section(m).await;
                    if self.streams {
                        m.stream(&slot[0], result << 1).await;
                    } else {
                        m.store(&slot[0], result << 1, Release).await;
                    }
                }
            }
        }
    }
}

/// CC-SYNCH (Fatourou and Kallimanis 2012). A node's words: next and 1, waits, completed, result.
pub struct CcSynch {
    tail: Line,
    nodes: Vec<[Line; 2]>,
    mine: Vec<std::cell::Cell<u64>>,
    most: u64,
    pub rounds: std::cell::Cell<u64>,
}

impl CcSynch {
    pub fn new(threads: usize, most: u64) -> Self {
        let tail = Line::new();
        tail[0].atomic().store(threads as u64, Relaxed);
        let mine = (0..threads as u64).map(std::cell::Cell::new).collect();
        Self { tail, nodes: lines(threads + 1), mine, most, rounds: std::cell::Cell::new(0) }
    }
}

impl<M: Infallibly> Exclusion<M> for CcSynch {
    async fn apply(&self, m: &M, section: &impl AsyncFn(&M) -> u64) -> u64 {
        let mine = &self.mine[m.thread().0 as usize];
        let fresh = &self.nodes[index(mine.get())][0];
        m.store(&fresh[0], 0, Relaxed).await;
        m.store(&fresh[1], 1, Relaxed).await;
        m.store(&fresh[2], 0, Relaxed).await;
        let number = m.swap(&self.tail[0], mine.get(), AcqRel).await;
        let node = &self.nodes[index(number)][0];
        m.store(&node[4], 7, Relaxed).await;
        m.store(&node[0], mine.get() + 1, Release).await;
        mine.set(number);
        wait(m, &node[1], 0).await;
        if m.load(&node[2], Relaxed).await == 1 {
            return m.load(&node[3], Relaxed).await;
        }
        self.rounds.set(self.rounds.get() + 1);
        let (mut at, mut served) = (node, 0);
        loop {
            let next = m.load(&at[0], Acquire).await;
            if next == 0 || served == self.most {
                break;
            }
            m.load(&at[4], Relaxed).await;
            let result = section(m).await;
            m.store(&at[3], result, Relaxed).await;
            m.store(&at[2], 1, Relaxed).await;
            m.store(&at[1], 0, Release).await;
            served += 1;
            at = &self.nodes[index(next - 1)][0];
        }
        m.store(&at[1], 0, Release).await;
        m.load(&node[3], Relaxed).await
    }
}

/// HYBCOMB (Petrović 2015, Algorithm 4). A node's lines: the thread, the operations, whether its
/// combiner is done.
pub struct Hybcomb {
    last: Line,
    departed: Line,
    nodes: Vec<[Line; 3]>,
    mine: Vec<std::cell::Cell<u64>>,
    most: u64,
    pub rounds: std::cell::Cell<u64>,
}

impl Hybcomb {
    pub fn new(threads: usize, most: u64) -> Self {
        let nodes: Vec<[Line; 3]> = lines(threads + 1);
        for (thread, node) in (0..).zip(&nodes) {
            node[0][0].atomic().store(thread, Relaxed);
            node[1][0].atomic().store(most, Relaxed);
        }
        let (last, departed) = (Line::new(), Line::new());
        nodes[threads][2][0].atomic().store(1, Relaxed);
        last[0].atomic().store(threads as u64, Relaxed);
        departed[0].atomic().store(threads as u64, Relaxed);
        let mine = (0..threads as u64).map(std::cell::Cell::new).collect();
        Self { last, departed, nodes, mine, most, rounds: std::cell::Cell::new(0) }
    }

    async fn serve_one<M: Infallibly>(&self, m: &M, section: &impl AsyncFn(&M) -> u64) {
        let Ok([client, _, _]) = m.receive(QUEUE).await;
        let result = section(m).await;
        m.answer(Thread(u32::try_from(client).unwrap()), result).await;
    }
}

impl<M: Infallibly> Exclusion<M> for Hybcomb {
    async fn apply(&self, m: &M, section: &impl AsyncFn(&M) -> u64) -> u64 {
        let me = m.thread();
        let mine = &self.mine[me.0 as usize];
        let mut completed = 0;
        loop {
            let number = m.load(&self.last[0], Acquire).await;
            let last = &self.nodes[index(number)];
            if m.fetch_add(&last[1][0], 1, AcqRel).await < self.most {
                let to = m.load(&last[0][0], Relaxed).await;
                let to = Thread(u32::try_from(to).unwrap());
                let Ok(()) = m.send(to, QUEUE, &[me.0.into(), 0, 0]).await;
                let Ok(answer) = m.receive_answer().await;
                return answer;
            }
            if m.compare_exchange(&self.last[0], number, mine.get(), AcqRel).await.is_ok() {
                m.store(&self.nodes[index(mine.get())][1][0], 0, Release).await;
                wait(m, &last[2][0], 1).await;
                break;
            }
        }
        self.rounds.set(self.rounds.get() + 1);
        let result = section(m).await;
        while !m.is_empty(QUEUE).await {
            self.serve_one(m, section).await;
            completed += 1;
        }
        let total = m.swap(&self.nodes[index(mine.get())][1][0], self.most, AcqRel).await;
        while completed < total.min(self.most) {
            self.serve_one(m, section).await;
            completed += 1;
        }
        let old = m.load(&self.departed[0], Relaxed).await;
        m.store(&self.departed[0], mine.get(), Relaxed).await;
        let departed = mine.replace(old);
        m.store(&self.nodes[index(old)][2][0], 0, Relaxed).await;
        m.store(&self.nodes[index(old)][0][0], me.0.into(), Relaxed).await;
        m.store(&self.nodes[index(departed)][2][0], 1, Release).await;
        result
    }
}
