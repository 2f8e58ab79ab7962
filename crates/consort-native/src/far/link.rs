//! A process's end of the link: which PEs are far, and the packets that wait to be sent or fetched.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Mutex, MutexGuard, PoisonError, TryLockError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use consort_fabric::{Nodes, Rank};

use super::{
    exposed::Exposures,
    memberships::{LeftGroup, Memberships},
    packet::{self, Packet, Request},
    pending_requests::PendingRequests,
    released::ReleasedNumbers,
    traffic::{Counts, Subject, Traffic},
    transfers::Transfers,
    transport::{Frame, Transport, TransportError},
    writes::Writes,
};
use crate::progress::deadlock::snapshot::Activity;
use consort_machine::system::clock;

/// A frame of this many words is sent without waiting for more packets.
const FULL: usize = 1024;

/// The link of a job's process to other processes, if a transport connects them.
pub(crate) struct Net {
    link: Option<Far>,
    /// PEs with lower ranks are near: all PEs, or no PE if some are far.
    near: u32,
}

impl Net {
    /// Creates the link of a process, in a job of `pes` PEs, from its transport and the placement
    /// of the PEs on the processes and on nodes.
    pub(crate) fn new(transport: Option<(Box<dyn Transport>, [Nodes; 2])>, pes: u32) -> Self {
        let link = transport.map(|(transport, placements)| Far::new(transport, pes, placements));
        let has_far = link.as_ref().is_some_and(Far::has_far);
        Self { link, near: if has_far { 0 } else { pes } }
    }

    #[inline]
    pub(super) fn link(&self) -> Option<&Far> {
        self.link.as_ref()
    }

    /// Returns whether a transport connects processes.
    pub(crate) fn is_linked(&self) -> bool {
        self.link.is_some()
    }

    /// Returns whether a PE belongs to this process, as far as the transport knows.
    pub(crate) fn is_own(&self, pe: Rank) -> bool {
        self.link.as_ref().is_none_or(|link| link.is_own(pe))
    }

    /// Returns whether a PE is near, if that is certain without a look at its placement.
    #[inline(always)]
    pub(super) fn is_certainly_near(&self, pe: Rank) -> bool {
        pe.0 < self.near
    }
}

/// A process's end of a transport.
pub(super) struct Far {
    /// The placement of the PEs on the processes.
    processes: Nodes,
    own: u32,
    /// The placement of the PEs on nodes. PEs of one node share memory; PEs of different nodes are
    /// far.
    nodes: Nodes,
    own_node: u32,
    has_far: bool,
    /// When a thread last looked, and when something last arrived or was in flight, in nanoseconds.
    pub(super) looked_ns: AtomicU64,
    pub(super) heard_ns: AtomicU64,
    pub(super) released: ReleasedNumbers,
    link: Mutex<Link>,
}

/// The state that one thread of the process uses at a time.
pub(super) struct Link {
    pub(super) transport: Box<dyn Transport>,
    /// The packets that wait to be sent, by process.
    outboxes: Vec<Frame>,
    /// The processes for which packets wait.
    unsent: Vec<u32>,
    pub(super) requests: PendingRequests,
    /// Packets that have arrived before a PE of this process has joined their group, by group.
    pub(super) early: HashMap<u64, Vec<(Packet, Vec<u64>)>>,
    pub(super) memberships: Memberships,
    pub(super) exposures: Exposures,
    /// The error of a transfer: a process cannot be reached any more.
    pub(super) lost: Option<TransportError>,
    pub(super) transfers: Transfers,
    pub(super) writes: Writes,
    pub(super) traffic: Traffic,
    /// The number of processes that have reported the end of their programs.
    pub(super) ended: u32,
    /// Whether this process has reported that.
    pub(super) has_ended: bool,
    /// The number of other processes that send nothing more, and whether this process is one too.
    pub(super) closing: u32,
    pub(super) is_closing: bool,
    is_closed: bool,
}

impl fmt::Debug for Far {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Far").field("nodes", &self.nodes).field("own", &self.own).finish()
    }
}

impl Far {
    fn new(transport: Box<dyn Transport>, pes: u32, [by_process, nodes]: [Nodes; 2]) -> Self {
        let processes = transport.processes();
        let own = transport.rank();
        let here = by_process.members(own, pes);
        let own_node = nodes.node(here.first);
        let link = Link {
            outboxes: (0..processes).map(|_| Frame::new()).collect(),
            unsent: Vec::new(),
            transport,
            requests: PendingRequests::default(),
            early: HashMap::new(),
            memberships: Memberships::new(here.count),
            exposures: Exposures::default(),
            lost: None,
            transfers: Transfers::new(processes),
            writes: Writes::new(processes),
            traffic: Traffic::default(),
            ended: 0,
            has_ended: false,
            closing: 0,
            is_closing: false,
            is_closed: false,
        };
        let [looked_ns, heard_ns] = [0; 2].map(AtomicU64::new);
        Self {
            processes: by_process,
            own,
            nodes,
            own_node,
            has_far: nodes.count(pes) > 1,
            looked_ns,
            heard_ns,
            released: ReleasedNumbers::default(),
            link: Mutex::new(link),
        }
    }

    #[inline]
    pub(super) fn has_far(&self) -> bool {
        self.has_far
    }

    /// Returns the placement of the PEs on the processes.
    pub(super) fn processes(&self) -> Nodes {
        self.processes
    }

    /// Records that a thread looks.
    pub(super) fn note_look(&self) {
        self.looked_ns.store(clock::now_ns(), Relaxed);
    }

    /// Records that something has arrived or is in flight.
    pub(super) fn note_arrival(&self) {
        self.heard_ns.store(clock::now_ns(), Relaxed);
    }

    /// Returns the number of processes.
    pub(super) fn count(&self) -> u32 {
        self.link().transport.processes()
    }

    /// Returns the number of this process.
    pub(super) fn own(&self) -> u32 {
        self.own
    }

    /// Returns the process of a PE, by its rank in the world.
    pub(super) fn process(&self, pe: Rank) -> u32 {
        self.processes.node(pe.0)
    }

    /// Returns whether a PE, by its rank in the world, belongs to this process.
    pub(super) fn is_own(&self, pe: Rank) -> bool {
        self.process(pe) == self.own
    }

    /// Returns whether a PE, by its rank in the world, shares no memory with this process.
    pub(super) fn is_far(&self, pe: Rank) -> bool {
        self.nodes.node(pe.0) != self.own_node
    }

    pub(super) fn link(&self) -> MutexGuard<'_, Link> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Like [`Self::link`], but returns `None` if another thread has locked the link.
    pub(super) fn try_link(&self) -> Option<MutexGuard<'_, Link>> {
        match self.link.try_lock() {
            Ok(link) => Some(link),
            Err(TryLockError::Poisoned(link)) => Some(link.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Sends all queued packets.
    pub(super) fn flush(&self) {
        self.link().flush();
    }
}

impl Link {
    /// Records that a PE of this process has left a group. If it was the last one, completes the
    /// record with the result of `left`.
    pub(super) fn leave(&mut self, group: u64, left: impl FnOnce() -> LeftGroup) {
        let Self { memberships, traffic, .. } = self;
        let with_packets = || {
            let Counts { sent, received } = traffic.take(group);
            let LeftGroup { last_calls, activity } = left();
            LeftGroup { last_calls, activity: Activity { sent, received, ..activity } }
        };
        if memberships.leave(group, with_packets) {
            self.early.remove(&group);
            self.requests.leave(group);
        }
    }

    /// Sends a packet to a process, at the next flush at the latest.
    pub(super) fn send(&mut self, to: u32, packet: &Packet, data: impl FnOnce(&mut Vec<u64>)) {
        if let Some(begin) = self.begin_packet(to, packet) {
            data(&mut self.outboxes[to as usize]);
            self.end_packet(to, begin);
        }
    }

    /// Queues a packet without its data, and returns where the packet begins.
    fn begin_packet(&mut self, to: u32, packet: &Packet) -> Option<usize> {
        if self.is_closing {
            return None; // all have ended, and need nothing more
        }
        if let Some(subject) = Subject::of(packet) {
            self.traffic.count_sent(subject);
        }
        let outbox = &mut self.outboxes[to as usize];
        if outbox.is_empty() {
            self.unsent.push(to);
        }
        Some(packet::begin(outbox, packet))
    }

    /// Ends a packet when its data is in the queue.
    fn end_packet(&mut self, to: u32, begin: usize) {
        let outbox = &mut self.outboxes[to as usize];
        packet::end(outbox, begin);
        if outbox.len() >= FULL {
            self.send_frame(to);
        }
    }

    /// Sends a packet to all other processes, at once.
    pub(super) fn send_to_all(&mut self, packet: &Packet, data: &[u64]) {
        let own = self.transport.rank();
        for to in (0..self.transport.processes()).filter(|&to| to != own) {
            self.send(to, packet, |frame| frame.extend(data));
        }
        self.flush();
    }

    pub(super) fn count_received(&mut self, packet: &Packet) {
        if let Some(subject) = Subject::of(packet) {
            let is_late = match subject {
                Subject::Group(group) => self.memberships.count_late(group),
                Subject::Memory => false,
            };
            self.traffic.count_received(subject, is_late);
        }
    }

    /// Returns whether this process waits for no reply that may end a wait, and no long data is in
    /// flight from it or to it.
    pub(super) fn is_quiet(&self) -> bool {
        let nothing_moves = !self.transport.is_moving() && self.transfers.stalled.is_empty();
        nothing_moves && !self.requests.is_any_awaited()
    }

    /// Sends a request to a process, at the next flush at the latest. Returns the request's number.
    pub(super) fn request(
        &mut self,
        to: u32,
        request: Request,
        data: impl FnOnce(&mut Vec<u64>),
    ) -> u64 {
        let ends_no_wait = matches!(request, Request::Report {} | Request::Describe { .. });
        let id = self.requests.begin(!ends_no_wait);
        self.send(to, &Packet::Request { id, request }, data);
        id
    }

    /// Keeps a reply, if it is still awaited.
    pub(super) fn keep_reply(&mut self, id: u64, data: &[u64]) {
        self.writes.note_reply(id);
        self.requests.keep(id, data);
    }

    pub(super) fn flush(&mut self) {
        while let Some(to) = self.unsent.pop() {
            self.send_frame(to);
        }
    }

    /// Sends the packets that are queued for a process. The next receive reports an error too.
    fn send_frame(&mut self, to: u32) {
        let outbox = &mut self.outboxes[to as usize];
        if outbox.is_empty() {
            return;
        }
        let frame = std::mem::take(outbox);
        if !self.is_closed {
            let _ = self.transport.send(to, frame);
        }
    }

    /// Returns the next frame that has arrived, and its sender.
    pub(super) fn receive(&mut self) -> Result<Option<(u32, Frame)>, TransportError> {
        match &self.lost {
            _ if self.is_closed => Ok(None),
            Some(lost) => Err(lost.clone()),
            None => self.transport.receive(),
        }
    }

    /// Returns whether everything that was sent has left this process.
    pub(super) fn is_flushed(&mut self) -> bool {
        self.is_closed || self.are_all_pushes_done() && self.transport.is_flushed().unwrap_or(true)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Closes the transport: all processes have ended, or this process has failed and does not wait
    /// for them.
    pub(super) fn close(&mut self, failed: Option<&str>) {
        if !self.is_closed {
            self.is_closed = true;
            self.transport.close(failed);
        }
    }
}
