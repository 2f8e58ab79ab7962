//! Asynchronous OC-BCAST: only the source calls; the other PEs are interrupted, and forward chunks.
//!
//! Idea: like the synchronous `broadcast/oc_bcast.rs`, with an interrupt to all children instead of
//! flags that they poll, and with one tree per source. If a chunk arrives while a PE's buffer is in
//! use, the PE gets it into its memory, acknowledges it and queues it for forwarding. So no cycle
//! of PEs waits for buffers. Source: Petrović 2015, section 3.2, Algorithm 2.
//!
//! Protocol, when a PE is notified of a chunk in its parent's buffer:
//! 1. if its buffer is free (then its queue is empty) and it has children, it gets the chunk into
//!    its buffer, acknowledges it, interrupts its children, and copies the chunk to memory; the
//!    buffer is free again when all children have acknowledged;
//! 2. otherwise it gets the chunk into memory, acknowledges it, and queues it if it has children.
//!
//! Invariants: a PE sends one chunk at a time; it sends the chunks of a source in the source's
//! order; and no chunk overtakes another in the queue. So the messages of a source arrive at every
//! PE once and in order. If not, the machine is faulty, and the algorithm panics.
//!
//! The published algorithm livelocks under endless load. A PE's own chunk waits until the queue is
//! empty, which never happens. And interrupts have priority over acknowledgements, so a PE never
//! sees these. [`Variant::Fair`] avoids both: own and queued chunks alternate, and acknowledgements
//! are checked before each interrupt. As printed, even a PE without children first gets a chunk
//! into its buffer. Then it copies twice, and PEs that send nothing receive at a lower rate than
//! PEs whose buffer is in use. The thesis' measured throughput (Figure 3.4) shows no such
//! difference, so the fair variant skips this step. Neither variant bounds the memory for received
//! chunks.
//!
//! Cost: that of the synchronous algorithm, with one interrupt per level instead of `log2 k` flags.

use std::collections::VecDeque;

use consort_fabric::{Event, Notification, Notifications, Op, Rank, Then};

use crate::rank_math::tree::Shape;

/// The order in which a PE does its work. In both variants, [`OcBcastAsync::poll`] looks for
/// acknowledgements first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// Algorithm 2 as printed: interrupts, then queued chunks, then the PE's own chunks. PEs
    /// without children use their buffer like the others.
    Published,
    /// Acknowledgements, then interrupts; own and queued chunks alternate. PEs without children get
    /// chunks directly into their memory.
    Fair,
}

/// One PE's part in the broadcasts.
#[derive(Debug)]
pub struct OcBcastAsync<F> {
    f: F,
    variant: Variant,
    chunk_bytes: usize,
    /// This PE's children in the tree of each source.
    children: Box<[Vec<Rank>]>,
    /// The source of the chunk in this PE's buffer, and how many children have acknowledged it.
    busy: Option<(Rank, usize)>,
    /// The number of notifications sent.
    given: u64,
    /// Chunks to be forwarded, with their notifications.
    queue: VecDeque<(Notification, Vec<u8>)>,
    /// For each source: the number of its next message, and the part of it that has arrived.
    incoming: Box<[(u64, Vec<u8>)]>,
    /// Complete messages, with their sources.
    delivered: VecDeque<(Rank, Vec<u8>)>,
    /// Memory for the next message.
    spare: Vec<u8>,
    /// The number of messages that this PE has broadcast.
    messages: u64,
    /// The number of peers that have left.
    gone: u32,
}

impl<F: Notifications> OcBcastAsync<F> {
    /// Joins the broadcasts through `f`, with trees in which a PE has at most `k` children. All PEs
    /// must pass the same `k`.
    ///
    /// # Panics
    /// If `k` is 0, or a chunk is empty or does not fit the buffers.
    pub fn new(f: F, k: u32, chunk_bytes: usize, variant: Variant) -> Self {
        let (rank, pes) = (f.rank(), f.size());
        assert!(k > 0, "a tree has branches");
        assert!((1..=f.buffer_bytes()).contains(&chunk_bytes), "a chunk fits a buffer");
        let shape = Shape::Kary(k);
        Self {
            variant,
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

    /// Returns the fabric that it communicates through.
    pub const fn fabric(&self) -> &F {
        &self.f
    }

    /// Broadcasts `data` to all peers, and receives what arrives in the meantime. Returns when
    /// `data` may be changed: the last chunk is in this PE's buffer, and the children have been
    /// interrupted.
    ///
    /// # Errors
    /// If the job has failed.
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

    /// Does all work that is ready, without waiting. It also returns under endless load.
    ///
    /// # Errors
    /// If the job has failed.
    pub async fn poll(&mut self) -> Op {
        self.advance().await?;
        // At most one notification and one acknowledgement from every peer.
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

    /// Waits for an event and handles it.
    ///
    /// # Errors
    /// If the job has failed.
    pub async fn serve(&mut self) -> Op {
        self.advance().await?;
        self.receive_one().await?;
        self.advance().await
    }

    /// Waits until all children have acknowledged everything that this PE had to send and forward.
    ///
    /// # Errors
    /// If the job has failed.
    pub async fn settle(&mut self) -> Op {
        self.advance().await?;
        while self.busy.is_some() {
            self.serve().await?;
        }
        Ok(())
    }

    /// Leaves, and waits until all peers have left and all their messages have arrived. Every PE
    /// calls this once, and broadcasts nothing afterwards.
    ///
    /// # Errors
    /// If the job has failed.
    pub async fn close(&mut self) -> Op {
        self.leave().await?;
        while !self.is_over() {
            self.serve().await?;
        }
        Ok(())
    }

    /// Leaves: the first half of [`OcBcastAsync::close`]. The second half is to call
    /// [`OcBcastAsync::serve`] until [`OcBcastAsync::is_over`].
    ///
    /// # Errors
    /// If the job has failed.
    pub async fn leave(&mut self) -> Op {
        // This follows the messages on their way: a PE that receives it has received them all.
        self.send_in_turn(self.messages, 0, &[], Then::Nothing).await
    }

    /// Returns whether all peers have left and this PE has nothing more to forward.
    pub fn is_over(&self) -> bool {
        self.gone == self.peers() && self.busy.is_none() && self.queue.is_empty()
    }

    /// Returns whether a complete message has arrived that has not been taken yet.
    pub fn has_delivered(&self) -> bool {
        !self.delivered.is_empty()
    }

    /// Returns the number of other PEs.
    pub fn peers(&self) -> u32 {
        self.f.size() - 1
    }

    /// Returns the number of peers that have left.
    pub const fn gone(&self) -> u32 {
        self.gone
    }

    /// Takes the next complete message and its source. Messages of a source come in its order.
    pub fn next_delivered(&mut self) -> Option<(Rank, Vec<u8>)> {
        self.delivered.pop_front()
    }

    /// Reuses the memory of a message for a later message.
    pub fn reuse(&mut self, mut data: Vec<u8>) {
        data.clear();
        if data.capacity() > self.spare.capacity() {
            self.spare = data;
        }
    }

    /// Sends a chunk of this PE's message when it is its turn.
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
                is_next = self.variant == Variant::Fair;
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

    /// Copies a chunk into the free buffer, and notifies the children.
    async fn send(&mut self, notification: Notification, data: &[u8]) -> Op {
        self.f.fill(&notification, data).await?;
        self.notify_children(notification).await
    }

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

    /// Returns the child whose acknowledgement is awaited, and the number of the notification.
    fn awaited(&self) -> Option<(Rank, u64)> {
        let (source, acknowledged) = self.busy?;
        Some((self.children[source.index()][acknowledged], self.given))
    }

    async fn sees_acknowledged(&self) -> Op<bool> {
        match self.awaited() {
            Some((child, number)) => self.f.is_acknowledged(child, number).await,
            None => Ok(false),
        }
    }

    /// Records the awaited child's acknowledgement, and moves on to the next child.
    fn acknowledged(&mut self) {
        if let Some((source, acknowledged)) = self.busy {
            let more = acknowledged + 1 < self.children[source.index()].len();
            self.busy = more.then_some((source, acknowledged + 1));
        }
    }

    async fn receive_one(&mut self) -> Op {
        if self.variant == Variant::Fair && self.sees_acknowledged().await? {
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

    async fn receive(&mut self, notification: Notification) -> Op {
        let Notification { from, number, source, message, at, bytes, then } = notification;
        let (before, data) = std::mem::take(&mut self.incoming[source.index()]);
        assert_eq!((before, data.len()), (message, at), "chunks come once and in order");
        let mut data = data;
        data.resize(at + bytes, 0);
        let is_leaf = self.children[source.index()].is_empty();
        // If the buffer is free, the queue is empty: a queued chunk would have gone first.
        if self.busy.is_none() && (!is_leaf || self.variant == Variant::Published) {
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
