//! OC-BCAST, asynchronous: only the source calls; the others are interrupted, and pass chunks on.
//!
//! Idea: as the synchronous one (`broadcast/oc_bcast.rs`), with an interrupt to all children in
//! place of flags that they poll, and a tree for each source. A PE whose buffer holds one chunk
//! when another comes takes that into its memory, acknowledges it, and keeps it in a queue to pass
//! on later: so nobody waits for a buffer in a circle. Source: Petrović 2015, section 3.2,
//! Algorithm 2.
//!
//! Protocol, when a chunk is noticed in a parent's buffer:
//! 1. with the own buffer free, and nothing queued then: get it into the own buffer, acknowledge,
//!    interrupt the own children, copy it to memory; the buffer is free when all of them have
//!    acknowledged;
//! 2. otherwise get it to memory, acknowledge, and queue it if there are children.
//!
//! Invariants: a PE's chunks go out one at a time, those of a source in its order, and none
//! overtakes another in the queue. So messages of a source arrive everywhere once and in order;
//! what comes otherwise is a broken machine, and panics.
//!
//! As published it has livelocks under endless load: an own chunk waits until the queue is empty,
//! which it never is, and interrupts come before acknowledgements, which so are never seen.
//! [`Turns::Fair`] mends both: own chunks take turns with queued ones, and acknowledgements are
//! looked for before each interrupt. What a PE has taken into its memory is bounded by neither.
//!
//! Cost: as the synchronous one with an interrupt a level in place of `log2 k` flags.

use std::collections::VecDeque;

use consort_fabric::{Event, Notification, Notifications, Op, Rank, Then};

use crate::rank_math::tree::Shape;

/// Who goes first where several things are to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turns {
    /// As published: interrupts, then the queue, then own chunks.
    Published,
    /// Acknowledgements, then interrupts; own chunks and queued ones in turn.
    Fair,
}

/// One PE's part in the broadcasts.
#[derive(Debug)]
pub struct OcBcastAsync<F> {
    f: F,
    turns: Turns,
    chunk_bytes: usize,
    /// The own children in the tree of each source.
    children: Box<[Vec<Rank>]>,
    /// Whose chunk is in the own buffer, and how many children have acknowledged it.
    busy: Option<(Rank, usize)>,
    /// Notifications given.
    given: u64,
    /// Chunks to pass on, with their notifications.
    queue: VecDeque<(Notification, Vec<u8>)>,
    /// What has come of the next message of each source, and how many have come before.
    incoming: Box<[(u64, Vec<u8>)]>,
    /// Whole messages, with their sources.
    delivered: VecDeque<(Rank, Vec<u8>)>,
    /// Memory for the next message.
    spare: Vec<u8>,
    /// Own messages.
    messages: u64,
    /// Peers that have left.
    gone: u32,
}

impl<F: Notifications> OcBcastAsync<F> {
    /// Takes part through `f`, in trees where a PE has `k` children at most; all PEs say the same.
    ///
    /// # Panics
    /// If `k` is 0, or the buffers have no room for a byte.
    pub fn new(f: F, k: u32, chunk_bytes: usize, turns: Turns) -> Self {
        let (rank, pes) = (f.rank(), f.size());
        assert!(k > 0, "a tree has branches");
        assert!((1..=f.buffer_bytes()).contains(&chunk_bytes), "a chunk fits a buffer");
        let shape = Shape::Kary(k);
        Self {
            turns,
            chunk_bytes,
            children: (0..pes).map(|root| shape.children_of(rank, Rank(root), pes)).collect(),
            busy: None,
            given: 0,
            queue: VecDeque::new(),
            incoming: (0..pes).map(|_| (0, Vec::new())).collect(),
            delivered: VecDeque::new(),
            spare: Vec::new(),
            messages: 0,
            gone: 0,
            f,
        }
    }

    /// What it takes part through.
    pub const fn fabric(&self) -> &F {
        &self.f
    }

    /// Sends `data` to all peers, and takes what comes meanwhile. Returns when `data` may be
    /// changed: the last chunk is in the own buffer, and the children have been interrupted.
    ///
    /// # Errors
    /// When the job has failed.
    pub async fn broadcast(&mut self, data: &[u8]) -> Op {
        let message = self.messages;
        self.messages += 1;
        let mut at = 0;
        loop {
            let bytes = self.chunk_bytes.min(data.len() - at);
            let end = at + bytes;
            let then = if end < data.len() { Then::More } else { Then::Message };
            self.send_in_turn(message, at, &data[at..end], then).await?;
            if end == data.len() {
                return Ok(());
            }
            at = end;
        }
    }

    /// Does what there is to do now, and waits for nothing. Under endless load it returns too.
    ///
    /// # Errors
    /// When the job has failed.
    pub async fn poll(&mut self) -> Op {
        self.advance().await?;
        // As many as one notification of every peer, and one acknowledgement of each, make.
        for _ in 0..2 * self.f.size() {
            if self.sees_acknowledged().await? {
                self.acknowledged();
            } else if let Some(notification) = self.f.poll().await? {
                self.receive(notification).await?;
            } else {
                break;
            }
            self.advance().await?;
        }
        Ok(())
    }

    /// Waits for something to do, and does it.
    ///
    /// # Errors
    /// When the job has failed.
    pub async fn serve(&mut self) -> Op {
        self.advance().await?;
        self.receive_one().await?;
        self.advance().await
    }

    /// Waits until all children have all that this PE had to send and to pass on.
    ///
    /// # Errors
    /// When the job has failed.
    pub async fn settle(&mut self) -> Op {
        self.advance().await?;
        while self.busy.is_some() {
            self.serve().await?;
        }
        Ok(())
    }

    /// Leaves, and waits until all peers have left and all their messages are here. Every PE
    /// does, once; nothing is broadcast afterwards.
    ///
    /// # Errors
    /// When the job has failed.
    pub async fn close(&mut self) -> Op {
        self.leave().await?;
        while !self.is_over() {
            self.serve().await?;
        }
        Ok(())
    }

    /// Leaves: the first half of [`OcBcastAsync::close`]. The other half is to serve
    /// until it is over.
    ///
    /// # Errors
    /// When the job has failed.
    pub async fn leave(&mut self) -> Op {
        // It goes the way of the messages, behind them: where it has come, they have.
        self.send_in_turn(self.messages, 0, &[], Then::Nothing).await
    }

    /// Whether all peers have left, and no peer needs this PE any more.
    pub fn is_over(&self) -> bool {
        self.gone == self.peers() && self.busy.is_none() && self.queue.is_empty()
    }

    /// Whether a message has come that was not taken yet.
    pub fn has_delivered(&self) -> bool {
        !self.delivered.is_empty()
    }

    /// The other PEs.
    pub fn peers(&self) -> u32 {
        self.f.size() - 1
    }

    /// Peers that have left.
    pub const fn gone(&self) -> u32 {
        self.gone
    }

    /// The next message that has come whole, and its source: those of a source in its order.
    pub fn next_delivered(&mut self) -> Option<(Rank, Vec<u8>)> {
        self.delivered.pop_front()
    }

    /// Takes the memory of a message back, for another one.
    pub fn reuse(&mut self, mut data: Vec<u8>) {
        data.clear();
        if data.capacity() > self.spare.capacity() {
            self.spare = data;
        }
    }

    /// Sends an own chunk when it is its turn.
    async fn send_in_turn(&mut self, message: u64, at: usize, data: &[u8], then: Then) -> Op {
        let (source, bytes) = (self.f.rank(), data.len());
        let notification =
            Notification { from: source, number: 0, source, message, at, bytes, then };
        let mut is_next = false;
        loop {
            if self.busy.is_some() {
                self.receive_one().await?;
            } else if self.queue.is_empty() || is_next {
                return self.send(notification, data).await;
            } else {
                self.send_queued().await?;
                is_next = self.turns == Turns::Fair;
            }
        }
    }

    /// Sends the first chunk of the queue if the buffer is free.
    async fn advance(&mut self) -> Op {
        if self.busy.is_none() {
            self.send_queued().await?;
        }
        Ok(())
    }

    async fn send_queued(&mut self) -> Op {
        match self.queue.pop_front() {
            Some((notification, data)) => self.send(notification, &data).await,
            None => Ok(()),
        }
    }

    /// Puts a chunk into the free buffer and notifies the children.
    async fn send(&mut self, notification: Notification, data: &[u8]) -> Op {
        self.f.fill(&notification, data).await?;
        self.notify_children(notification).await
    }

    /// A chunk is in the buffer: notifies the children, if there are any.
    async fn notify_children(&mut self, notification: Notification) -> Op {
        let children = &self.children[notification.source.index()];
        if children.is_empty() {
            return Ok(());
        }
        self.given += 1;
        self.busy = Some((notification.source, 0));
        let notification = Notification { from: self.f.rank(), number: self.given, ..notification };
        self.f.notify(children, notification).await
    }

    /// The child that is to acknowledge next, and what.
    fn awaited(&self) -> Option<(Rank, u64)> {
        let (source, acknowledged) = self.busy?;
        Some((self.children[source.index()][acknowledged], self.given))
    }

    /// Whether that child has.
    async fn sees_acknowledged(&self) -> Op<bool> {
        match self.awaited() {
            Some((child, number)) => self.f.is_acknowledged(child, number).await,
            None => Ok(false),
        }
    }

    /// That child has: on to the next.
    fn acknowledged(&mut self) {
        if let Some((source, acknowledged)) = self.busy {
            let more = acknowledged + 1 < self.children[source.index()].len();
            self.busy = more.then_some((source, acknowledged + 1));
        }
    }

    /// Waits for one event, and handles it.
    async fn receive_one(&mut self) -> Op {
        if self.turns == Turns::Fair && self.sees_acknowledged().await? {
            self.acknowledged();
            return Ok(());
        }
        match self.f.wait(self.awaited()).await? {
            Event::Notification(notification) => self.receive(notification).await,
            Event::Acknowledged => {
                self.acknowledged();
                Ok(())
            }
        }
    }

    /// Takes a chunk from a parent.
    async fn receive(&mut self, notification: Notification) -> Op {
        let Notification { from, number, source, message, at, bytes, then } = notification;
        let (before, data) = std::mem::take(&mut self.incoming[source.index()]);
        assert_eq!((before, data.len()), (message, at), "chunks come once and in order");
        let mut data = data;
        data.resize(at + bytes, 0);
        let is_leaf = self.children[source.index()].is_empty();
        // With the buffer free nothing is queued: that would have gone first.
        if self.busy.is_none() && (!is_leaf || self.f.buffer_is_near()) {
            self.f.relay(from, bytes).await?;
            self.f.acknowledge(from, number).await?;
            self.notify_children(notification).await?;
            self.f.fetch(self.f.rank(), &mut data[at..]).await?;
        } else {
            self.f.fetch(from, &mut data[at..]).await?;
            self.f.acknowledge(from, number).await?;
            if !is_leaf {
                self.queue.push_back((notification, data[at..].to_vec()));
            }
        }
        let next = match then {
            Then::More => (message, data),
            Then::Message => {
                self.delivered.push_back((source, data));
                (message + 1, std::mem::take(&mut self.spare))
            }
            Then::Nothing => {
                self.gone += 1;
                (message + 1, data)
            }
        };
        self.incoming[source.index()] = next;
        Ok(())
    }
}
