//! A process's end: which PEs are far, and the packets that wait to be sent or to be fetched.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Mutex, MutexGuard, PoisonError, TryLockError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use consort_fabric::{Nodes, Rank};

use super::{
    exposed::{Exposed, Exposures},
    memberships::{Left, Memberships},
    packet::{self, Exposure, Question, Told},
    questions::Questions,
    released::ReleasedNumbers,
    traffic::{Counts, Subject, Traffic},
    transfers::Transfers,
    transport::{Frame, Lost, Transport},
    writes::Writes,
};
use crate::{memory::region::Memory, progress::deadlock::snapshot::Pulse};
use consort_machine::system::clock;

/// The words of a frame that is sent without waiting for more packets.
const FULL: usize = 1024;

/// A process's end.
pub struct Far {
    /// How the PEs lie on the processes.
    processes: Nodes,
    own: u32,
    /// How they lie on nodes: those of one node share memory, those of different ones are far.
    nodes: Nodes,
    own_node: u32,
    has_far: bool,
    /// When a thread has looked last, and when something last came or was on its way, in
    /// nanoseconds.
    looked_ns: AtomicU64,
    heard_ns: AtomicU64,
    pub(super) released: ReleasedNumbers,
    link: Mutex<Link>,
}

/// A PE that begins a call looks if no thread has for so long, in nanoseconds.
const DUE_NS: u64 = 20_000;

/// What one thread of the process uses at a time.
pub(super) struct Link {
    pub(super) transport: Box<dyn Transport>,
    /// By process, the packets that wait to be sent.
    outboxes: Vec<Frame>,
    /// The processes for which packets wait.
    unsent: Vec<u32>,
    pub(super) questions: Questions,
    /// By group, what has arrived before a PE of this process has joined it.
    pub(super) early: HashMap<u64, Vec<(Told, Vec<u64>)>>,
    pub(super) memberships: Memberships,
    pub(super) exposures: Exposures,
    /// What a transfer has found out: a process cannot be reached any more.
    pub(super) lost: Option<Lost>,
    pub(super) transfers: Transfers,
    pub(super) writes: Writes,
    pub(super) traffic: Traffic,
    /// How many processes have said that their programs have ended.
    pub(super) ended: u32,
    /// Whether this process has said it.
    pub(super) has_ended: bool,
    /// How many processes send nothing more, and whether this one does not.
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
    /// This process's end, by a transport, of a job of so many PEs, which lie on the processes and
    /// on nodes like this. The PEs of a process are on one node.
    #[must_use]
    pub fn new(transport: Box<dyn Transport>, pes: u32, [by_process, nodes]: [Nodes; 2]) -> Self {
        let processes = transport.processes();
        let own = transport.rank();
        let here = by_process.members(own, pes);
        let own_node = nodes.node(here.first);
        let link = Link {
            outboxes: (0..processes).map(|_| Frame::new()).collect(),
            unsent: Vec::new(),
            transport,
            questions: Questions::default(),
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

    /// Whether any PE is far.
    #[inline]
    pub(crate) fn has_far(&self) -> bool {
        self.has_far
    }

    /// How the PEs lie on the processes.
    pub(super) fn processes(&self) -> Nodes {
        self.processes
    }

    /// Whether no thread has looked for a while.
    pub(crate) fn is_due(&self) -> bool {
        clock::now_ns().saturating_sub(self.looked_ns.load(Relaxed)) > DUE_NS
    }

    /// Notes that a thread looks.
    pub(super) fn note_look(&self) {
        self.looked_ns.store(clock::now_ns(), Relaxed);
    }

    /// When a thread has looked last: what waits for a far PE is worth a test after each look,
    /// which takes as long as the test.
    pub(crate) fn last_look(&self) -> u64 {
        self.looked_ns.load(Relaxed)
    }

    /// Notes that something has come, or is on its way.
    pub(super) fn note_arrival(&self) {
        self.heard_ns.store(clock::now_ns(), Relaxed);
    }

    /// For how long nothing has come, nor been on its way.
    pub(crate) fn silence(&self) -> Duration {
        Duration::from_nanos(clock::now_ns().saturating_sub(self.heard_ns.load(Relaxed)))
    }

    /// How many processes there are.
    pub(super) fn count(&self) -> u32 {
        self.link().transport.processes()
    }

    /// The number of this process.
    pub(super) fn own(&self) -> u32 {
        self.own
    }

    /// The process of a PE, by its rank in the world.
    pub(super) fn process(&self, pe: Rank) -> u32 {
        self.processes.node(pe.0)
    }

    /// Whether a PE, by its rank in the world, is of this process.
    pub(crate) fn is_own(&self, pe: Rank) -> bool {
        self.process(pe) == self.own
    }

    /// Whether a PE, by its rank in the world, shares no memory with this process.
    pub(crate) fn is_far(&self, pe: Rank) -> bool {
        self.nodes.node(pe.0) != self.own_node
    }

    pub(super) fn link(&self) -> MutexGuard<'_, Link> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`Self::link`]; `None` if another thread has it.
    pub(super) fn try_link(&self) -> Option<MutexGuard<'_, Link>> {
        match self.link.try_lock() {
            Ok(link) => Some(link),
            Err(TryLockError::Poisoned(link)) => Some(link.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Sends all that waits.
    pub(crate) fn flush(&self) {
        self.link().flush();
    }

    /// As [`Self::flush`], unless another thread has the link, which sends all when it is done.
    pub(crate) fn flush_now(&self) {
        if let Some(mut link) = self.try_link() {
            link.flush();
        }
    }

    /// Lets a far PE access memory, until the exposures of the owner's call end.
    pub(crate) fn expose(&self, exposure: Exposure, memory: Memory, is_target: bool) {
        self.link().exposures.add(exposure, Exposed { memory, is_target });
    }

    /// Ends all exposures of a member of a group in its call at a window position. Transfers may
    /// still need their memory.
    pub(super) fn end_exposures(&self, group: u64, owner: Rank, position: usize) {
        self.link().exposures.end(group, owner, position);
    }
}

impl Link {
    /// Notes that a PE of this process has left a group. `left` is asked for the rest if it was the
    /// last one there.
    pub(super) fn leave(&mut self, group: u64, left: impl FnOnce() -> Left) {
        let Self { memberships, traffic, .. } = self;
        let with_packets = || {
            let Counts { sent, received } = traffic.take(group);
            let Left { last_calls, pulse } = left();
            Left { last_calls, pulse: Pulse { sent, received, ..pulse } }
        };
        if memberships.leave(group, with_packets) {
            self.early.remove(&group);
            self.questions.leave(group);
        }
    }

    /// Tells a process something, at the next flush at the latest.
    pub(super) fn tell(&mut self, to: u32, told: &Told, data: impl FnOnce(&mut Vec<u64>)) {
        if self.is_closing {
            return; // all have ended, and need nothing more
        }
        if let Some(subject) = Subject::of(told) {
            self.traffic.count_sent(subject);
        }
        let outbox = &mut self.outboxes[to as usize];
        if outbox.is_empty() {
            self.unsent.push(to);
        }
        packet::append(outbox, told, data);
        if outbox.len() >= FULL {
            self.send(to);
        }
    }

    /// Tells all other processes something, at once.
    pub(super) fn tell_all(&mut self, told: &Told, data: &[u64]) {
        let own = self.transport.rank();
        for to in (0..self.transport.processes()).filter(|&to| to != own) {
            self.tell(to, told, |frame| frame.extend(data));
        }
        self.flush();
    }

    /// Counts a packet that has arrived.
    pub(super) fn count_received(&mut self, told: &Told) {
        if let Some(subject) = Subject::of(told) {
            let is_late = match subject {
                Subject::Group(group) => self.memberships.count_late(group),
                Subject::Memory => false,
            };
            self.traffic.count_received(subject, is_late);
        }
    }

    /// Whether this process awaits no reply that may end a wait, and no long data is on its way
    /// from it or to it.
    pub(super) fn is_quiet(&self) -> bool {
        let nothing_moves = !self.transport.is_moving() && self.transfers.stalled.is_empty();
        nothing_moves && !self.questions.await_any()
    }

    /// Asks a process a question, at the next flush at the latest; returns its number.
    pub(super) fn ask(
        &mut self,
        to: u32,
        question: Question,
        data: impl FnOnce(&mut Vec<u64>),
    ) -> u64 {
        let ends_no_wait = matches!(question, Question::Report {} | Question::Describe { .. });
        let id = self.questions.ask(!ends_no_wait);
        self.tell(to, &Told::Asks { id, question }, data);
        id
    }

    /// Keeps an answer, if somebody still waits for it.
    pub(super) fn keep_answer(&mut self, id: u64, data: &[u64]) {
        self.writes.answer(id);
        self.questions.keep(id, data);
    }

    /// Sends all that waits.
    pub(super) fn flush(&mut self) {
        while let Some(to) = self.unsent.pop() {
            self.send(to);
        }
    }

    /// Sends what waits for a process. An error is found by the next receipt, too.
    fn send(&mut self, to: u32) {
        let outbox = &mut self.outboxes[to as usize];
        if outbox.is_empty() {
            return;
        }
        let frame = std::mem::take(outbox);
        if !self.is_closed {
            let _ = self.transport.send(to, frame);
        }
    }

    /// The next frame that has arrived, and its sender.
    pub(super) fn receive(&mut self) -> Result<Option<(u32, Frame)>, Lost> {
        match &self.lost {
            _ if self.is_closed => Ok(None),
            Some(lost) => Err(lost.clone()),
            None => self.transport.receive(),
        }
    }

    /// Whether all that was sent has left.
    pub(super) fn is_flushed(&mut self) -> bool {
        self.is_closed || self.has_pushed() && self.transport.is_flushed().unwrap_or(true)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Ends the transport: all processes have ended, or this one, which has failed, does not wait
    /// for them.
    pub(super) fn close(&mut self, failed: Option<&str>) {
        if !self.is_closed {
            self.is_closed = true;
            self.transport.close(failed);
        }
    }
}
